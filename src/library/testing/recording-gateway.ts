import { setImmediate as turnOver } from 'node:timers/promises';
import type { LogMessage } from '../api.ts';
import { OwnGateway } from '../own-gateway.ts';
import type { RequestFacts } from '../request-facts.ts';
import type { Program } from '../start-program.ts';
import type { TestGateway } from './test-gateway.ts';

/** Requests and messages that are kept: a test that makes more does not look at each. */
const KEPT = 10_000;

/** In ms. */
const PATIENCE = 5_000;

export class RecordingGateway extends OwnGateway implements TestGateway {
  readonly requests: RequestFacts[] = [];
  readonly messages: LogMessage[] = [];
  readonly #program: Program;

  constructor(program: Program) {
    super(program);
    this.#program = program;
    this.on('request', (request) => keep(this.requests, request));
    this.on('log', (message) => keep(this.messages, message));
  }

  async idle(): Promise<void> {
    const deadline = performance.now() + PATIENCE;
    const { openRequests } = this.#program.running;
    for (;;) {
      // What has ended is told in a later turn.
      await turnOver();
      await turnOver();
      const open = [...openRequests].filter(({ requestedMethod }) => requestedMethod !== 'GET');
      if (open.length === 0) return;
      if (performance.now() > deadline)
        throw new Error(
          `still open after ${PATIENCE / 1000} s: ${open.map(({ requestedMethod, path }) => `${requestedMethod} ${path}`).join(', ')}`,
        );
    }
  }

  clear(): void {
    this.requests.length = 0;
    this.messages.length = 0;
  }
}

function keep<T>(list: T[], item: T): void {
  if (list.length < KEPT) list.push(item);
}

import { setImmediate as turnOver, setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Gateway, GatewayOptions, LogMessage } from '../api.ts';
import { CassetteFile } from '../cassette/cassette-file.ts';
import { CassetteRecorder } from '../cassette/recorder.ts';
import type { GatewayConfig } from '../config-types.ts';
import { OwnGateway } from '../own-gateway.ts';
import type { RequestFacts } from '../request-facts.ts';
import { type Program, startProgram } from '../start-program.ts';

/** A gateway that remembers what has happened. */
export interface TestGateway extends Gateway {
  /** The requests that have ended, in this order. `idle` waits for those that have not. */
  readonly requests: readonly RequestFacts[];
  /** The messages of its log. */
  readonly messages: readonly LogMessage[];
  /**
   * Resolves when every request has ended, except open event streams (GET).
   *
   * @throws an error with the name `TimeoutError` after five seconds
   */
  idle(): Promise<void>;
  /** Forgets the requests and messages until now. */
  clear(): void;
}

/** Options of `testGateway`. */
export interface TestGatewayOptions extends Omit<GatewayOptions, 'listen'> {
  /** A file that gets what clients send and receive, with known secrets redacted, for `replayCassette`. It is replaced. */
  readonly record?: string | URL;
}

/**
 * Starts a gateway for a test: `createGateway` with a free port of 127.0.0.1 instead of each configured one.
 *
 * @throws as `createGateway` does
 */
export async function testGateway(
  config: GatewayConfig | string | URL,
  { record, ...options }: TestGatewayOptions = {},
): Promise<TestGateway> {
  const given = { ...options, listen: 'free' } as const;
  if (record === undefined) return new RecordingGateway(await startProgram(config, given));
  const recorder = new CassetteRecorder(
    new CassetteFile(record instanceof URL ? fileURLToPath(record) : record, true),
  );
  try {
    return new RecordingGateway(await startProgram(config, given, recorder));
  } catch (error) {
    await recorder.close();
    throw error;
  }
}

/** Requests and messages that are kept: a test that makes more does not look at each. */
const KEPT = 10_000;

/** How long open requests are waited for, and how often they are looked at, in ms. */
const PATIENCE = 5_000;
const POLL = 5;

class RecordingGateway extends OwnGateway implements TestGateway {
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
        throw new DOMException(
          `still open after ${PATIENCE / 1000} s: ${open.map(({ requestedMethod, path }) => `${requestedMethod} ${path}`).join(', ')}`,
          'TimeoutError',
        );
      await wait(POLL);
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

import { setImmediate as turnOver } from 'node:timers/promises';
import type { RequestContext } from '../kernel/request/request-context.ts';
import { tokenListeners } from '../kernel/request/shared-slots.ts';

type Record = (ctx: RequestContext, status: number, bodyBytes: number) => void;

/**
 * Records finished requests (access log, metrics, usage) one after the other, at the end of the turn of the event loop in
 * which their responses ended. Between the work of other requests, the processor would have to fetch the code and data of
 * each record from memory again (docs/benchmarks.md).
 */
export class FinishedRequests {
  readonly #record: Record;

  constructor(record: Record) {
    this.#record = record;
  }

  /** Adds a request whose response has ended. */
  add(ctx: RequestContext, status: number, bodyBytes: number): void {
    ctx.timings.end();
    if (isRecordedAtOnce(ctx)) this.#record(ctx, status, bodyBytes);
    // Not a queue of our own: Node.js runs what these calls schedule before the next of them, such as writes of streams.
    else setImmediate(this.#record, ctx, status, bodyBytes);
  }

  /** Resolves when all requests that were added have been recorded. */
  async recorded(): Promise<void> {
    await turnOver();
  }
}

/**
 * A pipelined request starts as soon as the previous one has ended: it must find the tokens of that one taken from its
 * limit. Spans and traces contain the time at which they are ended. The end of the running work of an abandoned request
 * would change what is recorded.
 */
const isRecordedAtOnce = (ctx: RequestContext): boolean =>
  tokenListeners.get(ctx) !== undefined ||
  ctx.span !== undefined ||
  ctx.observer !== undefined ||
  ctx.isAbandoned;

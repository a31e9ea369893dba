import { LIMITS } from '../../core/limits.ts';
import type { LineSink, Log } from '../../core/log.ts';

/**
 * Warns on stderr that access-log lines were lost because stdout is not read: when the first one is lost, and then at
 * most every `LIMITS.logLossWarning` while more are.
 */
export class LostLines {
  readonly #sink: LineSink;
  readonly #log: Log;
  #reported = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(sink: LineSink, log: Log) {
    this.#sink = sink;
    this.#log = log;
    sink.onDropped?.(() => {
      if (this.#timer === undefined) this.#warn();
    });
  }

  /** Since the start. */
  get count(): number {
    return this.#sink.dropped;
  }

  /** Reports what has been lost since the last warning. */
  close(): void {
    clearTimeout(this.#timer);
    this.#warn();
    clearTimeout(this.#timer);
  }

  #warn(): void {
    this.#timer = undefined;
    const lost = this.count - this.#reported;
    if (lost === 0) return;
    this.#reported = this.count;
    this.#log.warn('request', 'access-log lines were lost: stdout is not read fast enough', {
      lost,
      total: this.count,
    });
    this.#timer = setTimeout(() => this.#warn(), LIMITS.logLossWarning).unref();
  }
}

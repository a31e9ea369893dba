import { LIMITS } from '../../core/limits.ts';
import type { LineSink, Log } from '../../core/log.ts';

/**
 * Warns on stderr when access-log lines are dropped because stdout is not read: at the first dropped line, then at most
 * once per `LIMITS.logLossWarning` ms while more are dropped.
 */
export class DroppedLinesReporter {
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

  /** Lines dropped since the start. */
  get count(): number {
    return this.#sink.dropped;
  }

  /** Reports lines dropped since the last warning and stops the timer. */
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

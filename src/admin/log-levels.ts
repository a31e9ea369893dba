import { LIMITS } from '../core/limits.ts';
import type { Log } from '../core/log.ts';

/** Log levels as `/logging` changes them; a change can be for a while only. */
export class LogLevels {
  readonly #log: Log;
  #timer: NodeJS.Timeout | undefined;
  /** What comes back when the time is over, and when (ms since 1970). */
  #temporary: { readonly before: string; readonly until: number } | undefined;

  constructor(log: Log) {
    this.#log = log;
  }

  get current(): string {
    return this.#log.directives.current;
  }

  /** When the levels from before come back, in ms since 1970. */
  get until(): number | undefined {
    return this.#temporary?.until;
  }

  /**
   * Adds directives, after a reset if wanted. With `milliseconds` the levels from before come back after that long.
   *
   * @throws InvalidDirectives, and nothing has changed
   */
  change(directives: string | undefined, reset: boolean, milliseconds: number | undefined): void {
    const now = this.current;
    const before = this.#temporary?.before ?? now;
    try {
      if (reset) this.#log.directives.reset();
      if (directives !== undefined) this.#log.directives.add(directives);
    } catch (error) {
      this.#log.directives.replace(now);
      throw error;
    }
    this.#forget();
    if (milliseconds !== undefined) {
      const wait = Math.min(milliseconds, LIMITS.logLevelFor);
      this.#temporary = { before, until: Date.now() + wait };
      this.#timer = setTimeout(() => this.#back(before), wait).unref();
    }
    this.#say();
  }

  close(): void {
    clearTimeout(this.#timer);
  }

  #back(before: string): void {
    this.#forget();
    this.#log.directives.replace(before);
    this.#say();
  }

  #forget(): void {
    clearTimeout(this.#timer);
    this.#temporary = undefined;
  }

  #say(): void {
    this.#log.info('agctl', `new log filter is ${this.current}`);
  }
}

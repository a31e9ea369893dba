import { LIMITS } from '../../core/limits.ts';

/** Runs what starts a target, `LIMITS.checkStartConcurrency` at a time, in order. */
export class Turns {
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#running < LIMITS.checkStartConcurrency) this.#running += 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#running -= 1;
      else next();
    }
  }
}

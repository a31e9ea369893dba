import type { Exchange } from './http/exchange.ts';

/** Requests whose response has not ended, and who waits for the end of those that are open now. */
export class OpenRequests {
  readonly #all = new Set<Exchange>();
  readonly #waiting = new Set<{ readonly open: Set<Exchange>; readonly done: () => void }>();

  get all(): ReadonlySet<Exchange> {
    return this.#all;
  }

  began(x: Exchange): void {
    this.#all.add(x);
  }

  ended(x: Exchange): void {
    this.#all.delete(x);
    if (this.#waiting.size === 0) return;
    for (const { open, done } of this.#waiting) if (open.delete(x) && open.size === 0) done();
  }

  /** Resolves when every request that is open now has ended, at the latest after so many ms. */
  afterAll(deadline: number): Promise<void> {
    if (this.#all.size === 0) return Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(() => done(), deadline);
    const waiter = { open: new Set(this.#all), done: () => done() };
    const done = (): void => {
      clearTimeout(timer);
      this.#waiting.delete(waiter);
      resolve();
    };
    this.#waiting.add(waiter);
    return promise;
  }
}

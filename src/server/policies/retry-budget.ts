import { LIMITS } from '../../core/limits.ts';

/** Bounds the retries of one policy to a share of its open requests. */
export class RetryBudget {
  #open = 0;
  #retrying = 0;

  began(): void {
    this.#open += 1;
  }

  ended(): void {
    this.#open -= 1;
  }

  /** Takes one retry of the budget, and returns whether there was one left. */
  take(): boolean {
    if (this.#retrying >= Math.max(LIMITS.retryConcurrency, this.#open * LIMITS.retryShare)) return false;
    this.#retrying += 1;
    return true;
  }

  give(): void {
    this.#retrying -= 1;
  }
}

/** A token bucket on a monotonic clock (ms): setting the wall clock changes nothing. Starts full. */
export class TokenBucket {
  readonly size: number;
  readonly #perFill: number;
  readonly #interval: number;
  #tokens: number;
  /** When the last whole interval that was counted began. */
  #filledAt: number;

  constructor(size: number, perFill: number, interval: number, now: number) {
    this.size = size;
    this.#perFill = perFill;
    this.#interval = interval;
    this.#tokens = size;
    this.#filledAt = now;
  }

  /** Tokens now; negative when more was taken than there was. */
  remaining(now: number): number {
    const fills = Math.floor((now - this.#filledAt) / this.#interval);
    if (fills > 0) {
      this.#filledAt += fills * this.#interval;
      this.#tokens = Math.min(this.size, this.#tokens + fills * this.#perFill);
    }
    return this.#tokens;
  }

  take(tokens: number): void {
    this.#tokens -= tokens;
  }

  /** Whole seconds, rounded up, until tokens are next added; 0 while the bucket is full. */
  secondsUntilFill(now: number): number {
    const tokens = this.remaining(now);
    return tokens >= this.size ? 0 : this.secondsUntil(tokens + 1, now);
  }

  /** Whole seconds, rounded up, until the bucket holds that many tokens. */
  secondsUntil(tokens: number, now: number): number {
    const missing = tokens - this.remaining(now);
    if (missing <= 0) return 0;
    const fills = Math.ceil(missing / this.#perFill);
    return Math.ceil((this.#filledAt + fills * this.#interval - now) / 1000);
  }
}

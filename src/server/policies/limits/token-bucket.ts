/** State of a bucket that does not depend on the clock of a process: `age` is the time since the last fill, in ms. */
export interface BucketState {
  readonly size: number;
  readonly perFill: number;
  readonly interval: number;
  readonly tokens: number;
  readonly age: number;
}

/**
 * After this time in ms without a further lease, tokens that were lent count as used: the worker returns unused ones within
 * a tenth of it, unless it has ended.
 */
const LOAN_DURATION = 1000;

/** A token bucket that starts full. Times are in ms of a monotonic clock, so changes of the wall clock have no effect. */
export class TokenBucket {
  /** Maximum number of tokens. */
  readonly size: number;
  readonly #perFill: number;
  readonly #interval: number;
  #tokens: number;
  /** Time up to which whole intervals have been counted. */
  #filledAt: number;
  /** Tokens that workers hold. The bucket is not filled with them again. */
  #lent = 0;
  #lentUntil = 0;

  /** Adds `perFill` tokens every `interval` ms, up to `size`. */
  constructor(size: number, perFill: number, interval: number, now: number) {
    this.size = size;
    this.#perFill = perFill;
    this.#interval = interval;
    this.#tokens = size;
    this.#filledAt = now;
  }

  /** The bucket itself, or a copy of one whose state another process has sent. */
  static of(bucket: TokenBucket | BucketState, now: number): TokenBucket {
    if (bucket instanceof TokenBucket) return bucket;
    const copy = new TokenBucket(bucket.size, bucket.perFill, bucket.interval, now - bucket.age);
    copy.#tokens = bucket.tokens;
    return copy;
  }

  toJSON(): BucketState {
    const now = performance.now();
    const tokens = this.remaining(now);
    return {
      size: this.size,
      perFill: this.#perFill,
      interval: this.#interval,
      tokens,
      age: now - this.#filledAt,
    };
  }

  /** Number of tokens; negative if more were taken than available. */
  remaining(now: number): number {
    const fills = Math.floor((now - this.#filledAt) / this.#interval);
    if (fills > 0) {
      this.#filledAt += fills * this.#interval;
      if (now > this.#lentUntil) this.#lent = 0;
      this.#tokens = Math.min(this.size - this.#lent, this.#tokens + fills * this.#perFill);
    }
    return this.#tokens;
  }

  /** Takes tokens, even more than available. */
  take(tokens: number): void {
    this.#tokens -= tokens;
  }

  /** Takes tokens that a worker will use or return. */
  lend(tokens: number, now: number): void {
    this.#tokens -= tokens;
    this.#lent += tokens;
    this.#lentUntil = now + LOAN_DURATION;
  }

  /** A worker has used, or returns, tokens that it was lent. */
  settle(used: number, unused: number, now: number): void {
    const left = this.remaining(now);
    this.#lent = Math.max(0, this.#lent - used - unused);
    if (unused > 0) this.#tokens = Math.min(this.size - this.#lent, left + unused);
  }

  /** Whole seconds, rounded up, until tokens are next added; 0 while the bucket is full. */
  secondsUntilFill(now: number): number {
    const tokens = this.remaining(now);
    return tokens >= this.size ? 0 : this.secondsUntil(tokens + 1, now);
  }

  /** Whole seconds, rounded up, until the bucket has that many tokens. */
  secondsUntil(tokens: number, now: number): number {
    const missing = tokens - this.remaining(now);
    if (missing <= 0) return 0;
    const fills = Math.ceil(missing / this.#perFill);
    return Math.ceil((this.#filledAt + fills * this.#interval - now) / 1000);
  }
}

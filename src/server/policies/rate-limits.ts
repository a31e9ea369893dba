import { LIMITS } from '../../core/limits.ts';
import { type BucketState, TokenBucket } from './token-bucket.ts';

/** Size and refill of the buckets of one limit; `fillInterval` in ms. */
export interface BucketOptions {
  readonly maxTokens: number;
  readonly tokensPerFill: number;
  readonly fillInterval: number;
  readonly type: 'requests' | 'tokens';
}

/** The outcome for one request. */
export interface Taken {
  /** Whether a bucket was empty: then nothing was taken. */
  readonly isDenied: boolean;
  /** The empty bucket, or the one with the fewest tokens. Between processes, its state. */
  readonly lowest: TokenBucket | BucketState;
}

/** The buckets of a `localRateLimit` policy. All workers of a gateway share them. */
export class RateLimits {
  readonly #limits: readonly { readonly type: BucketOptions['type']; readonly buckets: Buckets }[];

  constructor(limits: readonly BucketOptions[]) {
    this.#limits = limits.map((limit) => ({ type: limit.type, buckets: new Buckets(limit) }));
  }

  /** Number of buckets of one limit. */
  size(index: number): number {
    return this.#limits[index]?.buckets.size ?? 0;
  }

  /**
   * Takes a token of every limit of requests, or of none: a rejected request costs nothing. `keys` has the key of the
   * request for each limit; a request that is `isFreeOfTokens` is not held up by an empty limit of LLM tokens.
   */
  take(keys: readonly string[], isFreeOfTokens: boolean): Taken {
    const now = performance.now();
    const found = this.#limits.map(({ type, buckets }, index) => ({
      type,
      bucket: buckets.find(keys[index] as string, now),
    }));
    const empty = found.find(
      ({ type, bucket }) => !(isFreeOfTokens && type === 'tokens') && bucket.remaining(now) < 1,
    );
    if (empty !== undefined) return { isDenied: true, lowest: empty.bucket };
    for (const { type, bucket } of found) if (type === 'requests') bucket.take(1);
    const buckets = found.map(({ bucket }) => bucket);
    return {
      isDenied: false,
      lowest: buckets.reduce((a, b) => (b.remaining(now) < a.remaining(now) ? b : a)),
    };
  }

  /** Takes LLM tokens that a call has used, even more than available. */
  deduct(index: number, key: string, tokens: number): void {
    this.#limits[index]?.buckets.find(key, performance.now()).take(tokens);
  }
}

/** The buckets of one limit by key. Over `LIMITS.rateLimitKeys` keys, the least recently used bucket is removed. */
class Buckets {
  readonly #limit: BucketOptions;
  readonly #byKey = new Map<string, TokenBucket>();
  /** The key that was used last, which is at the end of the map. To move it there again would make V8 replace the table. */
  #newest: string | undefined;

  constructor(limit: BucketOptions) {
    this.#limit = limit;
  }

  get size(): number {
    return this.#byKey.size;
  }

  find(key: string, now: number): TokenBucket {
    const known = this.#byKey.get(key);
    if (known !== undefined) {
      if (key !== this.#newest) {
        this.#byKey.delete(key);
        this.#byKey.set(key, known);
        this.#newest = key;
      }
      return known;
    }
    this.#newest = key;
    if (this.#byKey.size >= LIMITS.rateLimitKeys)
      this.#byKey.delete(this.#byKey.keys().next().value as string);
    const { maxTokens, tokensPerFill, fillInterval } = this.#limit;
    const bucket = new TokenBucket(maxTokens, tokensPerFill, fillInterval, now);
    this.#byKey.set(key, bucket);
    return bucket;
  }
}

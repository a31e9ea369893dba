import { LIMITS } from '../../../core/limits.ts';
import { LruMap } from '../../../core/lru-map.ts';
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
  /** The number of the limit whose bucket was empty; undefined if none was. */
  readonly empty?: number;
}

/** The outcome for a worker that asks for several tokens at once. `lowest` is without them. */
export interface Leased extends Taken {
  readonly count: number;
}

/** A worker takes at most this share of a bucket's tokens: 15 of 1,000, and one at a time from fewer than 128. */
const LARGEST_SHARE = 1 / 64;

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
    const found = this.#find(keys, now);
    const empty = found.find(
      ({ type, bucket }) => !(isFreeOfTokens && type === 'tokens') && bucket.remaining(now) < 1,
    );
    if (empty !== undefined) return { isDenied: true, lowest: empty.bucket, empty: empty.index };
    for (const { type, bucket } of found) if (type === 'requests') bucket.take(1);
    return { isDenied: false, lowest: lowestOf(found, now).bucket };
  }

  /**
   * Takes up to `wanted` tokens of every limit for a worker; one at a time from buckets with few, so that no worker holds
   * tokens while another rejects. For limits of requests only. `used` is the number of tokens of earlier leases that the
   * worker has used.
   */
  lease(keys: readonly string[], wanted: number, used: number): Leased {
    const now = performance.now();
    const found = this.#find(keys, now);
    for (const { bucket } of found) bucket.settle(used, 0, now);
    const { bucket: lowest, index: empty } = lowestOf(found, now);
    const left = lowest.remaining(now);
    if (left < 1) return { isDenied: true, lowest, empty, count: 0 };
    const count = Math.max(1, Math.min(wanted, Math.floor(left * LARGEST_SHARE)));
    for (const { bucket } of found) bucket.lend(count, now);
    return { isDenied: false, lowest, count };
  }

  /** Ends a lease: `unused` tokens are returned. */
  giveBack(keys: readonly string[], used: number, unused: number): void {
    const now = performance.now();
    for (const { bucket } of this.#find(keys, now)) bucket.settle(used, unused, now);
  }

  #find(keys: readonly string[], now: number) {
    return this.#limits.map(({ type, buckets }, index) => ({
      index,
      type,
      bucket: buckets.find(keys[index] ?? '', now),
    }));
  }

  /** Takes LLM tokens that a call has used, even more than available. */
  deduct(index: number, key: string, tokens: number): void {
    this.#limits[index]?.buckets.find(key, performance.now()).take(tokens);
  }
}

const lowestOf = <T extends { readonly bucket: TokenBucket }>(found: readonly T[], now: number): T =>
  found.reduce((a, b) => (b.bucket.remaining(now) < a.bucket.remaining(now) ? b : a));

/** The buckets of one limit by key. Over `LIMITS.rateLimitKeys` keys, the least recently used bucket is removed. */
class Buckets {
  readonly #limit: BucketOptions;
  readonly #byKey = new LruMap<string, TokenBucket>(LIMITS.rateLimitKeys);

  constructor(limit: BucketOptions) {
    this.#limit = limit;
  }

  get size(): number {
    return this.#byKey.size;
  }

  find(key: string, now: number): TokenBucket {
    const known = this.#byKey.get(key);
    if (known !== undefined) return known;
    const { maxTokens, tokensPerFill, fillInterval } = this.#limit;
    const bucket = new TokenBucket(maxTokens, tokensPerFill, fillInterval, now);
    this.#byKey.set(key, bucket);
    return bucket;
  }
}

import { LIMITS } from '../../../core/limits.ts';
import type { Remote } from '../../kernel/shared-state.ts';
import { TransientMap } from '../../kernel/transient-map.ts';
import type { Leased, RateLimits, Taken } from './rate-limits.ts';
import { TokenBucket } from './token-bucket.ts';

/** To ask costs 15 µs of CPU time in both processes: with 64 tokens, less than 1 µs per request. */
const LARGEST_LEASE = 64;

/** How long a worker keeps tokens that it does not use, in ms. Short, because other workers may reject requests meanwhile. */
const LEASE_DURATION = 100;

type LeasedLimits = Pick<RateLimits, 'take' | 'lease' | 'giveBack'>;

/** A key is a JSON value or a hash, so it has no line break. */
const SEPARATOR = '\n';

/** Tokens of the buckets of one request, which a worker may use without asking. */
interface Lease {
  /** The keys of the request, one for each limit. */
  readonly keys: readonly string[];
  /** Number of tokens to ask for next: doubled each time, so that a client with few requests does not cause returns. */
  next: number;
  left: number;
  /** Number of tokens that were used since the primary process was last told. */
  used: number;
  /** The bucket with the fewest tokens, with those that are left here. */
  lowest: TokenBucket | undefined;
  /** When the tokens are returned, on the clock of `performance.now`. */
  expiresAt: number;
  isAsking: boolean;
}

/**
 * The rate limits as a worker takes them: in leases of up to `LARGEST_LEASE` tokens while a bucket has many, one by one
 * when it has few (`RateLimits.lease`). Never admits more than the limit. A request can be rejected although another
 * worker holds tokens, for at most `LEASE_DURATION`.
 */
export class TokenLeases {
  readonly #limits: Remote<LeasedLimits>;
  readonly #leases = new TransientMap<string, Lease>();
  #timer: NodeJS.Timeout | undefined;

  /** `limits` are those of the process that holds the buckets. */
  constructor(limits: Remote<LeasedLimits>) {
    this.#limits = limits;
  }

  /** As `RateLimits.take`; at once with a leased token. */
  take(keys: readonly string[]): Taken | Promise<Taken> {
    const now = performance.now();
    const name = keys.join(SEPARATOR);
    const lease = this.#leases.get(name) ?? this.#begin(name, keys, now);
    // Too many keys have leases already: this request asks for itself alone.
    if (lease === undefined) return this.#limits.take(keys, false);
    const { lowest } = lease;
    if (lowest !== undefined && lease.left > 0 && now < lease.expiresAt) {
      lease.left -= 1;
      lease.used += 1;
      lowest.take(1);
      // Asked for in advance, so that no request waits.
      if (lease.left < lease.next / 4 && !lease.isAsking) void this.#renew(lease, 0).catch(() => undefined);
      return { isDenied: false, lowest };
    }
    if (lease.isAsking) return this.#limits.take(keys, false);
    if (lease.left > 0) this.#giveBack(lease);
    return this.#ask(lease);
  }

  /** Returns all tokens that have not been used. */
  close(): void {
    clearTimeout(this.#timer);
    for (const lease of this.#leases.values()) this.#giveBack(lease);
    this.#leases.clear();
  }

  #begin(name: string, keys: readonly string[], now: number): Lease | undefined {
    if (this.#leases.size >= LIMITS.rateLimitKeys) return undefined;
    const lease: Lease = {
      keys,
      next: 1,
      left: 0,
      used: 0,
      lowest: undefined,
      expiresAt: now + LEASE_DURATION,
      isAsking: false,
    };
    this.#leases.set(name, lease);
    this.#startTimer();
    return lease;
  }

  /** Asks for tokens, and uses the first of them. */
  async #ask(lease: Lease): Promise<Taken> {
    const taken = await this.#renew(lease, 1);
    // No outcome: a reload has removed this limit.
    const { lowest } = lease;
    if (taken === undefined || taken.isDenied || lowest === undefined)
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- callers know of this case.
      return taken as Taken;
    return { isDenied: false, lowest };
  }

  /** `using` tokens of the answer are used at once: a request that runs before the caller goes on cannot take them. */
  async #renew(lease: Lease, using: 0 | 1): Promise<Leased | undefined> {
    const { keys, next, used } = lease;
    lease.isAsking = true;
    lease.used = 0;
    try {
      const answer: Leased | undefined = await this.#limits.lease(keys, next, used);
      if (answer === undefined || answer.isDenied) return answer;
      const now = performance.now();
      lease.left += answer.count - using;
      lease.used += using;
      lease.lowest = TokenBucket.of(answer.lowest, now);
      lease.lowest.take(-lease.left);
      lease.next = Math.min(next * 2, LARGEST_LEASE);
      lease.expiresAt = now + LEASE_DURATION;
      return answer;
    } finally {
      lease.isAsking = false;
    }
  }

  #expire(): void {
    const now = performance.now();
    for (const lease of this.#leases.values())
      if (now >= lease.expiresAt && !lease.isAsking) {
        this.#leases.delete(lease.keys.join(SEPARATOR));
        this.#giveBack(lease);
      }
    this.#timer = undefined;
    if (this.#leases.size > 0) this.#startTimer();
  }

  #startTimer(): void {
    this.#timer ??= setTimeout(() => this.#expire(), LEASE_DURATION).unref();
  }

  #giveBack(lease: Lease): void {
    const { keys, used, left } = lease;
    if (used === 0 && left === 0) return;
    lease.used = 0;
    lease.left = 0;
    // Fails if the primary process has ended: then there is nothing to return it to.
    Promise.resolve(this.#limits.giveBack(keys, used, left)).catch(() => undefined);
  }
}

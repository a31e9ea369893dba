import { AppError } from '../../../core/errors.ts';
import type { Limits } from '../../../core/limits.ts';
import type { RequestContext } from '../../kernel/request-context.ts';
import { TokenBucket } from '../token-bucket.ts';

/**
 * Rate limit of client registrations, which need no authentication: a loop could fill the provider with clients, while a
 * client registers only once. Limited per address (`LIMITS.registrationsPerAddress` in `LIMITS.registrationsTime`), and in
 * total (`LIMITS.registrations`), because IPv6 addresses are plentiful.
 */
export class RegistrationLimit {
  readonly #limits: Limits;
  readonly #all: TokenBucket;
  readonly #byAddress = new Map<string, TokenBucket>();

  constructor(limits: Limits) {
    this.#limits = limits;
    const { registrations, registrationsTime } = limits;
    this.#all = new TokenBucket(registrations, 1, registrationsTime / registrations, performance.now());
  }

  /** Number of addresses with a bucket. */
  get addresses(): number {
    return this.#byAddress.size;
  }

  /** Counts a registration. Throws `rate_limited` (429) over the limit of the address or the total limit. */
  take({ client }: RequestContext): void {
    const now = performance.now();
    const buckets = [this.#bucketOf(client.address, now), this.#all];
    const empty = buckets.find((bucket) => bucket.remaining(now) < 1);
    if (empty !== undefined)
      throw new AppError('rate_limited', {
        headers: ['retry-after', String(Math.max(1, empty.secondsUntil(1, now)))],
        detail:
          empty === this.#all
            ? 'total limit of client registrations'
            : 'client registrations of this address',
      });
    for (const bucket of buckets) bucket.take(1);
  }

  /** Over `LIMITS.registrationAddresses`, the oldest address is removed; the total limit still applies to it. */
  #bucketOf(address: string, now: number): TokenBucket {
    const known = this.#byAddress.get(address);
    if (known !== undefined) return known;
    if (this.#byAddress.size >= this.#limits.registrationAddresses)
      this.#byAddress.delete(this.#byAddress.keys().next().value as string);
    const most = this.#limits.registrationsPerAddress;
    const bucket = new TokenBucket(most, 1, this.#limits.registrationsTime / most, now);
    this.#byAddress.set(address, bucket);
    return bucket;
  }
}

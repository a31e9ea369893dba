import { AppError } from '../../../core/errors.ts';
import { LIMITS } from '../../../core/limits.ts';
import type { RequestContext } from '../../kernel/request-context.ts';
import { TokenBucket } from '../token-bucket.ts';

/**
 * How often clients may register. Anybody may, so that a loop could fill the provider with clients; a client registers
 * once. Counted for each address, so that one does not use up what all may, and for all together, since addresses cost
 * nothing in IPv6.
 */
export class RegistrationLimit {
  readonly #all = new TokenBucket(
    LIMITS.registrations,
    1,
    LIMITS.registrationsTime / LIMITS.registrations,
    performance.now(),
  );
  readonly #byAddress = new Map<string, TokenBucket>();

  /** Addresses that are told apart. */
  get addresses(): number {
    return this.#byAddress.size;
  }

  /** Throws an `AppError` (429) when the client, or all of them, registered too often. */
  take({ sourceAddress }: RequestContext): void {
    const now = performance.now();
    const buckets = [this.#bucketOf(sourceAddress, now), this.#all];
    const full = buckets.find((bucket) => bucket.remaining(now) < 1);
    if (full !== undefined)
      throw new AppError('rate_limited', {
        headers: ['retry-after', String(Math.max(1, full.secondsUntil(1, now)))],
        detail:
          full === this.#all
            ? 'client registrations of all addresses'
            : 'client registrations of this address',
      });
    for (const bucket of buckets) bucket.take(1);
  }

  /** The address that came first is forgotten: it starts anew, within the bound of all. */
  #bucketOf(address: string, now: number): TokenBucket {
    const known = this.#byAddress.get(address);
    if (known !== undefined) return known;
    if (this.#byAddress.size >= LIMITS.registrationAddresses)
      this.#byAddress.delete(this.#byAddress.keys().next().value as string);
    const most = LIMITS.registrationsPerAddress;
    const bucket = new TokenBucket(most, 1, LIMITS.registrationsTime / most, now);
    this.#byAddress.set(address, bucket);
    return bucket;
  }
}

import { AppError } from '../../../core/errors.ts';
import type { Remote } from '../../kernel/shared-state.ts';
import { type SharedStore, StoreUnavailable } from '../../kernel/shared-store.ts';
import type { RateLimits, Taken } from './rate-limits.ts';
import type { StoreBuckets } from './store-buckets.ts';

/** What counts requests: the buckets of this gateway, or of a store that several gateways share. */
export type Counts = Remote<Pick<RateLimits, 'take' | 'deduct'>>;

/**
 * Counts in the shared store. While it is not available, requests are counted by `own`, whose buckets are full at first, or
 * rejected; tokens that a call has used are deducted there as well.
 */
export function storeRateLimits(buckets: StoreBuckets, own: Counts, store: SharedStore): Counts {
  const isClosed = store.failsClosed('rateLimits');
  return {
    async take(keys, isFreeOfTokens): Promise<Awaited<Taken>> {
      try {
        return await buckets.take(keys, isFreeOfTokens);
      } catch (error) {
        if (!(error instanceof StoreUnavailable)) throw error;
        store.missed('rateLimits', isClosed ? 'rejected' : 'continued');
        if (!isClosed) return own.take(keys, isFreeOfTokens);
        throw new AppError('rate_limit_failed', {
          status: 503,
          detail: `config.shared: ${error.message}`,
          headers: ['retry-after', '1'],
        });
      }
    },
    async deduct(index, key, tokens): Promise<void> {
      try {
        await buckets.deduct(index, key, tokens);
      } catch (error) {
        if (!(error instanceof StoreUnavailable)) throw error;
        store.missed('rateLimits', 'continued');
        await own.deduct(index, key, tokens);
      }
    },
  };
}

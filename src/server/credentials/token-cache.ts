import { z } from 'zod';
import { durationSchema } from '../../core/duration.ts';
import { LruMap } from '../../core/lru-map.ts';
import type { CompileContext } from '../kernel/compile-context.ts';

/** A token of an authorization server. */
export interface IssuedToken {
  readonly value: string;
  /** Lifetime in ms, if the server gave one. */
  readonly lifetime: number | undefined;
}

/** Tokens are replaced this long before they expire: a request takes time to arrive. In ms. */
const MARGIN = 10_000;

/**
 * Tokens by what they were requested with, until shortly before they expire. Requests for the same token share one call. The
 * least recently used token is removed when there are more than `most`; calls under way are as many as there are requests.
 */
class TokenCache {
  readonly #defaultLifetime: number;
  readonly #tokens: LruMap<string, { readonly value: string; readonly expiresAt: number }>;
  readonly #pending = new Map<string, Promise<string>>();

  /** `defaultLifetime` in ms is that of tokens without one. */
  constructor(most: number, defaultLifetime: number) {
    this.#tokens = new LruMap(most);
    this.#defaultLifetime = defaultLifetime;
  }

  get size(): number {
    return this.#tokens.size;
  }

  /** The token of this key; rejects like `fetch`. */
  async get(key: string, fetch: () => Promise<IssuedToken>): Promise<string> {
    const known = this.#tokens.get(key);
    if (known !== undefined && known.expiresAt > performance.now()) return known.value;
    const pending = this.#pending.get(key) ?? this.#fetch(key, fetch);
    this.#pending.set(key, pending);
    return pending;
  }

  async #fetch(key: string, fetch: () => Promise<IssuedToken>): Promise<string> {
    try {
      const { value, lifetime = this.#defaultLifetime } = await fetch();
      const expiresAt = performance.now() + lifetime - MARGIN;
      if (expiresAt > performance.now()) this.#tokens.set(key, { value, expiresAt });
      return value;
    } finally {
      this.#pending.delete(key);
    }
  }
}

export const tokenCacheSchema = z.lazy(() =>
  z
    .strictObject({
      maxEntries: z.int().min(0).max(100_000).default(8192).describe('Tokens to keep; 0 keeps none.'),
      defaultTtl: durationSchema.prefault('300s').describe('How long to keep tokens that have no lifetime.'),
    })
    .prefault({})
    .describe('Cache of tokens. They are kept until shortly before they expire.'),
);

/** A cache of these settings, whose bound the admin server shows. */
export function openTokenCache(
  { maxEntries, defaultTtl }: z.output<typeof tokenCacheSchema>,
  context: CompileContext,
): TokenCache {
  const cache = new TokenCache(maxEntries, defaultTtl);
  context.inspection.bounds.push({
    name: 'backendAuth.tokens',
    at: context.path.join('.'),
    max: maxEntries,
    keepsLatest: true,
    used: () => cache.size,
  });
  return cache;
}

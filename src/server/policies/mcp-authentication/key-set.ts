import { messageOf } from '../../../core/errors.ts';
import { LIMITS } from '../../../core/limits.ts';
import type { Log } from '../../../core/log.ts';
import type { Document } from './document.ts';
import { importKeySet, type SigningKey, type SigningKeys } from './signing-keys.ts';

/** No key set has been loaded yet: the provider is down, or its document is unusable. The message gives the reason. */
export class KeySetUnavailableError extends Error {}

/** Reads the JWK Set (RFC 7517 §5) from where it is; rejects if that fails. A set in the configuration never expires. */
export type KeySource = () => Promise<Document>;

/**
 * The provider's signing keys, loaded on first use and cached. They are loaded again in the background when they expire,
 * and at most every `LIMITS.keyRefetch` when a token names an unknown key. Concurrent callers share one load. If a load
 * fails, the cached keys stay in use. Why this is not jose's `createRemoteJWKSet`: docs/decisions/0027.
 */
export class KeySet {
  readonly #source: KeySource;
  readonly #log: Log;
  readonly #now: () => number;
  #keys: SigningKeys | undefined;
  #fingerprint = '';
  #expiresAt = 0;
  /** When the last load ended, in ms of `#now`. */
  #loadedAt = Number.NEGATIVE_INFINITY;
  /** When an unknown `kid` last caused a load, in ms of `#now`. */
  #unknownKidAt = Number.NEGATIVE_INFINITY;
  #loading: Promise<void> | undefined;
  #problem = '';
  /** Called when the keys have changed: tokens that were validated with the old ones must be validated again. */
  onChanged: (() => void) | undefined;

  /** `now` is a clock in ms that never goes back. */
  constructor(source: KeySource, log: Log, now: () => number = () => performance.now()) {
    this.#source = source;
    this.#log = log;
    this.#now = now;
  }

  /** Number of loaded keys. */
  get size(): number {
    return [...(this.#keys?.values() ?? [])].reduce((sum, keys) => sum + keys.length, 0);
  }

  /** The loaded keys of that id, expired or not; undefined if there are none. Starts a load if they have expired. */
  get(kid: string): readonly SigningKey[] | undefined {
    this.keepFresh();
    return this.#keys?.get(kid);
  }

  /** Starts loading expired keys again. Requests do not wait for it: they use the old keys meanwhile. */
  keepFresh(): void {
    if (this.#keys === undefined || this.#now() < this.#expiresAt) return;
    if (this.#now() - this.#loadedAt >= LIMITS.keyRefetch) void this.#loadOnce();
  }

  /**
   * Loads the keys for a token whose key is not among them. The first load of all, and one that is under way already, do
   * not count as a load for an unknown `kid`. Rejects with `KeySetUnavailableError` if there are no keys at all; for
   * `LIMITS.retryLast` after a failed load, it does so without another attempt.
   */
  async loadFor(kid: string): Promise<void> {
    if (this.#keys === undefined) {
      if (this.#loading !== undefined || this.#now() - this.#loadedAt >= LIMITS.retryLast)
        await this.#loadOnce();
      if (this.#keys === undefined) throw new KeySetUnavailableError(this.#problem);
      return;
    }
    await this.#loading;
    if (this.#keys.has(kid)) return;
    if (this.#now() - this.#unknownKidAt < LIMITS.keyRefetch) return this.#loading;
    this.#unknownKidAt = this.#now();
    this.#log.debug('auth', 'a token names an unknown key: the keys are loaded again');
    await this.#loadOnce();
  }

  /** For a source that has changed: cached keys are loaded again now. If there are none, the next token loads them. */
  reread(): void {
    if (this.#keys === undefined) this.#loadedAt = Number.NEGATIVE_INFINITY;
    else void Promise.resolve(this.#loading).then(() => this.#loadOnce());
  }

  #loadOnce(): Promise<void> {
    this.#loading ??= this.#load().finally(() => {
      this.#loading = undefined;
    });
    return this.#loading;
  }

  async #load(): Promise<void> {
    try {
      const { value, lifetime } = await this.#source();
      const { keys, fingerprint } = await importKeySet(value, this.#log);
      const changed = this.#keys !== undefined && this.#fingerprint !== fingerprint;
      this.#keys = keys;
      this.#fingerprint = fingerprint;
      this.#expiresAt = this.#now() + lifetime;
      if (changed) this.onChanged?.();
      // Keys in the configuration have no time limit.
      const validFor = Number.isFinite(lifetime) ? { 'valid.s': Math.round(lifetime / 1000) } : {};
      this.#log.debug('auth', 'signing keys were read', { keys: this.size, changed, ...validFor });
    } catch (error) {
      this.#problem = messageOf(error);
      this.#log.warn('auth', 'signing keys could not be read', {
        problem: this.#problem,
        ...(this.#keys === undefined ? {} : { kept: this.#keys.size }),
      });
    } finally {
      this.#loadedAt = this.#now();
    }
  }
}

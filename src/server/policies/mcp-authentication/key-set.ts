import type { webcrypto } from 'node:crypto';
import { createPublicKey } from 'node:crypto';
import { messageOf } from '../../../core/errors.ts';
import { LIMITS } from '../../../core/limits.ts';
import type { Log } from '../../../core/log.ts';
import type { Document } from './document.ts';
import { type Verifiers, verifiersOf } from './signature.ts';

/** No key set could be had yet: the provider is down, or its document is unusable. */
export class KeySetUnavailable extends Error {}

/** How a key set is read again; throws when that fails. Documents in the configuration never expire. */
export type KeySource = () => Promise<Document>;

/** RFC 7517 §4.5: keys of different types may share an id. */
type Keys = ReadonlyMap<string, readonly Verifiers[]>;

/**
 * The provider's signing keys (RFC 7517), loaded on first use and kept. They are read again when they expire, beside
 * the requests, and when a token names an unknown key, at most every `LIMITS.keyRefetch`; callers share one read. A
 * read that fails leaves the keys as they are.
 */
export class KeySet {
  readonly #source: KeySource;
  readonly #log: Log;
  readonly #now: () => number;
  #keys: Keys | undefined;
  #fingerprint = '';
  #expiresAt = 0;
  /** When the last read ended, and when an unknown id last caused one. */
  #readAt = Number.NEGATIVE_INFINITY;
  #askedAt = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | undefined;
  #problem = '';
  /** Called after keys were replaced by others: what was validated with the old ones must be validated again. */
  onChanged: (() => void) | undefined;

  /** `now` is a clock in ms that never goes back. */
  constructor(source: KeySource, log: Log, now: () => number = () => performance.now()) {
    this.#source = source;
    this.#log = log;
    this.#now = now;
  }

  /** How many keys there are. */
  get size(): number {
    return [...(this.#keys?.values() ?? [])].reduce((sum, keys) => sum + keys.length, 0);
  }

  /** The keys of that id, if they are here. */
  get(keyId: string): readonly Verifiers[] | undefined {
    this.keepFresh();
    return this.#keys?.get(keyId);
  }

  /** Renews an expired set beside the request at hand, which the old one still serves. */
  keepFresh(): void {
    if (this.#keys === undefined || this.#now() < this.#expiresAt) return;
    if (this.#now() - this.#readAt >= LIMITS.keyRefetch) void this.#read();
  }

  /**
   * Has the set read for a token whose key is not here. Whoever has to wait for the first set gets one that is as
   * new as can be, and a renewal under way may bring the key: neither counts as a read for an unknown id.
   * Rejects with `KeySetUnavailable` while there are no keys at all.
   */
  async seek(keyId: string): Promise<void> {
    if (this.#keys === undefined) {
      if (this.#reading !== undefined || this.#now() - this.#readAt >= LIMITS.retryLast) await this.#read();
      if (this.#keys === undefined) throw new KeySetUnavailable(this.#problem);
      return;
    }
    await this.#reading;
    if (this.#keys.has(keyId)) return;
    if (this.#now() - this.#askedAt < LIMITS.keyRefetch) return this.#reading;
    this.#askedAt = this.#now();
    this.#log.debug('auth', 'a token names a key that is not here: the keys are read again');
    await this.#read();
  }

  /** The source has changed: keys that are here are read again now, and those that could not be had when next wanted. */
  reread(): void {
    if (this.#keys === undefined) this.#readAt = Number.NEGATIVE_INFINITY;
    else void Promise.resolve(this.#reading).then(() => this.#read());
  }

  #read(): Promise<void> {
    this.#reading ??= this.#load().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  async #load(): Promise<void> {
    try {
      const { value, lifetime } = await this.#source();
      const { keys, fingerprint } = parseKeySet(value, this.#log);
      const changed = this.#keys !== undefined && this.#fingerprint !== fingerprint;
      this.#keys = keys;
      this.#fingerprint = fingerprint;
      this.#expiresAt = this.#now() + lifetime;
      if (changed) this.onChanged?.();
      // Some providers give theirs no time limit.
      const validFor = Number.isFinite(lifetime) ? { 'valid.s': Math.round(lifetime / 1000) } : {};
      this.#log.debug('auth', 'signing keys were read', { keys: this.size, changed, ...validFor });
    } catch (error) {
      this.#problem = messageOf(error);
      this.#log.warn('auth', 'signing keys could not be read', {
        problem: this.#problem,
        ...(this.#keys === undefined ? {} : { kept: this.#keys.size }),
      });
    } finally {
      this.#readAt = this.#now();
    }
  }
}

type Jwk = webcrypto.JsonWebKey & Readonly<Record<string, unknown>>;

/**
 * Usable keys by id, and a text that is the same for the same keys. Keys that are weak, not for signatures, without
 * an id or of another kind are left out and logged.
 */
function parseKeySet(document: unknown, log: Log): { keys: Keys; fingerprint: string } {
  const list = (document as { keys?: unknown } | null)?.keys;
  if (!Array.isArray(list)) throw new Error('the key set has no `keys` list');
  if (list.length > LIMITS.keys) throw new Error(`the key set has more than ${LIMITS.keys} keys`);
  const keys = new Map<string, Verifiers[]>();
  const prints: string[] = [];
  for (const jwk of list as (Jwk | null)[]) {
    // Keys for encryption stand in the sets of most providers: nothing is wrong with them.
    if (jwk?.use !== undefined && jwk.use !== 'sig') continue;
    try {
      const { kid, print, verifiers } = signingKey(jwk);
      keys.set(kid, [...(keys.get(kid) ?? []), verifiers]);
      prints.push(print);
    } catch (error) {
      const id = jwk?.['kid'];
      // Not `String(id)`, which throws for `{"toString":1}`: one odd key would cost all others.
      const kid = typeof id === 'string' ? id.slice(0, 100) : typeof id;
      log.warn('auth', 'a signing key was left out', { kid, problem: messageOf(error) });
    }
  }
  return { keys, fingerprint: prints.sort().join('\n') };
}

/** A key by its id, with a text that is the same for the same key and algorithms. */
function signingKey(jwk: Jwk | null): { kid: string; print: string; verifiers: Verifiers } {
  if (typeof jwk !== 'object' || jwk === null) throw new Error('it is not an object');
  const { kid, alg, kty, n, e, crv, x, y, key_ops: operations } = jwk;
  if (typeof kid !== 'string' || kid === '') throw new Error('it has no `kid`, by which tokens name it');
  if (Array.isArray(operations) && !operations.includes('verify'))
    throw new Error('its `key_ops` do not include `verify`');
  if (kty !== 'RSA' && kty !== 'EC' && kty !== 'OKP')
    throw new Error(`key type ${String(kty).slice(0, 20)} is not supported`);
  // Only public members are handed on: a provider that publishes a private key must not make us keep it.
  const key = createPublicKey({ key: { kty, n, e, crv, x, y } as webcrypto.JsonWebKey, format: 'jwk' });
  const possible = verifiersOf(key);
  const verifiers = alg === undefined ? possible : only(alg, possible);
  return {
    kid,
    verifiers,
    print: JSON.stringify([kid, key.export({ format: 'jwk' }), [...verifiers.keys()]]),
  };
}

/** A key that names its algorithm is used with no other (RFC 7517 §4.4). */
function only(algorithm: unknown, possible: Verifiers): Verifiers {
  const verify = possible.get(String(algorithm));
  if (typeof algorithm !== 'string' || verify === undefined)
    throw new Error('its `alg` does not fit its type');
  return new Map([[algorithm, verify]]);
}

import type { webcrypto } from 'node:crypto';
import { createPublicKey, type KeyObject } from 'node:crypto';
import { messageOf } from '../../../core/errors.ts';
import { LIMITS } from '../../../core/limits.ts';
import type { Log } from '../../../core/log.ts';
import type { Document } from './document.ts';
import type { VerificationKey } from './jwt.ts';

/** No key set could be had yet: the provider is down, or its document is unusable. */
export class KeySetUnavailable extends Error {}

/** How a key set is read again; throws when that fails. Documents in the configuration never expire. */
export type KeySource = () => Promise<Document>;

/**
 * The provider's signing keys (RFC 7517), loaded on first use and kept. Read again when they expire, or when a
 * token names an unknown key, at most every `LIMITS.keyRefetch`; callers share one read. A read that fails
 * leaves the keys as they are.
 */
export class KeySet {
  readonly #source: KeySource;
  readonly #log: Log;
  #keys: ReadonlyMap<string, VerificationKey> | undefined;
  #expiresAt = 0;
  #readAt = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | undefined;
  #problem = '';
  /** Called after keys were replaced by others: what was validated with the old ones must be validated again. */
  onChanged: (() => void) | undefined;

  constructor(source: KeySource, log: Log) {
    this.#source = source;
    this.#log = log;
  }

  /** The key of that id, or undefined. Rejects with `KeySetUnavailable` while there are no keys at all. */
  async find(keyId: string): Promise<VerificationKey | undefined> {
    const known = this.#keys?.get(keyId);
    if (known !== undefined) {
      // An expired set still serves; the next one is fetched beside the request.
      if (performance.now() > this.#expiresAt && this.#mayRead()) void this.#read();
      return known;
    }
    if (this.#reading !== undefined || this.#mayRead()) await this.#read();
    if (this.#keys === undefined) throw new KeySetUnavailable(this.#problem);
    return this.#keys.get(keyId);
  }

  #mayRead(): boolean {
    return performance.now() - this.#readAt >= LIMITS.keyRefetch;
  }

  #read(): Promise<void> {
    this.#reading ??= this.#load().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  async #load(): Promise<void> {
    this.#readAt = performance.now();
    try {
      const { value, lifetime } = await this.#source();
      const keys = parseKeySet(value, this.#log);
      const changed = this.#keys !== undefined && !sameKeys(this.#keys, keys);
      this.#keys = keys;
      this.#expiresAt = performance.now() + lifetime;
      if (changed) this.onChanged?.();
    } catch (error) {
      this.#problem = messageOf(error);
      this.#log.warn('auth', 'signing keys could not be read', {
        problem: this.#problem,
        ...(this.#keys === undefined ? {} : { kept: this.#keys.size }),
      });
    }
  }
}

function sameKeys(a: ReadonlyMap<string, VerificationKey>, b: ReadonlyMap<string, VerificationKey>): boolean {
  return a.size === b.size && [...a].every(([id, { key }]) => b.get(id)?.key.equals(key) === true);
}

/** Usable keys by id. Keys that are weak, not for signatures, or of another kind are left out and logged. */
function parseKeySet(document: unknown, log: Log): ReadonlyMap<string, VerificationKey> {
  const list = (document as { keys?: unknown } | null)?.keys;
  if (!Array.isArray(list)) throw new Error('the key set has no `keys` list');
  if (list.length > LIMITS.keys) throw new Error(`the key set has more than ${LIMITS.keys} keys`);
  const keys = new Map<string, VerificationKey>();
  for (const jwk of list as (webcrypto.JsonWebKey & Record<string, unknown>)[]) {
    const { kid, use } = jwk;
    if (typeof kid !== 'string' || (use !== undefined && use !== 'sig')) continue;
    try {
      keys.set(kid, verificationKey(jwk));
    } catch (error) {
      log.warn('auth', 'a signing key was left out', { kid, problem: messageOf(error) });
    }
  }
  return keys;
}

const RSA = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'];
const BY_CURVE: Readonly<Record<string, string>> = {
  prime256v1: 'ES256',
  secp384r1: 'ES384',
  secp521r1: 'ES512',
};

function verificationKey(jwk: webcrypto.JsonWebKey & Record<string, unknown>): VerificationKey {
  // Only public members are handed on: a provider that publishes a private key must not make us keep it.
  const { kty, n, e, crv, x, y } = jwk;
  if (kty !== 'RSA' && kty !== 'EC' && kty !== 'OKP')
    throw new Error(`key type ${String(kty).slice(0, 20)} is not supported`);
  const key = createPublicKey({ key: { kty, n, e, crv, x, y } as webcrypto.JsonWebKey, format: 'jwk' });
  const possible = algorithmsOf(key);
  const { alg } = jwk;
  if (alg === undefined) return { key, algorithms: new Set(possible) };
  if (typeof alg !== 'string' || !possible.includes(alg)) throw new Error('its `alg` does not fit its type');
  return { key, algorithms: new Set([alg]) };
}

function algorithmsOf(key: KeyObject): string[] {
  const { modulusLength = 0, namedCurve = '' } = key.asymmetricKeyDetails ?? {};
  switch (key.asymmetricKeyType) {
    case 'rsa':
      if (modulusLength < LIMITS.rsaBits)
        throw new Error(`RSA keys need ${LIMITS.rsaBits} bits, this has ${modulusLength}`);
      return RSA;
    case 'ec': {
      const algorithm = BY_CURVE[namedCurve];
      if (algorithm === undefined) throw new Error(`curve ${namedCurve} is not supported`);
      return [algorithm];
    }
    case 'ed25519':
      return ['EdDSA', 'Ed25519'];
    default:
      throw new Error(`keys of type ${key.asymmetricKeyType} are not supported`);
  }
}

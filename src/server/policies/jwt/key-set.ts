import type { CryptoKey, JWK } from 'jose';
import { importJWK } from 'jose/key/import';
import { messageOf } from '../../../core/errors.ts';
import { isRecord, membersOf } from '../../../core/foreign.ts';
import { LIMITS } from '../../../core/limits.ts';
import type { Log } from '../../../core/log.ts';
import type { RereadProblem } from '../../kernel/files/reloaded-file.ts';
import type { Document } from '../../transport/upstream/document-client.ts';

/** No key set has been loaded yet: the provider is down, or its document is unusable. The message gives the reason. */
export class KeySetUnavailableError extends Error {}

/** Reads the JWK Set (RFC 7517 §5) from where it is; rejects if that fails. A set in the configuration never expires. */
export type KeySource = () => Promise<Document>;

/**
 * The provider's signing keys, loaded on first use and cached. They are loaded again in the background when they expire,
 * and at most every `LIMITS.keyRefetchInterval` when a token names an unknown key. Concurrent callers share one load. If a load
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
  #loading: Promise<RereadProblem> | undefined;
  #problem = '';
  /** Called when the keys have changed: tokens that were validated with the old ones must be validated again. */
  onChanged: () => void = () => undefined;

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
    if (this.#now() - this.#loadedAt >= LIMITS.keyRefetchInterval) void this.#loadOnce();
  }

  /**
   * Loads the keys for a token whose key is not among them. The first load of all, and one that is under way already, do
   * not count as a load for an unknown `kid`. Rejects with `KeySetUnavailableError` if there are no keys at all; for
   * `LIMITS.retryDelayMax` after a failed load, it does so without another attempt.
   */
  async loadFor(kid: string): Promise<void> {
    if (this.#keys === undefined) {
      if (this.#now() - this.#loadedAt >= LIMITS.retryDelayMax) await this.#loadOnce();
      if (this.#keys === undefined) throw new KeySetUnavailableError(this.#problem);
      return;
    }
    await this.#loading;
    if (this.#keys.has(kid)) return;
    if (this.#now() - this.#unknownKidAt < LIMITS.keyRefetchInterval) {
      await this.#loading;
      return;
    }
    this.#unknownKidAt = this.#now();
    this.#log.debug('auth', 'a token names an unknown key: the keys are loaded again');
    await this.#loadOnce();
  }

  /**
   * For a source that has changed: cached keys are loaded again now. If there are none, the next token loads them. Resolves to why they
   * cannot be used. Never rejects.
   */
  async reread(): Promise<RereadProblem> {
    if (this.#keys === undefined) {
      this.#loadedAt = Number.NEGATIVE_INFINITY;
      return undefined;
    }
    await this.#loading;
    return this.#loadOnce();
  }

  #loadOnce(): Promise<RereadProblem> {
    this.#loading ??= this.#load().finally(() => {
      this.#loading = undefined;
    });
    return this.#loading;
  }

  async #load(): Promise<RereadProblem> {
    try {
      const { value, lifetime } = await this.#source();
      const { keys, fingerprint } = await importKeySet(value, this.#log);
      const changed = this.#keys !== undefined && this.#fingerprint !== fingerprint;
      this.#keys = keys;
      this.#fingerprint = fingerprint;
      this.#expiresAt = this.#now() + lifetime;
      if (changed) this.onChanged();
      // Keys in the configuration have no time limit.
      const validFor = Number.isFinite(lifetime) ? { 'valid.s': Math.round(lifetime / 1000) } : {};
      this.#log.debug('auth', 'signing keys were read', { keys: this.size, changed, ...validFor });
      return undefined;
    } catch (error) {
      this.#problem = messageOf(error);
      this.#log.warn('auth', 'signing keys could not be read', {
        problem: this.#problem,
        ...(this.#keys === undefined ? {} : { kept: this.#keys.size }),
      });
      return this.#problem;
    } finally {
      this.#loadedAt = this.#now();
    }
  }
}

/**
 * A public key, imported once for each algorithm (`alg`) that it may be used with. A token's header only chooses among
 * them: the key decides (RFC 8725 §3.1).
 */
export type SigningKey = ReadonlyMap<string, CryptoKey>;

/** Keys by `kid`. Keys of different types may share an id (RFC 7517 §4.5). */
type SigningKeys = ReadonlyMap<string, readonly SigningKey[]>;

/** Algorithms of RFC 7518 §3.1 for RSA keys without `alg`. */
const RSA_ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'] as const;

/** Algorithms by curve (RFC 7518 §3.4; RFC 8037 §3.1, and RFC 9864 §2.2 for the name `Ed25519`). */
const CURVE_ALGORITHMS: ReadonlyMap<unknown, readonly string[]> = new Map([
  ['P-256', ['ES256']],
  ['P-384', ['ES384']],
  ['P-521', ['ES512']],
  ['Ed25519', ['EdDSA', 'Ed25519']],
]);

/** Every algorithm that a token may be signed with: asymmetric ones only, so neither `none` nor HMAC. */
export const ACCEPTED_ALGORITHMS: ReadonlySet<string> = new Set([
  ...RSA_ALGORITHMS,
  ...[...CURVE_ALGORITHMS.values()].flat(),
]);

type PublicMember = 'kty' | 'crv' | 'n' | 'e' | 'x' | 'y';

/** Members of a public key by `kty` (RFC 7638 §3.2). */
const PUBLIC_MEMBERS: ReadonlyMap<unknown, readonly PublicMember[]> = new Map([
  ['RSA', ['kty', 'n', 'e']],
  ['EC', ['kty', 'crv', 'x', 'y']],
  ['OKP', ['kty', 'crv', 'x']],
]);

type Jwk = Readonly<Record<string, unknown>>;

/**
 * Imports the usable keys of a JWK Set (RFC 7517 §5). Keys that are weak, not for signatures, without `kid` or of
 * another kind are left out and logged. `fingerprint` is equal for sets of the same keys, in whatever order.
 * Rejects when the document is not a key set or has more than `LIMITS.keys` keys.
 */
async function importKeySet(
  document: unknown,
  log: Log,
): Promise<{ keys: SigningKeys; fingerprint: string }> {
  const { keys: jwks } = membersOf(document);
  if (!Array.isArray(jwks)) throw new Error('the key set has no `keys` list');
  if (jwks.length > LIMITS.keys) throw new Error(`the key set has more than ${LIMITS.keys} keys`);
  const keys = new Map<string, SigningKey[]>();
  const fingerprints: string[] = [];
  for (const one of jwks) {
    const jwk = membersOf(one);
    // Most providers publish encryption keys in the same set. That is not a problem to log.
    if ((jwk['use'] ?? 'sig') !== 'sig') continue;
    try {
      const { kid, key, fingerprint } = await importSigningKey(one);
      keys.set(kid, [...(keys.get(kid) ?? []), key]);
      fingerprints.push(fingerprint);
    } catch (error) {
      const id = jwk['kid'];
      // Not `String(id)`, which throws for `{"toString":1}`: one malformed key would make all others unusable.
      const kid = typeof id === 'string' ? id.slice(0, 100) : typeof id;
      log.warn('auth', 'a signing key was ignored', { kid, problem: messageOf(error) });
    }
  }
  return { keys, fingerprint: fingerprints.sort().join('\n') };
}

async function importSigningKey(
  jwk: unknown,
): Promise<{ kid: string; key: SigningKey; fingerprint: string }> {
  if (!isRecord(jwk)) throw new Error('it is not an object');
  const { kid, kty, key_ops: operations } = jwk;
  if (typeof kid !== 'string' || kid === '') throw new Error('it has no `kid`, by which tokens refer to it');
  if (Array.isArray(operations) && !operations.includes('verify'))
    throw new Error('its `key_ops` do not include `verify`');
  const publicJwk = publicJwkOf(jwk);
  const algorithms = algorithmsOf(jwk);
  const key = new Map<string, CryptoKey>();
  for (const algorithm of algorithms) {
    const imported = await importJWK(publicJwk, algorithm);
    // Only its type says that it may be: no secret has the members of a public key.
    if (imported instanceof Uint8Array) throw new Error('it is a secret and not a public key');
    if (kty === 'RSA') checkRsaStrength(imported);
    key.set(algorithm, imported);
  }
  return { kid, key, fingerprint: JSON.stringify([kid, publicJwk, algorithms]) };
}

/**
 * Only the public members: if a provider publishes a private key by mistake, it is not kept in memory. They must be
 * strings (RFC 7518 §6), because Web Crypto converts other values to strings and imports an `e` of `["AQAB"]` or `null`.
 */
function publicJwkOf(jwk: Jwk): JWK {
  const members: Partial<Record<PublicMember, string>> = {};
  const names = PUBLIC_MEMBERS.get(jwk['kty']);
  if (names === undefined) throw new Error(`key type ${String(jwk['kty']).slice(0, 20)} is not supported`);
  for (const name of names) {
    const value = jwk[name];
    if (typeof value !== 'string') throw new Error(`its \`${name}\` is not a string`);
    members[name] = value;
  }
  return members;
}

/** The algorithms that a key may be used with; its own `alg` only, if it has one (RFC 7517 §4.4). */
function algorithmsOf({ alg, kty, crv }: Jwk): readonly string[] {
  const possible = kty === 'RSA' ? RSA_ALGORITHMS : CURVE_ALGORITHMS.get(crv);
  if (possible === undefined) {
    const curve = String(crv).slice(0, 20);
    throw new Error(
      kty === 'EC'
        ? `curve ${curve} is not supported`
        : `keys of type ${curve.toLowerCase()} are not supported`,
    );
  }
  // Some serializers write null for what a key does not have (jpadilla/pyjwt#857).
  if ((alg ?? undefined) === undefined) return possible;
  const algorithm = possible.find((name) => name === alg);
  if (algorithm === undefined) throw new Error('its `alg` does not fit its type');
  return [algorithm];
}

/** jose checks the length only when it verifies, which is too late for a line in the log, and not the exponent. */
function checkRsaStrength({ algorithm }: CryptoKey): void {
  // Web Crypto has made them, but their type does not tell them from those of other keys.
  const { modulusLength, publicExponent } = membersOf(algorithm);
  if (typeof modulusLength !== 'number' || !(publicExponent instanceof Uint8Array))
    throw new Error('it is not an RSA key');
  if (modulusLength < LIMITS.rsaBits)
    throw new Error(`RSA keys need ${LIMITS.rsaBits} bits, this key has ${modulusLength}`);
  // RFC 8017 §3.1. With an exponent of 1, anybody can make a valid signature.
  const exponent = BigInt(`0x0${Buffer.from(publicExponent).toString('hex')}`);
  if (exponent < 3n) throw new Error(`RSA keys need an exponent of at least 3, this key has ${exponent}`);
}

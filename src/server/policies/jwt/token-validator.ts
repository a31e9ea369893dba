import { hash } from 'node:crypto';
import { JOSEError } from 'jose/errors';
import { compactVerify } from 'jose/jws/compact/verify';
import { elementsOf } from '../../../core/foreign.ts';
import { LIMITS, type Limits } from '../../../core/limits.ts';
import { LruMap } from '../../../core/lru-map.ts';
import { type Claims, precheckToken, TokenError } from './jwt-precheck.ts';
import type { KeySet, SigningKey } from './key-set.ts';

/**
 * Validates tokens. Valid ones are remembered by the SHA-256 of the token until the keys change, so that a signature is
 * verified once per token and not once per request.
 */
export class TokenValidator {
  readonly #keys: KeySet;
  readonly #rules: ClaimRules;
  /** Replaced when the keys change: a verification under way then adds its token to the old object, which is unused. */
  #remembered: LruMap<string, Claims>;

  constructor(
    keys: KeySet,
    rules: ClaimRules,
    limits: Pick<Limits, 'validTokens' | 'validTokenCharacters'> = LIMITS,
  ) {
    this.#keys = keys;
    this.#rules = rules;
    const open = () => new LruMap<string, Claims>(limits.validTokens, limits.validTokenCharacters);
    this.#remembered = open();
    keys.onChanged = () => {
      this.#remembered = open();
    };
  }

  /** Number of signing keys that are loaded. */
  get keys(): number {
    return this.#keys.size;
  }

  /** Number of valid tokens that are remembered. */
  get remembered(): number {
    return this.#remembered.size;
  }

  /**
   * Returns the claims of a valid token: at once for a remembered token, as a promise for any other.
   * Throws or rejects with `TokenError` if the token is not valid; rejects with `KeySetUnavailableError` while no keys can be
   * loaded.
   */
  validate(token: string): Claims | Promise<Claims> {
    const id = hash('sha256', token, 'base64url');
    const claims = this.#remembered.get(id);
    if (claims === undefined) return this.#validateNew(token, id);
    // The key may have been removed since. Without this, nothing would load the keys again while all tokens are known.
    this.#keys.keepFresh();
    // Time has passed since the token was verified.
    checkClaims(claims, this.#rules, Date.now() / 1000);
    return claims;
  }

  async #validateNew(token: string, id: string): Promise<Claims> {
    const { alg, kid, claims, payloadLength } = precheckToken(token);
    let keys = this.#keys.get(kid);
    if (keys === undefined) {
      // No load finds the key of another issuer's token: the error names the issuer, and the provider is not asked.
      checkClaims(claims, this.#rules, Date.now() / 1000);
      await this.#keys.loadFor(kid);
      keys = this.#keys.get(kid);
      if (keys === undefined) throw new TokenError('the token is signed with an unknown key');
    }
    // Read together with the keys, without an `await` between them.
    const remembered = this.#remembered;
    if (!(await verifySignature(token, alg, keys)))
      throw new TokenError('the signature of the token is not valid');
    checkClaims(claims, this.#rules, Date.now() / 1000);
    // Claims take one to two times as many bytes of memory as their encoded payload has.
    remembered.set(id, claims, payloadLength);
    return claims;
  }
}

/** Whether the signature is one of these keys, used with the algorithm of the header (RFC 7515 §5.2). */
async function verifySignature(token: string, alg: string, keys: readonly SigningKey[]): Promise<boolean> {
  for (const key of keys) {
    const cryptoKey = key.get(alg);
    if (cryptoKey === undefined) continue;
    try {
      await compactVerify(token, cryptoKey, { algorithms: [alg] });
      return true;
    } catch (error) {
      if (!(error instanceof JOSEError)) throw error;
    }
  }
  return false;
}

/** Rules for the claims of a token. */
interface ClaimRules {
  /** Must equal `iss`, character by character (RFC 8725 §3.8). */
  readonly issuer: string;
  /** One of them must be in `aud` (RFC 8725 §3.9), unless there are none. */
  readonly audiences: readonly string[];
  /** Claims that must be present, of `exp`, `nbf`, `aud`, `iss` and `sub`. */
  readonly required: readonly string[];
  /** For providers that put the type of a token into a claim `typ`: the value that access tokens have. */
  readonly accessTokenType: string | undefined;
}

/** Accepted difference between the clocks of the provider and this machine, in seconds (RFC 7519 §4.1.4). */
export const LEEWAY = 60;

/**
 * Checks the registered claims of a token (RFC 7519 §4.1). `nowSeconds` is the time since 1970, in seconds.
 * Throws `TokenError` with the expected and the actual value of the first claim that breaks a rule.
 */
export function checkClaims(
  claims: Claims,
  { issuer, audiences, required, accessTokenType }: ClaimRules,
  nowSeconds: number,
): void {
  if (claims['iss'] !== issuer)
    throw new TokenError(`the token's issuer is ${shown(claims['iss'])}, expected ${shown(issuer)}`);
  if (audiences.length > 0) checkAudience(claims['aud'], audiences);
  for (const name of required)
    if (claims[name] === undefined) throw new TokenError(`the token has no \`${name}\` claim`);
  // All who have none would be one user.
  if (claims['sub'] === '') throw new TokenError('the `sub` claim of the token is empty');
  const expires = numericDate(claims, 'exp');
  if (expires !== undefined && expires + LEEWAY <= nowSeconds) throw new TokenError('the token has expired');
  const notBefore = numericDate(claims, 'nbf');
  if (notBefore !== undefined && notBefore - LEEWAY > nowSeconds)
    throw new TokenError('the token is not valid yet');
  const issuedAt = numericDate(claims, 'iat');
  if (issuedAt !== undefined && issuedAt - LEEWAY > nowSeconds)
    throw new TokenError('the token was issued in the future');
  const { typ } = claims;
  if (accessTokenType !== undefined && typ !== undefined && typ !== accessTokenType) {
    throw new TokenError(
      `the token is of type ${shown(typ)}, expected ${shown(accessTokenType)}: an access token is needed`,
    );
  }
}

/** When a token that was valid is no longer accepted, in ms since 1970; undefined for one that never expires. */
export function validUntil(claims: Claims): number | undefined {
  const expires = numericDate(claims, 'exp');
  return expires === undefined ? undefined : (expires + LEEWAY) * 1000;
}

function checkAudience(audience: unknown, accepted: readonly string[]): void {
  const values = Array.isArray(audience) ? elementsOf(audience) : [audience];
  for (const value of values) if (typeof value === 'string' && accepted.includes(value)) return;
  throw new TokenError(
    `the token's audience is ${shown(audience)}, expected ${accepted.map(shown).join(' or ')}`,
  );
}

/** 9999-12-31T23:59:59Z. */
const LAST_DATE = 253_402_300_799;

/**
 * A NumericDate (RFC 7519 §2): seconds since 1970. Throws `TokenError` for anything but a number of a year up to 9999, the
 * last one that dates of JSON and logs have: `1e999`, which is parsed as `Infinity`, milliseconds, or `1e15` would make a token
 * that never expires.
 */
function numericDate(claims: Claims, name: string): number | undefined {
  const value = claims[name];
  if (value === undefined) return undefined;
  if (typeof value !== 'number' || !Number.isFinite(value))
    throw new TokenError(`the token's \`${name}\` claim is not a number`);
  if (value > LAST_DATE)
    throw new TokenError(`the token's \`${name}\` claim is not a time in seconds up to the year 9999`);
  return value;
}

/** A claim for an error message: quoted, at most 120 characters, none of which ends a header parameter. */
function shown(value: unknown): string {
  if (value === undefined) return 'missing';
  return `'${(typeof value === 'string' ? value : (JSON.stringify(value) ?? '')).replace(/[^\x20-\x7e]|["\\']/g, '?').slice(0, 120)}'`;
}

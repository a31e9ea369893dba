import { hash } from 'node:crypto';
import { JOSEError } from 'jose/errors';
import { compactVerify } from 'jose/jws/compact/verify';
import { type ClaimRules, checkClaims } from './claims.ts';
import { type Claims, precheckToken, TokenError } from './jwt-precheck.ts';
import type { KeySet } from './key-set.ts';
import { RememberedTokens } from './remembered-tokens.ts';
import type { SigningKey } from './signing-keys.ts';

/**
 * Validates tokens. Valid ones are remembered by the SHA-256 of the token until the keys change, so that a signature is
 * verified once per token and not once per request.
 */
export class TokenValidator {
  readonly #keys: KeySet;
  readonly #rules: ClaimRules;
  /** Replaced when the keys change: a verification under way then adds its token to the old object, which is unused. */
  #remembered = new RememberedTokens();

  constructor(keys: KeySet, rules: ClaimRules) {
    this.#keys = keys;
    this.#rules = rules;
    keys.onChanged = () => {
      this.#remembered = new RememberedTokens();
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
    remembered.add(id, claims, payloadLength);
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

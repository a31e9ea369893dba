import { hash } from 'node:crypto';
import { LIMITS } from '../../../core/limits.ts';
import { type ClaimRules, checkClaims } from './claims.ts';
import { type Claims, hasValidSignature, parseToken, TokenError } from './jwt.ts';
import type { KeySet } from './key-set.ts';

/**
 * Validates tokens and remembers those that are valid, by the SHA-256 of the whole token, until they expire or
 * the keys change. Bounded; the one used longest ago goes first.
 */
export class TokenValidator {
  readonly #keys: KeySet;
  readonly #rules: ClaimRules;
  readonly #valid = new Map<string, Claims>();

  constructor(keys: KeySet, rules: ClaimRules) {
    this.#keys = keys;
    this.#rules = rules;
    keys.onChanged = () => this.#valid.clear();
  }

  /** The claims of a valid token. Throws `TokenError`; rejects with `KeySetUnavailable` when there are no keys. */
  validate(token: string): Claims | Promise<Claims> {
    const digest = hash('sha256', token, 'base64url');
    const known = this.#valid.get(digest);
    if (known === undefined) return this.#verify(token, digest);
    // Times are checked anew: a remembered token expires like any other.
    checkClaims(known, this.#rules, Date.now() / 1000);
    this.#valid.delete(digest);
    this.#valid.set(digest, known);
    return known;
  }

  async #verify(token: string, digest: string): Promise<Claims> {
    const parsed = parseToken(token);
    const key = await this.#keys.find(parsed.keyId);
    if (key === undefined) throw new TokenError('the token is signed with an unknown key');
    if (!hasValidSignature(parsed, key)) throw new TokenError('the signature of the token is not valid');
    checkClaims(parsed.claims, this.#rules, Date.now() / 1000);
    if (this.#valid.size >= LIMITS.validTokens) this.#valid.delete(this.#valid.keys().next().value as string);
    this.#valid.set(digest, parsed.claims);
    return parsed.claims;
  }
}

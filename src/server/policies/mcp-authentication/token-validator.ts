import { type ClaimRules, checkClaims } from './claims.ts';
import {
  type Claims,
  decode,
  type ParsedToken,
  parseToken,
  splitToken,
  TokenError,
  type TokenParts,
} from './jwt.ts';
import type { KeySet } from './key-set.ts';
import { RememberedTokens } from './remembered-tokens.ts';

/**
 * Validates tokens and remembers those that are valid, by the SHA-256 of what is signed and the signature, until they
 * expire or the keys change.
 */
export class TokenValidator {
  readonly #keys: KeySet;
  readonly #rules: ClaimRules;
  readonly #valid = new RememberedTokens();

  constructor(keys: KeySet, rules: ClaimRules) {
    this.#keys = keys;
    this.#rules = rules;
    keys.onChanged = () => this.#valid.clear();
  }

  /** How many signing keys are kept. */
  get keys(): number {
    return this.#keys.size;
  }

  /** How many valid tokens are remembered. */
  get remembered(): number {
    return this.#valid.size;
  }

  /**
   * The claims of a valid token; a promise of them while its key must be fetched.
   * Throws `TokenError`; rejects with `KeySetUnavailable` when there are no keys.
   */
  validate(token: string): Claims | Promise<Claims> {
    const parts = splitToken(token);
    const id = parts.signed.sha256 + parts.signature;
    const known = this.#valid.get(id);
    if (known === undefined) {
      const parsed = parseToken(parts);
      return this.#verify(parts, parsed, id) ?? this.#seekAndVerify(parts, parsed, id);
    }
    // A removed key must be noticed, too, when all tokens that come are remembered ones.
    this.#keys.keepFresh();
    // Times are checked anew: a remembered token expires like any other.
    checkClaims(known, this.#rules, Date.now() / 1000);
    return known;
  }

  async #seekAndVerify(parts: TokenParts, parsed: ParsedToken, id: string): Promise<Claims> {
    // A token that can be right under no key gets its answer now, also while no keys can be had, and nobody is asked.
    decode(parts.signature, 'signature');
    // A token of another issuer names a key that no read will find; saying whose it is helps more.
    checkClaims(parsed.claims, this.#rules, Date.now() / 1000);
    await this.#keys.seek(parsed.keyId);
    const claims = this.#verify(parts, parsed, id);
    if (claims === undefined) throw new TokenError('the token is signed with an unknown key');
    return claims;
  }

  /**
   * Undefined when the key is not here. Takes the keys, uses them and remembers the token in one turn: nothing that
   * a key just replaced has signed can be remembered.
   */
  #verify(
    { payload, signed, signature: encoded }: TokenParts,
    { algorithm, keyId, claims }: ParsedToken,
    id: string,
  ): Claims | undefined {
    const keys = this.#keys.get(keyId);
    if (keys === undefined) return undefined;
    const signature = decode(encoded, 'signature');
    let isValid = false;
    for (const key of keys) isValid ||= key.get(algorithm)?.(signed, signature) === true;
    if (!isValid) throw new TokenError('the signature of the token is not valid');
    checkClaims(claims, this.#rules, Date.now() / 1000);
    this.#valid.add(id, claims, payload.length);
    return claims;
  }
}

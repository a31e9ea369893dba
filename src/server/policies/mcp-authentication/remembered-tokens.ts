import { LIMITS } from '../../../core/limits.ts';
import type { Claims } from './jwt-precheck.ts';

interface Remembered {
  readonly claims: Claims;
  /** Length of the encoded payload. Its claims take one to two times as many bytes of memory. */
  readonly characters: number;
}

/**
 * Claims of valid tokens by the hash of the token. At most `LIMITS.validTokens` tokens with `LIMITS.validTokenCharacters`
 * characters of payload together are kept; the least recently used token is removed first.
 */
export class RememberedTokens {
  readonly #tokens = new Map<string, Remembered>();
  #characters = 0;

  get size(): number {
    return this.#tokens.size;
  }

  get(id: string): Claims | undefined {
    const known = this.#tokens.get(id);
    if (known === undefined) return undefined;
    this.#tokens.delete(id);
    this.#tokens.set(id, known);
    return known.claims;
  }

  add(id: string, claims: Claims, characters: number): void {
    this.#forget(id);
    this.#tokens.set(id, { claims, characters });
    this.#characters += characters;
    while (this.#tokens.size > LIMITS.validTokens || this.#characters > LIMITS.validTokenCharacters)
      this.#forget(this.#tokens.keys().next().value as string);
  }

  clear(): void {
    this.#tokens.clear();
    this.#characters = 0;
  }

  #forget(id: string): void {
    this.#characters -= this.#tokens.get(id)?.characters ?? 0;
    this.#tokens.delete(id);
  }
}

import { createHash, hkdfSync } from 'node:crypto';
import { compactDecrypt } from 'jose/jwe/compact/decrypt';
import { CompactEncrypt } from 'jose/jwe/compact/encrypt';
import { isRecord, parseJson } from '../../core/foreign.ts';

/** What a value may be used for: an encrypted token is not a sign-in. */
type Purpose = 'token' | 'sign-in' | 'client';

/**
 * Encrypts what the database keeps (JWE with `dir` and A256GCM). `row` is the key of the row that a value belongs to: whoever can
 * write to the database cannot give the token of one user to another.
 */
export class Seal {
  readonly #secret: () => Buffer;
  #key: Uint8Array | undefined;

  /** `secret` is called on first use. */
  constructor(secret: () => Buffer) {
    this.#secret = secret;
  }

  async seal(purpose: Purpose, row: readonly string[], value: object): Promise<string> {
    return new CompactEncrypt(Buffer.from(JSON.stringify(value)))
      .setProtectedHeader({ alg: 'dir', enc: 'A256GCM', typ: purpose, row: hashOf(JSON.stringify(row)) })
      .encrypt(this.#ownKey);
  }

  /** Undefined for a value that was not made with this key, for this purpose and this row. */
  async open(
    purpose: Purpose,
    row: readonly string[],
    sealed: string,
  ): Promise<Readonly<Record<string, unknown>> | undefined> {
    try {
      const { plaintext, protectedHeader } = await compactDecrypt(sealed, this.#ownKey, {
        keyManagementAlgorithms: ['dir'],
        contentEncryptionAlgorithms: ['A256GCM'],
      });
      const isOwn =
        protectedHeader['typ'] === purpose && protectedHeader['row'] === hashOf(JSON.stringify(row));
      const value = isOwn ? parseJson(Buffer.from(plaintext).toString()) : undefined;
      return isRecord(value) ? value : undefined;
    } catch {
      return undefined;
    }
  }

  get #ownKey(): Uint8Array {
    this.#key ??= new Uint8Array(hkdfSync('sha256', this.#secret(), '', 'agctl user tokens', 32));
    return this.#key;
  }
}

/** Hashes UTF-16, as JSON strings can contain lone surrogates, all of which would become U+FFFD in UTF-8. */
export const hashOf = (text: string): string =>
  createHash('sha256').update(text, 'utf16le').digest('base64url');

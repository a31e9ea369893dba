import { REDACTED } from '../../../core/credentials.ts';

/**
 * Number of secrets per request that are searched for, since a client may send as many cookies as fit. Secrets of the
 * configuration do not count.
 */
const MOST_SECRETS = 64;
/** Shorter texts are not worth searching for and would match everywhere. */
const SHORTEST_SECRET = 6;

/**
 * Replaces known secrets wherever they occur: in the result of an expression, in a response that echoes them. A second
 * line of defense behind redaction by name.
 */
export class Scrubber {
  readonly #secrets = new Set<string>();
  /** Redacts further secrets. */
  redactor: { text(value: string): string } | undefined;

  /** Adds a secret and the part after its scheme (`Bearer …`). `always`: the secret is part of the configuration. */
  add(secret: string, always = false): void {
    if (!always && this.#secrets.size >= MOST_SECRETS) return;
    for (const text of [secret, secret.slice(secret.indexOf(' ') + 1)])
      if (text.length >= SHORTEST_SECRET) this.#secrets.add(text);
  }

  text(value: string): string {
    let clean = value;
    for (const secret of this.#secrets)
      if (clean.includes(secret)) clean = clean.replaceAll(secret, REDACTED);
    return this.redactor === undefined ? clean : this.redactor.text(clean);
  }
}

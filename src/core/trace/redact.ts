import { REDACTED } from '../credentials.ts';

/** Secrets of one request that are searched for: a client may send as many cookies as fit. The configuration's all are. */
const MOST_SECRETS = 64;
/** Texts shorter than this are no secrets worth searching for, and would be found everywhere. */
const SHORTEST_SECRET = 6;

/**
 * Replaces known secrets wherever they turn up: in the result of an expression, in what a backend echoes. A second
 * line behind the names above.
 */
export class Scrubber {
  readonly #secrets = new Set<string>();
  /** Knows further ones. */
  redactor: { text(value: string): string } | undefined;

  /** Adds a secret, and what follows its scheme (`Bearer …`). `always`: it is one of the configuration. */
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

/** Stands in for a credential. */
export const REDACTED = '<redacted>';

/** Header and parameter names whose values authenticate somebody, on their own or as part of a longer name. */
const SENSITIVE =
  /authorization|cookie|token|secret|passw|api[-_]?key|credential|signature|^(?:key|sig|code|mcp-session-id)$/i;

/** Whether the value of a header or query parameter of this name is a credential. `more`: configured names, lower case. */
export function isSensitiveName(name: string, more?: ReadonlySet<string>): boolean {
  return SENSITIVE.test(name) || more?.has(name.toLowerCase()) === true;
}

/** `?a=1&token=x` with credentials replaced; what is not sensitive stays byte for byte. */
export function redactQuery(query: string, more?: ReadonlySet<string>): string {
  return query.replace(/([?&])([^=&#]*)=([^&#]*)/g, (pair, mark: string, name: string) =>
    isSensitiveName(decoded(name), more) ? `${mark}${name}=${REDACTED}` : pair,
  );
}

/** Names are compared as a server would read them: `%74oken` is `token`. */
function decoded(name: string): string {
  try {
    return decodeURIComponent(name.replaceAll('+', ' '));
  } catch {
    return name;
  }
}

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

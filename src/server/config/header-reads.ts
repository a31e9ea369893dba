/** Settings with names of response headers only. */
const OF_RESPONSES = new Set(['includeResponseHeaders', 'responseHeaderModifier', 'exposeHeaders']);

/** What may be the name of a request header in a text of the configuration, such as a rule or the location of a key. */
const WORDS = /[\w-]+/g;

/** The variable `request`, and what follows it. `variables()` contains it too. */
const REQUEST = /\bvariables\s*\(|\brequest\b(?!\s*\.\s*(?!headers\b)\w)([\s\S]{0,150})/g;

/** One header, by a name that the text has in full. */
const ONE_HEADER = /^\s*\.\s*headers\s*(?:\.\s*\??\s*\w|\[\s*\??\s*(?:"[^"\\]*"|'[^'\\]*')\s*\])/;

/**
 * The request headers that a configuration may read. Answers from its texts instead of compiled components, since each
 * kind of setting names headers in its own way, and one that was forgotten would be a way around a rule.
 */
export class HeaderReads {
  readonly #config: unknown;
  #words: ReadonlySet<string> | undefined;
  #readsAny = false;

  constructor(config: unknown) {
    this.#config = config;
  }

  /** Whether this header may be read. True for all names if an expression computes the name of a header. */
  has(name: string): boolean {
    this.#words ??= this.#collect();
    return this.#readsAny || (name.match(WORDS) ?? []).some((word) => this.#words?.has(word));
  }

  #collect(): ReadonlySet<string> {
    const words = new Set<string>();
    const open: unknown[] = [this.#config];
    while (open.length > 0) {
      const value = open.pop();
      if (typeof value === 'string') {
        for (const [word] of value.toLowerCase().matchAll(WORDS)) words.add(word);
        this.#readsAny ||= readsAny(value);
      } else if (typeof value === 'object' && value !== null)
        for (const [key, item] of Object.entries(value)) if (!OF_RESPONSES.has(key)) open.push(item);
    }
    return words;
  }
}

function readsAny(text: string): boolean {
  return [...text.matchAll(REQUEST)].some(([, after]) => after === undefined || !ONE_HEADER.test(after));
}

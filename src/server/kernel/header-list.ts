/**
 * Headers as Node keeps them on the wire: one flat array of alternating names and values. Order and repeated
 * fields survive, and the array goes to `writeHead` or to an upstream without a copy.
 */
export class HeaderList {
  readonly raw: string[];

  constructor(raw: readonly string[] = []) {
    this.raw = raw.slice();
  }

  /** First value of a field; names compare without case. */
  get(name: string): string | undefined {
    const { raw } = this;
    for (let i = 0; i < raw.length; i += 2) if (sameName(raw[i] as string, name)) return raw[i + 1];
    return undefined;
  }

  /** All values of a field, in order. */
  all(name: string): string[] {
    const { raw } = this;
    const values: string[] = [];
    for (let i = 0; i < raw.length; i += 2)
      if (sameName(raw[i] as string, name)) values.push(raw[i + 1] as string);
    return values;
  }

  has(name: string): boolean {
    return this.get(name) !== undefined;
  }

  append(name: string, value: string): void {
    this.raw.push(name, value);
  }

  /** Replaces every field of that name by one. */
  set(name: string, value: string): void {
    this.delete(name);
    this.raw.push(name, value);
  }

  /** Gives the first field of that name another value, where it stands. */
  replace(name: string, value: string): void {
    const { raw } = this;
    for (let i = 0; i < raw.length; i += 2) {
      if (!sameName(raw[i] as string, name)) continue;
      raw[i + 1] = value;
      return;
    }
  }

  delete(name: string): void {
    const { raw } = this;
    for (let i = raw.length - 2; i >= 0; i -= 2) if (sameName(raw[i] as string, name)) raw.splice(i, 2);
  }
}

function sameName(a: string, b: string): boolean {
  return a.length === b.length && (a === b || a.toLowerCase() === b.toLowerCase());
}

/** RFC 9110 §7.6.1 and §11.7: fields about one connection, never forwarded. */
export const HOP_BY_HOP: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** The names in a `Connection` value, in lower case. */
export function connectionOptions(value: string): string[] {
  return value
    .toLowerCase()
    .split(',')
    .map((option) => option.trim());
}

/**
 * Removes hop-by-hop fields, and those that `Connection` names, from a message that has just arrived. Once only: a
 * later pass would let the sender remove fields that policies or the gateway have added since.
 */
export function removeHopByHop({ raw }: HeaderList): void {
  let named: string[] = [];
  for (let i = 0; i < raw.length; i += 2)
    if (sameName(raw[i] as string, 'connection'))
      named = named.concat(connectionOptions(raw[i + 1] as string));
  keepFields(raw, (name) => !HOP_BY_HOP.has(name) && !named.includes(name));
}

/** Removes in place every field whose name, in lower case, `keeps` does not want. */
export function keepFields(raw: string[], keeps: (name: string) => boolean): void {
  let length = 0;
  for (let i = 0; i < raw.length; i += 2) {
    if (!keeps((raw[i] as string).toLowerCase())) continue;
    raw[length] = raw[i] as string;
    raw[length + 1] = raw[i + 1] as string;
    length += 2;
  }
  raw.length = length;
}

/** A copy without the fields of these names (lower case). */
export function withoutFields(raw: readonly string[], names: ReadonlySet<string>): string[] {
  const kept: string[] = [];
  for (let i = 0; i < raw.length; i += 2) {
    if (names.has((raw[i] as string).toLowerCase())) continue;
    kept.push(raw[i] as string, raw[i + 1] as string);
  }
  return kept;
}

// RFC 9110 §5.5: visible ASCII, space, tab and obs-text; Node's `setHeader` throws on anything else.
const FORBIDDEN_IN_VALUE = /[^\t\u0020-\u007e\u0080-\u00ff]/;
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** Whether a computed value may stand in a header. Values that may not are left out by every caller. */
export function isHeaderValue(value: string): boolean {
  return !FORBIDDEN_IN_VALUE.test(value);
}

export function isHeaderName(name: string): boolean {
  return TOKEN.test(name);
}

/** Where a message ends, whom it is for, and fields about one connection: a configuration cannot set them. */
const NOT_SETTABLE: ReadonlySet<string> = new Set([...HOP_BY_HOP, 'content-length', 'expect', 'host']);

/** Whether a configuration may add this header to a message. */
export function isSettableHeader(name: string): boolean {
  return isHeaderName(name) && !NOT_SETTABLE.has(name.toLowerCase());
}

/** What is said of a name that `isSettableHeader` refuses. */
export const SETTABLE_HEADER =
  'expected a header other than host, content-length, expect and those of one connection (connection, te, upgrade, transfer-encoding, …)';

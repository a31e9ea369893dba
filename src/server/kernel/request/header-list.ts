/**
 * Headers in the form of Node's `rawHeaders`: a flat array of alternating names and values. Preserves order and repeated
 * fields, and can be passed to `writeHead` or to an upstream without a copy.
 */
export class HeaderList {
  readonly raw: string[];

  constructor(raw: readonly string[] = []) {
    this.raw = raw.slice();
  }

  /** First value of a field, or undefined. Names are case-insensitive. */
  get(name: string): string | undefined {
    const { raw } = this;
    for (let i = 0; i < raw.length; i += 2) if (sameName(raw[i] ?? '', name)) return raw[i + 1];
    return undefined;
  }

  /** All values of a field, in order. */
  all(name: string): string[] {
    const { raw } = this;
    const values: string[] = [];
    for (let i = 0; i < raw.length; i += 2) if (sameName(raw[i] ?? '', name)) values.push(raw[i + 1] ?? '');
    return values;
  }

  has(name: string): boolean {
    return this.get(name) !== undefined;
  }

  append(name: string, value: string): void {
    this.raw.push(name, value);
  }

  /** Replaces all fields of that name with one. */
  set(name: string, value: string): void {
    this.delete(name);
    this.raw.push(name, value);
  }

  /** Replaces the value of the first field of that name in place. */
  replace(name: string, value: string): void {
    const { raw } = this;
    for (let i = 0; i < raw.length; i += 2) {
      if (!sameName(raw[i] ?? '', name)) continue;
      raw[i + 1] = value;
      return;
    }
  }

  delete(name: string): void {
    const { raw } = this;
    for (let i = raw.length - 2; i >= 0; i -= 2) if (sameName(raw[i] ?? '', name)) raw.splice(i, 2);
  }
}

/** Whether two names of fields are the same. */
export function sameName(a: string, b: string): boolean {
  return a.length === b.length && (a === b || a.toLowerCase() === b.toLowerCase());
}

/** A set of field names. */
export class FieldNames {
  readonly #names: ReadonlySet<string>;
  /** The lengths of the names: lower-casing the name of every field of a message costs more than all lookups. */
  readonly #lengths: readonly boolean[];

  constructor(names: Iterable<string>) {
    this.#names = new Set(Array.from(names, (name) => name.toLowerCase()));
    const lengths: boolean[] = [];
    for (const { length } of this.#names) lengths[length] = true;
    this.#lengths = lengths;
  }

  /** Whether it contains a name, in upper or lower case. */
  has(name: string): boolean {
    return this.#lengths[name.length] === true && this.#names.has(name.toLowerCase());
  }

  *[Symbol.iterator](): Iterator<string> {
    yield* this.#names;
  }
}

/** Hop-by-hop fields, which apply to one connection and are never forwarded (RFC 9110 §7.6.1 and §11.7). */
export const HOP_BY_HOP = new FieldNames([
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

/**
 * Fields with which a request asks a server to treat it as one with another method or path than it has. Rules are about those
 * of the request line.
 */
export const OVERRIDES: readonly string[] = [
  '_method',
  'x-http-method',
  'x-http-method-override',
  'x-method-override',
  'x-original-method',
  'x-original-url',
  'x-rewrite-url',
];

/** The names in a `Connection` value, in lower case. */
export function connectionOptions(value: string): string[] {
  return value
    .toLowerCase()
    .split(',')
    .map((option) => option.trim());
}

/**
 * Removes hop-by-hop fields, and those that `Connection` names, from a message that has just arrived. Call it only once
 * per message: a later call would let the sender remove fields that policies or the gateway have added.
 */
export function removeHopByHop({ raw }: HeaderList): void {
  let removed = HOP_BY_HOP;
  for (let i = 0; i < raw.length; i += 2) {
    const value = raw[i + 1] ?? '';
    // The usual value names a field that is removed anyway.
    if (!sameName(raw[i] ?? '', 'connection') || value === 'keep-alive') continue;
    removed = new FieldNames([...removed, ...connectionOptions(value)]);
  }
  removeFields(raw, removed);
}

/** Removes the fields of these names in place. */
export function removeFields(raw: string[], names: FieldNames): void {
  let length = 0;
  for (let i = 0; i < raw.length; i += 2) {
    if (names.has(raw[i] ?? '')) continue;
    if (length < i) {
      raw[length] = raw[i] ?? '';
      raw[length + 1] = raw[i + 1] ?? '';
    }
    length += 2;
  }
  if (length < raw.length) raw.length = length;
}

/** A copy without the fields of these names. */
export function withoutFields(raw: readonly string[], names: FieldNames): string[] {
  const kept: string[] = [];
  for (let i = 0; i < raw.length; i += 2)
    if (!names.has(raw[i] ?? '')) kept.push(raw[i] ?? '', raw[i + 1] ?? '');
  return kept;
}

// RFC 9110 §5.5: visible ASCII, space, tab and obs-text; Node's `setHeader` throws on anything else.
const FORBIDDEN_IN_VALUE = /[^\t\u0020-\u007e\u0080-\u00ff]/;
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** Whether a computed value is valid in a header. Every caller omits invalid values. */
export function isHeaderValue(value: string): boolean {
  return !FORBIDDEN_IN_VALUE.test(value);
}

export function isHeaderName(name: string): boolean {
  return TOKEN.test(name);
}

/** Fields that a configuration cannot set: hop-by-hop fields and those for the length and recipient of a message. */
const NOT_SETTABLE: ReadonlySet<string> = new Set([...HOP_BY_HOP, 'content-length', 'expect', 'host']);

/** Whether a configuration may add this header to a message. */
export function isSettableHeader(name: string): boolean {
  return isHeaderName(name) && !NOT_SETTABLE.has(name.toLowerCase());
}

/** Error message for a name that `isSettableHeader` rejects. */
export const SETTABLE_HEADER =
  'expected a header other than host, content-length, expect and hop-by-hop headers (connection, te, upgrade, transfer-encoding, …)';

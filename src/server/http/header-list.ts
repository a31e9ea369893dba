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

  delete(name: string): void {
    const { raw } = this;
    for (let i = raw.length - 2; i >= 0; i -= 2) if (sameName(raw[i] as string, name)) raw.splice(i, 2);
  }
}

function sameName(a: string, b: string): boolean {
  return a.length === b.length && (a === b || a.toLowerCase() === b.toLowerCase());
}

/** RFC 9110 §7.6.1 and §11.7: fields about one connection, never forwarded. */
const HOP_BY_HOP = new Set([
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

/** Copies the end-to-end fields: without hop-by-hop ones, those that `Connection` names, and those in `drop` (lower case). */
export function endToEnd(raw: readonly string[], drop?: ReadonlySet<string>): string[] {
  let named: string[] | undefined;
  for (let i = 0; i < raw.length; i += 2) {
    if (sameName(raw[i] as string, 'connection')) {
      named = (named ?? []).concat(
        (raw[i + 1] as string).split(',').map((token) => token.trim().toLowerCase()),
      );
    }
  }
  const kept: string[] = [];
  for (let i = 0; i < raw.length; i += 2) {
    const name = (raw[i] as string).toLowerCase();
    if (HOP_BY_HOP.has(name) || drop?.has(name) || named?.includes(name)) continue;
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

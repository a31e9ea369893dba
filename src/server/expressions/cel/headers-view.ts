import { sameName } from '../../kernel/request/header-list.ts';
import { CelObject, type Value } from './values.ts';

/** How repeated fields are returned: `plain` returns a string for one line and a list for several. */
type Mode = 'plain' | 'join' | 'raw' | 'split';

const REDACTED = '<redacted>';
/** Header names, or parts of names, whose values are credentials. */
const SENSITIVE = /authorization|cookie|token|secret|password|api-?key/;

/**
 * Headers in an expression. A view of Node's `rawHeaders` array (alternating names and values): nothing is copied or
 * converted to lower case until a name is read. Names are case-insensitive and listed in lower case.
 */
export class HeadersView extends CelObject {
  readonly typeName = 'map';
  readonly #raw: readonly string[];
  readonly #mode: Mode;
  readonly #redacted: boolean;

  constructor(raw: readonly string[], mode: Mode = 'plain', redacted = false) {
    super();
    this.#raw = raw;
    this.#mode = mode;
    this.#redacted = redacted;
  }

  /** The same headers in another mode. The last call wins. */
  as(mode: Mode): HeadersView {
    return new HeadersView(this.#raw, mode, this.#redacted);
  }

  /** The same headers with the values of credentials replaced. */
  redacted(): HeadersView {
    return new HeadersView(this.#raw, this.#mode, true);
  }

  /** A field in this view's mode, or undefined. */
  get(name: string): Value | undefined {
    const lines = this.#lines(name);
    if (lines === undefined) return undefined;
    switch (this.#mode) {
      case 'plain':
        return lines;
      case 'join':
        return typeof lines === 'string' ? lines : lines.join(',');
      case 'raw':
        return typeof lines === 'string' ? [lines] : lines;
      default:
        return (typeof lines === 'string' ? [lines] : lines).flatMap((line) =>
          line.split(',').map((part) => part.trim()),
        );
    }
  }

  /** One cookie of the `cookie` fields (RFC 6265 §5.4), or undefined. Never redacted, because it is read by name. */
  cookie(name: string): string | undefined {
    for (let i = 0; i < this.#raw.length; i += 2) {
      if (!sameName(this.#raw[i] ?? '', 'cookie')) continue;
      for (const pair of (this.#raw[i + 1] ?? '').split(';')) {
        const equals = pair.indexOf('=');
        if (equals > 0 && name !== '' && pair.slice(0, equals).trim() === name) {
          return unquote(pair.slice(equals + 1).trim());
        }
      }
    }
    return undefined;
  }

  /** Every name once, in lower case, in the order of arrival. */
  names(): string[] {
    const names = new Set<string>();
    for (let i = 0; i < this.#raw.length; i += 2) names.add((this.#raw[i] ?? '').toLowerCase());
    return [...names];
  }

  /** The value of a field with one line, or the list of values of a repeated field. */
  #lines(name: string): string | string[] | undefined {
    const raw = this.#raw;
    let first: string | undefined;
    let all: string[] | undefined;
    for (let i = 0; i < raw.length; i += 2) {
      if (!sameName(raw[i] ?? '', name)) continue;
      const value = raw[i + 1] ?? '';
      if (first === undefined) first = value;
      else if (all === undefined) all = [first, value];
      else all.push(value);
    }
    if (this.#redacted && first !== undefined && SENSITIVE.test(name.toLowerCase())) {
      return all === undefined ? REDACTED : all.map(() => REDACTED);
    }
    return all ?? first;
  }
}

function unquote(value: string): string {
  return value.length > 1 && value.startsWith('"') && value.endsWith('"') ? value.slice(1, -1) : value;
}

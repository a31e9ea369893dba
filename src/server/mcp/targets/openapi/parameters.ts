import { parseJson, type Reviver } from '../../../../core/foreign.ts';
import { isHeaderValue } from '../../../kernel/request/header-list.ts';

/** Where a parameter goes, and the group of arguments that contains it. */
export const GROUPS = ['path', 'query', 'header', 'cookie'] as const;
export type Group = (typeof GROUPS)[number];

/** A parameter of an operation (OpenAPI 3.1 §4.8.12). */
export interface Parameter {
  readonly group: Group;
  readonly name: string;
  readonly isRequired: boolean;
  readonly style: Style;
  readonly explode: boolean;
}

/** Styles that are supported, and `json` for a parameter that is described by `content`. */
export const STYLES = {
  path: ['simple', 'label', 'matrix', 'json'],
  query: ['form', 'spaceDelimited', 'pipeDelimited', 'deepObject', 'json'],
  header: ['simple', 'json'],
  cookie: ['form', 'json'],
} as const satisfies Record<Group, readonly string[]>;
export type Style = (typeof STYLES)[Group][number];

/** An argument that cannot be sent. The message is for the model, which can correct it. */
export class ArgumentError extends Error {}

/** A value as it was parsed; numbers are their source text, so that those over 2^53 keep their digits. */
type Value = string | boolean | null | readonly Value[] | { readonly [name: string]: Value };

/** The value of a parameter for a path or header (RFC 6570 "simple"). `text` is JSON. Throws `ArgumentError`. */
export function simpleValue(parameter: Parameter, text: string): string {
  const { group, name, explode, style } = parameter;
  const place = `${group}.${name}`;
  const encode = group === 'header' ? (raw: string) => headerValue(raw, place) : percentEncoded;
  if (style === 'json') return encode(text);
  const value = parsed(text);
  if (Array.isArray(value)) return value.map((item) => encode(scalar(item, place))).join(',');
  if (typeof value === 'object' && value !== null)
    return Object.entries(value)
      .map(([key, item]) => `${encode(key)}${explode ? '=' : ','}${encode(scalar(item, place))}`)
      .join(',');
  return encode(scalar(value, place));
}

/**
 * The value of a path parameter, with the prefixes of the styles `label` (`.a`) and `matrix` (`;name=a`, RFC 6570 §3.2.5 and
 * §3.2.7). `declared` are the names of all path parameters. `text` is JSON. Throws `ArgumentError`.
 */
export function pathValue(parameter: Parameter, text: string, declared: ReadonlySet<string>): string {
  const { name, style, explode } = parameter;
  if (style !== 'label' && style !== 'matrix') return simpleValue(parameter, text);
  const place = `path.${name}`;
  const isMatrix = style === 'matrix';
  const prefix = isMatrix ? ';' : '.';
  // A dot within a label would begin another one.
  const encode = (raw: string): string =>
    isMatrix ? percentEncoded(raw) : percentEncoded(raw).replaceAll('.', '%2E');
  const own = isMatrix ? `${percentEncoded(name)}=` : '';
  const item = (value: Value): string => encode(scalar(value, place));
  const value = parsed(text);
  if (typeof value !== 'object' || value === null) {
    const only = item(value);
    return prefix + (only === '' ? own.replace(/=$/, '') : own + only);
  }
  const entries: readonly (readonly [string | undefined, Value])[] = isList(value)
    ? value.map((each) => [undefined, each])
    : Object.entries(value);
  if (entries.length === 0) return '';
  if (isMatrix && explode) refuseOtherNames(entries, declared, place);
  if (explode)
    return entries
      .map(([key, each]) => prefix + (key === undefined ? own : `${encode(key)}=`) + item(each))
      .join('');
  return `${prefix}${own}${entries
    .flatMap(([key, each]) => [...(key === undefined ? [] : [encode(key)]), item(each)])
    .join(',')}`;
}

/** The value of a cookie. Only single values: a comma is not allowed in a cookie (RFC 6265 §4.1.1). */
export function cookieValue({ name, style }: Parameter, text: string): string {
  if (style === 'json') return percentEncoded(text);
  const place = `cookie.${name}`;
  const value = parsed(text);
  if (typeof value === 'object') throw new ArgumentError(`${place} must be a string, number or boolean`);
  return percentEncoded(scalar(value, place));
}

/** Members of an object that are written as parameters of their own must not set another one. */
function refuseOtherNames(
  entries: readonly (readonly [string | undefined, unknown])[],
  declared: ReadonlySet<string>,
  place: string,
): void {
  const [group] = place.split('.');
  const other = entries.find(([inner]) => inner !== undefined && declared.has(inner))?.[0];
  if (other !== undefined)
    throw new ArgumentError(`${place}.${other} is the name of another parameter: set ${group}.${other}`);
}

/**
 * The pairs of a query parameter or form field, encoded. `declared` are the names of all of them: members of an object that
 * is written as several parameters must not set another one. `text` is JSON. Throws `ArgumentError`.
 */
export function queryPairs(
  parameter: Pick<Parameter, 'name' | 'style' | 'explode'>,
  text: string,
  declared: ReadonlySet<string>,
  group: 'query' | 'body' = 'query',
): string[] {
  const { name, style, explode } = parameter;
  const place = `${group}.${name}`;
  const key = percentEncoded(name);
  const encoded = (item: Value): string => percentEncoded(scalar(item, place));
  if (style === 'json') return [`${key}=${percentEncoded(text)}`];
  const value = parsed(text);
  if (value === null) return [];
  if (Array.isArray(value)) {
    if (explode || style === 'deepObject') return value.map((item) => `${key}=${encoded(item)}`);
    return value.length === 0 ? [] : [`${key}=${value.map(encoded).join(SEPARATORS[style] ?? ',')}`];
  }
  if (typeof value !== 'object') return [`${key}=${encoded(value)}`];
  const members = Object.entries(value);
  if (style === 'deepObject')
    return members.map(([inner, item]) => `${key}%5B${percentEncoded(inner)}%5D=${encoded(item)}`);
  if (!explode)
    return members.length === 0
      ? []
      : [
          `${key}=${members.flatMap(([inner, item]) => [percentEncoded(inner), encoded(item)]).join(SEPARATORS[style] ?? ',')}`,
        ];
  refuseOtherNames(members, declared, place);
  return members.map(([inner, item]) => `${percentEncoded(inner)}=${encoded(item)}`);
}

const SEPARATORS: Readonly<Partial<Record<Style, string>>> = { spaceDelimited: '%20', pipeDelimited: '%7C' };

/** Parses an argument. Its text is valid JSON. */
function parsed(text: string): Value {
  const withSource: Reviver = (_key, value, { source }) =>
    typeof value === 'number' ? (source ?? String(value)) : value;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what JSON has, with texts for its numbers
  return parseJson(text, withSource) as Value;
}

// `Array.isArray` does not narrow readonly arrays.
const isList = (value: Value): value is readonly Value[] => Array.isArray(value);

function scalar(value: Value, place: string): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'boolean') return String(value);
  throw new ArgumentError(`${place} must consist of strings, numbers and booleans`);
}

/** Everything except letters, digits and `-._~!*'()` is encoded, so a value cannot end a path segment or a parameter. */
function percentEncoded(text: string): string {
  if (!text.isWellFormed()) throw new ArgumentError('strings must not contain lone surrogates');
  return encodeURIComponent(text);
}

function headerValue(text: string, place: string): string {
  if (!isHeaderValue(text))
    throw new ArgumentError(
      `${place} must not contain line breaks, control characters or characters outside Latin-1`,
    );
  return text;
}

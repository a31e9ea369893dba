import { CelEvaluationError } from '../errors.ts';
import { CEL_LIMITS, charge, chargeItems, chargeRead, chargeText } from '../limits.ts';
import { isList, type Value } from '../values.ts';
import { asIndex, asString, type FunctionDefinition, isString, method } from './define.ts';

/** Text as it is indexed: by code point. Without surrogates that is the text itself, which costs nothing. */
type Characters = string | readonly string[];

const SURROGATE = /[\ud800-\udfff]/;

function characters(value: string): Characters {
  chargeRead(value.length);
  if (!SURROGATE.test(value)) return value;
  // An array of characters costs about 5 ns each.
  charge(value.length >> 5);
  return Array.from(value);
}

function slice(from: Characters, start: number, end: number): string {
  return typeof from === 'string' ? from.slice(start, end) : from.slice(start, end).join('');
}

function outOfRange(): CelEvaluationError {
  return new CelEvaluationError('index_out_of_range', 'a position is outside of the string');
}

function startsWith(value: string, prefix: Value | undefined): boolean {
  chargeRead(asString(prefix).length);
  return value.startsWith(asString(prefix));
}

function endsWith(value: string, suffix: Value | undefined): boolean {
  chargeRead(asString(suffix).length);
  return value.endsWith(asString(suffix));
}

function charAt(value: string, at: Value): string {
  const chars = characters(value);
  const index = asIndex(at);
  if (index < 0 || index > chars.length) throw outOfRange();
  return chars[index] ?? '';
}

function substring(value: string, from: Value, to?: Value): string {
  const chars = characters(value);
  const start = asIndex(from);
  const end = to === undefined ? chars.length : asIndex(to);
  if (start < 0 || end < start || end > chars.length) throw outOfRange();
  return slice(chars, start, end);
}

/** Position in code points; -1 when absent. A start beyond the end finds nothing (upstream; cel-go fails there). */
function indexOf(value: string, search: Value, from?: Value): bigint {
  const wanted = asString(search);
  const start = from === undefined ? 0 : asIndex(from);
  if (start < 0) throw outOfRange();
  const chars = characters(value);
  if (start > chars.length) return -1n;
  if (typeof chars === 'string') return BigInt(chars.indexOf(wanted, start));
  const found = value.indexOf(wanted, slice(chars, 0, start).length);
  return found < 0 ? -1n : BigInt(Array.from(value.slice(0, found)).length);
}

function lastIndexOf(value: string, search: Value, from?: Value): bigint {
  const wanted = asString(search);
  const chars = characters(value);
  const start = from === undefined ? chars.length : asIndex(from);
  if (start < 0) throw outOfRange();
  if (from !== undefined && start > chars.length) return -1n;
  if (typeof chars === 'string') return BigInt(chars.lastIndexOf(wanted, start));
  const found = value.lastIndexOf(wanted, slice(chars, 0, start).length);
  return found < 0 ? -1n : BigInt(Array.from(value.slice(0, found)).length);
}

/** At most `limit` parts, the last one holding the rest; a negative limit means all. */
function split(value: string, separator: Value, limit?: Value): readonly string[] {
  const by = asString(separator);
  const most = limit === undefined ? -1 : asIndex(limit);
  if (most === 0) return [];
  chargeRead(value.length);
  // A pair of surrogates is one part, so there are at least half as many parts as units.
  if (by === '') return splitCharacters(value, most);
  const parts: string[] = [];
  let start = 0;
  for (let at = value.indexOf(by); at >= 0 && parts.length !== most - 1; at = value.indexOf(by, start)) {
    parts.push(value.slice(start, at));
    start = at + by.length;
    if (parts.length > CEL_LIMITS.items) break;
  }
  parts.push(value.slice(start));
  chargeItems(parts.length);
  return parts;
}

function splitCharacters(value: string, most: number): readonly string[] {
  chargeItems(value.length >> 1);
  const parts = Array.from(value);
  if (most < 0 || parts.length <= most) return parts;
  return [...parts.slice(0, most - 1), parts.slice(most - 1).join('')];
}

/** Replaces every match, or the first `count`; a negative count means all. */
function replace(value: string, search: Value, replacement: Value, count?: Value): string {
  const wanted = asString(search);
  const by = asString(replacement);
  const most = count === undefined || asIndex(count) < 0 ? Number.POSITIVE_INFINITY : asIndex(count);
  chargeRead(value.length);
  if (wanted === '') return replaceEmpty(value, by, most);
  let hits = 0;
  let end = 0;
  for (let at = value.indexOf(wanted); at >= 0 && hits < most; at = value.indexOf(wanted, end)) {
    hits++;
    end = at + wanted.length;
  }
  charge(hits >> 2);
  chargeText(value.length + hits * (by.length - wanted.length));
  return value.slice(0, end).split(wanted).join(by) + value.slice(end);
}

/** An empty text is found before each character and at the end. */
function replaceEmpty(value: string, by: string, most: number): string {
  charge(value.length >> 1);
  const chars = Array.from(value);
  const hits = Math.min(most, chars.length + 1);
  chargeText(value.length + hits * by.length);
  const filled = chars.slice(0, hits).map((char) => by + char);
  return filled.join('') + chars.slice(hits).join('') + (hits > chars.length ? by : '');
}

function join(items: readonly Value[], separator: Value = ''): string {
  const by = asString(separator);
  chargeItems(items.length);
  const parts = items.map((part) => asString(part));
  chargeText(parts.reduce((length, part) => length + part.length + by.length, 0));
  return parts.join(by);
}

function lower(value: string): string {
  chargeRead(value.length);
  return value.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
}

function upper(value: string): string {
  chargeRead(value.length);
  return value.replace(/[a-z]+/g, (letters) => letters.toUpperCase());
}

// White space by Unicode's property: JavaScript's own `trim` also takes the byte order mark and leaves NEL. Two loops,
// because a regular expression for the end of a text starts again at each run of blanks inside of it.
const WHITE_SPACE = /\p{White_Space}/u;

function trim(value: string): string {
  chargeRead(value.length);
  let start = 0;
  let end = value.length;
  while (start < end && WHITE_SPACE.test(value[start] ?? '')) start++;
  while (end > start && WHITE_SPACE.test(value[end - 1] ?? '')) end--;
  return value.slice(start, end);
}

/** Methods of texts, after the strings extension of cel-go with upstream's additions. */
export const strings: readonly FunctionDefinition[] = [
  method(isString, 'startsWith', 1, startsWith),
  method(isString, 'endsWith', 1, endsWith),
  method(isString, 'charAt', 1, charAt),
  method(isString, 'indexOf', [1, 2], indexOf),
  method(isString, 'lastIndexOf', [1, 2], lastIndexOf),
  method(isString, 'substring', [1, 2], substring),
  method(isString, 'split', [1, 2], split),
  method(isString, 'replace', [2, 3], replace),
  method(isList, 'join', [0, 1], join),
  method(isString, 'lowerAscii', 0, lower),
  method(isString, 'upperAscii', 0, upper),
  method(isString, 'trim', 0, trim),
  method(isString, 'stripPrefix', 1, (value, prefix) =>
    startsWith(value, prefix) ? value.slice(asString(prefix).length) : value,
  ),
  method(isString, 'stripSuffix', 1, (value, suffix) =>
    endsWith(value, suffix) ? value.slice(0, value.length - asString(suffix).length) : value,
  ),
  // A secret reads as its text; where it is printed, the printer redacts it.
  method(isString, 'unredacted', 0, (value) => value),
];

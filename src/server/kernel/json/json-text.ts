import { parseJson, textIn } from '../../../core/foreign.ts';
import { isOver, stringEnd, structureOf } from '../../../core/json-members.ts';

/**
 * Edits JSON text without serializing it again. Everything else in a message stays as sent: numbers over 2^53 and `1.0`,
 * which `JSON.parse` and `JSON.stringify` would change. All functions except `exceedsStructure` expect text that
 * `JSON.parse` accepts.
 */

/** A range of a text in UTF-16 offsets, end exclusive. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

export interface Edit extends Span {
  readonly text: string;
}

const QUOTE = 34;
const OPEN_ARRAY = 91;
const CLOSE_ARRAY = 93;
const OPEN_OBJECT = 123;
const CLOSE_OBJECT = 125;
const COMMA = 44;

/** Members of the object that starts at or after `from`: key and span of the value. */
export function members(text: string, from = 0): [key: string, value: Span][] {
  const found: [string, Span][] = [];
  eachMember(text, from, (key, start, end) => void found.push([key, { start, end }]));
  return found;
}

/** Calls `visit` with the key and the range of the value of each member of the object that starts at or after `from`. */
export function eachMember(
  text: string,
  from: number,
  visit: (key: string, start: number, end: number) => void,
): void {
  let at = skipSpace(text, from) + 1;
  for (;;) {
    at = skipSpace(text, at);
    const code = text.charCodeAt(at);
    if (code === CLOSE_OBJECT || Number.isNaN(code)) return;
    if (code === COMMA) {
      at += 1;
      continue;
    }
    const keyEnd = stringEnd(text, at);
    const key = text.slice(at + 1, keyEnd - 1);
    const start = skipSpace(text, skipSpace(text, keyEnd) + 1);
    at = skipValue(text, start);
    visit(key.includes('\\') ? textIn(parseJson(`"${key}"`)) : key, start, at);
  }
}

/** Elements of the array that starts at or after `from`. */
export function elements(text: string, from = 0): Span[] {
  const found: Span[] = [];
  let at = skipSpace(text, from) + 1;
  for (;;) {
    at = skipSpace(text, at);
    const code = text.charCodeAt(at);
    if (code === CLOSE_ARRAY || Number.isNaN(code)) return found;
    if (code === COMMA) {
      at += 1;
      continue;
    }
    const end = skipValue(text, at);
    found.push({ start: at, end });
    at = end;
  }
}

/** Span of the value at a path of keys, or undefined if there is none. */
export function valueAt(text: string, path: readonly string[]): Span | undefined {
  let span: Span = { start: skipSpace(text, 0), end: text.length };
  for (const key of path) {
    if (text.charCodeAt(span.start) !== OPEN_OBJECT) return undefined;
    // Of duplicate keys the last one counts, as for JSON.parse.
    const next = members(text, span.start).findLast(([name]) => name === key);
    if (next === undefined) return undefined;
    span = next[1];
  }
  return span;
}

/** The string that is written at a path of keys; undefined if there is none, or another value. */
export function stringAt(text: string, path: readonly string[]): string | undefined {
  const span = valueAt(text, path);
  return span === undefined || text.charCodeAt(span.start) !== QUOTE
    ? undefined
    : stringOf(text.slice(span.start, span.end));
}

/** The string that a JSON text is; empty for any other value. */
export const stringOf = (text: string): string => textIn(parseJson(text));

/** Applies edits that do not overlap. */
export function edit(text: string, edits: readonly Edit[]): string {
  const [first] = edits;
  if (first !== undefined && edits.length === 1)
    return text.slice(0, first.start) + first.text + text.slice(first.end);
  let result = '';
  let from = 0;
  for (const change of [...edits].sort((a, b) => a.start - b.start)) {
    result += text.slice(from, change.start) + change.text;
    from = change.end;
  }
  return result + text.slice(from);
}

/** The edit that inserts a member, as JSON text, at the beginning of the object that starts at `start`. */
export function insertion(text: string, start: number, member: string): Edit | undefined {
  if (text.charCodeAt(start) !== OPEN_OBJECT) return undefined;
  const isEmpty = text.charCodeAt(skipSpace(text, start + 1)) === CLOSE_OBJECT;
  return { start: start + 1, end: start + 1, text: isEmpty ? member : `${member},` };
}

/** Sets a member of an object, given as JSON text, to a text; undefined leaves it as it is. */
export function withText(object: string, key: string, value: string | undefined): string {
  if (value === undefined) return object;
  const text = JSON.stringify(value);
  const span = valueAt(object, [key]);
  const change =
    span === undefined
      ? insertion(object, skipSpace(object, 0), `${JSON.stringify(key)}:${text}`)
      : { ...span, text };
  return change === undefined ? object : edit(object, [change]);
}

/** Removes members of the object at a path of keys. */
export function withoutMembers(
  text: string,
  path: readonly string[],
  isRemoved: (key: string) => boolean,
): string {
  const object = valueAt(text, path);
  if (object === undefined || text.charCodeAt(object.start) !== OPEN_OBJECT) return text;
  const all = members(text, object.start);
  const kept = all.filter(([key]) => !isRemoved(key));
  if (kept.length === all.length) return text;
  const texts = kept.map(([key, { start, end }]) => `${JSON.stringify(key)}:${text.slice(start, end)}`);
  return edit(text, [{ ...object, text: `{${texts.join(',')}}` }]);
}

/** Whether an unvalidated text nests deeper than `depth` or has more than `keys` colons outside strings. */
export function exceedsStructure(text: string, depth: number, keys: number): boolean {
  return isOver(structureOf(text, depth, keys), depth, keys);
}

function skipValue(text: string, from: number): number {
  const first = text.charCodeAt(from);
  if (first === QUOTE) return stringEnd(text, from);
  if (first !== OPEN_OBJECT && first !== OPEN_ARRAY) {
    let at = from;
    while (at < text.length && !isDelimiter(text.charCodeAt(at))) at += 1;
    return at;
  }
  let level = 0;
  for (let at = from; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) at = stringEnd(text, at) - 1;
    else if (code === OPEN_OBJECT || code === OPEN_ARRAY) level += 1;
    else if (code === CLOSE_OBJECT || code === CLOSE_ARRAY) {
      level -= 1;
      if (level === 0) return at + 1;
    }
  }
  return text.length;
}

function skipSpace(text: string, from: number): number {
  let at = from;
  while (isSpace(text.charCodeAt(at))) at += 1;
  return at;
}

const isSpace = (code: number): boolean => code === 32 || (code >= 9 && code <= 13);
const isDelimiter = (code: number): boolean =>
  code === COMMA || code === CLOSE_OBJECT || code === CLOSE_ARRAY || isSpace(code);

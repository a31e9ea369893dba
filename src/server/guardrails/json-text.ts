import type { Span } from '../kernel/json/json-text.ts';

/** Where in JSON text a piece of it begins. */
export interface JsonPlace {
  readonly isInString: boolean;
  /** After a backslash. */
  readonly isEscaped: boolean;
}

/** The beginning of JSON text. */
export const JSON_START: JsonPlace = { isInString: false, isEscaped: false };

/** The place after more text. */
export function placeAfter({ isInString, isEscaped }: JsonPlace, text: string): JsonPlace {
  let inString = isInString;
  let escaped = isEscaped;
  for (const character of text) {
    if (escaped) escaped = false;
    else if (character === '"') inString = !inString;
    else escaped = inString && character === '\\';
  }
  return { isInString: inString, isEscaped: escaped };
}

const OF_NUMBER = /[-+.\deE]/;
const NUMBER = /^-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?$/;

/** The number, outside of strings, that a match is all or a part of. `from`: where to look at the earliest. */
export function numberAround(text: string, { start, end }: Span, from: number): Span | undefined {
  let [first, last] = [start, end];
  while (first > from && OF_NUMBER.test(text.charAt(first - 1))) first -= 1;
  while (last < text.length && OF_NUMBER.test(text.charAt(last))) last += 1;
  return NUMBER.test(text.slice(first, last)) ? { start: first, end: last } : undefined;
}

/**
 * JSON text with printable characters of ASCII in place of their escapes (`\u0041`), as whoever parses it reads them; undefined
 * if it has none. `place`: where the text begins.
 */
export function withoutEscapes(text: string, { isEscaped }: JsonPlace): string | undefined {
  if (!ESCAPE.test(text)) return undefined;
  const start = isEscaped ? 1 : 0;
  const decoded = text.slice(start).replace(PAIR, (pair, code: string | undefined) => {
    const character = code === undefined ? pair : String.fromCharCode(Number.parseInt(code, 16));
    return /["\\\x7f]/.test(character) ? pair : character;
  });
  return text.slice(0, start) + decoded;
}

const ESCAPE = /\\u00[2-7]/i;
/** A backslash with what it escapes. */
const PAIR = /\\(?:u00([2-7][0-9a-f])|.)/gis;

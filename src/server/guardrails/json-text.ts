import type { Span } from '../kernel/json-text.ts';

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

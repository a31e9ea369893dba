import { jsonIn, parseJson } from '../../../core/foreign.ts';

/**
 * Parses JSON whose numbers `JSON.stringify` writes again as they were: identifiers of 64 bits do not fit into a number
 * of JavaScript. Those are kept as their text (`JSON.rawJSON`). Undefined if the text is invalid.
 */
export function parseExactly(text: string): unknown {
  // A reviver makes parsing ten times slower, so it is only used for the few texts that need one.
  if (rawJson === undefined || !LONG_NUMBER.test(text)) return jsonIn(text);
  try {
    return parseJson(text, keepLongNumber);
  } catch {
    return undefined;
  }
}

/** More digits than any number of JavaScript keeps; a decimal point may be anywhere in them. */
const LONG_NUMBER = /[\d.]{16}/;

// The source text and `rawJSON` are in Node.js since version 21, but not in the library of ES2024.
function keepLongNumber(_key: string, value: unknown, { source = '' }: { source?: string }): unknown {
  return typeof value === 'number' && LONG_NUMBER.test(source) ? rawJson?.(source) : value;
}

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- as said there
const { rawJSON: rawJson } = JSON as { rawJSON?: (text: string) => unknown };

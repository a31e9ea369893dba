import { CommandError } from '../../core/exit-codes.ts';
import { LIMITS } from '../../core/limits.ts';

/** A number whose digits a double cannot hold, as it was written. */
export class NumberText {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

const PIECE = 64 * 1024;
// Upstream's output escapes the first three; the others could control a terminal or reorder its text.
const ESCAPED = /[<>&\u007f-\u009f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** Escapes unsafe characters in JSON, which can occur only in its strings. */
export function escapeUnsafe(json: string): string {
  return json.replace(ESCAPED, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/**
 * Indents valid JSON by two spaces, in pieces. Works on the text, so that order and duplicates of keys and the digits
 * of numbers stay the same.
 */
export function* indentJson(text: string): Generator<string> {
  let out = '';
  let depth = 0;
  for (let at = 0; at < text.length; ) {
    const code = text.charCodeAt(at);
    const end = tokenEnd(text, at, code);
    if (code === OPEN_OBJECT || code === OPEN_ARRAY) {
      const next = skipBlanks(text, end);
      const closing = text.charCodeAt(next);
      if (closing === CLOSE_OBJECT || closing === CLOSE_ARRAY) {
        out += code === OPEN_OBJECT ? '{}' : '[]';
        at = next + 1;
        continue;
      }
      depth += 1;
      if (depth > LIMITS.dumpDepth) throw tooDeep();
      out += `${text[at]}\n${'  '.repeat(depth)}`;
    } else if (code === CLOSE_OBJECT || code === CLOSE_ARRAY) {
      depth -= 1;
      out += `\n${'  '.repeat(depth)}${text[at]}`;
    } else if (code === COMMA) out += `,\n${'  '.repeat(depth)}`;
    else if (code === COLON) out += ': ';
    else if (!isBlank(code)) out += text.slice(at, end);
    if (out.length > PIECE) {
      yield escapeUnsafe(out);
      out = '';
    }
    at = end;
  }
  yield `${escapeUnsafe(out)}\n`;
}

const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const COMMA = 0x2c;
const COLON = 0x3a;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09 || code === 0xfeff;
}

function skipBlanks(text: string, from: number): number {
  let at = from;
  while (isBlank(text.charCodeAt(at))) at += 1;
  return at;
}

/** End of the token at `at`: a whole string, a run of spaces, a bare word, or one punctuation character. */
function tokenEnd(text: string, at: number, code: number): number {
  if (code === QUOTE) return stringEnd(text, at);
  if (isBlank(code)) return skipBlanks(text, at);
  let end = at;
  while (isBareWord(text.charCodeAt(end))) end += 1;
  return Math.max(end, at + 1);
}

/** Letters, digits and signs, as in numbers, true, false and null. */
function isBareWord(code: number): boolean {
  return (
    (code >= 0x30 && code <= 0x39) ||
    (code >= 0x61 && code <= 0x7a) ||
    code === 0x2d ||
    code === 0x2b ||
    code === 0x2e ||
    code === 0x45
  );
}

function stringEnd(text: string, at: number): number {
  let end = text.indexOf('"', at + 1);
  while (text.charCodeAt(end - 1) === BACKSLASH && isEscaped(text, end)) end = text.indexOf('"', end + 1);
  return end + 1;
}

function isEscaped(text: string, quote: number): boolean {
  let first = quote - 1;
  while (text.charCodeAt(first) === BACKSLASH) first -= 1;
  return (quote - first) % 2 === 0;
}

export function tooDeep(): CommandError {
  return new CommandError(
    'usage',
    `the dump is nested deeper than ${LIMITS.dumpDepth} levels`,
    'is it a dump of a gateway?',
  );
}

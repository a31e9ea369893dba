import { CelEvaluationError } from '../errors.ts';
import { charge, chargeText } from '../limits.ts';
import { member } from '../maps.ts';
import { type CelResult, fromCel } from '../results.ts';
import { toCel, type Value } from '../values.ts';
import { type FunctionDefinition, fn, invalid, text, textOrOctets } from './define.ts';

// Deeper texts parse, but walking the value afterwards would not end well: 10^6 open brackets take 263 ms and then
// overflow the stack of whatever prints them.
const DEPTH = 128;
/** Members of all objects of a text: 140,000 short keys (1.6 MB) parse in 75 ms, 30,000 in 11. */
const MEMBERS = 30_000;
const OPEN = /[[{]/g;
/** Up to here no text is worth a look at every character. */
const SHORT = 4096;

/** Parses a JSON text. Throws `invalid_argument` when it is not one or nests too deeply. */
function parseJson(source: string): Value {
  // Texts parse at 1 ns a character when they are long strings, but at 0.4 µs a member when they are short keys.
  charge(1 + (source.length >> (source.length > SHORT ? 6 : 4)));
  if (source.length > SHORT || (source.match(OPEN)?.length ?? 0) > DEPTH) checkShape(source);
  try {
    return toCel(JSON.parse(source));
  } catch {
    throw invalid('json() needs JSON text');
  }
}

/** Charges for the members and items of a text, and refuses too much nesting and too many members. */
function checkShape(source: string): void {
  let depth = 0;
  let commas = 0;
  let members = 0;
  for (let i = 0; i < source.length; i++) {
    const unit = source.charCodeAt(i);
    if (unit === 0x22) i = endOfText(source, i);
    else if (unit === 0x2c) commas++;
    else if (unit === 0x3a) members++;
    else if (unit === 0x5d || unit === 0x7d) depth--;
    else if ((unit === 0x5b || unit === 0x7b) && ++depth > DEPTH) {
      throw invalid(`json() takes at most ${DEPTH} nested lists and objects`);
    }
  }
  if (members > MEMBERS) throw invalid(`json() takes at most ${MEMBERS} members`);
  charge(commas >> 1);
}

/** Position of the quote that ends the text which starts at `start`. */
function endOfText(source: string, start: number): number {
  for (let i = start + 1; i < source.length; i++) {
    const unit = source.charCodeAt(i);
    if (unit === 0x22) return i;
    if (unit === 0x5c) i++;
  }
  return source.length;
}

function jsonField(source: Value | undefined, name: Value | undefined): Value {
  const value = member(parseJson(textOrOctets(source)), text(name));
  if (value === undefined) throw new CelEvaluationError('no_such_key', 'jsonField() finds no such key');
  return value;
}

/** Compact JSON. Bytes become base64, times their texts; numbers that JSON does not have become null. */
function toJson(value: Value | undefined): string {
  return JSON.stringify(printable(fromCel(value ?? null)));
}

// Charges before anything is printed: the same long text may stand in a list ten thousand times.
function printable(value: CelResult): unknown {
  if (typeof value === 'string') chargeText(value.length * 4);
  if (typeof value !== 'object' || value === null) return value;
  charge(1);
  if (value instanceof Uint8Array) {
    chargeText(value.length * 2);
    return Buffer.from(value).toString('base64');
  }
  if (Array.isArray(value)) return value.map(printable);
  for (const key of Object.keys(value)) value[key] = printable(value[key] as CelResult) as CelResult;
  return value;
}

/** The claims of a token, without looking at its signature (RFC 7515 §3.1: three parts, base64url). */
function unvalidatedJwtPayload(token: Value | undefined): Value {
  const parts = textOrOctets(token).split('.');
  if (parts.length !== 3 || !/^[\w-]*$/.test(parts[1] as string))
    throw invalid('unvalidatedJwtPayload() needs a JWT');
  return parseJson(Buffer.from(parts[1] as string, 'base64url').toString());
}

/** JSON texts and what is made of them. */
export const json: readonly FunctionDefinition[] = [
  fn('json', 1, (source) => parseJson(textOrOctets(source))),
  fn('jsonField', 2, jsonField),
  fn('toJson', 1, toJson),
  fn('to_json', 1, toJson),
  fn('unvalidatedJwtPayload', 1, unvalidatedJwtPayload),
];

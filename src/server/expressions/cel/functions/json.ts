import { jsonIn } from '../../../../core/foreign.ts';
import { repeatedMember, structureOf } from '../../../../core/json-members.ts';
import type { CelResult } from '../../../kernel/expression.ts';
import { knownJson } from '../../../kernel/request/request-body.ts';
import { CelEvaluationError } from '../errors.ts';
import { charge, chargeText } from '../limits.ts';
import { member } from '../maps.ts';
import { fromCel } from '../results.ts';
import { toCel, type Value } from '../values.ts';
import { asString, asUtf8, type FunctionDefinition, fn, invalid } from './define.ts';

// Deeper texts parse, but walking the value afterwards would not end well: 10^6 open brackets take 263 ms and then
// overflow the stack of whatever prints them.
const MAX_DEPTH = 128;
/** Members of all objects of a text: 140,000 short keys (1.6 MB) parse in 75 ms, 30,000 in 11. */
const MAX_MEMBERS = 30_000;
/** Up to here a text costs more for each character: short keys parse at 0.4 µs a member, long strings at 1 ns a character. */
const SHORT_LENGTH = 4096;

/**
 * Parses a JSON text. Throws `invalid_argument` when it is not one, nests too deeply or has the same member twice in an
 * object: another reader may take the other one.
 */
function parseJson(source: Value | undefined): Value {
  const known = source instanceof Uint8Array ? knownJson(source) : undefined;
  if (known !== undefined) return toCel(known);
  const jsonText = asUtf8(source);
  charge(1 + (jsonText.length >> (jsonText.length > SHORT_LENGTH ? 6 : 4)));
  const structure = structureOf(jsonText, MAX_DEPTH, MAX_MEMBERS);
  if (structure.depth > MAX_DEPTH)
    throw invalid(`json() takes at most ${MAX_DEPTH} nested lists and objects`);
  if (structure.members > MAX_MEMBERS) throw invalid(`json() takes at most ${MAX_MEMBERS} members`);
  if (jsonText.length > SHORT_LENGTH) charge(structure.commas >> 1);
  const value = jsonIn(jsonText);
  if (value === undefined) throw invalid('json() needs JSON text');
  // Its name comes from the text: not for a message.
  if (repeatedMember(jsonText, value, structure) !== undefined)
    throw invalid('json() rejects an object with a duplicate member');
  return toCel(value);
}

function jsonField(source: Value | undefined, name: Value | undefined): Value {
  const value = member(parseJson(source), asString(name));
  if (value === undefined) throw new CelEvaluationError('no_such_key', 'jsonField() found no such key');
  return value;
}

/** Compact JSON. Bytes become base64, times their texts; numbers that JSON does not have become null. */
function toJson(value: Value | undefined): string {
  return JSON.stringify(toJsonValue(fromCel(value ?? null)));
}

// Charges before anything is printed: the same long text may stand in a list ten thousand times.
function toJsonValue(value: CelResult): unknown {
  if (typeof value === 'string') chargeText(value.length * 4);
  if (typeof value !== 'object' || value === null) return value;
  charge(1);
  if (value instanceof Uint8Array) {
    chargeText(value.length * 2);
    return Buffer.from(value).toString('base64');
  }
  if (Array.isArray(value)) return value.map(toJsonValue);
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, toJsonValue(member)]));
}

/** The claims of a token, without looking at its signature (RFC 7515 §3.1: three parts, base64url). */
function unvalidatedJwtPayload(token: Value | undefined): Value {
  const [, payload = '', signature, more] = asUtf8(token).split('.');
  if (signature === undefined || more !== undefined || !/^[\w-]*$/.test(payload))
    throw invalid('unvalidatedJwtPayload() needs a JWT');
  return parseJson(Buffer.from(payload, 'base64url'));
}

/** JSON texts and what is made of them. */
export const json: readonly FunctionDefinition[] = [
  fn('json', 1, parseJson),
  fn('jsonField', 2, jsonField),
  fn('toJson', 1, toJson),
  fn('to_json', 1, toJson),
  fn('unvalidatedJwtPayload', 1, unvalidatedJwtPayload),
];

import { LIMITS } from './limits.ts';

// Checks of values from outside: JSON that someone else wrote has any shape until a check says otherwise.

/** Whether a value is an object with members, and neither an array nor null. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const NO_MEMBERS: Readonly<Record<string, unknown>> = Object.freeze({});

/** The members of an object; none for any other value. */
export const membersOf = (value: unknown): Readonly<Record<string, unknown>> =>
  isRecord(value) ? value : NO_MEMBERS;

/** The value if it is a string. */
export const stringIn = (value: unknown): string | undefined =>
  typeof value === 'string' ? value : undefined;

/** The value if it is a string, otherwise an empty string. */
export const textIn = (value: unknown): string => (typeof value === 'string' ? value : '');

/** The value if it is a finite number. JSON can have others: `1e999` is read as infinity. */
export const numberIn = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isFinite(value) ? value : undefined;

/** An entry of a table, unlike what every object has: a name from outside may be `constructor`. */
export const entryIn = <T>(table: Readonly<Record<string, T>>, name: string): T | undefined =>
  Object.hasOwn(table, name) ? table[name] : undefined;

/** The elements of an array; none for any other value. */
export const elementsOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

/**
 * Parses JSON. Unlike `JSON.parse`, its result has to be checked before it is used. Throws `SyntaxError`, also for lists and
 * objects nested deeper than `LIMITS.parsedJsonDepth`: `JSON.parse` accepts millions of levels, but a function that
 * calls itself for each of them has no stack left, `JSON.stringify` among them.
 */
export function parseJson(text: string, reviver?: Reviver): unknown {
  const most = LIMITS.parsedJsonDepth;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the library of ES2024 lacks the third parameter
  const value: unknown = JSON.parse(text, reviver as (key: string, value: unknown) => unknown);
  // Each level has at least two characters.
  if (text.length > 2 * most && isDeeper(value, most))
    throw new SyntaxError(`lists and objects are nested deeper than ${most}`);
  return value;
}

/** What `JSON.parse` calls with each value and, of a number or string, its text (ECMAScript 2026). */
export type Reviver = (key: string, value: unknown, context: { readonly source?: string }) => unknown;

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (levels === 0) return true;
  if (Array.isArray(value)) return value.some((item) => isDeeper(item, levels - 1));
  const members = membersOf(value);
  // A `for … in` loop allocates no list of names or values.
  for (const name in members) if (isDeeper(members[name], levels - 1)) return true;
  return false;
}

/** The value of a JSON text; undefined for any other text. */
export function jsonIn(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

/** Whether a text is JSON. */
export const isJson = (text: string): boolean => jsonIn(text) !== undefined;

/** Decodes `%xx`. A text with escapes that are not UTF-8 stays as it is. */
export function decodedUri(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/**
 * The code of whatever was thrown, such as `ECONNREFUSED`; empty if it has none. Exceptions of the web platform, such as those of
 * an `AbortSignal`, have a number instead.
 */
export function errorCode(error: unknown): string {
  return textIn(membersOf(error)['code']);
}

/**
 * A value for display. Unlike `String`, it does not call a member `toString` of the value, which may be no function: parsed JSON
 * can have one.
 */
export const shownValue = (value: unknown): string =>
  typeof value === 'string' ? value : (JSON.stringify(value) ?? 'undefined');

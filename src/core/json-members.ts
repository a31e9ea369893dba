import { isRecord, parseJson, textIn } from './foreign.ts';
import { LIMITS } from './limits.ts';

/**
 * Detects duplicate members in a JSON text. RFC 8259 §4 leaves open which of them counts: a policy that reads the last
 * one and a server that reads the first would decide on different requests.
 */

const QUOTE = 34;
const COMMA = 44;
const COLON = 58;
const OPEN_ARRAY = 91;
const BACKSLASH = 92;
const CLOSE_ARRAY = 93;
const OPEN_OBJECT = 123;
const CLOSE_OBJECT = 125;

/** Token counts of an unvalidated text, outside of its strings. */
export interface JsonStructure {
  readonly depth: number;
  readonly commas: number;
  /** Number of colons, which equals the number of members if `JSON.parse` accepts the text. */
  readonly members: number;
  /** Number of objects and lists. */
  readonly containers: number;
}

/**
 * Counts the tokens of a text, and stops early once a count exceeds its bound. Items are commas and containers together,
 * which bound the number of values. Cheap enough to run before parsing: 10^6
 * nested arrays block `JSON.parse` for a quarter of a second.
 */
export function structureOf(
  text: string,
  maxDepth: number,
  maxMembers: number,
  maxItems: number = Number.POSITIVE_INFINITY,
): JsonStructure {
  let level = 0;
  let depth = 0;
  let commas = 0;
  let members = 0;
  let containers = 0;
  for (let at = 0; at < text.length; at += 1) {
    switch (text.charCodeAt(at)) {
      case QUOTE:
        at = stringEnd(text, at) - 1;
        break;
      case OPEN_ARRAY:
      case OPEN_OBJECT:
        level += 1;
        containers += 1;
        if (level > depth) depth = level;
        if (level > maxDepth || commas + containers > maxItems) return { depth, commas, members, containers };
        break;
      case CLOSE_ARRAY:
      case CLOSE_OBJECT:
        level -= 1;
        break;
      case COMMA:
        commas += 1;
        if (commas + containers > maxItems) return { depth, commas, members, containers };
        break;
      case COLON:
        members += 1;
        if (members > maxMembers) return { depth, commas, members, containers };
        break;
    }
  }
  return { depth, commas, members, containers };
}

/** Whether a text exceeded one of the bounds passed to `structureOf`. */
export function isOver(
  { depth, commas, members, containers }: JsonStructure,
  maxDepth: number,
  maxMembers: number,
  maxItems: number = Number.POSITIVE_INFINITY,
): boolean {
  return depth > maxDepth || members > maxMembers || commas + containers > maxItems;
}

/**
 * The name (with escapes decoded) of a member that occurs twice in one object of `text`, at any depth, or undefined.
 * `value` is the result of `JSON.parse`: it keeps one of two duplicates, so names are only compared when the two member
 * counts differ.
 */
export function repeatedMember(
  text: string,
  value: unknown,
  { members }: Pick<JsonStructure, 'members'>,
): string | undefined {
  return countMembers(value) === members ? undefined : findRepeated(text);
}

function countMembers(value: unknown): number {
  let count = 0;
  if (Array.isArray(value)) {
    for (const item of value) if (typeof item === 'object') count += countMembers(item);
    return count;
  }
  if (!isRecord(value)) return 0;
  // A `for … in` loop allocates no list of names or values: a body may contain half a million empty objects.
  for (const name in value) {
    count += 1;
    const member = value[name];
    if (typeof member === 'object') count += countMembers(member);
  }
  return count;
}

/**
 * Like `repeatedMember`, for a text that was not parsed and need not be JSON. A single scan, which keeps the member
 * names of the open objects.
 */
export function findRepeated(text: string): string | undefined {
  /** Member names of each open object: undefined before the first one, null for a list. */
  const open: (Set<string> | null | undefined)[] = [];
  let names: Set<string> | null | undefined = null;
  let isName = false;
  for (let at = 0; at < text.length; at += 1) {
    switch (text.charCodeAt(at)) {
      case QUOTE: {
        const end = stringEnd(text, at);
        if (isName && names !== null) {
          const name = nameIn(text.slice(at + 1, end - 1));
          names ??= new Set();
          if (names.has(name)) return name;
          names.add(name);
          isName = false;
        }
        at = end - 1;
        break;
      }
      case OPEN_OBJECT:
        open.push(names);
        names = undefined;
        isName = true;
        break;
      case OPEN_ARRAY:
        open.push(names);
        names = null;
        break;
      case CLOSE_ARRAY:
      case CLOSE_OBJECT:
        names = open.length === 0 ? null : open.pop();
        isName = false;
        break;
      case COMMA:
        isName = true;
        break;
    }
  }
  return undefined;
}

/** A member's name for an error message, quoted and shortened to `LIMITS.memberNameLength` characters. */
export function shownName(name: string): string {
  const most = LIMITS.memberNameLength;
  return JSON.stringify(name.length > most ? `${name.slice(0, most)}…` : name);
}

/**
 * A name as readers compare it that match names without case, such as Go's `encoding/json` and those of .NET. Lower, upper, then
 * lower case: also folds the letters that they fold (U+017F, U+212A, U+1E9E). U+0130 is `i` where one character becomes one, as in
 * Go's `strings.ToLower` and Java's `equalsIgnoreCase`; in JavaScript it becomes two.
 */
export const foldedName = (name: string): string =>
  name.replaceAll('\u0130', 'i').toLowerCase().toUpperCase().toLowerCase();

/** Decodes the escapes of a name: `\u0063ontent` is `content`. */
function nameIn(written: string): string {
  if (!written.includes('\\')) return written;
  try {
    return textIn(parseJson(`"${written}"`));
  } catch {
    return written;
  }
}

/**
 * Position after the closing quote of the string that starts at `from`, or the end of the text if the string is not
 * closed.
 */
export function stringEnd(text: string, from: number): number {
  let before = from;
  let at = text.indexOf('"', from + 1);
  while (at !== -1) {
    let backslashes = 0;
    while (text.charCodeAt(at - 1 - backslashes) === BACKSLASH) backslashes += 1;
    if (backslashes % 2 === 0) return at + 1;
    if (at - before <= DENSE) return endAfter(text, at + 1);
    before = at;
    at = text.indexOf('"', at + 1);
  }
  return text.length;
}

/** Distance of escaped quotes up to which looking at each character is faster than calls of `indexOf`. */
const DENSE = 4;

/** As `stringEnd`, from a position inside the string, which is not in the middle of an escape. */
function endAfter(text: string, from: number): number {
  for (let at = from; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) return at + 1;
    if (code === BACKSLASH) at += 1;
  }
  return text.length;
}

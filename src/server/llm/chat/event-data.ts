import { isRecord, jsonIn } from '../../../core/foreign.ts';
import { LIMITS } from '../../../core/limits.ts';
import { type Json, Untranslatable } from './chat-format.ts';

// Lenient access to the events of providers, of which some have members of other types than their API reference says.

/** The object in the data of an event. Throws an `Error` if there is none. */
export function parseEvent(data: string): Json {
  const value = jsonIn(data);
  if (value === undefined) throw new Error('an event of the stream is not JSON');
  return objectOf(value) ?? fail();
}

function fail(): never {
  throw new Error('an event of the stream is not a JSON object');
}

export function objectOf(value: unknown): Json | undefined {
  return isRecord(value) ? value : undefined;
}

/** The objects of a list; empty for other values. */
export function objectsOf(value: unknown): readonly Json[] {
  return Array.isArray(value) ? value.filter(isRecord) : [];
}

/** Whether a member is as good as absent: null, an empty text or an empty list. */
export function isBlank(value: unknown): boolean {
  return (
    value === undefined || value === null || value === '' || (Array.isArray(value) && value.length === 0)
  );
}

/** Whether a value has no content: blank, or an object that has only such. */
export function isEmpty(value: unknown, depth = 0): boolean {
  if (isBlank(value)) return true;
  if (!isRecord(value) || depth > DEEPEST_EMPTY) return false;
  return Object.values(value).every((part) => isEmpty(part, depth + 1));
}

/** Servers fill members that they do not use with objects of empty members at most. */
const DEEPEST_EMPTY = 4;

/** The name of the first member that has content, apart from `known`. */
export function firstMember(value: Json, known: readonly string[] = []): string | undefined {
  return Object.keys(value).find((name) => !known.includes(name) && !isEmpty(value[name]));
}

/** A string that is not empty. */
export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** The name of a called tool. Throws `Untranslatable` if there is none. */
export function requiredName(value: unknown, path: string): string {
  const name = textOf(value);
  if (name === undefined) throw new Untranslatable(path, 'is missing');
  return name;
}

/** A whole number from 0. */
export function countOf(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}

/** The number of an answer; 0 if it has none. Throws `Untranslatable` beyond `LIMITS.llmAnswers`. */
export function answerIndex(value: unknown, path: string): number {
  const index = countOf(value) ?? 0;
  if (index >= LIMITS.llmAnswers)
    throw new Untranslatable(`${path}: ${index}`, 'there are not so many answers');
  return index;
}

/** A value in an error message. */
export function shown(value: unknown): string {
  return (JSON.stringify(value) ?? 'nothing').slice(0, MOST_SHOWN);
}

/** Longer values are not names. */
const MOST_SHOWN = 64;

/** One server-sent event with a JSON value. */
export function serverEvent(value: Json, type?: string): string {
  return `${type === undefined ? '' : `event: ${type}\n`}data: ${JSON.stringify(value)}\n\n`;
}

/** A comment, which clients ignore: it keeps a connection alive. */
export const PING = ': ping\n\n';

import { repeatedMember, structureOf } from '../../../core/json-members.ts';

/**
 * JSON text of a value, if its own text has a member twice in one object; otherwise undefined. A guardrail has read the value, in
 * which `JSON.parse` keeps one of them, and a client may read another one.
 */
export function withoutRepetitions(text: string, value: unknown): string | undefined {
  const structure = structureOf(text, Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY);
  return repeatedMember(text, value, structure) === undefined ? undefined : JSON.stringify(value);
}

import { elementsOf } from '../../../core/foreign.ts';
import { membersOf } from '../json-members.ts';
import { type Json, Untranslatable } from './chat-format.ts';
import type { EmbeddedText, EmbeddingRequest } from './embedding-format.ts';

/** A list in a provider's response. Throws an `Error` if it is not one. */
export function listOf(value: unknown, path: string): readonly unknown[] {
  if (!Array.isArray(value)) throw new Error(`\`${path}\` is not a list`);
  return elementsOf(value);
}

/** A list of objects in a provider's response. Throws an `Error` if it is not one. */
export function objectsOf(value: unknown, path: string): readonly Json[] {
  return listOf(value, path).map(
    (item, index) => membersOf(item) ?? invalid(`\`${path}[${index}]\` is not an object`),
  );
}

/** A vector in a provider's response. Throws an `Error` if it is not a list of numbers. */
export function vectorOf(value: unknown, path: string): readonly number[] {
  const list = listOf(value, path);
  if (list.every((item) => typeof item === 'number')) return list;
  return invalid(`\`${path}\` is not a list of numbers`);
}

function invalid(why: string): never {
  throw new Error(why);
}

/** Refuses texts with a task or a title, for formats that have none. Throws `Untranslatable`. */
export function refuseTasks({ texts }: EmbeddingRequest): void {
  for (const each of texts) {
    if (each.task !== undefined) throw untranslatable(each, 'taskType', 'the provider has no task types');
    refuseTitle(each);
  }
}

export function refuseTitle(text: EmbeddedText): void {
  if (text.title !== undefined) throw untranslatable(text, 'title', 'the provider has no titles');
}

/** `path` of a text of the Gemini API ends with the content. */
export function untranslatable({ path }: EmbeddedText, member: string, why: string): Untranslatable {
  return new Untranslatable(path.replace(/content$/, member), why);
}

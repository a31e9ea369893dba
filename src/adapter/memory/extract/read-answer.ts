import { elementsOf, jsonIn, membersOf } from '../../../core/foreign.ts';
import { MEMORY_API_LIMITS, MEMORY_STORE_LIMITS } from '../../../core/memory-limits.ts';
import type { AgentEntity, AgentRelation } from '../../../core/memory-model.ts';

export interface Extracted {
  readonly entities: readonly AgentEntity[];
  readonly relations: readonly AgentRelation[];
  /** Places, from 0, of the earlier statements that the text makes outdated; in no order, and each at most once. */
  readonly outdated: readonly number[];
}

/** Objects of an answer that are tried. */
const TRIED = 20;

/** What a chat completion says, and whether it ends before its end; undefined for another reply. */
export function messageIn(reply: string): { readonly content: string; readonly isCut: boolean } | undefined {
  const [choice] = elementsOf(membersOf(jsonIn(reply))['choices']);
  const { message, finish_reason: reason } = membersOf(choice);
  const { content } = membersOf(message);
  return typeof content === 'string' ? { content, isCut: reason === 'length' } : undefined;
}

/**
 * What a model has extracted; undefined if its answer is not of the requested form. A model writes what it likes: items that
 * are incomplete or too long are left out, and so are numbers of statements that it did not get, and text around the JSON.
 *
 * @param earlier number of statements that it got
 */
export function extractedIn(content: string, earlier = 0): Extracted | undefined {
  const answer = answerIn(withoutThoughts(content));
  if (answer === undefined) return undefined;
  const entities = elementsOf(answer['entities']);
  // Members of other names are another form, and not items that are incomplete.
  if (entities.length > 0 && !entities.some((one) => typeof membersOf(one)['name'] === 'string'))
    return undefined;
  return {
    entities: entities.flatMap(entityOf).slice(0, MEMORY_STORE_LIMITS.extracted),
    relations: elementsOf(answer['relations']).flatMap(relationOf).slice(0, MEMORY_STORE_LIMITS.extracted),
    outdated: outdatedOf(elementsOf(answer['outdated']), earlier),
  };
}

/** Reasoning models draft the JSON before they answer, some without the tag at the beginning (garrytan/gbrain#4640). */
function withoutThoughts(content: string): string {
  const end = '</think>';
  const place = content.lastIndexOf(end);
  return place < 0 || content.trimStart().startsWith('{') ? content : content.slice(place + end.length);
}

/** The first object with a list `entities`. */
function answerIn(content: string): Readonly<Record<string, unknown>> | undefined {
  let start = content.indexOf('{');
  for (let tried = 0; start >= 0 && tried < TRIED; tried += 1) {
    const end = endOfObject(content, start);
    const object = membersOf(end === undefined ? undefined : jsonIn(content.slice(start, end)));
    if (Array.isArray(object['entities'])) return object;
    start = content.indexOf('{', start + 1);
  }
  return undefined;
}

/** Behind the brace that closes the one at `start`. */
function endOfObject(content: string, start: number): number | undefined {
  let depth = 0;
  let isText = false;
  for (let place = start; place < content.length; place += 1) {
    const letter = content[place];
    if (isText && letter === '\\') place += 1;
    else if (letter === '"') isText = !isText;
    else if (!isText && letter === '{') depth += 1;
    else if (!isText && letter === '}') {
      depth -= 1;
      if (depth === 0) return place + 1;
    }
  }
  return undefined;
}

function outdatedOf(named: readonly unknown[], earlier: number): number[] {
  const places = new Set(named.map(placeOf).filter((place) => place >= 0 && place < earlier));
  return places.size > MEMORY_STORE_LIMITS.outdated ? [] : [...places];
}

/** From 0; models write `{"number":2}`, `2` and `"2"`, and numbers that nothing has (mem0ai/mem0#3931). */
function placeOf(item: unknown): number {
  const { number = item } = membersOf(item);
  const isNumber = typeof number === 'number' || typeof number === 'string';
  return isNumber && /^\d+$/.test(String(number)) ? Number(number) - 1 : -1;
}

function entityOf(item: unknown): AgentEntity[] {
  const { name, entityType, observations } = membersOf(item);
  if (!isName(name) || !isName(entityType) || entityType.length > MEMORY_STORE_LIMITS.entityTypeLength)
    return [];
  const texts = elementsOf(observations);
  return [{ name, entityType, observations: texts.filter(isName).slice(0, MEMORY_STORE_LIMITS.extracted) }];
}

function relationOf(item: unknown): AgentRelation[] {
  const { from, to, relationType } = membersOf(item);
  const isComplete = isName(from) && isName(to) && isName(relationType);
  return isComplete && relationType.length <= MEMORY_STORE_LIMITS.relationTypeLength
    ? [{ from, to, relationType }]
    : [];
}

/** A name or a fact of one sentence, which the limit of names suits too. */
function isName(value: unknown): value is string {
  if (typeof value !== 'string' || value.trim() === '') return false;
  return value.length <= MEMORY_API_LIMITS.nameLength && value.isWellFormed() && !value.includes('\0');
}

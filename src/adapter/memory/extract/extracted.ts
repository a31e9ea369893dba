import { elementsOf, jsonIn, membersOf } from '../../../core/foreign.ts';
import { MEMORY_API_LIMITS, MEMORY_STORE_LIMITS } from '../../../core/memory-limits.ts';
import type { AgentEntity, AgentRelation } from '../../../core/memory-model.ts';

/**
 * The entities and relations in the reply of a chat endpoint; undefined if it has none of the requested form. A model
 * writes what it likes: items that are incomplete or too long are left out, and so is text around the JSON.
 */
export function extractedIn(
  reply: string,
): { readonly entities: AgentEntity[]; readonly relations: AgentRelation[] } | undefined {
  const [choice] = elementsOf(membersOf(jsonIn(reply))['choices']);
  const { content } = membersOf(membersOf(choice)['message']);
  if (typeof content !== 'string') return undefined;
  const { entities, relations } = membersOf(
    jsonIn(content.slice(content.indexOf('{'), content.lastIndexOf('}') + 1)),
  );
  if (!Array.isArray(entities)) return undefined;
  return {
    entities: entities.flatMap(entityOf).slice(0, MEMORY_STORE_LIMITS.extracted),
    relations: elementsOf(relations).flatMap(relationOf).slice(0, MEMORY_STORE_LIMITS.extracted),
  };
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

import { MEMORY_API_LIMITS, MEMORY_STORE_LIMITS } from '../../../core/memory-limits.ts';
import type { AgentEntity, AgentRelation } from '../../../core/memory-model.ts';

/**
 * The entities and relations in the reply of a chat endpoint; undefined if it has none of the requested form. A model
 * writes what it likes: items that are incomplete or too long are left out, and so is text around the JSON.
 */
export function extractedIn(
  reply: string,
): { readonly entities: AgentEntity[]; readonly relations: AgentRelation[] } | undefined {
  const content = (json(reply) as Completion | undefined)?.choices?.[0]?.message?.content;
  if (typeof content !== 'string') return undefined;
  const found = json(content.slice(content.indexOf('{'), content.lastIndexOf('}') + 1)) as Found | undefined;
  if (!Array.isArray(found?.entities)) return undefined;
  const relations = Array.isArray(found.relations) ? found.relations : [];
  return {
    entities: found.entities.flatMap(entityOf).slice(0, MEMORY_STORE_LIMITS.extracted),
    relations: relations.flatMap(relationOf).slice(0, MEMORY_STORE_LIMITS.extracted),
  };
}

interface Completion {
  readonly choices?: readonly ({ readonly message?: { readonly content?: unknown } } | null)[];
}

interface Found {
  readonly entities?: unknown;
  readonly relations?: unknown;
}

function json(text: string): unknown {
  try {
    return JSON.parse(text) ?? undefined;
  } catch {
    return undefined;
  }
}

function entityOf(item: unknown): AgentEntity[] {
  const { name, entityType, observations } = (item ?? {}) as Record<string, unknown>;
  if (!isName(name) || !isName(entityType) || entityType.length > MEMORY_STORE_LIMITS.entityTypeLength)
    return [];
  const texts = Array.isArray(observations) ? observations : [];
  return [{ name, entityType, observations: texts.filter(isName).slice(0, MEMORY_STORE_LIMITS.extracted) }];
}

function relationOf(item: unknown): AgentRelation[] {
  const { from, to, relationType } = (item ?? {}) as Record<string, unknown>;
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

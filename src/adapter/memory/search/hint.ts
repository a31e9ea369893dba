import { counted } from '../../../core/render/counted.ts';
import type { EntityType, Store } from '../store.ts';
import { queryWords, rounded } from './score.ts';
import type { Scored, SearchRequest } from './search.ts';

/** Kinds of entities that are embedded; the others are found through the graph. */
const SEARCHED: ReadonlySet<EntityType> = new Set(['doc_chunk', 'chat_message']);

/** The best of queries about something else mostly stays below (docs/memory.md, Retrieval). */
const UNRELATED = 0.35;

/** Why a search gave nothing, and what to do about it. */
export async function hintFor(
  store: Store,
  embedder: string,
  request: SearchRequest,
  candidates: readonly Scored[],
): Promise<string | undefined> {
  const { entities, turns } = await store.stats();
  const hint = reasonOf(entities, embedder, request, candidates);
  // Who has stored a turn of a conversation looks for it here first.
  if (turns === 0 || entities.chat_message > 0) return hint;
  return `${hint}. Conversations (${counted(turns, 'turn')}) are kept, but not searched: MEMORY_INDEX_CHAT=true makes new turns findable`;
}

function reasonOf(
  entities: Readonly<Record<EntityType, number>>,
  embedder: string,
  { query, minScore, types }: SearchRequest,
  candidates: readonly Scored[],
): string {
  const [best] = candidates;
  if (best !== undefined) {
    const name = best.entity.name.slice(0, 200);
    const start = `nothing reaches minScore ${minScore}; the best was ${rounded(best.score)}, of "${name}" (${best.entity.type}).`;
    return best.score < UNRELATED
      ? `${start} Nothing that is stored seems to be about this`
      : `${start} Lower minScore to see it, or use words that the documents use`;
  }
  if (queryWords(query, 1).length === 0) return 'the query has no words';
  const searchable = entities.doc_chunk + entities.chat_message;
  if (searchable === 0)
    return 'nothing is stored yet: ingest a document, or put .md files in the docs folder and sync it';
  if (types !== undefined) return typesHint(types, entities);
  return `nothing was embedded with ${embedder}, and no word of the query occurs: sync the documents again if the embedder was changed`;
}

function typesHint(types: readonly EntityType[], entities: Readonly<Record<EntityType, number>>): string {
  const others = [...SEARCHED].filter((type) => !types.includes(type) && entities[type] > 0);
  const elsewhere = others.map((type) => `${entities[type]} ${type}`).join(', ');
  const where = elsewhere === '' ? '' : `; other types have entities: ${elsewhere}`;
  if (!types.some((type) => SEARCHED.has(type)))
    return `${types.join(', ')} is not searched by meaning, only walked through in the graph${where}`;
  return `no ${types.join(', ')} matches${where}`;
}

import { MEMORY_STORE_LIMITS } from '../../../core/memory-limits.ts';
import { counted } from '../../../core/render/counted.ts';
import { selectResults } from '../../../core/search-results.ts';
import { type Embedder, embeddedText } from '../embed/embedder.ts';
import type { Entity, EntityType, Store } from '../store.ts';
import { coverage, type QueryWord, queryWords, rarity, rounded, scoreOf } from './score.ts';

/** A search. The caller validates the bounds: `MEMORY_STORE_LIMITS.queryLength`, `MEMORY_STORE_LIMITS.results`. */
export interface SearchRequest {
  readonly query: string;
  readonly limit: number;
  /** 0..1, inclusive. */
  readonly minScore: number;
  readonly types?: readonly EntityType[] | undefined;
  /** Adds `lexical`, the share of the query's words that the text contains. */
  readonly debug?: boolean | undefined;
}

export interface SearchResult {
  readonly id: string;
  readonly name: string;
  readonly type: EntityType;
  /** At most 2,000 characters. */
  readonly content: string;
  /** Present if the content was cut. */
  readonly truncated?: true;
  /** 0..1, by which results are ranked and filtered. */
  readonly score: number;
  /** -1..1, from the vectors alone. */
  readonly cosine: number;
  readonly lexical?: number;
  readonly metadata: Readonly<Record<string, unknown>>;
}

export interface SearchResponse {
  readonly results: readonly SearchResult[];
  readonly count: number;
  /** Candidates with a score below `minScore`. */
  readonly filtered: number;
  /** The best score of all candidates, including those below `minScore`; null if there are none. */
  readonly bestScore: number | null;
  readonly minScore: number;
  /** Explains why nothing was found and what to do. */
  readonly hint?: string;
  /** Id of the embedder that was used. */
  readonly embedder: string;
  readonly tookMs: number;
}

/** A candidate with its score; lists are sorted best first. */
export interface Scored {
  readonly entity: Entity;
  readonly score: number;
  readonly cosine: number;
  readonly covered: number;
}

/**
 * Searches by meaning and by words: collects candidates both ways, then ranks and filters them by one score.
 *
 * @throws AppError of a remote embedder, and the signal's reason
 */
export async function search(
  { store, embedder }: { readonly store: Store; readonly embedder: Embedder },
  request: SearchRequest,
  signal?: AbortSignal,
): Promise<SearchResponse> {
  const startedAt = performance.now();
  const candidates = await scored(store, embedder, request, signal);
  const passed = candidates.filter(({ score }) => score >= request.minScore);
  const results = selectResults(passed, request.limit, documentOf)
    .sort(bestFirst)
    .map((one) => shown(one, request.debug === true));
  const hint = results.length > 0 ? undefined : await hintFor(store, embedder.id, request, candidates);
  return {
    results,
    count: results.length,
    filtered: candidates.length - passed.length,
    bestScore: candidates[0] === undefined ? null : rounded(candidates[0].score),
    minScore: request.minScore,
    ...(hint === undefined ? {} : { hint }),
    embedder: embedder.id,
    tookMs: Math.round((performance.now() - startedAt) * 10) / 10,
  };
}

async function scored(
  store: Store,
  embedder: Embedder,
  { query, types }: SearchRequest,
  signal: AbortSignal | undefined,
): Promise<Scored[]> {
  const scope = { types, limit: MEMORY_STORE_LIMITS.candidates };
  const words = queryWords(query, MEMORY_STORE_LIMITS.queryWords);
  const terms = words.map(({ word }) => word);
  // On one line, because the first line of a text has more weight and a query has no first line.
  const [vector = new Float32Array()] = await embedder.embed([query.replace(/\s+/g, ' ').trim()], signal);
  signal?.throwIfAborted();
  const hasMeaning = vector.some((value) => value !== 0);
  const [near, lexical, weights] = await Promise.all([
    hasMeaning ? store.nearest(vector, embedder.id, scope) : [],
    terms.length > 0 ? store.lexical(terms, scope) : [],
    wordWeights(store, words),
  ]);
  signal?.throwIfAborted();
  const cosines = new Map(near.map(({ id, cosine }) => [id, cosine]));
  const onlyWords = lexical.map(({ id }) => id).filter((id) => !cosines.has(id));
  const [entities, more] = await Promise.all([
    store.entities([...cosines.keys(), ...onlyWords]),
    hasMeaning && onlyWords.length > 0
      ? store.cosines(vector, embedder.id, onlyWords)
      : new Map<string, number>(),
  ]);
  return entities
    .map((entity) => {
      const cosine = cosines.get(entity.id) ?? more.get(entity.id) ?? 0;
      const covered = coverage(weights, embeddedText(entity));
      return { entity, cosine, covered, score: scoreOf(embedder.scoring, cosine, covered) };
    })
    .sort(bestFirst);
}

function documentOf({ entity: { id, metadata } }: Scored): unknown {
  return metadata['source'] ?? id;
}

/** Sorts equal scores by cosine and then by id, so that the order is deterministic. */
function bestFirst(left: Scored, right: Scored): number {
  return (
    right.score - left.score || right.cosine - left.cosine || (left.entity.id < right.entity.id ? -1 : 1)
  );
}

async function wordWeights(store: Store, words: readonly QueryWord[]): Promise<ReadonlyMap<string, number>> {
  if (words.length === 0) return new Map();
  const { total, counts } = await store.frequencies(words.map(({ word }) => word));
  return new Map(words.map(({ word, stem }) => [stem, rarity(counts.get(word) ?? 0, total)]));
}

function shown({ entity, score, cosine, covered }: Scored, isDebug: boolean): SearchResult {
  const { id, name, type, content, metadata } = entity;
  const isLong = content.length > MEMORY_STORE_LIMITS.resultLength;
  return {
    id,
    name,
    type,
    content: isLong ? content.slice(0, MEMORY_STORE_LIMITS.resultLength).toWellFormed() : content,
    ...(isLong ? { truncated: true } : {}),
    score: rounded(score),
    cosine: rounded(cosine),
    ...(isDebug ? { lexical: rounded(covered) } : {}),
    metadata,
  };
}

/** Types of entities that are embedded; the others are only found through the graph. */
const SEARCHED: ReadonlySet<EntityType> = new Set(['doc_chunk', 'chat_message']);

/** Best scores of unrelated queries are usually below this (docs/memory.md, Retrieval). */
const UNRELATED = 0.35;

/** Explains why a search found nothing, and what to do about it. */
async function hintFor(
  store: Store,
  embedder: string,
  request: SearchRequest,
  candidates: readonly Scored[],
): Promise<string | undefined> {
  const { entities, turns } = await store.stats();
  const hint = reasonOf(entities, embedder, request, candidates);
  // A user who has stored turns of a conversation will search for them here first.
  if (turns === 0 || entities.chat_message > 0) return hint;
  return `${hint}. Conversations (${counted(turns, 'turn')}) are stored, but not searched: MEMORY_INDEX_CHAT=true indexes new turns`;
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
    const start = `no result reaches minScore ${minScore}; the best score was ${rounded(best.score)}, of "${name}" (${best.entity.type}).`;
    return best.score < UNRELATED
      ? `${start} Nothing stored seems to be related`
      : `${start} Lower minScore to see it, or use words that occur in the documents`;
  }
  if (queryWords(query, 1).length === 0) return 'the query has no words';
  const searchable = entities.doc_chunk + entities.chat_message;
  if (searchable === 0)
    return 'nothing is stored yet: ingest a document, or add .md files to the docs folder and start a sync';
  if (types !== undefined) return typesHint(types, entities);
  return `no document was embedded with ${embedder}, and none contains a word of the query: sync the documents again if the embedder was changed`;
}

function typesHint(types: readonly EntityType[], entities: Readonly<Record<EntityType, number>>): string {
  const others = [...SEARCHED].filter((type) => !types.includes(type) && entities[type] > 0);
  const elsewhere = others.map((type) => `${entities[type]} ${type}`).join(', ');
  const where = elsewhere === '' ? '' : `; other types have entities: ${elsewhere}`;
  if (!types.some((type) => SEARCHED.has(type)))
    return `${types.join(', ')} is not searched by meaning, only traversed in the graph${where}`;
  return `no ${types.join(', ')} matches${where}`;
}

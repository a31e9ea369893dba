import { MEMORY_STORE_LIMITS } from '../../../core/memory-limits.ts';
import { selectResults } from '../../../core/search-results.ts';
import type { Embedder } from '../embed/embedder.ts';
import type { Entity, EntityType, Store } from '../store.ts';
import { hintFor } from './hint.ts';
import { coverage, type QueryWord, queryWords, rarity, rounded, scoreOf } from './score.ts';

/** What is asked. Bounds are the caller's to check: `MEMORY_STORE_LIMITS.queryLength`, `MEMORY_STORE_LIMITS.results`. */
export interface SearchRequest {
  readonly query: string;
  readonly limit: number;
  /** 0..1, inclusive. */
  readonly minScore: number;
  readonly types?: readonly EntityType[] | undefined;
  /** Adds `lexical`, the share of the query's words that the text has. */
  readonly debug?: boolean | undefined;
}

export interface SearchResult {
  readonly id: string;
  readonly name: string;
  readonly type: EntityType;
  /** At most 2,000 characters. */
  readonly content: string;
  /** Present when the content was cut. */
  readonly truncated?: true;
  /** 0..1: what results are ranked and filtered by. */
  readonly score: number;
  /** -1..1: of the vectors alone. */
  readonly cosine: number;
  readonly lexical?: number;
  readonly metadata: Readonly<Record<string, unknown>>;
}

export interface SearchResponse {
  readonly results: readonly SearchResult[];
  readonly count: number;
  /** Candidates that were looked at and scored below `minScore`. */
  readonly filtered: number;
  /** Of all candidates, also of those below `minScore`; null when there are none. */
  readonly bestScore: number | null;
  readonly minScore: number;
  /** In plain words, why nothing was found and what to do. */
  readonly hint?: string;
  /** Id of the embedder that was used. */
  readonly embedder: string;
  readonly tookMs: number;
}

/** A candidate with its score; best first everywhere. */
export interface Scored {
  readonly entity: Entity;
  readonly score: number;
  readonly cosine: number;
  readonly covered: number;
}

/**
 * Searches by meaning and by words: candidates of both ways, then one score for ranking and filtering.
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
  // In one line: the first line of a text weighs more, and a query has none.
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
      const covered = coverage(weights, entity.searchText);
      return { entity, cosine, covered, score: scoreOf(embedder.scoring, cosine, covered) };
    })
    .sort(bestFirst);
}

function documentOf({ entity: { id, metadata } }: Scored): unknown {
  return metadata['source'] ?? id;
}

/** Equal scores by cosine, then by id: the order is the same every time. */
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

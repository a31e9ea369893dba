import { MEMORY_STORE_LIMITS } from '../../../core/memory-limits.ts';
import { selectResults } from '../../../core/search-results.ts';
import { type DocsPlaces, docsPlaces } from '../docs-folders.ts';
import type { Entity, EntityType, FoundEntity, Store } from '../store.ts';
import { citedSection } from './cited-section.ts';
import { type Copy, currentFirst, type Distinct, distinct } from './distinct.ts';
import { hintFor, SEARCHED } from './hint.ts';
import { type LetterSample, letterSample, type SearchedLetters, searchedLetters } from './letters.ts';
import { matchingPart } from './matching-part.ts';
import { queryVector, type Searched } from './query-vector.ts';
import { type QueryWord, queryWords, rarity, rounded, type SearchedWord, shareOf } from './query-words.ts';
import {
  besideBest,
  type Coverage,
  coverageOf,
  coversAll,
  type Score,
  scoreOf,
  together,
  wordScore,
} from './score.ts';

/** A search. The caller validates the bounds: `MEMORY_STORE_LIMITS.queryLength`, `MEMORY_STORE_LIMITS.results`. */
export interface SearchRequest {
  readonly query: string;
  readonly limit: number;
  /** 0..1, inclusive. */
  readonly minScore: number;
  readonly types?: readonly EntityType[] | undefined;
  /** Adds the parts of each score. */
  readonly debug?: boolean | undefined;
  /** Whether conversations are searched too, by `searchTurns`. */
  readonly isTurnSearch?: boolean | undefined;
}

export interface SearchResult {
  readonly id: string;
  readonly name: string;
  readonly type: Entity['type'];
  /** At most 2,000 characters, those that fit the query best. */
  readonly content: string;
  /** Present if the content was cut. */
  readonly truncated?: true;
  /** 0..1, by which results are ranked and filtered. */
  readonly score: number;
  /** -1..1, from the vectors alone; null if the text or the query has no vector. */
  readonly cosine: number | null;
  /** How the score came about: words and vector are combined to fused, which is mapped to the score. */
  readonly debug?: Omit<Score, 'score'>;
  readonly metadata: Readonly<Record<string, unknown>>;
  /** Where almost the same text stands, at most `MEMORY_STORE_LIMITS.copies` places. */
  readonly alsoIn?: readonly CopyPlace[];
  /** Number of such places that were found, if there are more. */
  readonly copies?: number;
}

/** A passage that almost repeats a result. */
export interface CopyPlace {
  readonly id: string;
  readonly name: string;
  readonly path?: unknown;
  readonly source?: unknown;
  readonly line?: unknown;
  readonly anchor?: unknown;
  /** Words that it has instead. */
  readonly differs?: readonly string[];
}

export interface SearchResponse {
  readonly results: readonly SearchResult[];
  readonly count: number;
  /** Candidates with a score below `minScore`. */
  readonly filtered: number;
  /** The best score of all candidates, including those below `minScore`; null if there are none. */
  readonly bestScore: number | null;
  readonly minScore: number;
  /** Explains why nothing was found and what to do, or that results are by words only. */
  readonly hint?: string;
  /** Id of the embedder that was used. */
  readonly embedder: string;
  readonly tookMs: number;
}

/** A candidate with its score; lists are sorted best first. */
export interface Scored extends Score {
  readonly entity: FoundEntity;
  readonly cosine: number | undefined;
  /** The words of the query that it has, by stem. */
  readonly covered: ReadonlyMap<string, number>;
}

/**
 * Searches by meaning and by words: collects candidates both ways, then ranks and filters them by one score. If the
 * embedder fails, words alone are used, and the hint says so.
 *
 * @throws the signal's reason
 */
export async function search(
  searched: Searched,
  request: SearchRequest,
  signal?: AbortSignal,
): Promise<SearchResponse> {
  const startedAt = performance.now();
  const { embedder } = searched;
  const [located, { candidates, notice, passed, merged }] = await Promise.all([
    docsPlaces(searched.store, searched.docsFolder),
    ranked(searched, request, signal),
  ]);
  const results = selectResults(merged, request.limit, ({ passage }) => documentOf(passage))
    .sort((left, right) => bestFirst(left.passage, right.passage))
    .map((one) => shown(one, request, located));
  const reason = results.length > 0 ? undefined : await hintFor(searched, request, candidates[0]);
  const hint = [reason, notice].filter((part) => part !== undefined).join('. ');
  return {
    results,
    count: results.length,
    filtered: candidates.length - passed.length,
    bestScore: candidates[0] === undefined ? null : rounded(candidates[0].score),
    minScore: request.minScore,
    ...(hint === '' ? {} : { hint }),
    embedder: embedder.id,
    tookMs: Math.round((performance.now() - startedAt) * 10) / 10,
  };
}

interface Ranked {
  readonly candidates: readonly Scored[];
  /** Those that reach `minScore`. */
  readonly passed: readonly Scored[];
  readonly merged: readonly Distinct<Scored>[];
  readonly notice: string | undefined;
}

async function ranked(
  searched: Searched,
  request: SearchRequest,
  signal: AbortSignal | undefined,
): Promise<Ranked> {
  const first = await scored(searched, request, MEMORY_STORE_LIMITS.candidates, signal);
  // Copies of a few passages have taken the places of others.
  return isCrowded(first, request)
    ? await scored(searched, request, MEMORY_STORE_LIMITS.moreCandidates, signal)
    : first;
}

function isCrowded({ candidates, passed, merged }: Ranked, { limit }: SearchRequest): boolean {
  return (
    merged.length < Math.min(limit, passed.length) && candidates.length >= MEMORY_STORE_LIMITS.candidates
  );
}

/**
 * Where turns are searched too, indexed turns would be shown twice: once as passages, which are not marked when they are outdated and
 * know no `asOf`.
 */
const BESIDE_TURNS = [...SEARCHED].filter((type) => type !== 'chat_message');

/** @param limit candidates by meaning, and as many by words */
async function scored(
  searched: Searched,
  { query, types, minScore, limit: wanted, isTurnSearch = false }: SearchRequest,
  limit: number,
  signal: AbortSignal | undefined,
): Promise<Ranked> {
  const { store, embedder } = searched;
  const scope = { types: types ?? (isTurnSearch ? BESIDE_TURNS : undefined), limit };
  const words = queryWords(query, MEMORY_STORE_LIMITS.queryWords);
  const weighing = wordWeights(store, words);
  const meaning = queryVector(searched, query, signal);
  const near = meaning.then(async ({ vector }) => {
    signal?.throwIfAborted();
    return vector === undefined ? [] : store.nearest(vector, embedder.id, scope);
  });
  const byWords = async () => {
    // Whether compounds are searched by their parts is known only after words were counted.
    const hasCompounds = words.some(({ parts }) => parts.length > 0);
    const terms = hasCompounds ? (await weighing).terms : words.map(({ word }) => word);
    const { vector } = await meaning;
    signal?.throwIfAborted();
    if (terms.length === 0) return [];
    return store.lexical(terms, scope, vector && { vector, embedder: embedder.id });
  };
  // What each entity covers is computed at once: of those found by meaning, while the store still searches by words.
  const found = coveredBy(weighing, near);
  const others = Promise.all([near, byWords()]).then(([nearest, lexical]) => {
    const known = new Set(nearest.map(({ id }) => id));
    return coveredBy(
      weighing,
      lexical.filter(({ id }) => !known.has(id)),
    );
  });
  const [{ unrelated, hint: notice }, { weights, highest }, ...lists] = await Promise.all([
    meaning,
    weighing,
    found,
    others,
  ]);
  const covered = lists.flat();
  const documents = documentCoverage(covered);
  const judged = covered
    .map(({ entity, coverage: passage }): Scored => {
      const { cosine } = entity;
      const document = documents.get(documentOf({ entity })) ?? passage.words;
      const wordsOnly = wordScore(weights, highest, passage, document);
      return {
        entity,
        cosine,
        covered: passage.words,
        ...scoreOf(embedder.scoring, wordsOnly, cosine, unrelated, coversAll(weights, passage)),
      };
    })
    .sort((left, right) => right.fused - left.fused);
  const [best] = judged;
  const candidates = judged
    .map((one) => (best === undefined ? one : { ...one, ...besideBest(one, best, embedder.scoring) }))
    .sort(bestFirst);
  const passed = candidates.filter(({ score }) => score >= minScore);
  return { candidates, notice, passed, merged: distinct(passed, wanted) };
}

/** An entity that was found, with the cosine of its vector, if it has one. */
type Found = FoundEntity & { readonly cosine: number | undefined };

interface Covered {
  readonly entity: Found;
  readonly coverage: Coverage;
}

/** Entities with what they cover of the query. */
async function coveredBy(
  weighing: Promise<WordWeights>,
  found: readonly Found[] | Promise<readonly Found[]>,
): Promise<Covered[]> {
  const [{ weights, compounds, letters }, entities] = await Promise.all([weighing, found]);
  const coverage = coverageOf(weights, compounds, letters);
  return entities.map((entity) => ({ entity, coverage: coverage(entity) }));
}

/** What the candidates of each document cover together: a passage without a word may continue one that has it. */
function documentCoverage(covered: readonly Covered[]): ReadonlyMap<unknown, ReadonlyMap<string, number>> {
  const documents = Map.groupBy(covered, documentOf);
  return new Map(
    [...documents].map(([document, passages]) => [
      document,
      together(passages.map((passage) => passage.coverage)),
    ]),
  );
}

function documentOf({ entity: { id, metadata } }: { readonly entity: Entity }): unknown {
  return metadata['source'] ?? id;
}

/** Sorts equal scores by cosine and then by path and id, so that the order is deterministic. */
function bestFirst(left: Scored, right: Scored): number {
  return (
    right.score - left.score ||
    (right.cosine ?? -1) - (left.cosine ?? -1) ||
    currentFirst(left.entity, right.entity)
  );
}

interface WordWeights {
  /** By stem. */
  readonly weights: ReadonlyMap<string, number>;
  /** Of a word that occurs nowhere. */
  readonly highest: number;
  /** Stems of the parts of compounds, by stem. */
  readonly compounds: ReadonlyMap<string, readonly string[]>;
  readonly letters: SearchedLetters;
  /** What is looked up: of a compound that no text has, the parts. */
  readonly terms: readonly string[];
}

async function wordWeights(store: Store, words: readonly QueryWord[]): Promise<WordWeights> {
  if (words.length === 0)
    return {
      weights: new Map(),
      highest: 0,
      compounds: new Map(),
      letters: { weights: new Map(), length: 1 },
      terms: [],
    };
  const { total, counts } = await store.frequencies(
    words.flatMap(({ word, parts }) => [word, ...parts.map((part) => part.word)]),
  );
  const sample = await sampled(store, total);
  const countOf = ({ word }: SearchedWord): number => counts.get(word) ?? 0;
  const isApart = (word: QueryWord): boolean => word.parts.length > 0 && countOf(word) === 0;
  // A compound that every text writes in several words is at most as frequent as its rarest part.
  const rarityOf = (word: QueryWord): number =>
    shareOf(word.word) * rarity(isApart(word) ? Math.min(...word.parts.map(countOf)) : countOf(word), total);
  return {
    weights: new Map(words.map((word) => [word.stem, rarityOf(word)])),
    highest: rarity(0, total),
    compounds: new Map(
      words.flatMap(({ stem, parts }) =>
        parts.length === 0 ? [] : [[stem, parts.map((part) => part.stem)] as const],
      ),
    ),
    letters: searchedLetters(words, sample, rarityOf, shareOf),
    terms: words.flatMap((word) => (isApart(word) ? word.parts.map((part) => part.word) : [word.word])),
  };
}

interface Sample {
  /** Searchable entities when it was taken. */
  readonly total: number;
  readonly letters: Promise<LetterSample>;
}

const samples = new WeakMap<Store, Sample>();

/** The sample of a store: the texts with the first ids, which are hashes, so that both engines take the same. */
function sampled(store: Store, total: number): Promise<LetterSample> {
  const known = samples.get(store);
  if (known !== undefined && Math.abs(known.total - total) <= total * SAMPLE_CHANGE) return known.letters;
  const letters = takeSample(store).catch((error: unknown) => {
    samples.delete(store);
    throw error;
  });
  samples.set(store, { total, letters });
  return letters;
}

/** A sample is taken again when the number of searchable texts has changed by this share. */
const SAMPLE_CHANGE = 0.05;

async function takeSample(store: Store): Promise<LetterSample> {
  const { nodes } = await store.topology({ types: [...SEARCHED], limit: MEMORY_STORE_LIMITS.sample });
  return letterSample(await store.entities(nodes.map(({ id }) => id)));
}

function shown(
  { passage, copies }: Distinct<Scored>,
  { query, debug: isDebug = false }: SearchRequest,
  located: DocsPlaces,
): SearchResult {
  const { entity, score, cosine, words, vector, fused } = passage;
  const { id, type, content } = entity;
  const { name, metadata } = citedSection(entity, query);
  const isLong = content.length > MEMORY_STORE_LIMITS.resultLength;
  const debug = {
    words: rounded(words),
    vector: vector === null ? null : rounded(vector),
    fused: rounded(fused),
  };
  return {
    id,
    name,
    type,
    content: matchingPart(content, query, MEMORY_STORE_LIMITS.resultLength),
    ...(isLong ? { truncated: true } : {}),
    score: rounded(score),
    cosine: cosine === undefined ? null : rounded(cosine),
    ...(isDebug ? { debug } : {}),
    metadata: located(metadata),
    ...(copies.length > 0 && {
      alsoIn: copies.slice(0, MEMORY_STORE_LIMITS.copies).map((copy) => placeOf(copy, query, located)),
    }),
    ...(copies.length > MEMORY_STORE_LIMITS.copies && { copies: copies.length }),
  };
}

function placeOf({ passage, differs }: Copy<Scored>, query: string, located: DocsPlaces): CopyPlace {
  const { id } = passage.entity;
  const { name, metadata } = citedSection(passage.entity, query);
  const { path, source, line, anchor } = located(metadata);
  return {
    id,
    name,
    ...(path === undefined ? { source } : { path }),
    ...(line !== undefined && { line }),
    ...(anchor !== undefined && { anchor }),
    ...(differs.length > 0 && { differs: differs.slice(0, MEMORY_STORE_LIMITS.differingWords) }),
  };
}

import { EXTRACTED_FROM } from '../../../core/memory-model.ts';
import { type Row, text } from '../../../core/sql-row.ts';
import { nameKey } from '../plain-words.ts';
import type { Cutoffs, NewEntity, SearchFields, Store } from '../store.ts';

export type Value = string | number | null | Uint8Array | readonly (string | null)[] | readonly number[];

/** Rows for one table. */
export interface Insert {
  readonly table: string;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly Value[])[];
  /** `ON CONFLICT …`, or empty. */
  readonly conflict?: string;
}

/** A vector of an entity by its row; undefined if its text has no meaning for the embedder. */
export interface RowVector {
  readonly row: number;
  readonly embedding: Float32Array | undefined;
}

/** The index of the words of entities, or of chat turns. */
export type WordIndexName = 'entities' | 'turns';

/** The part of an INSERT that an engine needs to index a turn by its words, behind its other columns. */
export interface TurnWords {
  readonly columns: string;
  readonly values: string;
  readonly parameters: readonly Value[];
}

/** The SQL that both engines support. Statements are written once, with `$1` for parameters. */
export interface Sql {
  all(text: string, parameters?: readonly Value[]): Promise<readonly Row[]>;
  /** Resolves to the number of changed rows. */
  run(text: string, parameters?: readonly Value[]): Promise<number>;
  insert(rows: Insert): Promise<void>;
  /** A condition that `column` is in the list in parameter `$n`, which is passed through `list`. */
  among(column: string, place: string): string;
  list(values: readonly string[] | readonly number[]): Value;
  /** A condition that a row's words match the query in parameter `$n`, which `wordQuery` has made. */
  matches(index: WordIndexName, place: string): string;
  /** A query for texts with all words, or with the words next to each other. The text must contain a word. */
  wordQuery(text: string, kind: 'phrase' | 'all'): Value;
  /** @param place parameter of the only value, if there is one */
  turnWords(content: string, place: string): TurnWords;
  /** Inserts entities of a document, or of none, and their vectors of this embedder. */
  insertEntities(entities: readonly NewEntity[], embedder: string, document: number | null): Promise<void>;
  /** Stores vectors of existing rows; rows that are gone or already have one are ignored. */
  insertVectors(embedder: string, vectors: readonly RowVector[]): Promise<void>;
}

/** Conditions on turns `t`, with their parameters from `$1` on. */
export interface TurnConditions {
  readonly conditions: string;
  readonly parameters: readonly Value[];
}

/** Operations that each engine implements differently. */
export interface Engine extends Sql, Pick<Store, 'nearest' | 'lexical' | 'frequencies'> {
  /** Number of turns that contain each term; what is counted beyond a few thousand may be left out. */
  turnCounts(terms: readonly string[]): Promise<Map<string, number>>;
  /** Numbers of turns that contain a term that selects, the best first. */
  turnsByWords(
    terms: SelectiveTerms,
    total: number,
    where: TurnConditions,
    limit: number,
  ): Promise<readonly number[]>;
  /** Size on disk. */
  bytes(): Promise<number>;
}

/** Columns common to both engines, and their values. */
export const ENTITY_COLUMNS = [
  'id',
  'name',
  'type',
  'content',
  'metadata',
  'title',
  'heading',
  'search_text',
  'name_key',
  'folded',
  'stored_at',
] as const;

export function entityValues(entity: NewEntity): Value[] {
  // Text instead of a JSON column, so that order, numbers and unusual keys are returned unchanged.
  const metadata = JSON.stringify(entity.metadata);
  const { id, name, type, content, title = '', heading = '', searchText } = entity;
  const { folded = null, storedAt = null } = entity;
  return [id, name, type, content, metadata, title, heading, searchText, nameKey(name), folded, storedAt];
}

export const SEARCH_FIELDS = 'title, heading, search_text';

export function searchFieldsOf(row: Row): SearchFields {
  return { title: text(row, 'title'), heading: text(row, 'heading'), searchText: text(row, 'search_text') };
}

/** `origin` in the metadata of what a model has extracted and no agent has changed; the last member, so that a pattern finds it. */
export const EXTRACTED_ORIGIN = 'extracted';

/** Nothing has expired. */
export const NOTHING_EXPIRED: Cutoffs = { turns: '', entities: '' };

/**
 * A condition that an entity has not expired, nor the text that it was extracted from; its two parameters are `cutoffValues`.
 *
 * @param table the table `memory_entities`, or its alias
 */
export function isAlive(first: number, table = 'memory_entities'): string {
  const isExtracted = `${table}.type = 'entity' AND ${table}.metadata LIKE '%"origin":"${EXTRACTED_ORIGIN}"}'`;
  // Most entities need no look at their texts, and none does where nothing expires.
  return `(${isYoung(first, table)} AND NOT (($${first} <> '' OR $${first + 1} <> '') AND ${isExtracted} AND ${isOfExpired(first, table)}))`;
}

function isYoung(first: number, table: string): string {
  const cutoff = `CASE ${table}.type WHEN 'chat_message' THEN $${first} ELSE $${first + 1} END`;
  return `(${table}.stored_at IS NULL OR ${table}.stored_at > ${cutoff})`;
}

/** What an entity says is from the text that created it. Those that only name it keep it without what it says, until the next sweep empties it. */
function isOfExpired(first: number, table: string): string {
  const isSourceYoung = isYoung(first, 'source');
  return `EXISTS (SELECT 1 FROM memory_relations AS origin JOIN memory_entities AS source ON source.id = origin.to_id
    WHERE origin.from_id = ${table}.id AND origin.relation_type = '${EXTRACTED_FROM}' AND source.type <> 'entity'
    GROUP BY origin.from_id
    HAVING max(CASE WHEN ${isSourceYoung} THEN 0 ELSE origin.weight END) = 1
      OR max(CASE WHEN ${isSourceYoung} THEN 1 ELSE 0 END) = 0)`;
}

export function cutoffValues({ turns, entities }: Cutoffs): [string, string] {
  return [turns, entities];
}

/** Weight of a word in each field, relative to the text. */
export const FIELD_WEIGHTS = { title: 4, heading: 2, searchText: 1 } as const;

/**
 * A word in more entities than this, and in more than a quarter of all, hardly distinguishes results and costs most of
 * a search.
 */
const COMMON = 5_000;
const COMMON_SHARE = 4;
/** Entities with the rarest words, from which candidates are chosen: ten times as many as a search needs. */
const ENOUGH = 500;

/** The words of a search with the number of entities that contain each. */
export interface SelectiveTerms {
  /** The rarest ones: an entity is found by them. */
  readonly selecting: readonly [term: string, count: number][];
  /** The others only rank what is found: few of the many entities with a common word alone would be results. */
  readonly ranking: readonly [term: string, count: number][];
}

/**
 * Chooses how to search for terms, given the number of entities (of `total`) that contain each. Entities are found by as
 * few of the rarest terms as suffice for `ENOUGH`, because ranking an entity takes most of the time; by all where only some
 * types are searched, which may not have the rarest.
 */
export function selectiveTerms(
  total: number,
  counts: ReadonlyMap<string, number>,
  hasTypes: boolean,
): SelectiveTerms {
  const found = [...counts].filter(([, count]) => count > 0).sort(([, a], [, b]) => a - b);
  const selective = found.filter(([, count]) => count <= Math.max(COMMON, total / COMMON_SHARE));
  const used = selective.length > 0 ? selective : found;
  if (hasTypes) return { selecting: used, ranking: [] };
  let sum = 0;
  let selecting = 0;
  while (selecting < used.length && sum < ENOUGH) sum += used[selecting++]?.[1] ?? 0;
  return { selecting: used.slice(0, selecting), ranking: used.slice(selecting) };
}

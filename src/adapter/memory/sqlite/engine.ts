import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite';
import { LruMap } from '../../../core/lru-map.ts';
import { bytes, number, type Row } from '../../../core/sql-row.ts';
import { plainWords } from '../plain-words.ts';
import { FOUND_ENTITY, foundEntityOf } from '../sql/graph.ts';
import {
  cutoffValues,
  ENTITY_COLUMNS,
  type Engine,
  entityValues,
  type Insert,
  isAlive,
  NOTHING_EXPIRED,
  type RowVector,
  type SelectiveTerms,
  type TurnConditions,
  type TurnWords,
  type Value,
  type WordIndexName,
} from '../sql/sql.ts';
import type { ComparedVector, FoundEntity, NewEntity, SearchScope } from '../store.ts';
import { pairsOfFields, withPairs } from '../tokenizer.ts';
import { blobOf, cosine, type Progress, VectorCache, vectorOf } from './vectors.ts';
import { TurnIndex, WordIndex } from './word-index.ts';

/** Values by the names that SQLite gives to `$1`, `$2`, …; Node.js 22 cannot bind numbered parameters by position. */
function named(values: readonly Value[]): Record<string, SQLInputValue> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the driver accepts every `Value`
  return Object.fromEntries(values.map((value, index) => [`$${index + 1}`, value as SQLInputValue]));
}

function pairsOf({ title = '', heading = '', searchText }: NewEntity): string | null {
  return searchText === '' ? null : pairsOfFields([title, heading, searchText]);
}

/** Statements on one open file. All methods are synchronous inside; they run in the store's own thread. */
export class SqliteEngine implements Engine {
  readonly #database: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();
  /** One embedder is in use; a second cache can only belong to the embedder that it replaces. */
  readonly #caches = new LruMap<string, VectorCache>(2);
  readonly #words: WordIndex;
  readonly #turns: TurnIndex;
  readonly #onLoad: (embedder: string) => Progress;

  /** `onLoad` reports progress when the vectors of an embedder are first read. */
  constructor(database: DatabaseSync, onLoad: (embedder: string) => Progress) {
    this.#database = database;
    this.#onLoad = onLoad;
    const words = new WordIndex(database);
    this.#words = words;
    this.#turns = new TurnIndex(database, (term) => words.stemsOf(term));
    // In memory, and rolled back together with the transaction that deleted the rows.
    database.exec(`
      CREATE TEMP TABLE gone (vector INTEGER PRIMARY KEY) STRICT;
      CREATE TEMP TRIGGER note_gone AFTER DELETE ON main.memory_vectors BEGIN
        INSERT INTO gone (vector) VALUES (old.vector);
      END;
    `);
  }

  /** Statement texts are constants in the code, so there are few and all of them are cached. */
  #prepare(text: string): StatementSync {
    let statement = this.#statements.get(text);
    if (statement === undefined) {
      statement = this.#database.prepare(text);
      this.#statements.set(text, statement);
    }
    return statement;
  }

  async all(text: string, parameters: readonly Value[] = []): Promise<readonly Row[]> {
    return this.#prepare(text).all(named(parameters));
  }

  async run(text: string, parameters: readonly Value[] = []): Promise<number> {
    return Number(this.#prepare(text).run(named(parameters)).changes);
  }

  async insert({ table, columns, rows, conflict = '' }: Insert): Promise<void> {
    const places = columns.map((_, index) => `$${index + 1}`).join(', ');
    const statement = this.#prepare(
      `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${places}) ${conflict}`,
    );
    for (const row of rows) statement.run(named(row));
  }

  among(column: string, place: string): string {
    return `${column} IN (SELECT value FROM json_each(${place}))`;
  }

  list(values: readonly string[] | readonly number[]): Value {
    return JSON.stringify(values);
  }

  matches(index: WordIndexName, place: string): string {
    return index === 'turns'
      ? `seq IN (SELECT rowid FROM memory_turn_words WHERE memory_turn_words MATCH ${place})`
      : `row IN (SELECT rowid FROM memory_words WHERE memory_words MATCH ${place})`;
  }

  wordQuery(text: string, kind: 'phrase' | 'all'): Value {
    const words = withPairs(text) ?? text;
    // The tokenizer of the index splits a quoted text itself.
    if (kind === 'phrase') return `"${words.replaceAll('"', '""')}"`;
    return plainWords(words)
      .map((word) => `"${word}"`)
      .join(' ');
  }

  /** A trigger fills the index. */
  turnWords(content: string, place: string): TurnWords {
    return { columns: ', pairs', values: `, ${place}`, parameters: [withPairs(content) ?? null] };
  }

  async insertEntities(
    entities: readonly NewEntity[],
    embedder: string,
    document: number | null,
  ): Promise<void> {
    const columns = [...ENTITY_COLUMNS, 'pairs', 'document'];
    const places = columns.map((_, index) => `$${index + 1}`).join(', ');
    const statement = this.#prepare(`INSERT INTO memory_entities (${columns.join(', ')}) VALUES (${places})`);
    const vectors: RowVector[] = [];
    for (const entity of entities) {
      const { lastInsertRowid } = statement.run(named([...entityValues(entity), pairsOf(entity), document]));
      if (entity.embedding !== undefined)
        vectors.push({ row: Number(lastInsertRowid), embedding: entity.embedding });
    }
    await this.insertVectors(embedder, vectors);
  }

  async insertVectors(embedder: string, vectors: readonly RowVector[]): Promise<void> {
    const statement = this.#prepare(
      `INSERT INTO memory_vectors (row, embedder, type, embedding)
       SELECT row, $2, type, $3 FROM memory_entities WHERE row = $1 ON CONFLICT DO NOTHING`,
    );
    for (const { row, embedding } of vectors)
      statement.run(named([row, embedder, embedding === undefined ? null : blobOf(embedding)]));
  }

  /** Bytes of the vectors in memory. */
  get vectorBytes(): number {
    let sum = 0;
    for (const cache of this.#caches.values()) sum += cache.bytes;
    return sum;
  }

  /** After a commit: removes deleted vectors from the caches; new ones are read by the next search. */
  committed(): void {
    this.#words.changed();
    const gone = this.#prepare('SELECT vector FROM gone')
      .all()
      .map((row) => number(row, 'vector'));
    if (gone.length === 0) return;
    for (const cache of this.#caches.values()) for (const vector of gone) cache.remove(vector);
    this.#prepare('DELETE FROM gone').run();
  }

  async nearest(
    vector: Float32Array,
    embedder: string,
    scope: SearchScope,
  ): Promise<(FoundEntity & { cosine: number })[]> {
    const best = this.#cache(embedder, vector.length).nearest(vector, scope);
    const entities = this.#entities(
      best.map(({ row }) => row),
      scope.expired,
    );
    return best.flatMap(({ row, cosine }) => {
      const entity = entities.get(row);
      return entity === undefined ? [] : [{ ...entity, cosine }];
    });
  }

  /** Entities by row, without those that have expired. */
  #entities(rows: readonly number[], expired = NOTHING_EXPIRED): Map<number, FoundEntity> {
    return new Map(
      this.#prepare(
        `SELECT e.row AS row, ${FOUND_ENTITY} FROM memory_entities AS e
         WHERE ${this.among('e.row', '$1')} AND ${isAlive(2, 'e')}`,
      )
        .all(named([JSON.stringify(rows), ...cutoffValues(expired)]))
        .map((row) => [number(row, 'row'), foundEntityOf(row)]),
    );
  }

  #cache(embedder: string, dimensions: number): VectorCache {
    let cache = this.#caches.get(embedder);
    if (cache === undefined || cache.dimensions !== dimensions) {
      cache = new VectorCache(this.#database, embedder, dimensions);
      cache.follow(this.#onLoad(embedder));
      this.#caches.set(embedder, cache);
    } else cache.follow();
    return cache;
  }

  async lexical(
    terms: readonly string[],
    scope: SearchScope,
    compared?: ComparedVector,
  ): Promise<(FoundEntity & { rank: number; cosine: number | undefined })[]> {
    const best = this.#words.search(terms, scope);
    const rows = best.map(({ row }) => row);
    const entities = this.#entities(rows, scope.expired);
    const cosines = compared === undefined ? undefined : this.#cosines(rows, compared);
    return best.flatMap(({ row, rank }) => {
      const entity = entities.get(row);
      return entity === undefined ? [] : [{ ...entity, rank, cosine: cosines?.get(row) }];
    });
  }

  #cosines(rows: readonly number[], { vector, embedder }: ComparedVector): Map<number, number> {
    return new Map(
      this.#prepare(
        `SELECT row, embedding FROM memory_vectors
         WHERE ${this.among('row', '$1')} AND embedder = $2 AND length(embedding) = $3`,
      )
        .all(named([JSON.stringify(rows), embedder, vector.byteLength]))
        .map((row) => [number(row, 'row'), cosine(vector, vectorOf(bytes(row, 'embedding')))] as const)
        .filter(([, value]) => !Number.isNaN(value)),
    );
  }

  async frequencies(terms: readonly string[]): Promise<{ total: number; counts: Map<string, number> }> {
    return this.#words.frequencies(terms);
  }

  async turnCounts(terms: readonly string[]): Promise<Map<string, number>> {
    return this.#turns.counts(terms);
  }

  async turnsByWords(
    terms: SelectiveTerms,
    _total: number,
    { conditions, parameters }: TurnConditions,
    limit: number,
  ): Promise<readonly number[]> {
    return this.#turns.search(terms, conditions, named(parameters), limit);
  }

  async bytes(): Promise<number> {
    const size = (name: string): number =>
      Number(Object.values(this.#prepare(`PRAGMA ${name}`).get() ?? {})[0]);
    return size('page_count') * size('page_size');
  }
}

import { number, type Row, rowsOf, text } from '../../../core/sql-row.ts';
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
import type { Connection } from './connection.ts';
import { turnCounts, turnsByWords } from './turn-words.ts';
import { vectorSpace, vectorText } from './vector-index.ts';
import { WordIndex } from './word-index.ts';
import { phrase, plainWords } from './word-query.ts';

/** Rows per INSERT: a statement may have 65,535 parameters. */
const INSERT_ROWS = 500;

/** Statements on a pool, or on the single connection of a transaction. */
export class PostgresEngine implements Engine {
  readonly #connection: Connection;
  readonly #words: WordIndex;

  constructor(connection: Connection) {
    this.#connection = connection;
    this.#words = new WordIndex(connection);
  }

  async all(text: string, parameters: readonly Value[] = []): Promise<readonly Row[]> {
    return rowsOf(await this.#connection.query(text, [...parameters]));
  }

  async run(text: string, parameters: readonly Value[] = []): Promise<number> {
    return (await this.#connection.query(text, [...parameters])).rowCount ?? 0;
  }

  insert({ table, columns, rows, conflict }: Insert): Promise<void> {
    return this.#insert({ table, columns, rows, conflict: conflict ?? '' }, (places) => places);
  }

  /** @param expressions the expressions of a row's columns, from the placeholders of its values */
  async #insert(
    insert: Required<Insert>,
    expressions: (places: readonly string[]) => readonly string[],
  ): Promise<void> {
    const { table, columns, rows, conflict } = insert;
    const width = rows[0]?.length ?? 0;
    for (let start = 0; start < rows.length; start += INSERT_ROWS) {
      const some = rows.slice(start, start + INSERT_ROWS);
      const places = some.map((_, row) => {
        const first = row * width + 1;
        return `(${expressions(Array.from({ length: width }, (_, index) => `$${first + index}`)).join(', ')})`;
      });
      await this.run(
        `INSERT INTO ${table} (${columns.join(', ')}) VALUES ${places.join(', ')} ${conflict}`,
        some.flat(),
      );
    }
  }

  async insertEntities(
    entities: readonly NewEntity[],
    embedder: string,
    document: number | null,
  ): Promise<void> {
    const rows = entities.map((entity) => [
      ...entityValues(entity),
      ...(entity.searchText === ''
        ? [null, null, null]
        : [entity.title ?? '', entity.heading ?? '', entity.searchText].map(plainWords)),
      document,
    ]);
    await this.#insert(
      { table: 'memory_entities', columns: [...ENTITY_COLUMNS, 'words', 'document'], rows, conflict: '' },
      (places) => {
        const [title, heading, text, last] = places.slice(ENTITY_COLUMNS.length);
        const words = `setweight(to_tsvector('memory_words', ${title}), 'A') || setweight(to_tsvector('memory_words', ${heading}), 'B') || to_tsvector('memory_words', ${text})`;
        return [...places.slice(0, ENTITY_COLUMNS.length), words, last ?? 'NULL'];
      },
    );
    const embedded = entities.filter(({ embedding }) => embedding !== undefined);
    if (embedded.length === 0) return;
    const ids = await this.all('SELECT id, row FROM memory_entities WHERE id = ANY($1)', [
      embedded.map(({ id }) => id),
    ]);
    const known = new Map(ids.map((row) => [text(row, 'id'), number(row, 'row')]));
    await this.insertVectors(
      embedder,
      embedded.flatMap(({ id, embedding }) => {
        const row = known.get(id);
        return row === undefined ? [] : [{ row, embedding }];
      }),
    );
  }

  async insertVectors(embedder: string, vectors: readonly RowVector[]): Promise<void> {
    for (let start = 0; start < vectors.length; start += INSERT_ROWS) {
      const some = vectors.slice(start, start + INSERT_ROWS);
      // The entity's row is locked, so that it cannot be removed before the vector refers to it.
      await this.run(
        `INSERT INTO memory_vectors (row, embedder, type, embedding)
         SELECT e.row, $1, e.type, listed.embedding::vector
         FROM unnest($2::bigint[], $3::text[]) AS listed (row, embedding)
         JOIN memory_entities AS e ON e.row = listed.row FOR KEY SHARE OF e
         ON CONFLICT DO NOTHING`,
        [
          embedder,
          some.map(({ row }) => row),
          some.map(({ embedding }) => (embedding === undefined ? null : vectorText(embedding))),
        ],
      );
    }
  }

  among(column: string, place: string): string {
    return `${column} = ANY(${place})`;
  }

  list(values: readonly string[] | readonly number[]): Value {
    return values;
  }

  matches(_index: WordIndexName, place: string): string {
    return `words @@ to_tsquery('memory_words', ${place})`;
  }

  wordQuery(text: string, kind: 'phrase' | 'all'): Value {
    return phrase(text, kind === 'phrase' ? '<->' : '&');
  }

  turnWords(content: string, place: string): TurnWords {
    const values = `, to_tsvector('memory_words', ${place})`;
    return { columns: ', words', values, parameters: [plainWords(content)] };
  }

  async nearest(
    vector: Float32Array,
    embedder: string,
    { types, limit, expired = NOTHING_EXPIRED }: SearchScope,
  ): Promise<(FoundEntity & { cosine: number })[]> {
    const { type, where } = vectorSpace(embedder, vector.length);
    const distance = `embedding::${type} <=> $1::${type}`;
    const rows = await this.all(
      `SELECT ${FOUND_ENTITY}, near.cosine AS cosine FROM
         (SELECT row, 1 - (${distance}) AS cosine FROM memory_vectors
          WHERE ${where} ${types === undefined ? '' : 'AND type = ANY($4)'}
          ORDER BY ${distance} LIMIT ${limit}) AS near
       JOIN memory_entities AS e USING (row) WHERE ${isAlive(2, 'e')}`,
      [vectorText(vector), ...cutoffValues(expired), ...(types === undefined ? [] : [types])],
    );
    return rows
      .map((row) => ({ ...foundEntityOf(row), cosine: number(row, 'cosine') }))
      .sort((a, b) => b.cosine - a.cosine);
  }

  frequencies(terms: readonly string[]): Promise<{ total: number; counts: Map<string, number> }> {
    return this.#words.frequencies(terms);
  }

  lexical(
    terms: readonly string[],
    scope: SearchScope,
    compared?: ComparedVector,
  ): Promise<(FoundEntity & { rank: number; cosine: number | undefined })[]> {
    return this.#words.search(terms, scope, compared);
  }

  turnCounts(terms: readonly string[]): Promise<Map<string, number>> {
    return turnCounts(this, terms);
  }

  turnsByWords(
    terms: SelectiveTerms,
    total: number,
    where: TurnConditions,
    limit: number,
  ): Promise<readonly number[]> {
    return turnsByWords(this, terms, total, where, limit);
  }

  /** Called after this backend has written. */
  changed(): void {
    this.#words.changed();
  }

  async bytes(): Promise<number> {
    const [row] = await this.all(
      `SELECT coalesce(sum(pg_total_relation_size(oid)), 0) AS bytes FROM pg_class
       WHERE relkind = 'r' AND relname LIKE 'memory\\_%'
         AND relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'memory_entities'::regclass)`,
    );
    return number(row ?? {}, 'bytes');
  }
}

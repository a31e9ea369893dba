import { MEMORY_STORE_LIMITS } from '../../../core/memory-limits.ts';
import { plainWords as wordsIn } from '../plain-words.ts';
import {
  ENTITY_COLUMNS,
  type Engine,
  entityValues,
  FIELD_WEIGHTS,
  type Insert,
  type Row,
  type RowVector,
  selectiveTerms,
  type TurnWords,
  type Value,
  type WordIndexName,
} from '../sql/sql.ts';
import type { NewEntity, SearchScope } from '../store.ts';
import type { Connection } from './connection.ts';
import { createVectorIndex, vectorSpace } from './vector-index.ts';

/** Of the text, of nothing, of headings and of titles, in the order of `ts_rank`, which takes at most 1. */
const WEIGHTS = [FIELD_WEIGHTS.searchText, 0, FIELD_WEIGHTS.heading, FIELD_WEIGHTS.title]
  .map((weight) => weight / FIELD_WEIGHTS.title)
  .join(', ');

/** Rows per INSERT: a statement may have 65,535 parameters. */
const INSERT_ROWS = 500;

/** Statements on a pool, or on the single connection of a transaction. */
export class PostgresEngine implements Engine {
  readonly #connection: Connection;
  /** Queries in progress by their terms: a search asks twice concurrently, for the candidates and for their scores. */
  readonly #asked = new Map<string, Promise<Frequencies>>();
  #total: { readonly count: number; readonly at: number } | undefined;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  async all(text: string, parameters: readonly Value[] = []): Promise<readonly Row[]> {
    return (await this.#connection.query(text, [...parameters])).rows as Row[];
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
        return [...places.slice(0, ENTITY_COLUMNS.length), words, last as string];
      },
    );
    const embedded = entities.filter(({ embedding }) => embedding !== undefined);
    if (embedded.length === 0) return;
    const ids = await this.all('SELECT id, row FROM memory_entities WHERE id = ANY($1)', [
      embedded.map(({ id }) => id),
    ]);
    const known = new Map(ids.map((row) => [row['id'] as string, Number(row['row'])]));
    await this.insertVectors(
      embedder,
      embedded.map(({ id, embedding }) => ({ row: known.get(id) as number, embedding })),
    );
  }

  async insertVectors(embedder: string, vectors: readonly RowVector[]): Promise<void> {
    const dimensions = vectors.find(({ embedding }) => embedding !== undefined)?.embedding?.length;
    if (dimensions !== undefined) await createVectorIndex(this.#connection, embedder, dimensions);
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
        ] as Value[],
      );
    }
  }

  among(column: string, place: string): string {
    return `${column} = ANY(${place})`;
  }

  list(values: readonly string[]): Value {
    return values;
  }

  matches(_index: WordIndexName, place: string): string {
    return `words @@ to_tsquery('memory_words', ${place})`;
  }

  wordQuery(text: string, kind: 'phrase' | 'all'): Value {
    const words = plainWords(text).split(' ');
    return words.map((word) => `'${word}'`).join(kind === 'phrase' ? ' <-> ' : ' & ');
  }

  turnWords(content: string, place: string): TurnWords {
    const values = `, to_tsvector('memory_words', ${place})`;
    return { columns: ', words', values, parameters: [plainWords(content)] };
  }

  async nearest(
    vector: Float32Array,
    embedder: string,
    scope: SearchScope,
  ): Promise<{ id: string; cosine: number }[]> {
    const types = scope.types === undefined ? [] : [scope.types];
    const { type, where } = vectorSpace(embedder, vector.length);
    const distance = `embedding::${type} <=> $1::${type}`;
    const rows = await this.all(
      `SELECT e.id AS id, near.cosine AS cosine FROM
         (SELECT row, 1 - (${distance}) AS cosine FROM memory_vectors
          WHERE ${where} ${scope.types === undefined ? '' : 'AND type = ANY($3)'}
          ORDER BY ${distance} LIMIT $2) AS near
       JOIN memory_entities AS e USING (row)`,
      [vectorText(vector), scope.limit, ...types],
    );
    return rows
      .map((row) => ({ id: row['id'] as string, cosine: Number(row['cosine']) }))
      .sort((a, b) => b.cosine - a.cosine);
  }

  async cosines(
    vector: Float32Array,
    embedder: string,
    ids: readonly string[],
  ): Promise<Map<string, number>> {
    const { where } = vectorSpace(embedder, vector.length);
    const rows = await this.all(
      `SELECT e.id AS id, 1 - (v.embedding <=> $1::vector) AS cosine
       FROM memory_entities AS e JOIN memory_vectors AS v ON v.row = e.row
       WHERE ${where} AND e.id = ANY($2)`,
      [vectorText(vector), ids],
    );
    return new Map(rows.map((row) => [row['id'] as string, Number(row['cosine'])]));
  }

  frequencies(terms: readonly string[]): Promise<Frequencies> {
    const key = JSON.stringify(terms);
    let asked = this.#asked.get(key);
    if (asked === undefined) {
      asked = this.#frequencies(terms).finally(() => this.#asked.delete(key));
      this.#asked.set(key, asked);
    }
    return asked;
  }

  async #frequencies(terms: readonly string[]): Promise<Frequencies> {
    const rows = await this.all(
      `SELECT t.place, (SELECT count(*) FROM memory_entities
         WHERE words @@ phraseto_tsquery('memory_words', t.term)) AS n
       FROM unnest($1::text[]) WITH ORDINALITY AS t (term, place)`,
      [terms.map(plainWords)],
    );
    const counts = new Map(terms.map((term) => [term, 0]));
    for (const row of rows) counts.set(terms[Number(row['place']) - 1] as string, Number(row['n']));
    return { total: await this.#searchable(), counts };
  }

  /**
   * Counting takes 40 ms for 100,000 rows; changes by other processes in the meantime have a negligible effect on word
   * rarity.
   */
  async #searchable(): Promise<number> {
    const known = this.#total;
    if (known !== undefined && performance.now() - known.at < MEMORY_STORE_LIMITS.countMaxAge)
      return known.count;
    const at = performance.now();
    const [row] = await this.all('SELECT count(*) AS n FROM memory_entities WHERE words IS NOT NULL');
    const count = Number(row?.['n']);
    this.#total = { count, at };
    return count;
  }

  /** Called after this backend has written. */
  changed(): void {
    this.#total = undefined;
  }

  /** PostgreSQL ranks without word rarity, so each word's weight is computed from its frequency, as in BM25. */
  async lexical(terms: readonly string[], scope: SearchScope): Promise<{ id: string; rank: number }[]> {
    const { total, counts } = await this.frequencies([...new Set(terms)]);
    const { selecting, ranking } = selectiveTerms(total, counts, scope.types !== undefined);
    if (selecting.length === 0) return [];
    const used = [...selecting, ...ranking];
    const weights = used.map(([, count]) => Math.log(1 + (total - count + 0.5) / (count + 0.5)));
    const types = scope.types === undefined ? [] : [scope.types];
    const rows = await this.all(
      // Materialized, because the query would otherwise be built again for every row. Only the best rows by weight
      // alone are ranked, because reading the words of a row is most of the cost.
      `WITH t AS MATERIALIZED (SELECT phraseto_tsquery('memory_words', term) AS query, weight, place
         FROM unnest($1::text[], $2::float8[]) WITH ORDINALITY AS listed (term, weight, place)),
       hits AS (SELECT e.row, t.weight FROM t JOIN memory_entities AS e ON e.words @@ t.query
         WHERE t.place <= $5 ${scope.types === undefined ? '' : 'AND e.type = ANY($6)'}),
       best AS MATERIALIZED (SELECT row FROM hits GROUP BY row ORDER BY sum(weight) DESC, row LIMIT $4)
       SELECT e.id, sum(t.weight * (1 + ts_rank('{${WEIGHTS}}', e.words, t.query, 1))) AS rank
       FROM best JOIN memory_entities AS e USING (row) JOIN t ON e.words @@ t.query
       GROUP BY e.id ORDER BY rank DESC, e.id LIMIT $3`,
      [
        used.map(([term]) => plainWords(term)),
        weights,
        scope.limit,
        MEMORY_STORE_LIMITS.ranked,
        selecting.length,
        ...types,
      ],
    );
    return rows.map((row) => ({ id: row['id'] as string, rank: Number(row['rank']) }));
  }

  async bytes(): Promise<number> {
    const [row] = await this.all(
      `SELECT coalesce(sum(pg_total_relation_size(oid)), 0) AS bytes FROM pg_class
       WHERE relkind = 'r' AND relname LIKE 'memory\\_%'
         AND relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'memory_entities'::regclass)`,
    );
    return Number(row?.['bytes']);
  }
}

type Frequencies = { total: number; counts: Map<string, number> };

function vectorText(vector: Float32Array): string {
  return `[${vector.join(',')}]`;
}

/** PostgreSQL refuses a text whose words take more than a megabyte; this many characters never do. */
const MOST_CHARACTERS = 200_000;
const LONGEST_WORD = 255;

/** PostgreSQL's own parser would keep `mcp.host` as a host name, which a search for `host` does not find. */
function plainWords(text: string): string {
  return wordsIn(text.slice(0, MOST_CHARACTERS))
    .filter((word) => word.length <= LONGEST_WORD)
    .join(' ');
}

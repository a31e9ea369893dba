import { MEMORY_STORE_LIMITS } from '../../../core/memory-limits.ts';
import {
  ENTITY_COLUMNS,
  type Engine,
  entityValues,
  type Insert,
  type Row,
  selectiveTerms,
  type Value,
} from '../sql/sql.ts';
import type { NewEntity, SearchScope } from '../store.ts';
import type { Connection } from './connection.ts';

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
    return this.#insert({ table, columns, rows, conflict: conflict ?? '' }, (_, place) => place);
  }

  async #insert(insert: Required<Insert>, place: (column: string, place: string) => string): Promise<void> {
    const { table, columns, rows, conflict } = insert;
    for (let start = 0; start < rows.length; start += INSERT_ROWS) {
      const some = rows.slice(start, start + INSERT_ROWS);
      const places = some.map((_, row) => {
        const first = row * columns.length + 1;
        return `(${columns.map((column, index) => place(column, `$${first + index}`)).join(', ')})`;
      });
      await this.run(
        `INSERT INTO ${table} (${columns.join(', ')}) VALUES ${places.join(', ')} ${conflict}`,
        some.flat(),
      );
    }
  }

  insertEntities(entities: readonly NewEntity[], embedder: string, document: number | null): Promise<void> {
    const rows = entities.map((entity) => [
      ...entityValues(entity),
      entity.searchText === '' ? null : plainWords(entity.searchText),
      ...(entity.embedding === undefined ? [null, null] : [embedder, vectorText(entity.embedding)]),
      document,
    ]);
    return this.#insert(
      {
        table: 'memory_entities',
        columns: [...ENTITY_COLUMNS, 'words', 'embedder', 'embedding', 'document'],
        rows,
        conflict: '',
      },
      (column, place) => (column === 'words' ? `to_tsvector('memory_words', ${place})` : place),
    );
  }

  among(column: string, place: string): string {
    return `${column} = ANY(${place})`;
  }

  list(values: readonly string[]): Value {
    return values;
  }

  async nearest(
    vector: Float32Array,
    embedder: string,
    scope: SearchScope,
  ): Promise<{ id: string; cosine: number }[]> {
    const types = scope.types === undefined ? [] : [scope.types];
    const rows = await this.all(
      `SELECT id, 1 - (embedding <=> $1::vector) AS cosine FROM memory_entities
       WHERE embedder = $2 ${scope.types === undefined ? '' : 'AND type = ANY($4)'}
       ORDER BY embedding <=> $1::vector LIMIT $3`,
      [vectorText(vector), embedder, scope.limit, ...types],
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
    const rows = await this.all(
      `SELECT id, 1 - (embedding <=> $1::vector) AS cosine FROM memory_entities
       WHERE embedder = $2 AND id = ANY($3)`,
      [vectorText(vector), embedder, ids],
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
    const used = selectiveTerms(total, counts);
    if (used.length === 0) return [];
    const weights = used.map(([, count]) => Math.log(1 + (total - count + 0.5) / (count + 0.5)));
    const types = scope.types === undefined ? [] : [scope.types];
    const rows = await this.all(
      // Materialized, because the query would otherwise be built again for every row. Only the best rows by weight
      // alone are ranked, because reading the words of a row is most of the cost.
      `WITH t AS MATERIALIZED (SELECT phraseto_tsquery('memory_words', term) AS query, weight
         FROM unnest($1::text[], $2::float8[]) AS listed (term, weight)),
       hits AS MATERIALIZED (SELECT e.row, t.query, t.weight FROM t JOIN memory_entities AS e ON e.words @@ t.query
         ${scope.types === undefined ? '' : 'WHERE e.type = ANY($5)'}),
       best AS MATERIALIZED (SELECT row FROM hits GROUP BY row ORDER BY sum(weight) DESC, row LIMIT $4)
       SELECT e.id, sum(hits.weight * (1 + ts_rank(e.words, hits.query, 1))) AS rank
       FROM best JOIN hits USING (row) JOIN memory_entities AS e USING (row)
       GROUP BY e.id ORDER BY rank DESC, e.id LIMIT $3`,
      [used.map(([term]) => plainWords(term)), weights, scope.limit, MEMORY_STORE_LIMITS.ranked, ...types],
    );
    return rows.map((row) => ({ id: row['id'] as string, rank: Number(row['rank']) }));
  }

  async bytes(): Promise<number> {
    const [row] = await this.all(
      `SELECT coalesce(sum(pg_total_relation_size(oid)), 0) AS bytes FROM pg_class
       WHERE relkind = 'r' AND relname LIKE 'memory\\_%' AND pg_table_is_visible(oid)`,
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

/**
 * Splits a text into plain words like FTS5's `unicode61`: letters and digits, without case and accents. PostgreSQL's
 * own parser would keep `mcp.host` as a host name, which a search for `host` does not find.
 */
function plainWords(text: string): string {
  return text
    .slice(0, MOST_CHARACTERS)
    .normalize('NFD')
    .replace(/\p{M}+/gu, '')
    .toLowerCase()
    .split(/[^\p{L}\p{N}\p{Co}]+/u)
    .filter((word) => word !== '' && word.length <= LONGEST_WORD)
    .join(' ');
}

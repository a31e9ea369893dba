import { MEMORY_STORE_LIMITS } from '../../../core/memory-limits.ts';
import { number, optionalNumber, rowsOf } from '../../../core/sql-row.ts';
import { FOUND_ENTITY, foundEntityOf } from '../sql/graph.ts';
import { cutoffValues, FIELD_WEIGHTS, isAlive, NOTHING_EXPIRED, selectiveTerms } from '../sql/sql.ts';
import type { ComparedVector, FoundEntity, SearchScope } from '../store.ts';
import type { Connection } from './connection.ts';
import { foundEntities, readOnce } from './found-entities.ts';
import { vectorSpace, vectorText } from './vector-index.ts';
import { phrase, plainWords } from './word-query.ts';

/** Of the text, of nothing, of headings and of titles, in the order of `ts_rank`, which takes at most 1. */
const WEIGHTS = [FIELD_WEIGHTS.searchText, 0, FIELD_WEIGHTS.heading, FIELD_WEIGHTS.title]
  .map((weight) => weight / FIELD_WEIGHTS.title)
  .join(', ');

/**
 * One of sixteen entities, whatever the number of entities per document: multiples of an odd number are spread evenly over
 * the remainders of 65,536. The condition of the index `memory_entities_sample` in schema.ts, which must be the same text.
 */
const IN_SAMPLE = 'row * 40503 % 65536 < 4096';
const SAMPLED = 16;
/**
 * Occurrences in the sample from which the count is estimated by it: its standard deviation is then 20 % at most, which
 * changes the weight of a word by 4 %. Rarer words are counted.
 */
const ENOUGH = 25;

type Frequencies = { total: number; counts: Map<string, number> };

/** Search by words with the GIN index. */
export class WordIndex {
  readonly #connection: Connection;
  /** Queries in progress by their terms: a search asks twice concurrently, for the candidates and for their scores. */
  readonly #asked = new Map<string, Promise<Frequencies>>();
  #total: { readonly count: number; readonly at: number } | undefined;

  constructor(connection: Connection) {
    this.#connection = connection;
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

  /** PostgreSQL visits each entity that it counts, so in a large memory, common words are counted in the sample. */
  async #frequencies(terms: readonly string[]): Promise<Frequencies> {
    const total = await this.#searchable();
    const count = (condition = ''): string =>
      `(SELECT count(*) FROM memory_entities WHERE words @@ t.query ${condition})`;
    const counted =
      total < MEMORY_STORE_LIMITS.counted
        ? `SELECT place, ${count()} AS n FROM t`
        : `SELECT place, CASE WHEN sampled < ${ENOUGH} THEN ${count()} ELSE sampled * ${SAMPLED} END AS n
           FROM (SELECT *, ${count(`AND ${IN_SAMPLE}`)} AS sampled FROM t OFFSET 0) AS t`;
    const result = await this.#connection.query(
      // Materialized, because the query would otherwise be built again for every row; OFFSET, because the sample would
      // otherwise be searched twice. LIMIT, because a plan for any list would be one for ten terms, which seems to cost
      // more than planning each search.
      `WITH t AS MATERIALIZED (SELECT phraseto_tsquery('memory_words', term) AS query, place
         FROM unnest($1::text[]) WITH ORDINALITY AS listed (term, place) LIMIT ${terms.length}) ${counted}`,
      [terms.map(plainWords)],
    );
    const counts = new Map(terms.map((term) => [term, 0]));
    for (const row of rowsOf(result)) {
      const term = terms[number(row, 'place') - 1];
      if (term !== undefined) counts.set(term, Math.max(0, Math.min(total, number(row, 'n'))));
    }
    return { total, counts };
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
    const [row = {}] = rowsOf(
      await this.#connection.query('SELECT count(*) AS n FROM memory_entities WHERE words IS NOT NULL'),
    );
    const count = number(row, 'n');
    this.#total = { count, at };
    return count;
  }

  /** Called after this backend has written, which changes little in a large memory. */
  changed(): void {
    if (this.#total !== undefined && this.#total.count < MEMORY_STORE_LIMITS.counted) this.#total = undefined;
  }

  /** PostgreSQL ranks without word rarity, so each word's weight is computed from its frequency, as in BM25. */
  async search(
    terms: readonly string[],
    scope: SearchScope,
    compared?: ComparedVector,
  ): Promise<(FoundEntity & { rank: number; cosine: number | undefined })[]> {
    const { total, counts } = await this.frequencies([...new Set(terms)]);
    const selective = selectiveTerms(total, counts, scope.types !== undefined);
    if (selective.selecting.length === 0) return [];
    const parameters: unknown[] = [];
    const place = (value: unknown): string => `$${parameters.push(value)}`;
    const query = (text: string): string => `to_tsquery('memory_words', ${place(text)})`;
    const weighted = [...selective.selecting, ...selective.ranking].map(([term, count]) => ({
      query: query(phrase(term)),
      weight: `${place(Math.log(1 + (total - count + 0.5) / (count + 0.5)))}::float8`,
    }));
    // One expression, because a join with the terms would sort the entities with all of their words.
    const sum = (of: (term: { query: string; weight: string }) => string, alias: string): string =>
      weighted
        .map((term) => `CASE WHEN ${alias}.words @@ ${term.query} THEN ${of(term)} ELSE 0 END`)
        .join(' + ');
    const rank = sum(
      (term) => `${term.weight} * (1 + ts_rank('{${WEIGHTS}}', e.words, ${term.query}, 1))`,
      'e',
    );
    const found = foundEntities(selective, {
      query,
      ofTypes: scope.types === undefined ? undefined : place(scope.types),
      weight: (alias) => sum(({ weight }) => weight, alias),
      limit: scope.limit,
    });
    const { cosine, join } = comparison(compared, place);
    const result = await this.#connection.query(
      `SELECT ${FOUND_ENTITY}, best.rank AS rank, ${cosine} AS cosine FROM
         (SELECT e.row, e.id, ${rank} AS rank FROM
            (SELECT e.row, e.id, ${readOnce('e.words')} AS words FROM ${found} OFFSET 0) AS e
          ORDER BY rank DESC, e.id LIMIT ${scope.limit}) AS best
       JOIN memory_entities AS e ON e.row = best.row ${join}
       WHERE ${isAlive(parameters.length + 1, 'e')} ORDER BY best.rank DESC, best.id`,
      [...parameters, ...cutoffValues(scope.expired ?? NOTHING_EXPIRED)],
    );
    return rowsOf(result).map((row) => ({
      ...foundEntityOf(row),
      rank: number(row, 'rank'),
      cosine: optionalNumber(row, 'cosine') ?? undefined,
    }));
  }
}

/** The cosine of entities `e` to a vector: null without one of the same embedder and length. */
function comparison(
  compared: ComparedVector | undefined,
  place: (value: unknown) => string,
): { cosine: string; join: string } {
  if (compared === undefined) return { cosine: 'NULL', join: '' };
  const { vector, embedder } = compared;
  return {
    cosine: `1 - (v.embedding <=> ${place(vectorText(vector))}::vector)`,
    join: `LEFT JOIN memory_vectors AS v ON v.row = e.row AND ${vectorSpace(embedder, vector.length).where}`,
  };
}

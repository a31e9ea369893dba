import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite';
import { MEMORY_STORE_LIMITS } from '../../../core/memory-limits.ts';
import { number, text } from '../../../core/sql-row.ts';
import { FIELD_WEIGHTS, type SelectiveTerms, selectiveTerms } from '../sql/sql.ts';
import type { SearchScope } from '../store.ts';

/** BM25 with a weight for each field: title, headings, text. */
const RANK = `bm25(${FIELD_WEIGHTS.title}, ${FIELD_WEIGHTS.heading}, ${FIELD_WEIGHTS.searchText})`;

/** Search by words with the FTS5 index. */
export class WordIndex {
  readonly #stems = new Map<string, readonly string[]>();
  /**
   * Valid until the next commit: a search needs the same numbers twice, and counting takes 3 ms per 100,000 entities.
   */
  readonly #counts = new Map<string, number>();
  #entities: number | undefined;
  readonly #probe: StatementSync;
  readonly #cut: StatementSync;
  readonly #empty: StatementSync;
  readonly #count: StatementSync;
  readonly #total: StatementSync;
  readonly #search: StatementSync;

  constructor(database: DatabaseSync) {
    // FTS5 does not expose its tokenizer; a table with a single text does.
    database.exec(`
      CREATE VIRTUAL TABLE temp.probe USING fts5 (word, tokenize = 'porter unicode61');
      CREATE VIRTUAL TABLE temp.probe_words USING fts5vocab ('probe', 'instance');
    `);
    this.#probe = database.prepare('INSERT INTO temp.probe (word) VALUES (?)');
    this.#cut = database.prepare('SELECT term FROM temp.probe_words ORDER BY offset');
    this.#empty = database.prepare('DELETE FROM temp.probe');
    this.#count = database.prepare('SELECT doc FROM memory_word_counts WHERE term = ?');
    this.#total = database.prepare("SELECT count(*) AS n FROM memory_entities WHERE search_text <> ''");
    this.#search = database.prepare(`
      SELECT e.row AS row, w.rank AS rank FROM memory_words AS w JOIN memory_entities AS e ON e.row = w.rowid
      WHERE w.memory_words MATCH $query AND w.rank MATCH '${RANK}'
        AND ($types IS NULL OR e.type IN (SELECT value FROM json_each($types)))
      ORDER BY w.rank LIMIT $limit`);
  }

  /** The stems that a term is indexed by: several for `well-known`, none for `…`. */
  stemsOf(term: string): readonly string[] {
    let stems = this.#stems.get(term);
    if (stems === undefined) {
      this.#probe.run(term);
      stems = this.#cut.all().map((row) => text(row, 'term'));
      this.#empty.run();
      if (this.#stems.size >= MEMORY_STORE_LIMITS.stems) this.#stems.clear();
      this.#stems.set(term, stems);
    }
    return stems;
  }

  #frequency(term: string): number {
    // A term of several stems is at most as frequent as its rarest stem.
    const counts = this.stemsOf(term).map((stem) => this.#countOf(stem));
    return counts.length === 0 ? 0 : Math.min(...counts);
  }

  #countOf(stem: string): number {
    let count = this.#counts.get(stem);
    if (count === undefined) {
      count = Number(this.#count.get(stem)?.['doc'] ?? 0);
      if (this.#counts.size >= MEMORY_STORE_LIMITS.stems) this.#counts.clear();
      this.#counts.set(stem, count);
    }
    return count;
  }

  /** Must be called after every commit. */
  changed(): void {
    this.#counts.clear();
    this.#entities = undefined;
  }

  frequencies(terms: readonly string[]): { total: number; counts: Map<string, number> } {
    this.#entities ??= Number(this.#total.get()?.['n']);
    return {
      total: this.#entities,
      counts: new Map(terms.map((term) => [term, this.#frequency(term)])),
    };
  }

  search(terms: readonly string[], scope: SearchScope): { row: number; rank: number }[] {
    const { total, counts } = this.frequencies([...new Set(terms)]);
    const { selecting, ranking } = selectiveTerms(total, counts, scope.types !== undefined);
    if (selecting.length === 0) return [];
    const types = scope.types === undefined ? null : JSON.stringify(scope.types);
    return this.#search
      .all({ $query: matchQuery(selecting, ranking), $types: types, $limit: scope.limit })
      .map((row) => ({ row: number(row, 'row'), rank: -number(row, 'rank') }));
  }
}

/** The words of turns, which share the tokenizer of the words of entities. */
export class TurnIndex {
  readonly #database: DatabaseSync;
  readonly #count: StatementSync;
  readonly #stemsOf: (term: string) => readonly string[];

  constructor(database: DatabaseSync, stemsOf: (term: string) => readonly string[]) {
    this.#database = database;
    this.#count = database.prepare('SELECT doc FROM memory_turn_word_counts WHERE term = ?');
    this.#stemsOf = stemsOf;
  }

  counts(terms: readonly string[]): Map<string, number> {
    const countOf = (stem: string): number => Number(this.#count.get(stem)?.['doc'] ?? 0);
    return new Map(
      terms.map((term) => {
        const counts = this.#stemsOf(term).map(countOf);
        return [term, counts.length === 0 ? 0 : Math.min(...counts)];
      }),
    );
  }

  /** @param parameters of the conditions, by name */
  search(
    { selecting, ranking }: SelectiveTerms,
    conditions: string,
    parameters: Record<string, SQLInputValue>,
    limit: number,
  ): number[] {
    return this.#database
      .prepare(
        `SELECT w.rowid AS seq FROM memory_turn_words AS w JOIN memory_chat_history AS t ON t.seq = w.rowid
         WHERE w.memory_turn_words MATCH $query AND ${conditions} ORDER BY w.rank LIMIT $limit`,
      )
      .all({ ...parameters, $query: matchQuery(selecting, ranking), $limit: limit })
      .map((row) => number(row, 'seq'));
  }
}

type Counted = readonly [term: string, count: number];

/**
 * Matches what contains a selecting term. BM25 adds up all phrases of the query, so selecting terms count twice here,
 * which changes little: they are rare and have most of the weight anyway.
 */
function matchQuery(selecting: readonly Counted[], ranking: readonly Counted[]): string {
  const any = (terms: readonly Counted[]): string => terms.map(([term]) => phrase(term)).join(' OR ');
  if (ranking.length === 0) return any(selecting);
  return `(${any([...selecting, ...ranking])}) AND (${any(selecting)})`;
}

/** When quoted, a term is a phrase of plain words, whatever it contains. */
function phrase(term: string): string {
  return `"${term.replaceAll('"', '""')}"`;
}

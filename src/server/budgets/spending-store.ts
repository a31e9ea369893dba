import { randomInt } from 'node:crypto';
import { number, text } from '../../core/sql-row.ts';
import type { Database, SqlRow, Statement } from '../kernel/database.ts';
import { earlierTime } from '../kernel/database-time.ts';

/** A counter: one subject of a budget, in one window. `start`: Unix time in ms; 0 for `total`. */
export interface CounterRow {
  readonly counter: string;
  readonly start: number;
}

export interface Charge extends CounterRow {
  /** Tokens, or 10^-9 USD. */
  readonly amount: number;
  /** What was spent before, as far as this process knows. */
  readonly known?: number | undefined;
}

export interface SpentRow extends CounterRow {
  readonly spent: number;
}

export interface Exchanged {
  readonly totals: readonly (number | undefined)[];
  readonly isAlone: boolean;
}

/** Where the spending of budgets is kept. */
export interface SpendingStore {
  /**
   * Adds charges and reads counters, in one transaction, which has survived the end of this process when this resolves.
   * `totals`: of `charges`, then of `reads`; undefined if another process may have charged the counter, and it could not be
   * read. `isAlone`: no other process has made an exchange since the previous one. Rejects if the database is gone, locked
   * or full: then nothing was added, unless it is an `UnknownCommit`.
   */
  exchange(charges: readonly Charge[], reads: readonly CounterRow[]): Promise<Exchanged>;
  /** What counters have spent. Unlike `exchange`, it does not count as the presence of a process. */
  totals(counters: readonly CounterRow[]): Promise<readonly number[]>;
  /** Counters of windows that began at one of these times, up to `limit`. */
  spent(starts: readonly number[], limit: number): Promise<readonly SpentRow[]>;
  /**
   * Removes the counters of windows that began longer ago than `age` ms, except those of `total`. `own`: Unix time in ms of
   * this process.
   */
  prune(age: number, own: number): Promise<void>;
}

/** Lists are passed as one JSON parameter: a statement per counter would cost a round trip to PostgreSQL each. */
const POSTGRES = {
  // In order, so that two processes do not wait for each other.
  add: `INSERT INTO agctl_spending (counter, start, spent)
    SELECT value ->> 0, (value ->> 1)::bigint, (value ->> 2)::bigint
    FROM jsonb_array_elements(?::jsonb) AS value ORDER BY 1, 2
    ON CONFLICT (counter, start) DO UPDATE SET spent = agctl_spending.spent + excluded.spent
    RETURNING counter, start, spent`,
  read: `SELECT counter, start, spent FROM agctl_spending
    JOIN jsonb_array_elements(?::jsonb) AS wanted ON counter = wanted ->> 0 AND start = (wanted ->> 1)::bigint`,
};

/**
 * In SQLite, the charges of a transaction are one row of a journal: a row for each counter would be in as many pages of the
 * file. They are added to the counters when these are read, and when the journal is long.
 */
const SQLITE = {
  append: 'INSERT INTO agctl_spending_journal (charges) VALUES (?)',
  // Not grouped by counter: to sort the charges takes longer than to change a row twice.
  add: `INSERT INTO agctl_spending (counter, start, spent)
    SELECT value ->> 0, value ->> 1, value ->> 2 FROM agctl_spending_journal, json_each(charges) WHERE true
    ON CONFLICT (counter, start) DO UPDATE SET spent = spent + excluded.spent`,
  clear: 'DELETE FROM agctl_spending_journal',
  read: `SELECT counter, start, spent FROM agctl_spending
    JOIN json_each(?) AS wanted ON counter = wanted.value ->> 0 AND start = wanted.value ->> 1`,
  setWriter: 'UPDATE agctl_spending_writer SET writer = ?1 WHERE writer <> ?1',
};

/**
 * Length of the journal, in characters, at which its charges are added to the counters: those of about 2,500 calls. A
 * longer one costs less CPU time per call, but the transaction that adds it takes longer than 10 ms.
 */
const JOURNAL_LENGTH = 256 * 1024;

/** The spending in `config.database`. */
export class DatabaseSpending implements SpendingStore {
  readonly #database: Database;
  /** Names this process in the database. */
  readonly #writer = randomInt(1, 2 ** 47);
  #isFirst = true;
  /** Whether the last exchange with the file was one of this process, as far as it knows. */
  #isLastWriter = false;
  /** Length of what this process has added to the journal since it was last cleared. */
  #journalLength = 0;

  constructor(database: Database) {
    this.#database = database;
  }

  async exchange(charges: readonly Charge[], reads: readonly CounterRow[]): Promise<Exchanged> {
    if (this.#database.kind === 'sqlite') return this.#exchangeInFile(charges, reads);
    const results = await this.#database.transaction([
      ...(charges.length > 0 ? [statementOf(POSTGRES.add, charges)] : []),
      ...(reads.length > 0 ? [statementOf(POSTGRES.read, reads)] : []),
    ]);
    const rows = results?.flatMap((result) => result.rows) ?? [];
    // Another machine may write to PostgreSQL at any time.
    return { totals: totalsOf(rows, [...charges, ...reads]), isAlone: false };
  }

  async #exchangeInFile(charges: readonly Charge[], reads: readonly CounterRow[]): Promise<Exchanged> {
    // Then totals can be computed, if it is still so.
    const isKnown = this.#isLastWriter && charges.every(({ known }) => known !== undefined);
    const wanted = isKnown ? reads : [...charges, ...reads];
    const added = charges.length > 0 ? [statementOf(SQLITE.append, charges)] : [];
    const isLong = this.#journalLength >= JOURNAL_LENGTH;
    const results = await this.#database.transaction([
      { sql: SQLITE.setWriter, values: [this.#writer] },
      ...added,
      ...(wanted.length > 0 ? readAll(wanted) : isLong ? CLEAR : []),
    ]);
    const length = String(added[0]?.values?.[0] ?? '').length;
    this.#journalLength = wanted.length > 0 || isLong ? 0 : this.#journalLength + length;
    const wasLastWriter = results?.[0]?.changes === 0;
    const isAlone = wasLastWriter || this.#isFirst;
    this.#isFirst = false;
    this.#isLastWriter = true;
    const read = wanted.length > 0 ? totalsOf(results?.at(-1)?.rows ?? [], wanted) : [];
    if (!isKnown) return { totals: read, isAlone };
    const totals = wasLastWriter
      ? charges.map(({ known = 0, amount }) => known + amount)
      : // A failure is none of the charges, which are stored.
        await this.totals(charges).catch(() => charges.map(() => undefined));
    return { totals: [...totals, ...read], isAlone };
  }

  async totals(counters: readonly CounterRow[]): Promise<readonly number[]> {
    if (counters.length === 0) return [];
    if (this.#database.kind === 'postgres') {
      const { sql, values } = statementOf(POSTGRES.read, counters);
      return totalsOf(await this.#database.query(sql, values), counters);
    }
    const results = await this.#database.transaction(readAll(counters));
    return totalsOf(results?.at(-1)?.rows ?? [], counters);
  }

  async spent(starts: readonly number[], limit: number): Promise<readonly SpentRow[]> {
    // PostgreSQL has no empty list.
    if (starts.length === 0) return [];
    const marks = starts.map(() => '?').join(', ');
    const table = this.#database.kind === 'sqlite' ? 'agctl_spending_totals' : 'agctl_spending';
    const rows = await this.#database.query(
      `SELECT counter, start, spent FROM ${table} WHERE start IN (${marks}) ORDER BY counter, start LIMIT ${limit}`,
      starts,
    );
    return rows.map((row) => ({
      counter: text(row, 'counter'),
      start: number(row, 'start'),
      spent: number(row, 'spent'),
    }));
  }

  async prune(age: number, own: number): Promise<void> {
    const now = await earlierTime(this.#database, own);
    await this.#database.transaction([
      { sql: 'DELETE FROM agctl_spending WHERE start > 0 AND start < ?', values: [now - age] },
    ]);
  }
}

/** Adds the journal to the counters. */
const CLEAR: readonly Statement[] = [{ sql: SQLITE.add }, { sql: SQLITE.clear }];

const readAll = (rows: readonly CounterRow[]): readonly Statement[] => [
  ...CLEAR,
  statementOf(SQLITE.read, rows),
];

const statementOf = (sql: string, rows: readonly (CounterRow & Partial<Charge>)[]): Statement => ({
  sql,
  values: [JSON.stringify(rows.map(({ counter, start, amount = 0 }) => [counter, start, amount]))],
});

function totalsOf(rows: readonly SqlRow[], counters: readonly CounterRow[]): number[] {
  const totals = new Map(rows.map((row) => [keyOfRow(row), number(row, 'spent')]));
  return counters.map((counter) => totals.get(keyOf(counter)) ?? 0);
}

const keyOf = ({ counter, start }: CounterRow): string => `${start} ${counter}`;
const keyOfRow = (row: SqlRow): string => `${number(row, 'start')} ${text(row, 'counter')}`;

import { randomInt } from 'node:crypto';
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

/** Where the spending of budgets is kept. */
export interface SpendingStore {
  /**
   * Adds charges and reads counters, in one transaction, which has survived the end of this process when this resolves.
   * `totals`: of `charges`, then of `reads`. `isAlone`: no other process has written to the database since the previous
   * exchange. Rejects if the database is gone, locked or full: then nothing was added, unless the connection to
   * PostgreSQL was lost during the commit.
   */
  exchange(
    charges: readonly Charge[],
    reads: readonly CounterRow[],
  ): Promise<{ readonly totals: readonly number[]; readonly isAlone: boolean }>;
  /** Counters of windows that began at one of these times, up to `limit`. */
  spent(starts: readonly number[], limit: number): Promise<readonly SpentRow[]>;
  /** Removes the counters of windows that began longer ago than `age` ms, except those of `total`. */
  prune(age: number): Promise<void>;
}

/** Lists are passed as one JSON parameter: a statement per counter would cost a round trip to PostgreSQL each. */
const SQL = {
  sqlite: {
    add: `INSERT INTO agctl_spending (counter, start, spent)
      SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(?) WHERE true
      ON CONFLICT (counter, start) DO UPDATE SET spent = spent + excluded.spent
      RETURNING counter, start, spent`,
    read: `SELECT counter, start, spent FROM agctl_spending
      JOIN json_each(?) AS wanted ON counter = wanted.value ->> 0 AND start = wanted.value ->> 1`,
  },
  postgres: {
    // In order, so that two processes do not wait for each other.
    add: `INSERT INTO agctl_spending (counter, start, spent)
      SELECT value ->> 0, (value ->> 1)::bigint, (value ->> 2)::bigint
      FROM jsonb_array_elements(?::jsonb) AS value ORDER BY 1, 2
      ON CONFLICT (counter, start) DO UPDATE SET spent = agctl_spending.spent + excluded.spent
      RETURNING counter, start, spent`,
    read: `SELECT counter, start, spent FROM agctl_spending
      JOIN jsonb_array_elements(?::jsonb) AS wanted ON counter = wanted ->> 0 AND start = (wanted ->> 1)::bigint`,
  },
} as const;

/** Without `RETURNING`, which makes a row take twice as long. */
const ADD_EACH = `INSERT INTO agctl_spending (counter, start, spent) VALUES (?, ?, ?)
  ON CONFLICT (counter, start) DO UPDATE SET spent = spent + excluded.spent`;

const LAST_WRITER: Statement = { sql: 'SELECT writer FROM agctl_spending_writer' };
const SET_WRITER: Statement = { sql: 'UPDATE agctl_spending_writer SET writer = ?' };

/** The spending in `config.database`. */
export class DatabaseSpending implements SpendingStore {
  readonly #database: Database;
  /** Names this process in the database. */
  readonly #writer = randomInt(1, 2 ** 47);
  #isFirst = true;
  /** Whether the last charge in the file was one of this process. */
  #isLastWriter = false;

  constructor(database: Database) {
    this.#database = database;
  }

  async exchange(
    charges: readonly Charge[],
    reads: readonly CounterRow[],
  ): Promise<{ readonly totals: readonly number[]; readonly isAlone: boolean }> {
    const { kind } = this.#database;
    const hasCharges = charges.length > 0;
    // Then the totals can be computed.
    const isKnown = this.#isLastWriter && charges.every(({ known }) => known !== undefined);
    const statements: Statement[] = [
      ...(kind === 'sqlite' ? [LAST_WRITER] : []),
      ...(kind === 'sqlite' && hasCharges ? [{ ...SET_WRITER, values: [this.#writer] }] : []),
      ...(hasCharges ? [isKnown ? addEach(charges) : statementOf(SQL[kind].add, charges)] : []),
      ...(reads.length > 0 ? [statementOf(SQL[kind].read, reads)] : []),
    ];
    const results = (await this.#database.transaction(statements)) ?? [];
    const rows = results.flatMap((result) => result.rows);
    // Another machine may write to PostgreSQL at any time.
    const isLastWriter = kind === 'sqlite' && rows[0]?.['writer'] === this.#writer;
    const isAlone = isLastWriter || (kind === 'sqlite' && this.#isFirst);
    this.#isFirst &&= !hasCharges;
    this.#isLastWriter = isLastWriter || (kind === 'sqlite' && hasCharges);
    const missed = isKnown && hasCharges && !isLastWriter ? await this.#read(charges) : [];
    const totals = new Map([...rows, ...missed].map((row) => [keyOf(row), Number(row['spent'])]));
    return {
      totals: [
        ...charges.map((charge) => totals.get(keyOf(charge)) ?? (charge.known ?? 0) + charge.amount),
        ...reads.map((row) => totals.get(keyOf(row)) ?? 0),
      ],
      isAlone,
    };
  }

  /** Of counters that another process may have charged. A failure is none of the charges, which are stored. */
  #read(counters: readonly CounterRow[]): Promise<readonly SqlRow[]> {
    const { sql, values } = statementOf(SQL[this.#database.kind].read, counters);
    return this.#database.query(sql, values).catch(() => []);
  }

  async spent(starts: readonly number[], limit: number): Promise<readonly SpentRow[]> {
    const marks = starts.map(() => '?').join(', ');
    const rows = await this.#database.query(
      `SELECT counter, start, spent FROM agctl_spending WHERE start IN (${marks}) ORDER BY counter, start LIMIT ${limit}`,
      starts,
    );
    return rows.map(({ counter, start, spent }) => ({
      counter: String(counter),
      start: Number(start),
      spent: Number(spent),
    }));
  }

  async prune(age: number): Promise<void> {
    const now = await earlierTime(this.#database, Date.now());
    await this.#database.transaction([
      { sql: 'DELETE FROM agctl_spending WHERE start > 0 AND start < ?', values: [now - age] },
    ]);
  }
}

const addEach = (charges: readonly Charge[]): Statement => ({
  sql: ADD_EACH,
  many: charges.map(({ counter, start, amount }) => [counter, start, amount]),
});

const statementOf = (sql: string, rows: readonly (CounterRow & Partial<Charge>)[]): Statement => ({
  sql,
  values: [JSON.stringify(rows.map(({ counter, start, amount = 0 }) => [counter, start, amount]))],
});

const keyOf = ({ counter, start }: SqlRow | CounterRow): string => `${String(start)} ${String(counter)}`;

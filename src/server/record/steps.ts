import { number } from '../../core/sql-row.ts';
import type { SqlRow, SqlValue } from '../kernel/database.ts';

/** A place between two records; records are ordered by time, newest first. */
export interface Cursor {
  readonly time: number;
  readonly id: number;
}

export const cursorOf = (row: SqlRow): Cursor => ({ time: number(row, 'time'), id: number(row, 'id') });

/** An order of records, and how to walk through it. */
export interface Steps {
  readonly start: Cursor;
  /** The record after `at` with which a step of this size ends. Undefined: the step goes to the end. */
  end(at: Cursor, size: number): Promise<Cursor | undefined>;
  /** The records after `at`, up to and with `end`, that match: at most `limit`. */
  rows(at: Cursor, end: Cursor | undefined, limit: number): Promise<readonly SqlRow[]>;
}

export interface Condition {
  readonly sql: string;
  readonly values: readonly SqlValue[];
}

/** Records that come later in the order, which are older. */
export const before = ({ time, id }: Cursor): Condition => ({
  sql: 'time <= ? AND (time < ? OR id < ?)',
  values: [time, time, id],
});

/** The record at a cursor, and those that come earlier in the order. */
export const notBefore = ({ time, id }: Cursor): Condition => ({
  sql: 'time >= ? AND (time > ? OR id >= ?)',
  values: [time, time, id],
});

/** A plus keeps SQLite, which counts nothing, from using another index than that of the step. */
export const withoutIndex = ({ sql, values }: Condition): Condition => ({ sql: `+${sql}`, values });

/** All conditions as one. */
export function all(conditions: readonly Condition[]): Condition {
  return {
    sql: conditions.map(({ sql }) => sql).join(' AND '),
    values: conditions.flatMap(({ values }) => values),
  };
}

import { AppError } from './errors.ts';
import { isRecord, parseJson } from './foreign.ts';

/** A row as a driver returns it. A server, a pooler or a restored backup decides what is in it. */
export type Row = Readonly<Record<string, unknown>>;

/** A row that lacks a column, or has a value of another type than the tables. It fails the call that reads it. */
export class RowError extends AppError {
  declare readonly detail: string;

  constructor(detail: string) {
    super('database_unavailable', { detail });
  }
}

/** The rows of a result. Throws `RowError`. */
export function rowsOf(result: { readonly rows: unknown }): readonly Row[] {
  const { rows } = result;
  if (!Array.isArray(rows) || !rows.every(isRecord))
    throw new RowError('the database returned no list of rows');
  return rows;
}

/** A column with a text. Throws `RowError`. */
export function text(row: Row, column: string): string {
  const value = row[column];
  if (typeof value !== 'string') throw unexpected(column, 'text');
  return value;
}

/** The same, and null for NULL. */
export const optionalText = (row: Row, column: string): string | null =>
  row[column] === null ? null : text(row, column);

/** A column with a finite number. PostgreSQL returns bigint and numeric as text, PGlite a large one as BigInt. */
export function number(row: Row, column: string): number {
  const value = row[column];
  // `Number` makes 0 of null and of an empty text.
  const read = typeof value === 'bigint' || isNumeral(value) ? Number(value) : value;
  if (typeof read !== 'number' || !Number.isFinite(read)) throw unexpected(column, 'number');
  return read;
}

/** A column with an integer of any size. Throws `RowError`. */
export function integer(row: Row, column: string): bigint {
  const value = row[column];
  if (typeof value === 'bigint') return value;
  const numeral = typeof value === 'number' ? String(value) : value;
  if (typeof numeral !== 'string' || !/^-?\d{1,100}$/.test(numeral)) throw unexpected(column, 'integer');
  return BigInt(numeral);
}

/** The same as `number`, and null for NULL. */
export const optionalNumber = (row: Row, column: string): number | null =>
  row[column] === null ? null : number(row, column);

const isNumeral = (value: unknown): boolean =>
  typeof value === 'string' && /^-?\d+(?:\.\d+)?(?:e[+-]?\d+)?$/i.test(value);

/** A column with bytes. Throws `RowError`. */
export function bytes(row: Row, column: string): Uint8Array {
  const value = row[column];
  if (!(value instanceof Uint8Array)) throw unexpected(column, 'bytes');
  return value;
}

/** A column with one of some texts. Throws `RowError`. */
export function oneOf<T extends string>(row: Row, column: string, known: readonly T[]): T {
  const value = row[column];
  const found = known.find((each) => each === value);
  if (found === undefined) throw unexpected(column, `of ${known.join(', ')}`);
  return found;
}

/** A column with JSON as text, parsed. Throws `RowError`, which does not quote it. */
export function json(row: Row, column: string): unknown {
  try {
    return parseJson(text(row, column));
  } catch (error) {
    throw error instanceof RowError ? error : unexpected(column, 'JSON');
  }
}

/** A column with a JSON object as text, parsed. Throws `RowError`. */
export function jsonObject(row: Row, column: string): Readonly<Record<string, unknown>> {
  const value = json(row, column);
  if (!isRecord(value)) throw unexpected(column, 'JSON object');
  return value;
}

/** Values may be what users stored: none of it is repeated. */
const unexpected = (column: string, expected: string): RowError =>
  new RowError(`column ${column} of the database contains no ${expected}`);

/** The largest distance of a time from 1970, in ms (ECMA-262, "Time Values and Time Range"). */
const LONGEST_TIME = 8.64e15;

/** A column with a time in units of `unit` ms since 1970. Throws `RowError`. */
export function time(row: Row, column: string, unit = 1): Date {
  const value = number(row, column) * unit;
  if (Math.abs(value) > LONGEST_TIME) throw unexpected(column, 'time');
  return new Date(value);
}

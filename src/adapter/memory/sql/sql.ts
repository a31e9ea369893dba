import type { SearchScope } from '../store.ts';

export type Value = string | number | null | Uint8Array | readonly string[] | readonly number[];
export type Row = Readonly<Record<string, unknown>>;

/** Rows of one table. */
export interface Insert {
  readonly table: string;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly Value[])[];
  /** `ON CONFLICT …`, or nothing. */
  readonly conflict?: string;
}

/** What both engines can do. Statements are written once, with `$1` for parameters. */
export interface Sql {
  all(text: string, parameters?: readonly Value[]): Promise<readonly Row[]>;
  /** Resolves to how many rows changed. */
  run(text: string, parameters?: readonly Value[]): Promise<number>;
  insert(rows: Insert): Promise<void>;
  /** `column` is one of the list in parameter `$n`, which goes in through `list`. */
  among(column: string, place: string): string;
  list(values: readonly string[]): Value;
  /** A vector as a parameter. */
  vector(values: Float32Array): Value;
}

/** What each engine does its own way. */
export interface Engine extends Sql {
  nearest(
    vector: Float32Array,
    embedder: string,
    scope: SearchScope,
  ): Promise<{ id: string; cosine: number }[]>;
  cosines(vector: Float32Array, embedder: string, ids: readonly string[]): Promise<Map<string, number>>;
  lexical(terms: readonly string[], scope: SearchScope): Promise<{ id: string; rank: number }[]>;
  frequencies(terms: readonly string[]): Promise<{ total: number; counts: Map<string, number> }>;
  /** On disk. */
  bytes(): Promise<number>;
}

/** A `$1` of a row as text or number; what the schema makes impossible throws. */
export function text(row: Row, column: string): string {
  const value = row[column];
  if (typeof value !== 'string') throw new TypeError(`column ${column} holds no text`);
  return value;
}

/** PostgreSQL hands big integers over as text. */
export function number(row: Row, column: string): number {
  return Number(row[column]);
}

import type { NewEntity, SearchScope } from '../store.ts';

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
  /** Entities of a document, or of none. Those with an embedding are of this embedder. */
  insertEntities(entities: readonly NewEntity[], embedder: string, document: number | null): Promise<void>;
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

/** Columns that are the same on both engines, and what goes in. */
export const ENTITY_COLUMNS = ['id', 'name', 'type', 'content', 'metadata', 'search_text'] as const;

export function entityValues(entity: NewEntity): Value[] {
  // Text, not a JSON column: what was stored comes back with its order, its numbers and odd keys.
  const metadata = JSON.stringify(entity.metadata);
  return [entity.id, entity.name, entity.type, entity.content, metadata, entity.searchText];
}

/** A column as text; what the schema makes impossible throws. */
export function text(row: Row, column: string): string {
  const value = row[column];
  if (typeof value !== 'string') throw new TypeError(`column ${column} holds no text`);
  return value;
}

/** PostgreSQL hands big integers over as text. */
export function number(row: Row, column: string): number {
  return Number(row[column]);
}

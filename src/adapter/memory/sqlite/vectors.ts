import type { DatabaseSync } from 'node:sqlite';
import { AppError } from '../../../core/errors.ts';
import { MEMORY_STORE_LIMITS } from '../../../core/memory-limits.ts';
import { bytes, number, text } from '../../../core/sql-row.ts';
import { ENTITY_TYPES, type SearchScope } from '../store.ts';
import { RoundedVectors } from './rounded-vectors.ts';

const ALL_TYPES = 0xff;

/** Called while a cache is filled, with the number of vectors read and in total. */
export type Progress = (done: number, total: number) => void;

/**
 * All vectors of one embedder in memory, rounded: a scan finds those that may be among the nearest, and these are compared as they are
 * in the file. It follows the database by itself: numbers of vectors only grow, and a temporary trigger records deleted ones, so a
 * transaction that is rolled back needs no undo here.
 */
export class VectorCache {
  readonly #database: DatabaseSync;
  readonly #embedder: string;
  readonly #dimensions: number;
  readonly #rounded: RoundedVectors;
  /** Row of the entity, type and number of the vector in each slot. */
  #rows = new Float64Array(64);
  #types = new Uint8Array(64);
  #vectors = new Float64Array(64);
  readonly #slots = new Map<number, number>();
  #last = 0;
  #count = 0;

  constructor(database: DatabaseSync, embedder: string, dimensions: number) {
    this.#database = database;
    this.#embedder = embedder;
    this.#dimensions = dimensions;
    this.#rounded = new RoundedVectors(dimensions);
  }

  get dimensions(): number {
    return this.#dimensions;
  }

  get bytes(): number {
    return this.#rounded.bytes;
  }

  /** Reads the vectors that were stored since the last call. */
  follow(progress?: Progress): void {
    // A vector of another length cannot be compared: its model was changed under the same name.
    const fresh = 'FROM memory_vectors WHERE vector > ? AND embedder = ? AND length(embedding) = ?';
    const parameters = [this.#last, this.#embedder, this.#dimensions * 4] as const;
    const total = number(
      this.#database.prepare(`SELECT count(*) AS n ${fresh}`).get(...parameters) ?? {},
      'n',
    );
    if (total === 0) return;
    if (this.#rounded.size(this.#count + total) > MEMORY_STORE_LIMITS.vectorBytes)
      throw new AppError('memory_unavailable', {
        message: `${this.#count + total} vectors of ${this.#dimensions} numbers are too many for this store: use PostgreSQL (MEMORY_DATABASE_URL), or a model with shorter vectors`,
      });
    this.#reserve(this.#count + total);
    const rows = this.#database
      .prepare(`SELECT vector, row, type, embedding ${fresh} ORDER BY vector`)
      .iterate(...parameters);
    let done = 0;
    for (const row of rows) {
      this.#add(number(row, 'vector'), number(row, 'row'), text(row, 'type'), bytes(row, 'embedding'));
      done++;
      if (done % 100_000 === 0) progress?.(done, total);
    }
  }

  #reserve(count: number): void {
    this.#rounded.reserve(count);
    if (count <= this.#rows.length) return;
    const rows = new Float64Array(Math.ceil(count * 1.5));
    rows.set(this.#rows);
    const types = new Uint8Array(rows.length);
    types.set(this.#types);
    const vectors = new Float64Array(rows.length);
    vectors.set(this.#vectors);
    this.#rows = rows;
    this.#types = types;
    this.#vectors = vectors;
  }

  #add(vector: number, row: number, type: string, embedding: Uint8Array): void {
    const slot = this.#count++;
    this.#rounded.set(slot, vectorOf(embedding));
    this.#rows[slot] = row;
    this.#types[slot] = typeBit(type);
    this.#vectors[slot] = vector;
    this.#slots.set(vector, slot);
    this.#last = vector;
  }

  /** Moves the last vector to the slot of the removed one. */
  remove(vector: number): void {
    const slot = this.#slots.get(vector);
    if (slot === undefined) return;
    const last = --this.#count;
    this.#slots.delete(vector);
    if (slot === last) return;
    this.#rounded.move(last, slot);
    const moved = this.#vectors[last] ?? 0;
    this.#rows[slot] = this.#rows[last] ?? 0;
    this.#types[slot] = this.#types[last] ?? 0;
    this.#vectors[slot] = moved;
    this.#slots.set(moved, slot);
  }

  /** Rows with the highest cosine, best first; of equal ones, the older row first. */
  nearest(query: Float32Array, scope: SearchScope): { row: number; cosine: number }[] {
    const wanted =
      scope.types === undefined ? ALL_TYPES : scope.types.reduce((bits, type) => bits | typeBit(type), 0);
    const exact = this.#exact(query, this.#possible(query, wanted, scope.limit));
    return exact.sort((a, b) => b.cosine - a.cosine || a.row - b.row).slice(0, scope.limit);
  }

  /**
   * Slots of which some have the highest products: those whose rounded product is not below the last of the best by more than both
   * may be wrong. Of very many that are about equally near, `MEMORY_STORE_LIMITS.comparedVectors` remain.
   */
  #possible(query: Float32Array, wanted: number, limit: number): number[] {
    const { values, error } = this.#rounded.with(query, this.#count);
    const isWanted = (slot: number): boolean => ((this.#types[slot] ?? 0) & wanted) !== 0;
    const best = new Float64Array(limit).fill(Number.NEGATIVE_INFINITY);
    let floor = Number.NEGATIVE_INFINITY;
    for (let slot = 0; slot < values.length; slot += 1) {
      const value = values[slot] ?? Number.NaN;
      // Also of a vector in the file that has no direction: nothing is nearer or farther than NaN.
      if (!(value > floor) || !isWanted(slot)) continue;
      let at = limit - 1;
      for (; at > 0 && (best[at - 1] ?? 0) < value; at -= 1) best[at] = best[at - 1] ?? 0;
      best[at] = value;
      floor = best[limit - 1] ?? floor;
    }
    const least = floor - 2 * error;
    const possible: number[] = [];
    for (let slot = 0; slot < values.length; slot += 1)
      if ((values[slot] ?? Number.NaN) >= least && isWanted(slot)) possible.push(slot);
    const most = limit + MEMORY_STORE_LIMITS.comparedVectors;
    if (possible.length <= most) return possible;
    return possible.sort((a, b) => (values[b] ?? 0) - (values[a] ?? 0) || a - b).slice(0, most);
  }

  #exact(query: Float32Array, slots: readonly number[]): { row: number; cosine: number }[] {
    const rows = new Map(slots.map((slot) => [this.#vectors[slot], this.#rows[slot] ?? 0]));
    return this.#database
      .prepare(
        'SELECT vector, embedding FROM memory_vectors WHERE vector IN (SELECT value FROM json_each(?))',
      )
      .all(JSON.stringify([...rows.keys()]))
      .map((found) => ({
        row: rows.get(number(found, 'vector')) ?? 0,
        cosine: cosine(query, vectorOf(bytes(found, 'embedding'))),
      }));
  }
}

const TYPES: readonly string[] = ENTITY_TYPES;

/** No bit of eight for a type that a newer version may have written. */
function typeBit(type: string): number {
  return 1 << TYPES.indexOf(type);
}

function clamp(cosine: number): number {
  return Math.max(-1, Math.min(1, cosine));
}

/** Node.js is little-endian on every platform except s390x, where the bytes are swapped. */
const LITTLE_ENDIAN = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1;

export function blobOf(vector: Float32Array): Uint8Array {
  const bytes = Buffer.from(vector.slice().buffer);
  return LITTLE_ENDIAN ? bytes : bytes.swap32();
}

export function vectorOf(blob: Uint8Array): Float32Array {
  const vector = new Float32Array(blob.byteLength / 4);
  copyInto(vector, blob);
  return vector;
}

function copyInto(vector: Float32Array, blob: Uint8Array): void {
  if (blob.byteLength !== vector.byteLength)
    throw new RangeError(`a stored vector has ${blob.byteLength} bytes`);
  const bytes = Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength);
  bytes.set(blob);
  if (!LITTLE_ENDIAN) bytes.swap32();
}

/** Of two unit vectors of the same length. */
export function cosine(a: Float32Array, b: Float32Array): number {
  let sum = 0;
  for (let index = 0; index < a.length; index++) sum += (a[index] ?? 0) * (b[index] ?? 0);
  return clamp(sum);
}

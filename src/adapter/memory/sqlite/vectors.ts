import type { DatabaseSync } from 'node:sqlite';
import { AppError } from '../../../core/errors.ts';
import { MEMORY_STORE_LIMITS } from '../../../core/memory-limits.ts';
import { DIMENSIONS, ENTITY_TYPES, type EntityType, type SearchScope } from '../store.ts';
import { DotProducts } from './dot-products.ts';

const ALL_TYPES = 0xff;

/** Called while a cache is filled, with the number of vectors read and in total. */
export type Progress = (done: number, total: number) => void;

/**
 * All vectors of one embedder in memory, for the exact scan. It follows the database by itself: row numbers only grow,
 * and a temporary trigger records deleted rows, so a transaction that is rolled back needs no undo here.
 */
export class VectorCache {
  readonly #database: DatabaseSync;
  readonly #embedder: string;
  readonly #products = new DotProducts();
  #rows = new Float64Array(64);
  #types = new Uint8Array(64);
  readonly #slots = new Map<number, number>();
  #last = 0;
  #count = 0;

  constructor(database: DatabaseSync, embedder: string) {
    this.#database = database;
    this.#embedder = embedder;
  }

  get bytes(): number {
    return this.#products.bytes;
  }

  /** Reads the vectors that were stored since the last call. */
  follow(progress?: Progress): void {
    const { n: total } = this.#database
      .prepare('SELECT count(*) AS n FROM memory_entities WHERE row > ? AND embedder = ?')
      .get(this.#last, this.#embedder) as { n: number };
    if (total === 0) return;
    if (this.#count + total > MEMORY_STORE_LIMITS.vectors)
      throw new AppError('memory_unavailable', {
        message: `more than ${MEMORY_STORE_LIMITS.vectors} vectors: use PostgreSQL (MEMORY_DATABASE_URL) for larger stores`,
      });
    this.#reserve(this.#count + total);
    const rows = this.#database
      .prepare('SELECT row, type, embedding FROM memory_entities WHERE row > ? AND embedder = ? ORDER BY row')
      .iterate(this.#last, this.#embedder);
    let done = 0;
    for (const { row, type, embedding } of rows as Iterable<Record<string, unknown>>) {
      this.#add(row as number, type as EntityType, embedding as Uint8Array);
      done++;
      if (done % 100_000 === 0) progress?.(done, total);
    }
  }

  #reserve(count: number): void {
    this.#products.reserve(count);
    if (count <= this.#rows.length) return;
    const rows = new Float64Array(Math.ceil(count * 1.5));
    rows.set(this.#rows);
    const types = new Uint8Array(rows.length);
    types.set(this.#types);
    this.#rows = rows;
    this.#types = types;
  }

  #add(row: number, type: EntityType, embedding: Uint8Array): void {
    const slot = this.#count++;
    copyInto(this.#products.slot(slot), embedding);
    this.#rows[slot] = row;
    this.#types[slot] = typeBit(type);
    this.#slots.set(row, slot);
    this.#last = row;
  }

  /** Moves the last vector to the slot of the removed one. */
  remove(row: number): void {
    const slot = this.#slots.get(row);
    if (slot === undefined) return;
    const last = --this.#count;
    this.#slots.delete(row);
    if (slot === last) return;
    this.#products.move(last, slot);
    this.#rows[slot] = this.#rows[last] as number;
    this.#types[slot] = this.#types[last] as number;
    this.#slots.set(this.#rows[slot] as number, slot);
  }

  /** Rows with the highest cosine, best first; of equal ones, the older row first. */
  nearest(query: Float32Array, scope: SearchScope): { row: number; cosine: number }[] {
    const wanted =
      scope.types === undefined ? ALL_TYPES : scope.types.reduce((bits, type) => bits | typeBit(type), 0);
    const scores = this.#products.with(query, this.#count);
    const best: { row: number; cosine: number }[] = [];
    let floor = Number.NEGATIVE_INFINITY;
    for (let slot = 0; slot < scores.length; slot++) {
      const cosine = scores[slot] as number;
      if (cosine < floor || ((this.#types[slot] as number) & wanted) === 0) continue;
      const candidate = { row: this.#rows[slot] as number, cosine };
      let at = best.length;
      while (at > 0 && isBefore(candidate, best[at - 1] as typeof candidate)) at--;
      if (at >= scope.limit) continue;
      best.splice(at, 0, candidate);
      if (best.length > scope.limit) best.pop();
      if (best.length === scope.limit) floor = (best.at(-1) as typeof candidate).cosine;
    }
    // Rounding in Float32 can make the cosine of two equal vectors 1.0000001.
    return best.map(({ row, cosine }) => ({ row, cosine: clamp(cosine) }));
  }
}

function isBefore(a: { row: number; cosine: number }, b: { row: number; cosine: number }): boolean {
  return a.cosine > b.cosine || (a.cosine === b.cosine && a.row < b.row);
}

function typeBit(type: EntityType): number {
  return 1 << ENTITY_TYPES.indexOf(type);
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
  const vector = new Float32Array(DIMENSIONS);
  copyInto(vector, blob);
  return vector;
}

function copyInto(vector: Float32Array, blob: Uint8Array): void {
  if (blob.byteLength !== DIMENSIONS * 4)
    throw new RangeError(`a stored vector has ${blob.byteLength} bytes`);
  const bytes = Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength);
  bytes.set(blob);
  if (!LITTLE_ENDIAN) bytes.swap32();
}

export function cosine(a: Float32Array, b: Float32Array): number {
  let sum = 0;
  for (let index = 0; index < DIMENSIONS; index++) sum += (a[index] as number) * (b[index] as number);
  return clamp(sum);
}

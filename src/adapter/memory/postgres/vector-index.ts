import { createHash } from 'node:crypto';
import { rowsOf, text } from '../../../core/sql-row.ts';
import type { EmbeddedVectors } from '../sql/operations.ts';
import type { Connection } from './connection.ts';

/** The longest vectors that an HNSW index of pgvector takes, and in half precision. */
const LONGEST = 2_000;
const LONGEST_HALF = 4_000;

/**
 * How vectors of one embedder are compared: an index needs vectors of a fixed length, so it has a cast and covers only
 * this embedder. The condition contains the id itself, because the planner must recognise it.
 */
export interface VectorSpace {
  /** The type of both sides of the comparison. */
  readonly type: string;
  /** The condition on the embedder. */
  readonly where: string;
}

export function vectorSpace(embedder: string, dimensions: number): VectorSpace {
  const half = dimensions > LONGEST && dimensions <= LONGEST_HALF;
  return {
    type: `${half ? 'halfvec' : 'vector'}(${dimensions})`,
    // Vectors of another length, of a model that was changed under the same name, must not reach the cast.
    where: `embedder = ${literal(embedder)} AND vector_dims(embedding) = ${dimensions}`,
  };
}

/** An index that vectors of one embedder need. */
export interface VectorIndex {
  readonly name: string;
  readonly definition: string;
}

/** The indexes that do not exist yet for vectors that are about to be stored. Longer vectors than an index takes are scanned. */
export async function missingIndexes(
  connection: Connection,
  stored: readonly EmbeddedVectors[],
): Promise<VectorIndex[]> {
  const needed = new Map<string, string>();
  for (const { embedder, vectors } of stored) {
    const dimensions = vectors.find(({ embedding }) => embedding !== undefined)?.embedding?.length;
    if (dimensions === undefined || dimensions > LONGEST_HALF) continue;
    const { type, where } = vectorSpace(embedder, dimensions);
    const operators = `${type.startsWith('half') ? 'halfvec' : 'vector'}_cosine_ops`;
    needed.set(
      `vectors_${createHash('sha256').update(where).digest('hex').slice(0, 16)}`,
      `ON memory_vectors USING hnsw ((embedding::${type}) ${operators}) WHERE ${where}`,
    );
  }
  if (needed.size === 0) return [];
  const existing = await connection.query(
    `SELECT c.relname AS name FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid
     WHERE i.indrelid = 'memory_vectors'::regclass AND c.relname = ANY($1)`,
    [[...needed.keys()]],
  );
  for (const row of rowsOf(existing)) needed.delete(text(row, 'name'));
  return [...needed].map(([name, definition]) => ({ name, definition }));
}

/**
 * Creates indexes, in a transaction that has `lockSchema` and writes nothing else: CREATE INDEX locks out writers, so
 * transactions that write before or after it would wait for each other.
 */
export async function createIndexes(connection: Connection, indexes: readonly VectorIndex[]): Promise<void> {
  for (const { name, definition } of indexes)
    await connection.query(`CREATE INDEX IF NOT EXISTS ${name} ${definition}`);
}

function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** A vector as pgvector reads it. */
export function vectorText(vector: Float32Array): string {
  return `[${vector.join(',')}]`;
}

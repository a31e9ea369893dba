import { createHash } from 'node:crypto';
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

/** Creates the index of an embedder, unless it exists. Longer vectors than an index takes are scanned. */
export async function createVectorIndex(
  connection: Connection,
  embedder: string,
  dimensions: number,
): Promise<void> {
  if (dimensions > LONGEST_HALF) return;
  const { type, where } = vectorSpace(embedder, dimensions);
  const name = `vectors_${createHash('sha256').update(where).digest('hex').slice(0, 16)}`;
  // Asked first, because CREATE INDEX locks out writers even if there is nothing to do.
  const { rows } = await connection.query(
    `SELECT 1 FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid
     WHERE i.indrelid = 'memory_vectors'::regclass AND c.relname = $1`,
    [name],
  );
  if (rows.length > 0) return;
  await connection.query(
    `CREATE INDEX IF NOT EXISTS ${name} ON memory_vectors
     USING hnsw ((embedding::${type}) ${type.startsWith('half') ? 'halfvec' : 'vector'}_cosine_ops) WHERE ${where}`,
  );
}

function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

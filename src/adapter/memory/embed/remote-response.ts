import { DIMENSIONS } from '../store.ts';
import { normalise } from './embedder.ts';

interface Problem {
  /** The problem as a predicate of "the embedding service at HOST". */
  readonly problem: string;
}

/**
 * Parses and validates the vectors of a response, in the order of the inputs, normalized to length 1.
 *
 * @param truncate whether longer vectors are truncated; only models trained for that keep their meaning
 */
export function vectorsIn(body: string, count: number, truncate: boolean): Float32Array[] | Problem {
  const data = dataOf(body);
  if (data === undefined) return { problem: 'did not send a list of embeddings' };
  if (data.length !== count) return { problem: `sent ${data.length} embeddings for ${count} texts` };
  const vectors: (Float32Array | undefined)[] = Array.from({ length: count }, () => undefined);
  for (const [place, item] of data.entries()) {
    const { embedding, index = place } = (item ?? {}) as { embedding?: unknown; index?: unknown };
    const vector = vectorOf(embedding, truncate);
    if ('problem' in vector) return vector;
    if (typeof index !== 'number' || !(index in vectors) || vectors[index] !== undefined)
      return { problem: 'sent embeddings with wrong indexes' };
    vectors[index] = vector;
  }
  return vectors as Float32Array[];
}

function dataOf(body: string): unknown[] | undefined {
  try {
    const { data } = JSON.parse(body) as { data?: unknown };
    return Array.isArray(data) ? data : undefined;
  } catch {
    return undefined;
  }
}

function vectorOf(embedding: unknown, truncate: boolean): Float32Array | Problem {
  if (!Array.isArray(embedding)) return { problem: 'sent an embedding that is not a list of numbers' };
  if (embedding.length < DIMENSIONS || (embedding.length > DIMENSIONS && !truncate))
    return {
      problem:
        `sent embeddings of ${embedding.length} numbers instead of ${DIMENSIONS}` +
        (embedding.length < DIMENSIONS
          ? ': use a model with that many'
          : ': use a model that supports "dimensions", or set EMBEDDING_TRUNCATE=true if its vectors may be truncated'),
    };
  const numbers = embedding.slice(0, DIMENSIONS) as unknown[];
  if (!numbers.every((value) => typeof value === 'number' && Number.isFinite(value)))
    return { problem: 'sent an embedding that contains something other than numbers' };
  // In double precision, because very large and very small numbers exceed the range of Float32.
  const length = Math.hypot(...(numbers as number[]));
  if (!(length > 0) || !Number.isFinite(length)) return { problem: 'sent an embedding of length zero' };
  return normalise(Float32Array.from(numbers as number[], (value) => value / length));
}

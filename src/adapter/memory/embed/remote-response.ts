import { DIMENSIONS } from '../store.ts';
import { normalise } from './embedder.ts';

interface Problem {
  /** Goes after "the embedding service at HOST". */
  readonly problem: string;
}

/**
 * The vectors of an answer, in the order of the inputs, checked and of length 1.
 * @param truncate whether longer vectors are cut; only models trained for that keep their meaning
 */
export function vectorsIn(body: string, count: number, truncate: boolean): Float32Array[] | Problem {
  const data = dataOf(body);
  if (data === undefined) return { problem: 'sent something else than a list of embeddings' };
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
  if (!Array.isArray(embedding)) return { problem: 'sent an embedding that is no list of numbers' };
  if (embedding.length < DIMENSIONS || (embedding.length > DIMENSIONS && !truncate))
    return {
      problem:
        `sent embeddings of ${embedding.length} numbers instead of ${DIMENSIONS}` +
        (embedding.length < DIMENSIONS
          ? ': take a model that has as many'
          : ': take a model that knows "dimensions", or set EMBEDDING_TRUNCATE=true if its vectors may be cut'),
    };
  const numbers = embedding.slice(0, DIMENSIONS) as unknown[];
  if (!numbers.every((value) => typeof value === 'number' && Number.isFinite(value)))
    return { problem: 'sent an embedding with something else than numbers' };
  // In double precision: numbers near the largest and the smallest would leave Float32.
  const length = Math.hypot(...(numbers as number[]));
  if (!(length > 0) || !Number.isFinite(length)) return { problem: 'sent an embedding without a direction' };
  return normalise(Float32Array.from(numbers as number[], (value) => value / length));
}

/** How similar a cosine of an embedder's vectors is: the number that becomes 0.7, and what it stands for. */
export interface Scoring {
  /** `words`: cosine and shared words together, because the vectors alone are too coarse. `cosine`: the cosine alone. */
  readonly by: 'words' | 'cosine';
  /** What counts as "similar enough" and is shown as 0.7, the default threshold of the specification. In 0..1. */
  readonly pivot: number;
}

/** Turns texts into vectors. Vectors of different ids are never compared. */
export interface Embedder {
  /** Kind, model and length, such as `hash-v1/128`. Anything that changes the vectors changes the id. */
  readonly id: string;
  readonly scoring: Scoring;
  /**
   * One unit vector of `DIMENSIONS` numbers for each text, in order; a text without any word gives zeros.
   * @throws AppError `upstream_unreachable`, `upstream_timeout` or `upstream_invalid` of a remote service
   */
  embed(
    texts: readonly string[],
    signal?: AbortSignal,
    /** Called with how many texts are done, at least once for each call to a service. */
    progress?: (done: number) => void,
  ): Promise<Float32Array[]>;
  close(): Promise<void>;
}

/** Scales to length 1 in place; zeros stay zeros. */
export function normalise(vector: Float32Array): Float32Array {
  let sum = 0;
  for (const value of vector) sum += value * value;
  if (sum === 0) return vector;
  const scale = 1 / Math.sqrt(sum);
  for (let index = 0; index < vector.length; index += 1) vector[index] = (vector[index] ?? 0) * scale;
  return vector;
}

/** The vector, unless it has no direction: that of a text without words, which nothing is similar to. */
export function searchable(vector: Float32Array | undefined): Float32Array | undefined {
  return vector?.some((value) => value !== 0) ? vector : undefined;
}

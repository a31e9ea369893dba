import type { SearchFields } from '../store.ts';

/** How scores are derived from the cosines of an embedder. */
export interface Scoring {
  /**
   * `words`: cosine and shared words together, because the vectors alone are too imprecise. `cosine`: the cosine alone.
   */
  readonly by: 'words' | 'cosine';
  /** The value in 0..1 that counts as "similar enough" and becomes 0.7, the default threshold of the specification. */
  readonly pivot: number;
}

/** Turns texts into vectors. Vectors of different ids are never compared. */
export interface Embedder {
  /** Kind, model and length, such as `hash-v1/128`. Every change that affects the vectors must change the id. */
  readonly id: string;
  readonly scoring: Scoring;
  /**
   * Returns a unit vector for each text, in order; zeros for a text without words.
   *
   * @throws AppError `upstream_unreachable`, `upstream_timeout` or `upstream_invalid` for a remote service
   */
  embed(
    texts: readonly string[],
    signal?: AbortSignal,
    /** Called with the number of embedded texts, at least once per call to a service. */
    progress?: (done: number) => void,
  ): Promise<Float32Array[]>;
  close(): Promise<void>;
}

/** The text that is embedded for an entity: title and headings in its first line. */
export function embeddedText({ title, heading, searchText }: Partial<SearchFields>): string {
  const first = [title, heading].filter(Boolean).join(' > ');
  return first === '' ? (searchText ?? '') : `${first}\n\n${searchText ?? ''}`;
}

/** Scales a vector to length 1 in place; a zero vector stays unchanged. */
export function normalise(vector: Float32Array): Float32Array {
  let sum = 0;
  for (const value of vector) sum += value * value;
  if (sum === 0) return vector;
  const scale = 1 / Math.sqrt(sum);
  for (let index = 0; index < vector.length; index += 1) vector[index] = (vector[index] ?? 0) * scale;
  return vector;
}

/** The vector, or undefined for a zero vector, which is similar to nothing. */
export function searchable(vector: Float32Array | undefined): Float32Array | undefined {
  return vector?.some((value) => value !== 0) ? vector : undefined;
}

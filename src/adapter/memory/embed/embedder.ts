import type { SearchFields } from '../store.ts';

/** How scores are derived from the words and vectors of an embedder. */
export interface Scoring {
  /** Share of the vector in the fused value, 0..1; the rest is that of the words. */
  readonly vectorShare: number;
  /** The fused value that counts as "related" and becomes 0.7, the default threshold of the specification. */
  readonly pivot: number;
  /** The same for a passage or query without a vector, which is scored by its words alone. */
  readonly wordsPivot: number;
}

/** Words alone: the same for all embedders. Chosen on the development sets of `npm run bench memory-retrieval`. */
export const WORDS_PIVOT = 0.27;

/** A model that knows meanings. Chosen with all-MiniLM-L6-v2; other models are mapped to its scale (`unrelated.ts`). */
export const MODEL_SCORING: Scoring = { vectorShare: 0.5, pivot: 0.18, wordsPivot: WORDS_PIVOT };

/** Turns texts into vectors. Vectors of different ids are never compared. */
export interface Embedder {
  /** Kind, model and length, such as `hash-v2/128`. Every change that affects the vectors must change the id. */
  readonly id: string;
  readonly scoring: Scoring;
  /**
   * Whether it needs no time and cannot fail, so that texts are embedded before they are stored. Otherwise they are
   * stored first (`embedding-queue.ts`).
   */
  readonly isImmediate: boolean;
  /** The vector of a query, in one attempt of bounded time. */
  embedQuery(text: string, signal?: AbortSignal): Promise<Float32Array>;
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

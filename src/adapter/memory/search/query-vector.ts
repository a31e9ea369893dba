import type { Embedder } from '../embed/embedder.ts';
import type { EmbeddingQueue, QueryVector } from '../embed/embedding-queue.ts';
import type { Store } from '../store.ts';
import { unrelatedCosine } from './unrelated.ts';

/** What a search uses. */
export interface Searched {
  readonly store: Store;
  readonly embedder: Embedder;
  /** Answers for an embedder that may fail. */
  readonly embeddings?: EmbeddingQueue | undefined;
  /** For hints. Default: `default`. */
  readonly namespace?: string | undefined;
  /** The docs folder of this process: of its documents, results have the path in it. */
  readonly docsFolder?: string | undefined;
}

/** The vector of the query, undefined for a query without meaning or if the embedder fails. */
export async function queryVector(
  { embedder, embeddings }: Searched,
  query: string,
  signal: AbortSignal | undefined,
): Promise<QueryVector> {
  const found =
    embeddings === undefined
      ? {
          vector: await embedder.embedQuery(query, signal),
          unrelated: await unrelatedCosine(embedder),
          hint: undefined,
        }
      : await embeddings.query(query, signal);
  const hasMeaning = found.vector?.some((value) => value !== 0) === true;
  return hasMeaning ? found : { ...found, vector: undefined };
}

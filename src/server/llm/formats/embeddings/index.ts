import { cohereEmbeddings } from './cohere.ts';
import type { EmbeddingFormat, ProviderEmbeddingFormat } from './embedding-format.ts';
import { batchEmbedContents, embedContent } from './gemini.ts';
import { embeddings } from './openai.ts';
import { titanEmbeddings } from './titan.ts';
import { predict } from './vertex.ts';

/** The wire formats of clients that requests for embeddings are translated from. */
export const embeddingFormats: readonly EmbeddingFormat[] = [embeddings, embedContent, batchEmbedContents];

/** The wire formats of providers that requests for embeddings are translated to. */
export const providerEmbeddingFormats: readonly ProviderEmbeddingFormat[] = [
  embeddings,
  batchEmbedContents,
  predict,
  titanEmbeddings,
  cohereEmbeddings,
];

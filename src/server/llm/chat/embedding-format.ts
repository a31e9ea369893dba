import type { HeaderList } from '../../kernel/request/header-list.ts';
import type { Usage } from '../usage.ts';
import type { ChatError } from './chat.ts';
import type { CallTarget, Json } from './chat-format.ts';

/** A request for embeddings independent of the wire format. */
export interface EmbeddingRequest {
  readonly model: string;
  /** One embedding is made of each. */
  readonly texts: readonly EmbeddedText[];
  /** Length of the vectors. */
  readonly dimensions?: number;
  /** Whether the client wants each vector as Base64 of 32-bit floats. */
  readonly isPacked?: boolean;
}

export interface EmbeddedText {
  readonly text: string;
  /** Path of the text in the client's request, for errors. */
  readonly path: string;
  readonly task?: EmbeddingTask;
  /** Title of the document that the text is from. */
  readonly title?: string;
}

/** What the embedding is for (Gemini API, "TaskType"). */
export const TASKS = [
  'RETRIEVAL_QUERY',
  'RETRIEVAL_DOCUMENT',
  'SEMANTIC_SIMILARITY',
  'CLASSIFICATION',
  'CLUSTERING',
  'QUESTION_ANSWERING',
  'FACT_VERIFICATION',
  'CODE_RETRIEVAL_QUERY',
] as const;

export type EmbeddingTask = (typeof TASKS)[number];

export interface EmbeddingResponse {
  /** One for each text, in order. */
  readonly vectors: readonly (readonly number[])[];
  /** The model that the provider names. */
  readonly model?: string;
  readonly usage?: Usage;
}

/** A wire format in which providers are called for embeddings. */
export interface ProviderEmbeddingFormat {
  readonly key: string;
  /** Path of a call, below the base path of the provider. */
  path(call: CallTarget): string;
  /** Throws `Untranslatable` for what this format cannot express. */
  writeRequest(request: EmbeddingRequest): Json;
  /** Throws an `Error` that says what is missing. */
  readResponse(body: Json, headers: HeaderList): EmbeddingResponse;
}

/** A wire format of clients for embeddings. */
export interface EmbeddingFormat {
  readonly key: string;
  /** Throws `Untranslatable` for members that other formats cannot express. */
  readRequest(body: Json, target: CallTarget): EmbeddingRequest;
  writeResponse(response: EmbeddingResponse, request: EmbeddingRequest): Json;
  writeError(error: ChatError): Json;
}

import { chatCompletions } from './chat-completions/index.ts';
import { embeddings } from './embeddings.ts';
import type { Format, FormatKey } from './format.ts';
import {
  batchEmbedContents,
  embedContent,
  geminiCountTokens,
  generateContent,
} from './generate-content/index.ts';
import { images } from './images.ts';
import { messages } from './messages/index.ts';
import { moderations } from './moderations.ts';
import { rerank } from './rerank.ts';
import { responses } from './responses/index.ts';
import { speech } from './speech.ts';
import { textCompletions } from './text-completions.ts';
import { tokenCount } from './token-count.ts';
import { transcriptions } from './transcriptions.ts';

/** Every wire format of clients. */
export const formats: readonly Format[] = [
  chatCompletions,
  textCompletions,
  embeddings,
  responses,
  messages,
  tokenCount,
  generateContent,
  geminiCountTokens,
  embedContent,
  batchEmbedContents,
  rerank,
  moderations,
  speech,
  transcriptions,
  images,
];

/** A format by its key. Calls of unknown format (undefined) are read like chat completions. */
export function formatOf(key: FormatKey | undefined): Format {
  return formats.find((format) => format.key === key) ?? chatCompletions;
}

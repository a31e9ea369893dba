import type { ChatFormat } from '../chat/chat-format.ts';
import { chatCompletions } from './chat-completions/index.ts';
import { converse } from './converse/index.ts';
import { embeddings } from './embeddings/index.ts';
import type { ProviderWireFormat, WireFormat } from './format.ts';
import { batchEmbedContents, embedContent } from './gemini-embeddings/index.ts';
import { generateContent } from './generate-content/index.ts';
import { messages } from './messages/index.ts';
import {
  images,
  moderations,
  realtime,
  rerank,
  speech,
  textCompletions,
  transcriptions,
} from './openai-calls.ts';
import { cohereEmbeddings, predict, titanEmbeddings } from './provider-embeddings.ts';
import { responses } from './responses/index.ts';
import { geminiCountTokens, tokenCount } from './token-counts.ts';

/** Every wire format of clients. */
const ALL = [
  chatCompletions,
  messages,
  responses,
  textCompletions,
  tokenCount,
  embeddings,
  rerank,
  moderations,
  speech,
  transcriptions,
  images,
  realtime,
  generateContent,
  geminiCountTokens,
  embedContent,
  batchEmbedContents,
] as const;

/** The wire formats that only providers have: what is sent in them was translated. */
const OF_PROVIDERS = [
  converse,
  { key: 'predict', embedsTo: predict },
  { key: 'titanEmbeddings', embedsTo: titanEmbeddings },
  { key: 'cohereEmbeddings', embedsTo: cohereEmbeddings },
] as const;

/** Wire formats of calls, named as in `formats` of a `custom` provider. */
export type FormatKey = (typeof ALL)[number]['key'];

/** Wire formats of providers: those of clients and those that only translations write. */
export type ProviderFormatKey = FormatKey | (typeof OF_PROVIDERS)[number]['key'];

export const formats: readonly WireFormat<FormatKey>[] = ALL;

export const formatKeys: readonly FormatKey[] = formats.map(({ key }) => key);

const byKey: ReadonlyMap<string, WireFormat<FormatKey>> = new Map(
  formats.map((format) => [format.key, format]),
);

const ofProviders: ReadonlyMap<string, ProviderWireFormat> = new Map(
  [...formats, ...OF_PROVIDERS].map((format) => [format.key, format]),
);

/** A format by its key. Calls of unknown format (undefined) are read like chat completions. */
export function formatOf(key: FormatKey | undefined): WireFormat<FormatKey> {
  return (key === undefined ? undefined : byKey.get(key)) ?? chatCompletions;
}

/** A format of clients by its key. */
export const clientFormatOf = (key: FormatKey | undefined): WireFormat<FormatKey> | undefined =>
  key === undefined ? undefined : byKey.get(key);

/** A format of providers by its key. */
export const providerFormatOf = (key: ProviderFormatKey | undefined): ProviderWireFormat | undefined =>
  key === undefined ? undefined : ofProviders.get(key);

/** The wire formats that chats are translated between. */
export const chatFormats: readonly ChatFormat[] = formats.flatMap(({ chat }) => chat ?? []);

import type { ProviderFormatKey } from '../formats/index.ts';
import { defineProvider, type ProviderFormat, type ProviderKind } from './provider.ts';

/**
 * Calls of the OpenAI API besides chats, and reranking. Compatible servers have some of them; they are forwarded to all,
 * because a server answers for itself what it does not have.
 */
const OTHER_CALLS: readonly ProviderFormatKey[] = [
  'textCompletions',
  'embeddings',
  'rerank',
  'moderations',
  'speech',
  'transcriptions',
  'images',
  'realtime',
];

/** The formats of a server with the OpenAI API and these chats. */
const openAiFormats = (...chats: readonly ProviderFormat[]): readonly ProviderFormat[] => [
  ...chats,
  ...OTHER_CALLS.map((type) => ({ type })),
];

const completions: ProviderFormat = { type: 'completions' };
const responses: ProviderFormat = { type: 'responses' };

/** Such as `gpt-5.4`, `gpt-6` or `openai/gpt-5.6-mini`: as chat completions, OpenAI refuses tools of these models while they reason. */
const NEEDS_RESPONSES = /^(?:openai\/)?gpt-(?:5\.(?:[4-9]|\d\d)|[6-9]|\d\d)/i;

/** The formats of OpenAI itself. */
export const openAiOwnFormats = openAiFormats(completions, {
  ...responses,
  isPreferredFor: (model) => NEEDS_RESPONSES.test(model),
});

const messages: ProviderFormat = { type: 'messages' };
/** Some providers have the Anthropic API at a path of its own. */
const anthropicPath: ProviderFormat = { type: 'messages', path: '/anthropic/v1/messages' };

/** Any server with the OpenAI API. Default base URL: that of OpenAI. */
export const oaiCompat = defineProvider({
  key: 'oaiCompat',
  aliases: ['openAI'],
  // The name used by dashboards and price catalogs.
  telemetryName: 'openai',
  baseUrl: 'https://api.openai.com/v1',
  formats: openAiOwnFormats,
  // Another server may have a model of that name, and no Responses API.
  connect: ({ baseUrl, responses: wish }) =>
    baseUrl === undefined || isOpenAi(baseUrl) || wish === 'pass'
      ? {}
      : { formats: openAiFormats(completions, responses) },
});

const isOpenAi = (baseUrl: string): boolean => /(?:^|\.)openai\.com$/.test(new URL(baseUrl).hostname);

interface Preset {
  readonly baseUrl: string;
  readonly chats: readonly ProviderFormat[];
}

/** Hosted providers with an OpenAI-compatible API: base URL, and formats of chats according to their API references. */
const PRESETS: Readonly<Record<string, Preset>> = {
  baseten: { baseUrl: 'https://inference.baseten.co/v1', chats: [completions, messages] },
  cerebras: { baseUrl: 'https://api.cerebras.ai/v1', chats: [completions] },
  cohere: { baseUrl: 'https://api.cohere.ai/compatibility/v1', chats: [completions] },
  deepinfra: { baseUrl: 'https://api.deepinfra.com/v1/openai', chats: [completions, anthropicPath] },
  deepseek: { baseUrl: 'https://api.deepseek.com/v1', chats: [completions, anthropicPath] },
  fireworks: { baseUrl: 'https://api.fireworks.ai/inference/v1', chats: [completions, messages, responses] },
  groq: { baseUrl: 'https://api.groq.com/openai/v1', chats: [completions, responses] },
  huggingface: { baseUrl: 'https://router.huggingface.co/v1', chats: [completions, responses] },
  mistral: { baseUrl: 'https://api.mistral.ai/v1', chats: [completions] },
  ollama: { baseUrl: 'http://localhost:11434/v1', chats: [completions, responses] },
  openrouter: { baseUrl: 'https://openrouter.ai/api/v1', chats: [completions, messages, responses] },
  togetherai: { baseUrl: 'https://api.together.xyz/v1', chats: [completions] },
  xai: { baseUrl: 'https://api.x.ai/v1', chats: [completions, responses] },
};

/** A provider kind for each of `PRESETS`, named by its key. */
export const presets: readonly ProviderKind[] = Object.entries(PRESETS).map(([key, { baseUrl, chats }]) =>
  defineProvider({ key, aliases: [], telemetryName: key, baseUrl, formats: openAiFormats(...chats) }),
);

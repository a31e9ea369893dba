import { defineProvider, type ProviderKind } from './provider.ts';

/** Any server with the OpenAI API. Default base URL: that of OpenAI. */
export const oaiCompat = defineProvider({
  key: 'oaiCompat',
  aliases: ['openAI'],
  // The name used by dashboards and price catalogs.
  telemetryName: 'openai',
  baseUrl: 'https://api.openai.com/v1',
});

/** Base URLs of hosted providers with an OpenAI-compatible API. */
const BASE_URLS: Readonly<Record<string, string>> = {
  baseten: 'https://inference.baseten.co/v1',
  cerebras: 'https://api.cerebras.ai/v1',
  cohere: 'https://api.cohere.ai/compatibility/v1',
  deepinfra: 'https://api.deepinfra.com/v1/openai',
  deepseek: 'https://api.deepseek.com/v1',
  fireworks: 'https://api.fireworks.ai/inference/v1',
  groq: 'https://api.groq.com/openai/v1',
  huggingface: 'https://router.huggingface.co/v1',
  mistral: 'https://api.mistral.ai/v1',
  ollama: 'http://localhost:11434/v1',
  openrouter: 'https://openrouter.ai/api/v1',
  togetherai: 'https://api.together.xyz/v1',
  xai: 'https://api.x.ai/v1',
};

/** A provider kind for each of `BASE_URLS`, named by its key. */
export const presets: readonly ProviderKind[] = Object.entries(BASE_URLS).map(([key, baseUrl]) =>
  defineProvider({ key, aliases: [], telemetryName: key, baseUrl }),
);

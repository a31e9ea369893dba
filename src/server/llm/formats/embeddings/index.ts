import { inputUsage } from '../../usage.ts';
import { defineFormat } from '../format.ts';
import { openAiApi } from '../openai-api.ts';
import { embeddings as embedding } from './embedding.ts';

export const embeddings = defineFormat({
  ...openAiApi,
  key: 'embeddings',
  paths: ['/embeddings'],
  routeType: 'Embeddings',
  isRoutable: true,
  operation: 'embeddings',
  isCacheable: () => true,
  embedsFrom: embedding,
  embedsTo: embedding,
  promptFields: [{ name: 'input', isConversation: true, isPrompt: true }],
  hasNoText: true,
  hasOnlyData: true,
  shape: {
    api: 'the Embeddings API',
    has: ({ data }) => Array.isArray(data),
    isAnswer: ({ data }) => Array.isArray(data),
  },
  usage: inputUsage,
});

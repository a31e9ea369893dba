import { inputUsage } from '../usage.ts';
import type { Format } from './format.ts';
import { openAiApi } from './openai.ts';

export const embeddings: Format = {
  ...openAiApi,
  key: 'embeddings',
  paths: ['/embeddings'],
  operation: 'embeddings',
  hasNoText: true,
  usage: inputUsage,
};

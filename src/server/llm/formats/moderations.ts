import type { Format } from './format.ts';
import { openAiApi } from './openai.ts';

export const moderations: Format = {
  ...openAiApi,
  key: 'moderations',
  paths: ['/moderations'],
  operation: 'other',
  hasNoText: true,
  // OpenAI's API reference, "Create moderation": `model` is optional, and this is its default.
  defaultModel: 'omni-moderation-latest',
};

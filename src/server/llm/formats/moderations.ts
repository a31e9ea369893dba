import { defineFormat } from './format.ts';
import { openAiApi } from './openai-api.ts';

export const moderations = defineFormat({
  ...openAiApi,
  key: 'moderations',
  paths: ['/moderations'],
  operation: 'other',
  promptFields: [{ name: 'input', isConversation: true, isPrompt: true }],
  hasNoText: true,
  hasOnlyData: true,
  // OpenAI's API reference, "Create moderation": `model` is optional, and this is its default.
  defaultModel: 'omni-moderation-latest',
});

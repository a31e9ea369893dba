import { defineFormat } from './format.ts';
import { openAiApi } from './openai-api.ts';

export const images = defineFormat({
  ...openAiApi,
  key: 'images',
  paths: ['/images/generations'],
  formPaths: ['/images/edits', '/images/variations'],
  operation: 'other',
  promptFields: [{ name: 'prompt', isPrompt: true }],
  numbers: { tokens: [], answers: ['n'] },
  hasNoText: true,
});

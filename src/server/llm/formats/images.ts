import type { Format } from './format.ts';
import { openAiApi } from './openai.ts';

export const images: Format = {
  ...openAiApi,
  key: 'images',
  paths: ['/images/generations'],
  formPaths: ['/images/edits', '/images/variations'],
  operation: 'other',
  hasNoText: true,
};

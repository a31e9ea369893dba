import type { Format } from './format.ts';
import { openAiApi } from './openai.ts';

export const textCompletions: Format = {
  ...openAiApi,
  key: 'textCompletions',
  paths: ['/completions'],
  operation: 'text_completion',
  endMarks: [Buffer.from('data: [DONE]')],
};

import type { Format } from '../format.ts';
import { openAiApi } from '../openai.ts';

export const chatCompletions: Format = {
  ...openAiApi,
  key: 'completions',
  paths: ['/chat/completions'],
  operation: 'chat',
  endMarks: [Buffer.from('data: [DONE]')],
};

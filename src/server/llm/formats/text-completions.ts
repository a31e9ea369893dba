import { choicesApi } from './chat-completions/choices.ts';
import { defineFormat } from './format.ts';
import { openAiApi } from './openai-api.ts';

export const textCompletions = defineFormat({
  ...openAiApi,
  ...choicesApi,
  key: 'textCompletions',
  paths: ['/completions'],
  routeType: 'Completions',
  operation: 'text_completion',
  promptFields: [
    { name: 'prompt', isPrompt: true },
    { name: 'suffix', isUncounted: true },
  ],
  numbers: { tokens: ['max_tokens'], answers: ['n', 'best_of'] },
});

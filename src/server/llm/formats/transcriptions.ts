import { defineFormat } from './format.ts';
import { openAiApi } from './openai-api.ts';

/** Speech to text. Models billed by the minute report `{"type": "duration", "seconds"}`, which has no tokens. */
export const transcriptions = defineFormat({
  ...openAiApi,
  key: 'transcriptions',
  paths: [],
  formPaths: ['/audio/transcriptions', '/audio/translations'],
  operation: 'other',
  promptFields: [{ name: 'prompt', isPrompt: true }],
  deltaMark: Buffer.from('.delta"'),
  // A stream repeats the whole text at its end, in `text`.
  output: ({ type, text, delta }) => delta ?? (type === undefined ? text : undefined),
});

import type { Format } from './format.ts';
import { openAiApi } from './openai.ts';

/** Speech to text. Models billed by the minute report `{"type": "duration", "seconds"}`, which has no tokens. */
export const transcriptions: Format = {
  ...openAiApi,
  key: 'transcriptions',
  paths: [],
  formPaths: ['/audio/transcriptions', '/audio/translations'],
  operation: 'other',
  deltaMark: Buffer.from('.delta"'),
  // A stream repeats the whole text at its end, in `text`.
  output: ({ type, text, delta }) => delta ?? (type === undefined ? text : undefined),
};

import { membersOf } from '../json-members.ts';
import { known, parseUsage } from '../usage.ts';
import type { Format } from './format.ts';
import { openAiApi } from './openai.ts';

export const transcriptions: Format = {
  ...openAiApi,
  key: 'transcriptions',
  paths: [],
  formPaths: ['/audio/transcriptions', '/audio/translations'],
  operation: 'other',
  deltaMark: Buffer.from('.delta"'),
  // Models billed by the minute report `{"type": "duration", "seconds"}`, which has no tokens.
  usage(report) {
    const usage = parseUsage(report);
    if (usage === undefined) return undefined;
    // Spelled in the singular here, unlike in other formats.
    return { ...usage, ...known('inputAudio', membersOf(report['input_token_details'])?.['audio_tokens']) };
  },
  // A stream repeats the whole text at its end, in `text`.
  output: ({ type, text, delta }) => delta ?? (type === undefined ? text : undefined),
};

import { parseUsage } from '../usage.ts';
import { defineFormat } from './format.ts';
import { openAiApi } from './openai-api.ts';

/** Text to speech. Only streams (`stream_format: sse`) report usage; the audio itself is the whole response otherwise. */
export const speech = defineFormat({
  ...openAiApi,
  key: 'speech',
  paths: ['/audio/speech'],
  operation: 'other',
  promptFields: [
    { name: 'instructions', isSystem: true },
    { name: 'input', isConversation: true, isPrompt: true },
  ],
  hasNoText: true,
  // Every output token is audio, which catalogs may price differently.
  usage(report) {
    const usage = parseUsage(report);
    return usage === undefined ? undefined : { ...usage, outputAudio: usage.output };
  },
});

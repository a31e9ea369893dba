import type { Format } from '../format.ts';
import { openAiApi } from '../openai.ts';

export const responses: Format = {
  ...openAiApi,
  key: 'responses',
  paths: ['/responses'],
  operation: 'responses',
  deltaMark: Buffer.from('.delta"'),
  endMarks: ['completed', 'incomplete', 'failed'].map((how) => Buffer.from(`"response.${how}"`)),
  // OpenAI's API reference, "Streaming events": `error` has its members at the top, and a sequence number.
  errorEvent({ code, message }, last) {
    const before = last?.['sequence_number'];
    const event = {
      type: 'error',
      code,
      message,
      param: null,
      sequence_number: typeof before === 'number' ? before + 1 : 0,
    };
    return `event: error\ndata: ${JSON.stringify(event)}\n\n`;
  },
};

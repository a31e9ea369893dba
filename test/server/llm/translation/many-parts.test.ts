import { afterAll, beforeAll, expect, test } from 'vitest';
import { AT_ONCE } from '../../../kit/at-once.ts';
import {
  assembled,
  CHAT_FORMATS,
  type ChatFormatKey,
  type Exchange,
  exchange,
} from '../../../kit/llm-exchange.ts';

let llm: Exchange;
beforeAll(async () => {
  llm = await exchange();
});
afterAll(() => llm[Symbol.asyncDispose]());

const MANY = 20_000;
const each = (make: (index: number) => object): object[] =>
  Array.from({ length: MANY }, (_, index) => make(index));

const STREAMS: Readonly<Record<ChatFormatKey, readonly (object | string)[]>> = {
  completions: [
    ...each((index) => ({
      id: 'c',
      choices: [
        {
          index: 0,
          delta: { tool_calls: [{ index, id: `t${index}`, function: { name: 'f', arguments: '{}' } }] },
        },
      ],
    })),
    { id: 'c', choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls' }] },
    'data: [DONE]\n\n',
  ],
  messages: [
    { type: 'message_start', message: { id: 'm' } },
    ...each((index) => ({
      type: 'content_block_start',
      index,
      content_block: { type: 'tool_use', id: `t${index}`, name: 'f', input: {} },
    })),
    { type: 'message_delta', delta: { stop_reason: 'tool_use' } },
    { type: 'message_stop' },
  ],
  responses: [
    { type: 'response.created', response: { id: 'r' } },
    ...each((index) => ({
      type: 'response.output_item.added',
      output_index: index,
      item: { type: 'function_call', call_id: `t${index}`, name: 'f', arguments: '' },
    })),
    { type: 'response.completed', response: { status: 'completed' } },
  ],
  generateContent: [
    ...each(() => ({ candidates: [{ content: { parts: [{ functionCall: { name: 'f', args: {} } }] } }] })),
    { candidates: [{ finishReason: 'STOP' }] },
  ],
};

const PAIRS = CHAT_FORMATS.flatMap((provider) =>
  CHAT_FORMATS.filter((client) => client !== provider).map((client) => [provider, client] as const),
);

// Translations look through all parts of a response with each event.
test.each(PAIRS)(
  '20,000 tool calls of %s end the stream of a client of %s with an error, soon',
  async (provider, client) => {
    const since = performance.now();
    const { status, text, line } = await llm.call(provider, { events: STREAMS[provider] }, { client });
    expect(performance.now() - since).toBeLessThan(AT_ONCE);
    expect([status, assembled(client, text).error]).toEqual([
      200,
      expect.stringContaining('cannot be translated'),
    ]);
    expect(line['error.detail']).toMatch(/more than 1000/);
  },
);

test('20,000 calls without a name end the stream of a client of Messages with an error', async () => {
  const events = each((index) => ({
    id: 'c',
    choices: [{ index: 0, delta: { tool_calls: [{ index, id: `t${index}` }] } }],
  }));
  const { text, line } = await llm.call('completions', { events }, { client: 'messages' });
  expect(assembled('messages', text).error).toContain('cannot be translated');
  expect(line['error.detail']).toMatch(/tool_calls.*more than 1000/);
});

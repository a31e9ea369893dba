import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CHAT_FORMATS, type ChatFormatKey, type Exchange, exchange } from '../../kit/llm-exchange.ts';

let llm: Exchange;
beforeAll(async () => {
  llm = await exchange();
});
afterAll(() => llm[Symbol.asyncDispose]());

const chunk = (delta: object, usage?: unknown, finish: string | null = null): object => ({
  id: 'c',
  choices: [{ index: 0, delta, finish_reason: finish }],
  ...(usage !== undefined && { usage }),
});
const block = [
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'yes' } },
  { type: 'content_block_stop', index: 0 },
];
const messages = (first: unknown, last: unknown): object[] => [
  { type: 'message_start', message: { id: 'm', usage: first } },
  ...block,
  { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: last },
  { type: 'message_stop' },
];
const candidate = (text: string, usageMetadata: unknown, more: object = {}): object => ({
  candidates: [{ index: 0, content: { parts: [{ text }] }, ...more }],
  usageMetadata,
});
const response = (first: unknown, last: unknown): object[] => [
  { type: 'response.created', response: { id: 'r', usage: first } },
  { type: 'response.output_item.added', output_index: 0, item: { type: 'message' } },
  { type: 'response.output_text.delta', output_index: 0, content_index: 0, delta: 'yes' },
  { type: 'response.output_item.done', output_index: 0, item: { type: 'message' } },
  { type: 'response.completed', response: { status: 'completed', usage: last } },
];

interface Counted {
  readonly input: string;
  readonly output: string;
  readonly cached?: string;
  readonly reasoning?: string;
}

/** Reports of 25 input and 9 output tokens that fall, repeat, come in part, or are no numbers. */
const CASES: readonly (readonly [
  what: string,
  provider: ChatFormatKey,
  events: readonly (object | string)[],
  counted: Counted,
])[] = [
  // An Anthropic-compatible provider ends with `input_tokens: 0`.
  [
    'zero input at the end',
    'messages',
    messages({ input_tokens: 25, output_tokens: 1 }, { input_tokens: 0, output_tokens: 9 }),
    { input: '25', output: '9' },
  ],
  [
    'zero for what was cached',
    'messages',
    messages(
      { input_tokens: 5, cache_read_input_tokens: 20, output_tokens: 1 },
      { input_tokens: 0, cache_read_input_tokens: 0, cache_creation_input_tokens: 0, output_tokens: 9 },
    ),
    { input: '25', output: '9', cached: '20' },
  ],
  [
    'null input at the end',
    'messages',
    messages({ input_tokens: 25, output_tokens: 1 }, { input_tokens: null, output_tokens: 9 }),
    { input: '25', output: '9' },
  ],
  [
    'texts and negative numbers at the end',
    'messages',
    messages({ input_tokens: 25, output_tokens: 9 }, { input_tokens: '0', output_tokens: -1 }),
    { input: '25', output: '9' },
  ],
  [
    'fewer reasoning tokens at the end',
    'messages',
    messages(
      { input_tokens: 25, output_tokens: 9, output_tokens_details: { thinking_tokens: 4 } },
      { output_tokens: 9, output_tokens_details: { thinking_tokens: 0 } },
    ),
    { input: '25', output: '9', reasoning: '4' },
  ],
  [
    'counts only at the end',
    'messages',
    messages({ input_tokens: 0, output_tokens: 0 }, { input_tokens: 25, output_tokens: 9 }),
    { input: '25', output: '9' },
  ],
  [
    'zeros in a last chunk',
    'completions',
    [
      chunk(
        { content: 'yes' },
        { prompt_tokens: 25, completion_tokens: 9, completion_tokens_details: { reasoning_tokens: 4 } },
      ),
      chunk({}, { prompt_tokens: 0, completion_tokens: 0 }, 'stop'),
      'data: [DONE]\n\n',
    ],
    { input: '25', output: '9', reasoning: '4' },
  ],
  [
    'growing counts in each chunk',
    'completions',
    [
      chunk({ content: 'y' }, { prompt_tokens: 25, completion_tokens: 1 }),
      chunk(
        { content: 'es' },
        { prompt_tokens: 25, completion_tokens: 9, prompt_tokens_details: { cached_tokens: 20 } },
        'stop',
      ),
      'data: [DONE]\n\n',
    ],
    { input: '25', output: '9', cached: '20' },
  ],
  [
    'a last chunk without the input',
    'completions',
    [
      chunk({ content: 'yes' }, { prompt_tokens: 25, completion_tokens: 1 }),
      chunk({}, { completion_tokens: 9 }, 'stop'),
      'data: [DONE]\n\n',
    ],
    { input: '25', output: '9' },
  ],
  [
    'a last chunk with the output alone',
    'generateContent',
    [
      candidate('y', { promptTokenCount: 25, candidatesTokenCount: 1, cachedContentTokenCount: 20 }),
      candidate('es', { promptTokenCount: 0, candidatesTokenCount: 9 }, { finishReason: 'STOP' }),
    ],
    { input: '25', output: '9', cached: '20' },
  ],
  [
    'zeros in the completed response',
    'responses',
    response({ input_tokens: 25, output_tokens: 9 }, { input_tokens: 0, output_tokens: 0 }),
    { input: '25', output: '9' },
  ],
];

describe.each(CASES)('usage with %s', (_, provider, events, { input, output, cached, reasoning }) => {
  test.each(CHAT_FORMATS)(`of ${provider} keeps the largest counts, for a client of %s`, async (client) => {
    const { status, line } = await llm.call(provider, { events }, { client });
    expect({
      status,
      input: line['gen_ai.usage.input_tokens'],
      output: line['gen_ai.usage.output_tokens'],
      cached: Number(line['gen_ai.usage.cache_read.input_tokens'] ?? 0),
      reasoning: Number(line['gen_ai.usage.reasoning_tokens'] ?? 0),
    }).toEqual({
      status: 200,
      input,
      output,
      cached: Number(cached ?? 0),
      reasoning: Number(reasoning ?? 0),
    });
  });
});

test.each(CHAT_FORMATS)(
  'a report of zero tokens for a text is replaced by an estimate: %s',
  async (provider) => {
    const zero = { prompt_tokens: 0, completion_tokens: 0 };
    const bodies: Record<ChatFormatKey, object> = {
      completions: {
        id: 'c',
        choices: [{ index: 0, message: { role: 'assistant', content: 'yes, it is' }, finish_reason: 'stop' }],
        usage: zero,
      },
      messages: {
        id: 'm',
        type: 'message',
        role: 'assistant',
        model: 'm',
        content: [{ type: 'text', text: 'yes, it is' }],
        stop_reason: 'end_turn',
        usage: { input_tokens: 0, output_tokens: 0 },
      },
      responses: {
        id: 'r',
        object: 'response',
        status: 'completed',
        output: [
          { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'yes, it is' }] },
        ],
        usage: { input_tokens: 0, output_tokens: 0 },
      },
      generateContent: candidate(
        'yes, it is',
        { promptTokenCount: 0, candidatesTokenCount: 0 },
        { finishReason: 'STOP' },
      ),
    };
    const { line } = await llm.call(provider, { body: bodies[provider] }, { stream: false });
    expect(Number(line['gen_ai.usage.output_tokens'])).toBeGreaterThan(0);
    expect(line['gw.ai.usage.estimated']).toBeDefined();
  },
);

test('usage reports with ever new members do not grow what is kept of a stream', async () => {
  const more = Array.from({ length: 2_000 }, (_, index) =>
    chunk(
      { content: 'y' },
      { prompt_tokens: 25, completion_tokens: 9, [`k${index}`]: index, __proto__: { prompt_tokens: 1 } },
    ),
  );
  const { status, line } = await llm.call('completions', {
    events: [...more, chunk({}, undefined, 'stop'), 'data: [DONE]\n\n'],
  });
  expect([status, line['gen_ai.usage.input_tokens'], line['gen_ai.usage.output_tokens']]).toEqual([
    200,
    '25',
    '9',
  ]);
});

import { afterAll, beforeAll, expect, test } from 'vitest';
import { CHAT_FORMATS, type ChatFormatKey, type Exchange, exchange } from '../../kit/llm-exchange.ts';

// Providers repeat usage reports, and some copies have zeros or lack members. The counts of a call are the largest of each.

let llm: Exchange;
beforeAll(async () => {
  llm = await exchange();
});
afterAll(() => llm[Symbol.asyncDispose]());

const chunk = (more: object): object => ({ id: 'c', object: 'chat.completion.chunk', model: 'm', ...more });
const content = { choices: [{ index: 0, delta: { content: 'x' }, finish_reason: null }] };
const finish = { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] };

const STREAMS: Readonly<Record<ChatFormatKey, (reports: readonly (object | null)[]) => (object | string)[]>> =
  {
    completions: (reports) => [
      ...reports.map((usage) => chunk({ ...content, usage })),
      chunk(finish),
      'data: [DONE]\n\n',
    ],
    messages: ([first, ...more]) => [
      { type: 'message_start', message: { id: 'm', content: [], usage: first } },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'x' } },
      { type: 'content_block_stop', index: 0 },
      ...more.map((usage, at) => ({
        type: 'message_delta',
        delta: at === more.length - 1 ? { stop_reason: 'end_turn' } : {},
        usage,
      })),
      { type: 'message_stop' },
    ],
    responses: (reports) => [
      { type: 'response.created', response: { id: 'r' } },
      ...reports.map((usage) => ({ type: 'response.in_progress', response: { id: 'r', usage } })),
      { type: 'response.output_text.delta', output_index: 0, content_index: 0, delta: 'x' },
      { type: 'response.output_item.done', output_index: 0, item: { type: 'message' } },
      { type: 'response.completed', response: { id: 'r', status: 'completed', usage: reports.at(-1) } },
    ],
    generateContent: (reports) =>
      reports.map((usageMetadata, at) => ({
        candidates: [
          { content: { parts: [{ text: 'x' }] }, ...(at === reports.length - 1 && { finishReason: 'STOP' }) },
        ],
        usageMetadata,
      })),
  };

/** Reports of 25 tokens of input, 4 of them cached, and 9 of output, 2 of them reasoning. */
const REPORTS: Readonly<Record<ChatFormatKey, readonly object[]>> = {
  completions: [
    { prompt_tokens: 25, completion_tokens: 1, prompt_tokens_details: { cached_tokens: 4 } },
    { prompt_tokens: 25, completion_tokens: 9, completion_tokens_details: { reasoning_tokens: 2 } },
    { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0, prompt_tokens_details: { cached_tokens: 0 } },
  ],
  messages: [
    { input_tokens: 21, cache_read_input_tokens: 4, output_tokens: 1 },
    { input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 9 },
    { input_tokens: 0, output_tokens: 0, output_tokens_details: { thinking_tokens: 2 } },
  ],
  responses: [
    { input_tokens: 25, output_tokens: 9, output_tokens_details: { reasoning_tokens: 2 } },
    { input_tokens: 0, output_tokens: 0, input_tokens_details: { cached_tokens: 4 } },
    { input_tokens: -5, output_tokens: 'x' },
  ],
  generateContent: [
    { promptTokenCount: 25, cachedContentTokenCount: 4, candidatesTokenCount: 1 },
    { promptTokenCount: 25, candidatesTokenCount: 7, thoughtsTokenCount: 2 },
    { promptTokenCount: 0, candidatesTokenCount: 0 },
  ],
};

const PAIRS = CHAT_FORMATS.flatMap((provider) => CHAT_FORMATS.map((client) => [provider, client] as const));

test.each(PAIRS)(
  'a stream of %s for a client of %s is logged with its largest counts',
  async (provider, client) => {
    const events = STREAMS[provider](REPORTS[provider]);
    const { line } = await llm.call(provider, { events }, { client });
    expect(line).toMatchObject({
      'gen_ai.usage.input_tokens': '25',
      'gen_ai.usage.output_tokens': '9',
      'gen_ai.usage.cache_read.input_tokens': '4',
    });
  },
);

/** What is no count of tokens. */
const NO_COUNTS = [-1, 1.5, 1e308, '25', null, true, [], {}];

test.each(PAIRS)(
  'counts of %s that are none, for a client of %s, replace no others',
  async (provider, client) => {
    const first = REPORTS[provider][0] ?? {};
    const bad = NO_COUNTS.map((value) => Object.fromEntries(Object.keys(first).map((name) => [name, value])));
    const { line, status } = await llm.call(
      provider,
      { events: STREAMS[provider]([first, ...bad]) },
      { client },
    );
    expect([status, line['gen_ai.usage.input_tokens']]).toEqual([200, '25']);
  },
);

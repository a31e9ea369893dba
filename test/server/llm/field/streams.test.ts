import { describe, expect, test } from 'vitest';
import { assembled } from '../../../kit/llm-exchange.ts';
import { type Answered, chunk, DONE, field, type Loose, type Provider, USAGE } from './field.ts';

// What clients get of streams. Each test names the report that its input is from.

const ask = field();
const chat = { messages: [{ role: 'user', content: 'Hi' }], stream: true };
const messages = { ...chat, max_tokens: 50 };
const contents = { contents: [{ parts: [{ text: 'Hi' }] }], stream: true };

/** Events of the Messages API: what a strict client notices of their order is an error. */
function blocks(events: readonly Loose[]): Loose[] {
  const list: Loose[] = [];
  let open: number | undefined;
  for (const event of events) {
    if (event.type === 'content_block_start') {
      expect(open).toBeUndefined();
      expect(event.index).toBe(list.length);
      list.push({ ...event.content_block, json: '' });
      open = event.index;
    }
    if (event.type === 'content_block_delta') {
      expect(event.index).toBe(open);
      list[event.index].json += event.delta.partial_json ?? '';
      if (event.delta.text !== undefined) list[event.index].text += event.delta.text;
      if (event.delta.thinking !== undefined) list[event.index].thinking += event.delta.thinking;
    }
    if (event.type === 'content_block_stop') {
      expect(event.index).toBe(open);
      open = undefined;
    }
  }
  expect(open).toBeUndefined();
  return list;
}

// Sophomoresty/gemini-web2api#57, lidge-jun/opencodex#4652: what only the last events of an item, or of the response, have.
test.each(['done', 'item', 'completed'])(
  'an answer of the Responses API that was not streamed before its last events is whole: %s',
  async (how) => {
    const text = { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Hello.' }] };
    const tool = { type: 'function_call', call_id: 'c', name: 'weather', arguments: '{"city":"Rome"}' };
    const output = [
      { id: 'm', ...text },
      { id: 'f', ...tool },
    ];
    const later = {
      done: [
        { type: 'response.output_item.added', output_index: 0, item: { ...text, content: [] } },
        { type: 'response.output_text.done', output_index: 0, content_index: 0, text: 'Hello.' },
        { type: 'response.output_item.done', output_index: 1, item: tool },
      ],
      item: output.map((item, at) => ({ type: 'response.output_item.done', output_index: at, item })),
      completed: [],
    }[how];
    const events = [
      { type: 'response.created', response: { id: 'r', object: 'response', model: 'm', output: [] } },
      ...(later ?? []),
      { type: 'response.completed', response: { id: 'r', object: 'response', status: 'completed', output } },
    ];
    const { text: stream } = await ask('completions', 'responses', chat, { events });
    expect(assembled('completions', stream)).toMatchObject({
      text: 'Hello.',
      calls: [{ name: 'weather', args: '{"city":"Rome"}' }],
      hasEnded: true,
    });
  },
);

// tombii/better-ccflare#307
test.each(['completions', 'responses', 'generateContent'] as const)(
  'an answer of the Messages API that told its reason to stop, but no message_stop, is whole for %s',
  async (client) => {
    const requests = {
      completions: chat,
      responses: { input: 'Hi', stream: true },
      generateContent: contents,
    };
    const { text } = await ask(client, 'messages', requests[client], {
      events: [
        { type: 'message_start', message: { id: 'm', role: 'assistant', content: [], usage: {} } },
        { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
        { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hello.' } },
        { type: 'content_block_stop', index: 0 },
        { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 2 } },
      ],
    });
    expect(text).toContain('Hello.');
    expect(text).toMatch(/\[DONE\]|"response\.completed"|"finishReason":"STOP"/);
    expect(text).not.toContain('error":{');
  },
);

describe('tool calls in streams', () => {
  const tool = (more: object, name = 'weather', args = '{"a":1}') => ({
    ...more,
    type: 'function',
    function: { name, arguments: args },
  });

  // maximhq/bifrost#3441
  test('calls without arguments and text after calls are blocks in their order', async () => {
    const { got } = await ask('messages', 'completions', messages, {
      events: [
        chunk({ role: 'assistant', tool_calls: [tool({ index: 0, id: 'functions.stop:0' }, 'stop', '')] }),
        chunk({ tool_calls: [tool({ index: 1, id: 'functions.weather:1' })] }),
        chunk({ content: 'Wait.' }),
        chunk({}, 'stop'),
        DONE,
      ],
    });
    // Chat Completions does not say whether a text is before or after the calls.
    expect(blocks(got)).toMatchObject([
      { type: 'text', text: 'Wait.' },
      { type: 'tool_use', name: 'stop', json: expect.stringMatching(/^(\{\})?$/) },
      { type: 'tool_use', name: 'weather', json: '{"a":1}' },
    ]);
    const { delta } = got.find((event: Loose) => event.type === 'message_delta');
    expect(delta.stop_reason).toBe('tool_use');
  });

  // ollama/ollama#7881
  test.each(['messages', 'responses', 'generateContent'] as const)(
    'two calls without an index are two calls for %s',
    async (client) => {
      const requests = { messages, responses: { input: 'Hi', stream: true }, generateContent: contents };
      for (const index of [{}, { index: 0 }]) {
        const { text } = await ask(client, 'completions', requests[client], {
          events: [
            chunk({ role: 'assistant', content: '', tool_calls: [tool({ ...index, id: 'call_a' })] }),
            chunk({ tool_calls: [tool({ ...index, id: 'call_b' }, 'weather', '{"a":2}')] }),
            chunk({}, 'tool_calls'),
            DONE,
          ],
        });
        const { calls } = assembled(client, text);
        expect(calls.map(({ args }) => args)).toEqual(['{"a":1}', '{"a":2}']);
      }
    },
  );

  // open-webui/open-webui#12312
  test('the first tool call of a stream of Bedrock has the index 0 after reasoning and text', async () => {
    const delta = (contentBlockIndex: number, value: object) =>
      ['contentBlockDelta', { contentBlockIndex, delta: value }] as const;
    const start = { contentBlockIndex: 2, start: { toolUse: { toolUseId: 't1', name: 'weather' } } };
    const { got } = await ask('completions', 'bedrock', chat, {
      events: [
        ['messageStart', { role: 'assistant' }],
        delta(0, { reasoningContent: { text: 'Use it.' } }),
        delta(0, { reasoningContent: { signature: 'SIG' } }),
        ['contentBlockStop', { contentBlockIndex: 0 }],
        delta(1, { text: 'Let me look.' }),
        ['contentBlockStop', { contentBlockIndex: 1 }],
        ['contentBlockStart', start],
        delta(2, { toolUse: { input: '{"a":1}' } }),
        ['contentBlockStop', { contentBlockIndex: 2 }],
        ['messageStop', { stopReason: 'tool_use' }],
      ],
    });
    const deltas = got.flatMap(({ choices }: Loose) => choices?.[0]?.delta?.tool_calls ?? []);
    expect(deltas.length).toBeGreaterThan(0);
    for (const { index } of deltas) expect(index).toBe(0);
    expect(deltas.map((each: Loose) => each.function.arguments).join('')).toBe('{"a":1}');
  });
});

describe('calls without arguments in streams', () => {
  const converse = (...inputs: string[]): Answered => ({
    events: [
      ['messageStart', { role: 'assistant' }],
      ['contentBlockStart', { contentBlockIndex: 0, start: { toolUse: { toolUseId: 't', name: 'now' } } }],
      ...inputs.map((input): [string, object] => [
        'contentBlockDelta',
        { contentBlockIndex: 0, delta: { toolUse: { input } } },
      ]),
      ['contentBlockStop', { contentBlockIndex: 0 }],
      ['messageStop', { stopReason: 'tool_use' }],
      ['metadata', { usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 } }],
    ],
  });
  const item = { type: 'function_call', id: 'f', call_id: 't', name: 'now', arguments: '' };
  const response = { id: 'r', object: 'response', model: 'm', output: [] };
  const answers: Readonly<Record<string, readonly [Provider, Answered]>> = {
    'Bedrock, without a delta': ['bedrock', converse()],
    'Bedrock, with an empty delta': ['bedrock', converse('')],
    'Bedrock, with a blank delta': ['bedrock', converse(' ')],
    Responses: [
      'responses',
      {
        events: [
          { type: 'response.created', response },
          { type: 'response.output_item.added', output_index: 0, item },
          { type: 'response.output_item.done', output_index: 0, item },
          { type: 'response.completed', response: { ...response, status: 'completed', output: [item] } },
        ],
      },
    ],
    'chat completions': [
      'completions',
      {
        events: [
          chunk({ tool_calls: [{ index: 0, id: 't', function: { name: 'now', arguments: '' } }] }),
          chunk({}, 'tool_calls'),
          DONE,
        ],
      },
    ],
    Messages: [
      'messages',
      {
        events: [
          { type: 'message_start', message: { id: 'm', role: 'assistant', content: [], usage: {} } },
          {
            type: 'content_block_start',
            index: 0,
            content_block: { type: 'tool_use', id: 't', name: 'now' },
          },
          { type: 'content_block_delta', index: 0, delta: { type: 'input_json_delta', partial_json: '' } },
          { type: 'content_block_stop', index: 0 },
          { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 2 } },
          { type: 'message_stop' },
        ],
      },
    ],
  };

  // agentgateway/agentgateway#2965
  test.each(Object.keys(answers))('have an empty object for every client: %s', async (name) => {
    const [provider, answered] = answers[name] ?? ['bedrock', converse()];
    const requests = { completions: chat, messages, responses: { input: 'Hi', stream: true } };
    for (const client of ['completions', 'messages', 'responses'] as const) {
      if (client === provider) continue;
      const { text } = await ask(client, provider, requests[client], answered);
      const [made] = assembled(client, text).calls;
      expect(made).toMatchObject({ name: 'now' });
      expect(JSON.parse(made?.args ?? '')).toEqual({});
      if (client === 'responses') expect(text).toMatch(/arguments\.done.*"arguments":" ?\{\}"/);
    }
  });
});

describe('the end of streams', () => {
  // ollama/ollama#4357
  test('a finish reason that is an empty text does not end an answer', async () => {
    const { got } = await ask('messages', 'completions', messages, {
      events: [
        chunk({ role: 'assistant', content: 'Hel' }, ''),
        chunk({ content: 'lo.' }, ''),
        chunk({}, 'stop'),
        DONE,
      ],
    });
    expect(blocks(got)).toMatchObject([{ type: 'text', text: 'Hello.' }]);
    expect(got.filter((event: Loose) => event.type === 'message_delta')).toMatchObject([
      { delta: { stop_reason: 'end_turn' } },
    ]);
    expect(got.at(-1).type).toBe('message_stop');
  });

  // google-gemini/gemini-cli#8415
  test('a client of the Gemini API gets one finish reason, in an event with a candidate', async () => {
    const { got, line } = await ask('generateContent', 'completions', contents, {
      events: [chunk({ role: 'assistant', content: 'Hello.' }), chunk({}, 'stop'), USAGE, DONE],
    });
    expect(got.every(({ candidates }: Loose) => candidates?.length === 1)).toBe(true);
    const reasons = got.flatMap(({ candidates }: Loose) => candidates[0].finishReason ?? []);
    expect(reasons).toEqual(['STOP']);
    expect(got.at(-1)).toMatchObject({ usageMetadata: { promptTokenCount: 5, candidatesTokenCount: 3 } });
    expect(line['gen_ai.usage.output_tokens']).toBe('3');
  });

  // vllm-project/vllm#42407
  test.each(['messages', 'completions'] as const)(
    'a stream of the Responses API without events for the end of its items is complete for %s',
    async (client) => {
      const response = { id: 'r', object: 'response', model: 'm', status: 'in_progress', output: [] };
      const at = { item_id: 'msg_1', output_index: 0, content_index: 0 };
      const text = { type: 'output_text', text: 'Hello.', annotations: [] };
      const item = { id: 'msg_1', type: 'message', role: 'assistant', status: 'in_progress', content: [] };
      const done = { ...response, status: 'completed', output: [{ ...item, content: [text] }] };
      const usage = { input_tokens: 5, output_tokens: 3, total_tokens: 8 };
      const {
        got,
        text: stream,
        line,
      } = await ask(client, 'responses', messages, {
        events: [
          { type: 'response.created', response },
          { type: 'response.output_item.added', output_index: 0, item },
          { type: 'response.content_part.added', ...at, part: { ...text, text: '' } },
          { type: 'response.output_text.delta', ...at, delta: 'Hel' },
          { type: 'response.output_text.delta', ...at, delta: 'lo.' },
          { type: 'response.completed', response: { ...done, usage } },
        ],
      });
      expect(assembled(client, stream)).toMatchObject({ text: 'Hello.', hasEnded: true });
      if (client === 'messages') expect(blocks(got)).toMatchObject([{ type: 'text', text: 'Hello.' }]);
      expect(line['gen_ai.usage.output_tokens']).toBe('3');
    },
  );

  // maximhq/bifrost#4679
  test('a stream of Bedrock that reached the maximum of tokens ends with response.incomplete', async () => {
    const { got } = await ask(
      'responses',
      'bedrock',
      { input: 'Hi', stream: true },
      {
        events: [
          ['messageStart', { role: 'assistant' }],
          ['contentBlockDelta', { contentBlockIndex: 0, delta: { text: 'Hel' } }],
          ['contentBlockStop', { contentBlockIndex: 0 }],
          ['messageStop', { stopReason: 'max_tokens' }],
          ['metadata', { usage: { inputTokens: 5, outputTokens: 3, totalTokens: 8 } }],
        ],
      },
    );
    expect(got.at(-1)).toMatchObject({
      type: 'response.incomplete',
      response: { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } },
    });
  });

  // BerriAI/litellm#37710
  test('a stream of the Responses API that was cut while reasoning ends with length and its usage', async () => {
    const response = { id: 'r', object: 'response', model: 'm', status: 'in_progress', output: [] };
    const item = { id: 'rs_1', type: 'reasoning', summary: [] };
    const usage = { input_tokens: 5, output_tokens: 16, total_tokens: 21 };
    const details = { reason: 'max_output_tokens' };
    const cut = { ...response, status: 'incomplete', incomplete_details: details, output: [item], usage };
    const request = { ...chat, stream_options: { include_usage: true } };
    const { got } = await ask('completions', 'responses', request, {
      events: [
        { type: 'response.created', response },
        { type: 'response.output_item.added', output_index: 0, item },
        { type: 'response.output_item.done', output_index: 0, item },
        { type: 'response.incomplete', response: cut },
      ],
    });
    const reasons = got.flatMap(({ choices }: Loose) => choices[0]?.finish_reason ?? []);
    expect(reasons).toEqual(['length']);
    expect(got.at(-1)).toMatchObject({ choices: [], usage: { prompt_tokens: 5, completion_tokens: 16 } });
  });

  // BerriAI/litellm#21744
  test.each(['completions', 'messages', 'responses'] as const)(
    'a stream of Gemini that ends with a broken call is an error for %s',
    async (client) => {
      const part = { thought: true, text: 'Use the tool.' };
      const requests = { completions: chat, messages, responses: { input: 'Hi', stream: true } };
      const { text } = await ask(client, 'generateContent', requests[client], {
        events: [
          { candidates: [{ content: { role: 'model', parts: [part] }, index: 0 }] },
          { candidates: [{ content: {}, finishReason: 'MALFORMED_FUNCTION_CALL', index: 0 }] },
        ],
      });
      expect(assembled(client, text)).toMatchObject({ hasEnded: false, error: expect.stringMatching(/./) });
    },
  );

  // vllm-project/vllm#27755
  test('reasoning that vLLM streams as `reasoning` is thinking', async () => {
    const { got } = await ask('messages', 'completions', messages, {
      events: [
        chunk({ role: 'assistant', reasoning: 'Gre' }),
        chunk({ reasoning: 'et.' }),
        chunk({ content: 'Hello.' }),
        chunk({}, 'stop'),
        DONE,
      ],
    });
    expect(blocks(got)).toMatchObject([
      { type: 'thinking', thinking: 'Greet.' },
      { type: 'text', text: 'Hello.' },
    ]);
  });

  // BerriAI/litellm#25322
  test('the signature of thoughts that Gemini streams reaches a client that sends it back', async () => {
    const thought = (part: object): object => ({
      candidates: [{ content: { role: 'model', parts: [{ thought: true, ...part }] }, index: 0 }],
    });
    const { got } = await ask('messages', 'generateContent', messages, {
      events: [
        thought({ text: 'Gre' }),
        thought({ text: 'et.' }),
        thought({ text: '', thoughtSignature: 'U0lH' }),
        {
          candidates: [
            { content: { role: 'model', parts: [{ text: 'Hello.' }] }, finishReason: 'STOP', index: 0 },
          ],
        },
      ],
    });
    expect(blocks(got)).toMatchObject([
      { type: 'thinking', thinking: 'Greet.' },
      { type: 'text', text: 'Hello.' },
    ]);
    const signatures = got.flatMap(({ delta }: Loose) => delta?.signature ?? []);
    expect(signatures).toEqual([expect.stringMatching(/^agctl1:generateContent:s:.*:U0lH$/)]);
  });

  // BerriAI/litellm#16272
  test('thinking that Mistral streams in the content is thinking', async () => {
    const thinking = (text: string) => ({ type: 'thinking', thinking: [{ type: 'text', text }] });
    const { got } = await ask('messages', 'completions', messages, {
      events: [
        chunk({ role: 'assistant', content: [thinking('Gre')] }),
        chunk({ content: [thinking('et.')] }),
        chunk({ content: [{ type: 'text', text: 'Hel' }] }),
        chunk({ content: 'lo.' }),
        chunk({}, 'stop'),
        DONE,
      ],
    });
    expect(blocks(got)).toMatchObject([
      { type: 'thinking', thinking: 'Greet.' },
      { type: 'text', text: 'Hello.' },
    ]);
  });

  // earendil-works/pi#2017
  test('token counts that Kimi puts into the choice are counted', async () => {
    const usage = { prompt_tokens: 120, completion_tokens: 40, total_tokens: 160, cached_tokens: 100 };
    const last = {
      ...USAGE,
      choices: [{ index: 0, delta: {}, finish_reason: 'stop', usage }],
      usage: undefined,
    };
    for (const client of ['messages', 'completions'] as const) {
      const request = client === 'messages' ? messages : chat;
      const { line } = await ask(client, 'completions', request, {
        events: [chunk({ role: 'assistant', content: 'Hello.' }), last, DONE],
      });
      expect(line).toMatchObject({
        'gen_ai.usage.input_tokens': '120',
        'gen_ai.usage.output_tokens': '40',
        'gen_ai.usage.cache_read.input_tokens': '100',
      });
    }
  });

  // BerriAI/litellm#39703
  test.each(['messages', 'completions'] as const)(
    'a failure in a stream of the Responses API is an error for %s',
    async (client) => {
      const response = { id: 'r', object: 'response', model: 'm', status: 'in_progress', output: [] };
      const error = { code: 'rate_limit_exceeded', message: 'Too many requests.' };
      const { text, line } = await ask(client, 'responses', messages, {
        events: [
          { type: 'response.created', response },
          { type: 'response.failed', response: { ...response, status: 'failed', error } },
        ],
      });
      expect(text).toContain('Too many requests.');
      expect(text).toMatch(
        client === 'messages' ? /"type":"rate_limit_error"/ : /"code":"rate_limit_exceeded"/,
      );
      expect(text).not.toContain('stop_reason":"end_turn');
      expect(line).toHaveProperty(['error.type']);
    },
  );
});

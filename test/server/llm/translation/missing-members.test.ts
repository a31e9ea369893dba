import { describe, expect, test } from 'vitest';
import type { ChatEvent, ChatRequest } from '../../../../src/server/llm/chat/chat.ts';
import type { ChatFormat, Json, ProviderChatFormat } from '../../../../src/server/llm/chat/chat-format.ts';
import { converse } from '../../../../src/server/llm/formats/converse/index.ts';
import { chatFormats } from '../../../../src/server/llm/formats/index.ts';
import { chat, llmGateway, llmProvider } from '../../../kit/llm-provider.ts';
import { send } from '../../../kit/send.ts';

// Members that the API references require and that some clients and servers leave out, or send empty.

const formatOf = (key: string): ProviderChatFormat => {
  const format = [...chatFormats, converse.chat].find((each) => each.key === key);
  if (format === undefined) throw new Error(`no format ${key}`);
  return format;
};

const request = (key: string, body: Json): ChatRequest =>
  (formatOf(key) as ChatFormat).readRequest(body, { model: 'm', stream: false });

function events(key: string, ...sent: readonly object[]): ChatEvent[] {
  const reader = formatOf(key).eventReader();
  return [
    ...sent.flatMap((event) => reader.read(JSON.stringify(event), Reflect.get(event, 'event'))),
    ...reader.end(),
  ];
}

describe('a request of chat completions', () => {
  const hello = { role: 'user', content: 'Hi' };
  const chosen = (choice: unknown) =>
    request('completions', {
      model: 'm',
      messages: [hello],
      tools: [{ type: 'function', function: { name: 'f' } }],
      tool_choice: choice,
    }).toolChoice;

  test('chooses a function by its name alone', () => {
    expect(chosen({ function: { name: 'f' } })).toEqual({ mode: 'tool', name: 'f' });
  });

  test('has tools without a type, which are functions', () => {
    const { tools } = request('completions', {
      model: 'm',
      messages: [hello],
      tools: [{ function: { name: 'f' } }, { type: null, function: { name: 'g' } }],
    });
    expect(tools).toMatchObject([
      { kind: 'function', name: 'f' },
      { kind: 'function', name: 'g' },
    ]);
  });

  test('allows functions by their names alone', () => {
    const tools = [{ function: { name: 'f' } }];
    expect(chosen({ type: 'allowed_tools', allowed_tools: { mode: 'required', tools } })).toEqual({
      mode: 'allowed',
      isRequired: true,
      names: ['f'],
    });
  });

  test.each([undefined, null, []])('has no instructions if those of the system are %j', (content) => {
    const read = request('completions', { model: 'm', messages: [{ role: 'system', content }, hello] });
    expect(read.system).toEqual([]);
  });
});

describe('a chat completion', () => {
  test('has thoughts without a text beside others', () => {
    const content = [
      { type: 'thinking', thinking: [{ type: 'text' }, { type: 'text', text: 'hm' }] },
      { type: 'text' },
    ];
    const { answers } = formatOf('completions').readResponse({
      choices: [{ message: { role: 'assistant', content }, finish_reason: 'stop' }],
    });
    expect(answers[0]?.parts).toEqual([{ type: 'reasoning', text: 'hm', origin: 'completions' }]);
  });
});

describe('a stream of Messages', () => {
  const startOf = (content: object, index = 0) => ({
    type: 'content_block_start',
    index,
    content_block: content,
  });
  const delta = (content: object, index = 0) => ({ type: 'content_block_delta', index, delta: content });
  const end = { type: 'message_stop' };

  test.each([undefined, null, 'x', 5, []])('starts with a message that is %j', (message) => {
    expect(events('messages', { type: 'message_start', message }, end)).toEqual([
      { type: 'start', id: '', model: '' },
      { type: 'end' },
    ]);
  });

  test.each([undefined, null, 'x', 5, []])('drops a block that is %j', (block) => {
    expect(events('messages', { type: 'content_block_start', index: 0, content_block: block }, end)).toEqual([
      { type: 'end' },
    ]);
  });

  test.each([undefined, null, 5, {}])('drops arguments of an unknown call that are %j', (partial) => {
    expect(events('messages', delta({ type: 'input_json_delta', partial_json: partial }), end)).toEqual([
      { type: 'end' },
    ]);
  });

  test('with 1 output token at its start, which stands for none, and no later count has no output', () => {
    const message = { id: 'm', model: 'x', usage: { input_tokens: 3, output_tokens: 1 } };
    const delta = { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { input_tokens: 4 } };
    const last = events('messages', { type: 'message_start', message }, delta, end).at(-1);
    expect(last).toMatchObject({ type: 'end', usage: { input: 4, output: 0 } });
  });

  test.each([undefined, null, 5])('goes on after a delta with the stop reason %j', (reason) => {
    const usage = { output_tokens: 1 };
    const read = events(
      'messages',
      startOf({}),
      { type: 'message_delta', delta: { stop_reason: reason }, usage },
      { type: 'message_delta', delta: { stop_reason: 'max_tokens' }, usage },
      end,
    );
    expect(read.filter(({ type }) => type === 'answerEnd')).toEqual([
      { type: 'answerEnd', answer: 0, stop: 'length' },
    ]);
  });

  test('refuses arguments of a call that has not started', () => {
    expect(() => events('messages', delta({ type: 'input_json_delta', partial_json: '{' }))).toThrow(
      'its block has not started',
    );
  });

  test('has one block without an index', () => {
    const [started, text, ended] = events(
      'messages',
      { type: 'content_block_start', content_block: { type: 'text' } },
      { type: 'content_block_delta', delta: { type: 'text_delta', text: 'a' } },
      { type: 'content_block_stop' },
      end,
    );
    expect(started).toMatchObject({ type: 'partStart', part: 0, content: { type: 'text' } });
    expect([text, ended]).toEqual([
      { type: 'delta', part: 0, text: 'a' },
      { type: 'partEnd', part: 0 },
    ]);
  });

  test.each([
    [{ input_tokens: 3 }, { input: 3, output: 0 }],
    [{ output_tokens: 4 }, { input: 0, output: 4 }],
    [{ cache_read_input_tokens: 2 }, undefined],
  ])('with the counts %j reports %j', (usage, counted) => {
    const last = events('messages', startOf({}), { type: 'message_delta', delta: {}, usage }, end).at(-1);
    const reported = last?.type === 'end' ? last.usage : undefined;
    if (counted === undefined) expect(reported ?? { input: 0, output: 0 }).toMatchObject({ output: 0 });
    else expect(reported).toMatchObject(counted);
  });
});

describe('a request of Messages', () => {
  test.each([undefined, null])('has a call with the input %j, which has no arguments', (input) => {
    const { turns } = request('messages', {
      model: 'm',
      max_tokens: 9,
      messages: [
        { role: 'user', content: 'Hi' },
        { role: 'assistant', content: [{ type: 'tool_use', id: 'c', name: 'f', input }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c' }] },
      ],
    });
    expect(turns[1]?.parts).toMatchObject([{ type: 'toolCall', id: 'c', arguments: '{}' }]);
  });
});

describe('a response of Responses', () => {
  test.each([
    [[{ type: 'reasoning_text', text: 'all' }], [{ type: 'summary_text', text: 'short' }], 'all', undefined],
    [[], [{ type: 'summary_text', text: 'short' }], 'short', true],
    [undefined, [{ type: 'summary_text', text: 'short' }], 'short', true],
  ])('with the reasoning %j and the summary %j has the reasoning %j', (content, summary, text, isSummary) => {
    const { answers } = formatOf('responses').readResponse({
      id: 'r',
      model: 'm',
      status: 'completed',
      output: [{ type: 'reasoning', id: 'i', content, summary }],
    });
    expect(answers[0]?.parts).toMatchObject([{ type: 'reasoning', text }]);
    expect(Reflect.get(answers[0]?.parts[0] ?? {}, 'isSummary')).toBe(isSummary);
  });
});

describe('an error of Messages', () => {
  const written = (status: number, code?: string) =>
    (
      (formatOf('messages') as ChatFormat).writeError({
        message: 'no',
        status,
        ...(code === undefined ? {} : { code }),
      })['error'] as Json
    )['type'];

  test.each([
    [429, undefined, 'rate_limit_error'],
    [429, 'something_else', 'rate_limit_error'],
    [400, 'overloaded_error', 'overloaded_error'],
    [418, undefined, 'invalid_request_error'],
    [599, undefined, 'api_error'],
  ])('with the status %d and the code %j has the type %s', (status, code, type) => {
    expect(written(status, code)).toBe(type);
  });
});

describe('a request of Converse', () => {
  test.each(['fc_1', 'call.1', 'a b', '', 'ü', 'x'.repeat(65), 'toolu:1'])(
    'has an id for the call %j that Bedrock accepts, also in its result',
    (id) => {
      const { messages } = formatOf('converse').writeRequest({
        ...{ model: 'm', system: [], tools: [], stream: false, streamUsage: false },
        turns: [
          { role: 'assistant', parts: [{ type: 'toolCall', id, name: 'f', arguments: '{}' }] },
          { role: 'user', parts: [{ type: 'toolResult', callId: id, parts: [] }] },
        ],
      });
      const [called] = [...JSON.stringify(messages).matchAll(/"toolUseId":"([^"]*)"/g)].map(
        ([, found]) => found,
      );
      expect(called).toMatch(/^[\w-]{1,64}$/);
      if (id === 'fc_1') expect(called).toBe(id);
      expect(JSON.stringify(messages).split(`"${called}"`)).toHaveLength(3);
    },
  );
});

describe('a stream of Converse', () => {
  const start = (content: unknown, index = 0) => ({
    event: 'contentBlockStart',
    contentBlockIndex: index,
    start: content,
  });
  const delta = (content: unknown, index = 0) => ({
    event: 'contentBlockDelta',
    contentBlockIndex: index,
    delta: content,
  });

  test.each([undefined, null, {}, { toolUse: null }, { toolUse: {} }])(
    'has a text whose block starts with %j',
    (content) => {
      expect(events('converse', start(content), delta({ text: 'a' }))).toEqual([
        { type: 'partStart', part: 0, answer: 0, content: { type: 'text' } },
        { type: 'delta', part: 0, text: 'a' },
      ]);
    },
  );

  test.each([{ reasoningContent: { signature: null } }, { reasoningContent: { redactedContent: 5 } }])(
    'has reasoning without a signature for %j',
    (content) => {
      const read = events('converse', delta({ reasoningContent: { text: 'hm' } }), delta(content));
      expect(read.map(({ type }) => type)).toEqual(['partStart', 'delta']);
    },
  );
});

describe('an error of Converse', () => {
  test.each([
    [{ message: 'no' }, 'no'],
    [{ Message: 'no' }, 'no'],
    [{ Message: 5, message: 'no' }, 'no'],
  ])('in %j has its message', (body, message) => {
    expect(formatOf('converse').readError(body, 400).message).toBe(message);
  });

  test.each([[null], [undefined], ['no'], [5], [[]]])('that is %j has the status', (body) => {
    expect(formatOf('converse').readError(body, 503).status).toBe(503);
  });
});

describe('a request of generateContent', () => {
  const parts = (...each: readonly object[]) =>
    request('generateContent', { contents: [{ role: 'user', parts: each }] }).turns[0]?.parts;

  test('has a file by its URI', () => {
    const fileData = { mimeType: 'application/pdf', fileUri: 'https://a.test/b.pdf' };
    expect(parts({ fileData })).toEqual([
      { type: 'file', source: { kind: 'url', url: 'https://a.test/b.pdf' } },
    ]);
  });

  test.each([{}, { inlineData: null }, { thought: false }, { text: '' }])(
    'has nothing for the part %j',
    (part) => {
      expect(parts(part, { text: 'a' })).toEqual([{ type: 'text', text: 'a' }]);
    },
  );

  test('has a text beside empty members', () => {
    expect(parts({ text: 'a', inlineData: null })).toEqual([{ type: 'text', text: 'a' }]);
    expect(() => parts({ text: 'a', inlineData: { mimeType: 'image/png', data: 'AA==' } })).toThrow(
      'a part has only one content',
    );
  });

  test('has results of calls with files by their URI', () => {
    const call = { functionCall: { name: 'f', args: {} } };
    const image = { fileData: { mimeType: 'image/png', fileUri: 'https://a.test/b.png' } };
    const { turns } = request('generateContent', {
      contents: [
        { role: 'model', parts: [call] },
        { role: 'user', parts: [{ functionResponse: { name: 'f', response: {}, parts: [image] } }] },
      ],
    });
    expect(turns[1]?.parts[0]).toMatchObject({
      type: 'toolResult',
      parts: [{ type: 'text' }, { type: 'image', source: { kind: 'url', url: 'https://a.test/b.png' } }],
    });
  });
});

describe('an error of generateContent', () => {
  test.each([
    [{ error: { code: 404, message: 'no' } }, 404],
    [{ error: { code: '404', message: 'no' } }, 500],
    [{ error: { code: 200, message: 'no' } }, 500],
    [{ error: { code: 1e9, message: 'no' } }, 500],
    [[{ error: { code: 429, message: 'no' } }], 429],
    [{ error: null }, 500],
    [null, 500],
  ])('%j has the status %d', (body, status) => {
    expect(formatOf('generateContent').readError(body, 500).status).toBe(status);
  });
});

describe('a stream of generateContent', () => {
  test.each([
    ['2026-01-02T03:04:05Z', 1_767_323_045],
    ['yesterday', undefined],
    [5, undefined],
    [null, undefined],
  ])('created at %j has the time %j', (createTime, created) => {
    const chunk = {
      responseId: 'r',
      modelVersion: 'm',
      createTime,
      candidates: [{ content: { parts: [{ text: 'a' }] } }],
    };
    const [first] = events('generateContent', chunk);
    expect(first).toEqual({
      type: 'start',
      id: 'r',
      model: 'm',
      ...(created === undefined ? {} : { created }),
    });
  });
});

describe('a stream of Responses', () => {
  const created = { type: 'response.created', response: { id: 'r', model: 'm' } };

  test('has a text without a content index', () => {
    const read = events('responses', created, {
      type: 'response.output_text.delta',
      output_index: 0,
      delta: 'a',
    });
    expect(read.slice(1)).toEqual([
      { type: 'partStart', part: 0, answer: 0, content: { type: 'text' } },
      { type: 'delta', part: 0, text: 'a' },
    ]);
  });

  test('keeps arguments until the call has its name', () => {
    const item = { type: 'function_call', id: 'i', call_id: 'c', arguments: '' };
    const read = events(
      'responses',
      created,
      { type: 'response.output_item.added', output_index: 0, item },
      { type: 'response.function_call_arguments.delta', output_index: 0, delta: '{"a"' },
      { type: 'response.function_call_arguments.delta', output_index: 0, delta: ':1}' },
      {
        type: 'response.output_item.done',
        output_index: 0,
        item: { ...item, name: 'f', arguments: '{"a":1}' },
      },
    );
    expect(read.slice(1, 3)).toEqual([
      { type: 'partStart', part: 0, answer: 0, content: { type: 'toolCall', id: 'c', name: 'f' } },
      { type: 'delta', part: 0, text: '{"a":1}' },
    ]);
    expect(read.filter(({ type }) => type === 'delta')).toHaveLength(1);
  });

  test.each([undefined, null, 5])('drops a text that is %j', (text) => {
    const read = events('responses', created, {
      type: 'response.output_text.delta',
      output_index: 0,
      delta: text,
    });
    expect(read.filter(({ type }) => type === 'delta')).toEqual([]);
  });
});

test('an answer without an id gets one in the format of the client', async () => {
  const content = { parts: [{ text: 'Hi' }] };
  const answers: Record<string, object> = {
    generateContent: { candidates: [{ content, finishReason: 'STOP' }], modelVersion: 'm' },
    completions: { choices: [{ message: { content: 'Hi' }, finish_reason: 'stop' }] },
    messages: { type: 'message', content: [{ type: 'text', text: 'Hi' }], stop_reason: 'end_turn' },
    responses: { output: [{ type: 'message', content: [{ type: 'output_text', text: 'Hi' }] }] },
  };
  for (const [type, answer] of Object.entries(answers)) {
    await using provider = await llmProvider((request, response) => {
      const isStream = request.url?.includes('streamGenerateContent') === true;
      response.writeHead(200, { 'content-type': isStream ? 'text/event-stream' : 'application/json' });
      response.end(isStream ? `data: ${JSON.stringify(answer)}\n\n` : JSON.stringify(answer));
    });
    await using gate = await llmGateway(provider, {
      model: { provider: { custom: { formats: [{ type }] } } },
    });
    const asked = { model: 'm', max_tokens: 9, messages: [{ role: 'user', content: 'Hi' }] };
    const reply =
      type === 'completions'
        ? await send(`${gate.url}/v1/messages`, { method: 'POST', body: JSON.stringify(asked) })
        : await chat(gate, asked);
    expect([type, JSON.parse(reply.text)]).toEqual([
      type,
      expect.objectContaining({ id: expect.stringMatching(/^\w{9,}$/) }),
    ]);
    if (type !== 'generateContent') continue;
    const ids = (await chat(gate, { ...asked, stream: true })).text.matchAll(/"id":"(\w{9,})"/g);
    expect(new Set([...ids].map(([, id]) => id)).size).toBe(1);
  }
});

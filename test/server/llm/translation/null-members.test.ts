import { describe, expect, test } from 'vitest';
import type { Json } from '../../../../src/server/llm/chat/chat-format.ts';
import type { Key } from './cases.ts';
import { wire } from './wire.ts';

// Members of whole answers that are null or missing: a client gets an empty text, never a member without a value.

const call = wire();

const REQUESTS: Readonly<Record<Key, Json>> = {
  completions: { model: 'm', messages: [{ role: 'user', content: 'Hi' }] },
  messages: { model: 'm', max_tokens: 9, messages: [{ role: 'user', content: 'Hi' }] },
  responses: { model: 'm', input: 'Hi' },
};
const CLIENTS: readonly Key[] = ['completions', 'messages', 'responses'];
const pairs = (provider: Key) => CLIENTS.filter((client) => client !== provider);

const answered = async (client: Key, provider: Key, body: object): Promise<Json> => {
  const reply = await call(client, provider, REQUESTS[client], { status: 200, body });
  expect(reply.status, reply.texts.client).toBe(200);
  return reply.body;
};

/** Texts, thoughts and tool calls of an answer of any API, in order. */
function outputOf({ choices, content, output }: Json): unknown[] {
  const list = (value: unknown): Json[] => (Array.isArray(value) ? value : []);
  const [choice] = list(choices);
  const message = choice?.['message'] as Json | undefined;
  return [
    ...(message === undefined ? [] : [message['content']]),
    ...list(message?.['tool_calls']).map((each) => each['function'] ?? each['custom']),
    ...list(content).map((block) => block['text'] ?? block['thinking'] ?? block['input']),
    ...list(output).flatMap((item) =>
      item['type'] === 'message'
        ? list(item['content']).map(({ text }) => text)
        : [item['input'] ?? item['arguments']],
    ),
  ];
}

const completion = (message: object, more: object = {}) => ({
  id: 'c',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'yes', ...message }, finish_reason: 'stop' }],
  ...more,
});

describe.each(pairs('completions'))('for a client of %s, of a chat completion', (client) => {
  test.each([
    ['null', null],
    ['missing', undefined],
  ])('a model that is %s is that of the request', async (_, model) => {
    const body = await answered(client, 'completions', completion({}, { model }));
    expect(body['model']).toBe('m');
  });

  test.each([
    ['a text', { type: 'text', text: null }],
    ['a thought', { type: 'thinking', thinking: [{ type: 'text', text: null }] }],
  ])('%s without a text is left out', async (_, part) => {
    const content = [part, { type: 'text', text: 'yes' }];
    expect(outputOf(await answered(client, 'completions', completion({ content })))).toEqual(['yes']);
  });

  test('a call of a custom tool is one, with its input or without', async () => {
    const custom = (more: object) => ({ id: 'a', type: 'custom', custom: { name: 'patch', ...more } });
    const request = {
      ...REQUESTS.responses,
      tools: [{ type: 'custom', name: 'patch', description: 'changes files' }],
    };
    for (const [more, input] of [
      [{ input: 'x' }, 'x'],
      [{ input: null }, ''],
      [{}, ''],
    ] as const) {
      const body = completion({ content: null, tool_calls: [custom(more)] });
      const reply = await call('responses', 'completions', request, { status: 200, body });
      expect(reply.body['output']).toMatchObject([{ type: 'custom_tool_call', name: 'patch', input }]);
    }
  });
});

describe.each(pairs('completions'))('for a client of %s, of a call in a chat completion', (client) => {
  test.each([null, {}, '', []])(
    'a member `custom` that is %j is no call of a custom tool',
    async (custom) => {
      const called = { id: 'a', type: 'function', function: { name: 'f', arguments: '{"a":1}' }, custom };
      const body = await answered(client, 'completions', completion({ content: null, tool_calls: [called] }));
      expect(outputOf(body)).toEqual(client === 'messages' ? [{ a: 1 }] : ['{"a":1}']);
    },
  );
});

const message = (content: object[], more: object = {}) => ({
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'm',
  content,
  stop_reason: 'end_turn',
  usage: { input_tokens: 1, output_tokens: 1 },
  ...more,
});

describe.each(pairs('messages'))('for a client of %s, of a message', (client) => {
  test.each([
    ['null', null],
    ['missing', undefined],
  ])('a model or id that is %s is never without a value', async (_, value) => {
    const body = await answered(
      client,
      'messages',
      message(
        [
          { type: 'tool_use', name: 'f', input: {} },
          { type: 'text', text: 'yes' },
        ],
        { model: value, id: value },
      ),
    );
    expect(body['model']).toBe('m');
    expect(JSON.stringify(body)).not.toContain('undefined');
  });

  test.each([
    ['a text', { type: 'text', text: null }],
    ['a thought', { type: 'thinking', thinking: null }],
  ])('%s without a text gives no text', async (_, block) => {
    const body = await answered(client, 'messages', message([block, { type: 'text', text: 'yes' }]));
    expect(outputOf(body).filter((text) => text !== '' && text !== undefined)).toEqual(['yes']);
    expect(JSON.stringify(body)).not.toMatch(/"(?:text|reasoning_content)":null/);
  });

  test.each([null, '', undefined])('an input of a call that is %j is an empty object', async (input) => {
    const body = await answered(
      client,
      'messages',
      message([{ type: 'tool_use', id: 'a', name: 'f', input }]),
    );
    expect(outputOf(body).filter((each) => each !== null)).toEqual(
      client === 'completions' ? [{ name: 'f', arguments: '{}' }] : ['{}'],
    );
  });

  test('a service tier that is no text is left out', async () => {
    const usage = { input_tokens: 1, output_tokens: 1, service_tier: 5 };
    const body = await answered(client, 'messages', message([{ type: 'text', text: 'yes' }], { usage }));
    expect(body['service_tier']).not.toBe(5);
    expect(outputOf(body)).toEqual(['yes']);
  });
});

const response = (output: object[], more: object = {}) => ({
  id: 'resp_1',
  object: 'response',
  created_at: 1,
  status: 'completed',
  model: 'm',
  output,
  usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 },
  ...more,
});
const said = (part: object) => ({ type: 'message', id: 'm', role: 'assistant', content: [part] });

describe.each(pairs('responses'))('for a client of %s, of a response', (client) => {
  test.each([
    ['null', null],
    ['missing', undefined],
  ])('a model or id that is %s has a value for the client', async (_, value) => {
    const body = await answered(
      client,
      'responses',
      response([{ type: 'function_call', name: 'f', arguments: '{}' }], { model: value, id: value }),
    );
    expect([body['model'], typeof body['id']]).toEqual(['m', 'string']);
    expect(JSON.stringify(body)).not.toContain('undefined');
  });

  test.each([
    ['a text', { type: 'output_text', text: null }],
    ['a refusal', { type: 'refusal', refusal: null }],
    ['an empty refusal', { type: 'refusal', refusal: '' }],
  ])('%s without a text gives no text', async (_, part) => {
    const body = await answered(
      client,
      'responses',
      response([said(part), said({ type: 'output_text', text: 'yes' })]),
    );
    expect(outputOf(body).filter((text) => text !== '')).toEqual(['yes']);
    expect(JSON.stringify(body)).not.toMatch(/"(?:text|content)":null/);
  });

  test('a refusal is what the client gets as its text or refusal', async () => {
    const body = await answered(client, 'responses', response([said({ type: 'refusal', refusal: 'no' })]));
    expect(JSON.stringify(body)).toContain('"no"');
  });

  test.each([
    [
      'content',
      { content: [{ type: 'reasoning_text', text: 'whole' }], summary: [{ text: 'short' }] },
      'whole',
    ],
    ['summary', { content: [], summary: [{ text: 'short' }, { text: 'more' }] }, 'short\n\nmore'],
    ['summary without texts', { summary: [{ text: null }] }, undefined],
    ['content without texts', { content: [{ text: null }] }, undefined],
  ])('the thoughts of %s are those that are there', async (_, item, thought) => {
    const reasoning = { type: 'reasoning', id: 'r', ...item };
    const body = await answered(
      client,
      'responses',
      response([reasoning, said({ type: 'output_text', text: 'yes' })]),
    );
    const [message] = (body['choices'] ?? []) as { message: Json }[];
    const [block] = (body['content'] ?? []) as Json[];
    const found = message?.message['reasoning_content'] ?? block?.['thinking'];
    expect(found === '' ? undefined : found).toBe(thought);
    expect(JSON.stringify(body)).not.toContain('undefined');
  });
});

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { assembled, type ChatFormatKey, type Exchange, exchange } from '../../../kit/llm-exchange.ts';

// Arguments of tool calls that are no object: Messages and Gemini have them as an object,
// which their clients do not check.

let llm: Exchange;
beforeAll(async () => {
  llm = await exchange();
});
afterAll(() => llm[Symbol.asyncDispose]());

const DONE = 'data: [DONE]\n\n';
const chunk = (delta: object, finish: string | null = null): object => ({
  id: 'c1',
  model: 'm',
  choices: [{ index: 0, delta, finish_reason: finish }],
});
const call = (args: unknown): object => ({
  index: 0,
  id: 'c1',
  type: 'function',
  function: { name: 'add', arguments: args },
});
const whole = (args: unknown): object => ({
  id: 'c1',
  model: 'm',
  choices: [
    { index: 0, message: { role: 'assistant', tool_calls: [call(args)] }, finish_reason: 'tool_calls' },
  ],
});

/** What the client gets as the input of the tool. */
function inputOf(client: ChatFormatKey, text: string): unknown {
  const { content, candidates } = JSON.parse(text);
  return client === 'messages' ? content[0].input : candidates[0].content.parts[0].functionCall.args;
}

const bad = (text: string): object => ({ invalid_arguments: text });
const CASES: [args: unknown, input: object][] = [
  [5, bad('5')],
  [1e30, bad('1e+30')],
  [true, bad('true')],
  ['5', bad('5')],
  ['"5"', bad('"5"')],
  ['x', bad('x')],
  ['[{"a":1}]', bad('[{"a":1}]')],
  [[1], bad('[1]')],
  [null, {}],
  ['', {}],
  [' ', {}],
  ['null', bad('null')],
  ['[]', bad('[]')],
  [[], {}],
  [{ a: 5 }, { a: 5 }],
  [' {"a":5}', { a: 5 }],
];

describe.each<ChatFormatKey>(['messages', 'generateContent'])('for a client of %s', (client) => {
  test.each(CASES)('arguments %j of a message are %j', async (args, input) => {
    const body = whole(args);
    const { status, text } = await llm.call('completions', { body }, { client, stream: false });
    expect([status, inputOf(client, text)]).toEqual([200, input]);
  });

  test.each(CASES)('arguments %j of a stream are %j', async (args, input) => {
    const events = [chunk({ tool_calls: [call(args)] }), chunk({}, 'tool_calls'), DONE];
    const { calls, hasEnded } = assembled(
      client,
      (await llm.call('completions', { events }, { client })).text,
    );
    expect([calls.map((each) => JSON.parse(each.args || '{}')), hasEnded]).toEqual([[input], true]);
  });

  test('pieces of two interleaved calls, one of which is no object', async () => {
    const more = (index: number, args: string): object =>
      chunk({ tool_calls: [{ index, function: { arguments: args } }] });
    const events = [
      chunk({ tool_calls: [call('"x'), { ...call(''), index: 1, id: 'c2' }] }),
      more(1, '\n'),
      more(1, '{"a"'),
      more(0, 'y"'),
      more(1, ':5}'),
      chunk({}, 'tool_calls'),
      DONE,
    ];
    const { calls } = assembled(client, (await llm.call('completions', { events }, { client })).text);
    expect(calls.map(({ args }) => JSON.parse(args))).toEqual([bad('"xy"'), { a: 5 }]);
  });

  test('the input of a custom tool is a member of an object', async () => {
    const custom = { index: 0, id: 'c1', type: 'custom', custom: { name: 'add', input: '5' } };
    const events = [chunk({ tool_calls: [custom] }), chunk({}, 'tool_calls'), DONE];
    const { calls } = assembled(client, (await llm.call('completions', { events }, { client })).text);
    expect(calls.map(({ args }) => JSON.parse(args))).toEqual([{ input: '5' }]);
  });
});

test.each([5, 'x', true, [1]])('input %j of a block of Messages is refused by name', async (input) => {
  const block = { type: 'tool_use', id: 't1', name: 'add', input };
  const events = [
    { type: 'message_start', message: { id: 'm' } },
    { type: 'content_block_start', index: 0, content_block: block },
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: 'tool_use' } },
    { type: 'message_stop' },
  ];
  const streamed = await llm.call('messages', { events }, { client: 'completions' });
  expect(assembled('completions', streamed.text).error).toContain('cannot be translated');
  expect(streamed.line['error.detail']).toContain('input');
});

test.each([
  ['an object', { a: 5 }, '{"a":5}'],
  ['a number', 5, '5'],
])('arguments of an item of Responses that are %s', async (_, args, expected) => {
  const item = { type: 'function_call', call_id: 'c1', name: 'add', arguments: args };
  const response = { id: 'r', status: 'completed', output: [item] };
  const events = [
    { type: 'response.created', response: { id: 'r' } },
    { type: 'response.output_item.done', output_index: 0, item },
    { type: 'response.completed', response },
  ];
  const streamed = await llm.call('responses', { events }, { client: 'completions' });
  expect(assembled('completions', streamed.text).calls).toEqual([{ id: 'c1', name: 'add', args: expected }]);
  const { text } = await llm.call('responses', { body: response }, { client: 'completions', stream: false });
  expect(JSON.parse(text).choices[0].message.tool_calls[0].function.arguments).toBe(expected);
});

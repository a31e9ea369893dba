import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  assembled,
  CHAT_FORMATS,
  type ChatFormatKey,
  type Exchange,
  exchange,
} from '../../../kit/llm-exchange.ts';

// Members that servers send empty, late, twice or not at all.

let llm: Exchange;
beforeAll(async () => {
  llm = await exchange();
});
afterAll(() => llm[Symbol.asyncDispose]());

const DONE = 'data: [DONE]\n\n';
const chunk = (delta: unknown, finish: string | null = null, more: object = {}): object => ({
  id: 'c1',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'm',
  choices: [{ index: 0, delta, finish_reason: finish }],
  ...more,
});
const calls = (...tool_calls: object[]): object => chunk({ tool_calls });
const named = (more: object): object => ({ index: 0, type: 'function', ...more });
const others = (provider: ChatFormatKey): ChatFormatKey[] => CHAT_FORMATS.filter((key) => key !== provider);

const EMPTY = [null, '', [], {}, { id: null, data: '' }];

describe.each(others('completions'))('chunks for a client of %s', (client) => {
  // From gateways in between: every delta has all members of the message.
  test.each(EMPTY.map((value) => [JSON.stringify(value), value]))(
    'members of a delta that are %s',
    async (_, value) => {
      const members = {
        audio: value,
        function_call: value,
        images: value,
        annotations: value,
        refusal: value,
      };
      const { text } = await llm.call(
        'completions',
        {
          events: [
            chunk({
              role: 'assistant',
              content: '',
              ...members,
              reasoning_content: value,
              tool_calls: value,
            }),
            chunk({ content: 'yes', ...members }),
            chunk(null),
            chunk({ ...members }, 'stop', { error: value }),
            DONE,
          ],
        },
        { client },
      );
      expect(assembled(client, text)).toEqual({ text: 'yes', calls: [], hasEnded: true });
    },
  );

  test.each(EMPTY.map((value) => [JSON.stringify(value), value]))(
    'members of a message that are %s',
    async (_, value) => {
      const members = {
        audio: value,
        function_call: value,
        images: value,
        annotations: value,
        refusal: value,
      };
      const message = {
        role: 'assistant',
        content: 'yes',
        reasoning_content: value,
        tool_calls: value,
        ...members,
      };
      const body = {
        id: 'c1',
        model: 'm',
        choices: [{ index: 0, message, finish_reason: 'stop' }],
        error: value,
      };
      const { status, text } = await llm.call('completions', { body }, { client, stream: false });
      expect([status, text]).toEqual([200, expect.stringContaining('yes')]);
    },
  );

  test.each(['audio', 'function_call', 'images'])('%s with content is named in the log', async (member) => {
    const delta = { [member]: member === 'images' ? [{ url: 'x' }] : { name: 'f' } };
    const streamed = await llm.call('completions', { events: [chunk(delta), DONE] }, { client });
    expect(assembled(client, streamed.text).error).toContain('cannot be translated');
    expect(streamed.line['error.detail']).toContain(member);
    const body = { id: 'c1', choices: [{ index: 0, message: delta, finish_reason: 'stop' }] };
    const whole = await llm.call('completions', { body }, { client, stream: false });
    expect([whole.status, whole.line['error.detail']]).toEqual([502, expect.stringContaining(member)]);
  });

  const five = { name: 'add', args: '{"a":5}' };
  test.each<[string, object[], object[]]>([
    [
      'a name after the id',
      [
        calls(named({ id: 'c1', function: { arguments: '' } })),
        calls({ index: 0, function: { name: 'add' } }),
        calls({ index: 0, function: { arguments: '{"a":5}' } }),
      ],
      [five],
    ],
    [
      'arguments before the name',
      [
        calls(named({ id: 'c1', function: { arguments: '{"a"' } })),
        calls({ index: 0, function: { arguments: ':5}' } }),
        calls({ index: 0, function: { name: 'add' } }),
      ],
      [five],
    ],
    [
      'a name in pieces',
      [
        calls(named({ id: 'c1', function: { name: 'a', arguments: '' } })),
        calls({ index: 0, function: { name: 'dd' } }),
        calls({ index: 0, function: { arguments: '{"a":5}' } }),
      ],
      [five],
    ],
    [
      'a name and an id with each delta',
      [
        calls(named({ id: 'c1', function: { name: 'add', arguments: '{"a"' } })),
        calls(named({ id: 'c1', function: { name: 'add', arguments: ':5}' } })),
      ],
      [five],
    ],
    [
      'an id after the name',
      [
        calls(named({ function: { name: 'add' } })),
        calls({ index: 0, id: 'c1' }),
        calls({ index: 0, function: { arguments: '{"a":5}' } }),
      ],
      [five],
    ],
    [
      'neither ids nor numbers',
      [calls({ function: five_('add') }), calls({ function: five_('sub') })],
      [five, { ...five, name: 'sub' }],
    ],
    // vercel/ai#18440: Ollama and gateways number all calls with 0 and give them no ids; ids are blank, or new with each delta.
    [
      'one number and no ids',
      [
        calls(named({ function: five_('add') }), named({ function: five_('sub') })),
        calls(named({ function: five_('sub') })),
      ],
      [five, { ...five, name: 'sub' }, { ...five, name: 'sub' }],
    ],
    [
      'one number and blank ids',
      [
        calls(named({ id: 'c1', function: { name: 'add', arguments: '{"a"' } })),
        calls({ index: 0, id: ' ', function: { arguments: ':5}' } }),
        calls(named({ id: '', function: five_('sub') })),
      ],
      [five, { ...five, name: 'sub' }],
    ],
    [
      'an id of its own for each delta',
      [
        calls(named({ id: 'c1', function: { name: 'add', arguments: '{"a":{' } })),
        calls({ index: 0, id: 'c2', function: { name: null, arguments: '"b":"}' } }),
        calls({ index: 0, id: 'c3', function: { arguments: '\\\\\\""}}' } }),
        calls({ index: 0, id: 'c4', function: { arguments: '' } }),
      ],
      [{ name: 'add', args: '{"a":{"b":"}\\\\\\""}}' }],
    ],
    [
      'one number for two ids, each before its name',
      [
        calls(named({ id: 'c1', function: five_('add') }), {
          index: 0,
          id: 'c2',
          function: { arguments: '' },
        }),
        calls(
          { index: 0, id: 'c2', function: { name: 'sub' } },
          { index: 0, function: { arguments: '{"a":5}' } },
        ),
      ],
      [five, { ...five, name: 'sub' }],
    ],
    [
      'its name with each delta, also without arguments',
      [
        calls(named({ function: { name: 'add', arguments: '{"a"' } })),
        calls(named({ function: { name: 'add', arguments: ':5}' } })),
        calls(named({ function: { name: 'add', arguments: '' } })),
      ],
      [five],
    ],
    [
      'one number for two ids, interleaved',
      [
        calls(named({ id: 'c1', function: { name: 'add', arguments: '{"a"' } })),
        calls(named({ id: 'c2', function: { name: 'sub', arguments: '{"a"' } })),
        calls(named({ id: 'c1', function: { arguments: ':5}' } })),
        calls(named({ id: 'c2', function: { arguments: ':5}' } })),
      ],
      [five, { ...five, name: 'sub' }],
    ],
    [
      'interleaved calls whose names are late',
      [
        calls({ index: 0, id: 'c1' }, { index: 1, id: 'c2', function: { arguments: '{"a"' } }),
        calls({ index: 1, function: { name: 'sub' } }, { index: 0, function: { arguments: '{"a"' } }),
        calls({ index: 0, function: { name: 'add' } }, { index: 1, function: { arguments: ':5}' } }),
        calls({ index: 0, function: { arguments: ':5}' } }),
      ],
      [five, { ...five, name: 'sub' }],
    ],
    [
      'an empty object before the arguments',
      [
        calls(named({ id: 'c1', function: { name: 'add', arguments: '{}' } })),
        calls({ index: 0, function: { arguments: '{"a"' } }),
        calls({ index: 0, function: { arguments: ':5}' } }),
      ],
      [five],
    ],
    [
      'an empty object before the arguments, which have another id',
      [
        calls(named({ id: 'c1', function: { name: 'add', arguments: {} } })),
        calls({ index: 0, id: 'c2', function: { arguments: '{"a":5}' } }),
      ],
      [five],
    ],
    [
      'empty objects only, without ids',
      [
        calls(named({ function: { name: 'add', arguments: '{}' } })),
        calls(named({ function: { name: 'sub', arguments: '{ }' } })),
      ],
      [
        { name: 'add', args: '{}' },
        { name: 'sub', args: '{}' },
      ],
    ],
    ['no arguments', [calls(named({ id: 'c1', function: { name: 'add' } }))], [{ name: 'add', args: '{}' }]],
    ['only metadata', [calls({ index: 0, extra_content: { google: {} } }), chunk({ content: 'yes' })], []],
  ])('calls with %s', async (_, events, expected) => {
    const answered = { events: [...events, chunk({}, 'tool_calls'), DONE] };
    const { text } = await llm.call('completions', answered, { client });
    const { calls: got, hasEnded } = assembled(client, text);
    expect({ got, hasEnded }).toMatchObject({ got: expected, hasEnded: true });
    expect(new Set(got.map(({ id }) => id)).size).toBe(expected.length);
  });

  test('a call with arguments and without a name is an error', async () => {
    const answered = {
      events: [calls(named({ id: 'c1', function: { arguments: '{}' } })), chunk({}, 'stop'), DONE],
    };
    const { text, line } = await llm.call('completions', answered, { client });
    expect(assembled(client, text).error).toContain('cannot be translated');
    expect(line['error.detail']).toContain('function.name');
  });

  // The signature comes alone, before the call, and must come back with it.
  test('a signature before the call is a part of its id', async () => {
    const extra_content = { google: { thought_signature: 'AA==' } };
    const answered = {
      events: [
        calls({ index: 0, extra_content }),
        calls(named({ id: 'c1', function: five_('add') })),
        chunk({}, 'tool_calls'),
        DONE,
      ],
    };
    const { text } = await llm.call('completions', answered, { client });
    expect(assembled(client, text).calls).toEqual([{ id: 'c1__sig_AA', name: 'add', args: '{"a":5}' }]);
  });
});

function five_(name: string): object {
  return { name, arguments: '{"a":5}' };
}

describe('other formats', () => {
  test.each(others('messages'))(
    'texts of blocks without a start, and empty blocks, for a client of %s',
    async (client) => {
      const { text } = await llm.call(
        'messages',
        {
          events: [
            { type: 'message_start', message: { id: 'm' } },
            { type: 'content_block_start', index: 0, content_block: {} },
            { type: 'content_block_stop', index: 0 },
            { type: 'content_block_delta', index: 1, delta: { type: 'text_delta', text: 'yes' } },
            { type: 'content_block_stop', index: 1 },
            { type: 'message_delta', delta: { stop_reason: 'end_turn' } },
            { type: 'message_stop' },
          ],
        },
        { client },
      );
      expect(assembled(client, text)).toEqual({ text: 'yes', calls: [], hasEnded: true });
    },
  );

  test.each(others('responses'))(
    'a name at the end of the item, and arguments after an empty object, for a client of %s',
    async (client) => {
      const item = { type: 'function_call', call_id: 'c1' };
      const started = { type: 'response.output_item.added' };
      const empty = { type: 'response.function_call_arguments.delta', delta: '{}' };
      const done = { type: 'response.output_item.done' };
      // Some servers begin with an empty object.
      const added = [
        [started, empty, done],
        [started, empty, { ...empty, delta: '{"a":5}' }, done],
      ];
      const { text } = await llm.call(
        'responses',
        {
          events: [
            { type: 'response.created', response: { id: 'r' } },
            { type: 'response.output_item.added', output_index: 0, item: {} },
            { type: 'response.output_item.added', output_index: 1, item },
            { type: 'response.function_call_arguments.delta', output_index: 1, delta: '{"a":5}' },
            { type: 'response.output_item.done', output_index: 1, item: { ...item, name: 'add' } },
            ...added.flatMap((events, index) =>
              events.map((event) => ({
                ...event,
                output_index: index + 2,
                item: { ...item, call_id: `c${index + 2}`, name: 'add', arguments: '{"a":5}' },
              })),
            ),
            { type: 'response.completed', response: { status: 'completed' } },
          ],
        },
        { client },
      );
      expect(assembled(client, text).calls).toEqual(
        ['c1', 'c2', 'c3'].map((id) => ({ id, name: 'add', args: '{"a":5}' })),
      );
    },
  );

  test.each(others('generateContent'))('empty members of Gemini, for a client of %s', async (client) => {
    const part = {
      text: 'yes',
      functionCall: null,
      inlineData: null,
      executableCode: null,
      videoMetadata: [],
    };
    const { text } = await llm.call(
      'generateContent',
      {
        events: [
          { candidates: [null, { content: null, finishReason: null }], error: null, promptFeedback: {} },
          { candidates: [{ content: { parts: [null, {}, part] }, finishReason: '' }] },
          { candidates: [{ content: {}, finishReason: 'STOP' }] },
        ],
      },
      { client },
    );
    expect(assembled(client, text)).toEqual({ text: 'yes', calls: [], hasEnded: true });
  });
});

test('an assistant message that a client sends back with empty members is translated', async () => {
  const messages = [
    { role: 'user', content: 'Hi' },
    {
      role: 'assistant',
      content: 'Hello',
      audio: {},
      function_call: {},
      images: [],
      tool_calls: [],
      unknown: '',
    },
    { role: 'user', content: 'Bye' },
  ];
  const body = { id: 'm', type: 'message', content: null, stop_reason: 'end_turn' };
  const { status } = await llm.call(
    'messages',
    { body },
    { client: 'completions', stream: false, more: { messages } },
  );
  expect(status).toBe(200);
});

describe.each(CHAT_FORMATS)('an error for a client of %s', (client) => {
  const error = { type: 'overloaded_error', code: 529, message: 'Overloaded' };

  // Portkey-AI/gateway#722: Vertex AI answers 529 to a request for a stream with an event.
  test.each(CHAT_FORMATS)(
    'that a provider of %s sends as an event, or as a page, says what it says',
    async (provider) => {
      const ping = 'event: ping\ndata: {"type":"ping"}\n\n';
      const answered = { status: 529, events: [ping, { type: 'error', error }] };
      const { status, type, text, line } = await llm.call(provider, answered, { client });
      expect([status, type]).toEqual([529, 'application/json']);
      expect(JSON.parse(text)).toMatchObject({ error: { message: 'Overloaded' } });
      expect(line['error.type']).toBeDefined();
      const page = { status: 502, body: '<h1>No &amp; thing</h1>', type: 'text/html' };
      const shown = await llm.call(provider, page, { client });
      expect(JSON.parse(shown.text)).toMatchObject({
        error: { message: 'the provider responded with HTTP 502: No & thing' },
      });
    },
  );
});

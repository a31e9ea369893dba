import { describe, expect, test } from 'vitest';
import type { ChatResponse } from '../../../../src/server/llm/chat/chat.ts';
import { ResponseCollector } from '../../../../src/server/llm/chat/event-response.ts';
import { chatFormats } from '../../../../src/server/llm/formats/index.ts';
import type { Api } from '../../../kit/llm-answers.ts';

/** What is read of a provider's events; undefined if the stream has no end. */
function read(api: Api, events: readonly (object | string)[]): ChatResponse | undefined {
  const reader = chatFormats.find(({ key }) => key === api)?.eventReader();
  const collector = new ResponseCollector();
  let hasEnded = false;
  const all = events.flatMap(
    (event) => reader?.read(typeof event === 'string' ? event : JSON.stringify(event)) ?? [],
  );
  for (const event of [...all, ...(reader?.end() ?? [])]) {
    if (event.type === 'error') throw new Error(event.error.message);
    collector.add(event);
    hasEnded ||= event.type === 'end';
  }
  return hasEnded ? collector.response() : undefined;
}

const head = { id: 'c1', created: 1, model: 'm' };
const chunk = (delta: object, finish: string | null = null, more: object = {}) => ({
  ...head,
  choices: [{ index: 0, delta, finish_reason: finish, ...more }],
});
const call = (members: object) => chunk({ tool_calls: [members] });
const stop = chunk({}, 'stop');

describe('streams of servers with chat completions', () => {
  const started = { id: 'c1', created: 1, model: 'm' };
  const weather = { type: 'toolCall', id: 'a', name: 'weather' };

  test.each([
    [
      'numbers all calls with 0',
      [
        call({ index: 0, id: 'a', function: { name: 'weather', arguments: '{"x":1}' } }),
        call({ index: 0, id: 'b', function: { name: 'time', arguments: '{}' } }),
        stop,
      ],
      [
        { ...weather, arguments: '{"x":1}' },
        { type: 'toolCall', id: 'b', name: 'time', arguments: '{}' },
      ],
    ],
    [
      'gives calls neither an id nor a number',
      [call({ function: { name: 'weather', arguments: '{' } }), call({ function: { arguments: '}' } }), stop],
      [{ ...weather, id: 'call_c1_0', arguments: '{}' }],
    ],
    [
      'repeats the id of a call',
      [
        call({ index: 0, id: 'a', function: { name: 'weather', arguments: '{' } }),
        call({ index: 0, id: 'a', function: { arguments: '}' } }),
        stop,
      ],
      [{ ...weather, arguments: '{}' }],
    ],
    [
      'sends the arguments as an object',
      [call({ index: 0, id: 'a', function: { name: 'weather', arguments: { x: 1 } } }), stop],
      [{ ...weather, arguments: '{"x":1}' }],
    ],
    [
      'calls reasoning by another name',
      [chunk({ reasoning: 'Hm', content: '' }), chunk({ content: 'Hi' }), stop],
      [
        { type: 'reasoning', text: 'Hm', origin: 'completions' },
        { type: 'text', text: 'Hi' },
      ],
    ],
    [
      'sends content as a list with thoughts',
      [
        chunk({ content: [{ type: 'thinking', thinking: [{ type: 'text', text: 'Hm' }] }] }),
        chunk({ content: [{ type: 'text', text: 'Hi' }] }),
        stop,
      ],
      [
        { type: 'reasoning', text: 'Hm', origin: 'completions' },
        { type: 'text', text: 'Hi' },
      ],
    ],
  ])('a server that %s is understood, also without [DONE]', (_, events, parts) => {
    const isCall = parts.some(({ type }) => type === 'toolCall');
    expect(read('completions', events)).toEqual({
      ...started,
      answers: [{ parts, stop: isCall ? 'toolCalls' : 'stop' }],
    });
  });

  // sgl-project/sglang#3912: an empty reason in every chunk, and no other.
  test.each([null, ''])('a stream that ends with [DONE] and a finish_reason of %j has ended', (finish) => {
    const args = (text: string) => ({ index: 0, id: 'a', function: { name: 'weather', arguments: text } });
    const answer = (delta: object) => read('completions', [chunk(delta, finish), '[DONE]'])?.answers[0];
    expect(answer({ content: 'Hi' })).toMatchObject({ parts: [{ text: 'Hi' }], stop: 'stop' });
    expect(answer({ tool_calls: [args('{}')] })).toMatchObject({ stop: 'toolCalls' });
    expect(answer({ tool_calls: [args('{')] })).toBeUndefined();
    expect(read('completions', [chunk({ content: 'Hi' }, finish)])).toBeUndefined();
  });

  test('a whole answer with a list of texts and thoughts is read like its stream', () => {
    const content = [
      { type: 'thinking', thinking: [{ type: 'text', text: 'Hm' }] },
      { type: 'text', text: 'Hi' },
    ];
    const [format] = chatFormats;
    const choices = [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }];
    expect(format?.readResponse({ ...head, choices }).answers[0]?.parts).toEqual([
      { type: 'reasoning', text: 'Hm', origin: 'completions' },
      { type: 'text', text: 'Hi' },
    ]);
  });

  test('the first chunk of Azure, which has no id, does not name the response', () => {
    const filter = { choices: [], created: 0, id: '', model: '', prompt_filter_results: [] };
    expect(read('completions', [filter, chunk({ content: 'Hi' }), stop])).toMatchObject(started);
  });

  test('counts in every chunk are those of the last one', () => {
    const counted = (output: number, delta: object, finish: string | null = null) => ({
      ...chunk(delta, finish),
      usage: { prompt_tokens: 5, completion_tokens: output },
    });
    const response = read('completions', [
      counted(1, { content: 'Hi' }),
      counted(3, { content: ' you' }),
      counted(4, {}, 'stop'),
      '[DONE]',
    ]);
    expect(response?.usage).toMatchObject({ input: 5, output: 4 });
  });

  test('several answers are read side by side', () => {
    const of = (index: number, delta: object, finish: string | null = null) => ({
      ...head,
      choices: [{ index, delta, finish_reason: finish }],
    });
    const response = read('completions', [
      of(0, { content: 'a' }),
      of(1, { content: 'x' }),
      of(0, { content: 'b' }),
      of(1, {}, 'length'),
      of(0, {}, 'stop'),
    ]);
    expect(response?.answers).toEqual([
      { parts: [{ type: 'text', text: 'ab' }], stop: 'stop' },
      { parts: [{ type: 'text', text: 'x' }], stop: 'length' },
    ]);
  });

  test('a stream without the end of its answer has no end', () => {
    expect(read('completions', [chunk({ content: 'Hi' })])).toBeUndefined();
  });

  test.each(['audio', 'function_call', 'images'])('%s in a chunk is refused by its path', (member) => {
    expect(() => read('completions', [chunk({ [member]: [{}] })])).toThrow(`choices[0].delta.${member}`);
  });
});

describe('streams of servers with messages', () => {
  const begin = { type: 'message_start', message: { id: 'm1', model: 'm', usage: { input_tokens: 3 } } };
  const end = (reason: string, more: object = {}) => [
    { type: 'message_delta', delta: { stop_reason: reason, ...more }, usage: { output_tokens: 7 } },
    { type: 'message_stop' },
  ];
  const block = (index: number, content_block: object, ...deltas: object[]) => [
    { type: 'content_block_start', index, content_block },
    ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
    { type: 'content_block_stop', index },
  ];
  const tool = { type: 'tool_use', id: 'a', name: 'weather' };

  test.each([
    ['without deltas', block(0, { ...tool, input: {} }), '{}'],
    ['with its input in the start of the block', block(0, { ...tool, input: { x: 1 } }), '{"x":1}'],
    [
      'with an empty first delta',
      block(
        0,
        { ...tool, input: {} },
        { type: 'input_json_delta', partial_json: '' },
        { type: 'input_json_delta', partial_json: '{"x":2}' },
      ),
      '{"x":2}',
    ],
  ])('a call %s has its arguments', (_, events, args) => {
    expect(read('messages', [begin, ...events, ...end('tool_use')])).toEqual({
      id: 'm1',
      model: 'm',
      usage: { input: 3, output: 7 },
      answers: [
        { parts: [{ type: 'toolCall', id: 'a', name: 'weather', arguments: args }], stop: 'toolCalls' },
      ],
    });
  });

  test('events of unknown types and pings are skipped, and text in the start of a block is read', () => {
    const events = [
      { type: 'from_the_future' },
      { type: 'ping' },
      ...block(0, { type: 'text', text: 'He' }, { type: 'text_delta', text: 'y' }),
    ];
    expect(read('messages', [begin, ...events, ...end('end_turn')])?.answers).toEqual([
      { parts: [{ type: 'text', text: 'Hey' }], stop: 'stop' },
    ]);
  });

  test('a stop sequence and the explanation of a refusal are read', () => {
    const stopped = end('stop_sequence', { stop_sequence: 'END' });
    const text = block(0, { type: 'text', text: 'a' });
    expect(read('messages', [begin, ...text, ...stopped])?.answers).toMatchObject([
      { stop: 'stopSequence', stopSequence: 'END' },
    ]);
    const refused = end('refusal', { stop_details: { type: 'refusal', explanation: 'No.' } });
    expect(read('messages', [begin, ...refused])?.answers).toEqual([
      { parts: [{ type: 'refusal', text: 'No.' }], stop: 'refusal' },
    ]);
  });

  test('counts of later events replace earlier ones, and null replaces nothing', () => {
    const usage = { input_tokens: 3, cache_read_input_tokens: 10, output_tokens: 1 };
    const later = { input_tokens: null, cache_read_input_tokens: null, output_tokens: 9 };
    const response = read('messages', [
      { type: 'message_start', message: { id: 'm1', model: 'm', usage } },
      { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: later },
      { type: 'message_stop' },
    ]);
    expect(response?.usage).toEqual({ input: 13, output: 9, cachedInput: 10 });
  });

  test('blocks of tools that run at the provider are refused by their type', () => {
    const found = { type: 'web_search_tool_result', content: [] };
    expect(() => read('messages', [begin, ...block(0, found)])).toThrow('web_search_tool_result');
  });
});

describe('streams of servers with responses', () => {
  const created = {
    type: 'response.created',
    response: { id: 'r1', model: 'm', created_at: 1, status: 'in_progress' },
  };
  const completed = { type: 'response.completed', response: { id: 'r1', status: 'completed' } };
  const done = (output_index: number, item: object) => [
    { type: 'response.output_item.added', output_index, item },
    { type: 'response.output_item.done', output_index, item },
  ];

  test('items without deltas are read from their end', () => {
    const response = read('responses', [
      created,
      ...done(0, { type: 'reasoning', id: 'rs', summary: [], encrypted_content: 'secret' }),
      ...done(1, { type: 'message', content: [{ type: 'output_text', text: 'Hi' }] }),
      ...done(2, { type: 'function_call', call_id: 'a', name: 'weather', arguments: '{"x":1}' }),
      ...done(3, { type: 'custom_tool_call', call_id: 'b', name: 'patch', input: 'text' }),
      completed,
    ]);
    expect(response?.answers).toEqual([
      {
        parts: [
          {
            type: 'reasoning',
            text: '',
            isSummary: true,
            id: 'rs',
            encrypted: 'secret',
            origin: 'responses',
          },
          { type: 'text', text: 'Hi' },
          { type: 'toolCall', id: 'a', name: 'weather', arguments: '{"x":1}' },
          { type: 'toolCall', id: 'b', name: 'patch', arguments: 'text', isCustom: true },
        ],
        stop: 'toolCalls',
      },
    ]);
  });

  test('parts of a summary are paragraphs', () => {
    const part = (summary_index: number, delta: string) => [
      { type: 'response.reasoning_summary_part.added', output_index: 0, item_id: 'rs', summary_index },
      { type: 'response.reasoning_summary_text.delta', output_index: 0, item_id: 'rs', summary_index, delta },
    ];
    const item = { type: 'reasoning', id: 'rs', summary: [{ text: 'One.' }, { text: 'Two.' }] };
    const [added, end] = done(0, item) as [object, object];
    const response = read('responses', [
      created,
      added,
      ...part(0, 'One.'),
      ...part(1, 'Two.'),
      end,
      completed,
    ]);
    expect(response?.answers[0]?.parts).toMatchObject([{ text: 'One.\n\nTwo.' }]);
  });

  test.each([
    ['max_output_tokens', 'length'],
    ['content_filter', 'filter'],
  ])('a response that is incomplete because of %s stops with %s', (reason, stopped) => {
    const response = { id: 'r1', status: 'incomplete', incomplete_details: { reason } };
    const text = done(0, { type: 'message', content: [{ type: 'output_text', text: 'Hi' }] });
    expect(read('responses', [created, ...text, { type: 'response.incomplete', response }])?.answers).toEqual(
      [{ parts: [{ type: 'text', text: 'Hi' }], stop: stopped }],
    );
  });

  test.each([
    ['response.failed', { response: { error: { code: 'server_error', message: 'Broken.' } } }],
    ['error', { code: 'server_error', message: 'Broken.', param: null }],
  ])('the event %s is the error of the stream', (type, members) => {
    expect(() => read('responses', [created, { type, ...members }])).toThrow('Broken.');
  });

  test('items of tools that run at the provider are refused by their type', () => {
    expect(() => read('responses', [created, ...done(0, { type: 'web_search_call' })])).toThrow(
      'web_search_call',
    );
  });
});

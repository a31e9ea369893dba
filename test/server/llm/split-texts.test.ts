import { describe, expect, test } from 'vitest';
import { eventsIn } from '../../kit/llm-events.ts';
import { callOf, type WIRE } from '../../kit/llm-formats.ts';
import {
  answering,
  bodyOf,
  EVERY_FORMAT,
  llmGateway,
  llmProvider,
  streaming,
  textOf,
} from '../../kit/llm-provider.ts';
import { send } from '../../kit/send.ts';

// A text that is divided among parts of a content, or among neighbouring blocks and messages, is one text for the reader, and for
// patterns.

type FormatName = keyof typeof WIRE;
const PATTERN = { pattern: 'SECRET77' };
const PIECES = ['before SE', 'CR', 'ET77 after'];
const rule = (action: string): object => ({
  regex: { action, rules: [PATTERN] },
  rejection: { body: 'blocked' },
});

/** A text for each piece, with this type and member. */
const parts = (type: string, member = 'text'): object[] =>
  PIECES.map((text) => ({ ...(type !== '' && { type }), [member]: text }));
const messages = (role: string): object[] => PIECES.map((content) => ({ role, content }));

const REQUESTS: readonly (readonly [what: string, format: FormatName, members: object])[] = [
  ['parts of a message', 'completions', { messages: [{ role: 'user', content: parts('text') }] }],
  ['messages of one role', 'completions', { messages: messages('user') }],
  ['content blocks', 'messages', { messages: [{ role: 'user', content: parts('text') }], max_tokens: 9 }],
  ['system blocks', 'messages', { system: parts('text'), messages: [], max_tokens: 9 }],
  [
    'blocks of a result of a tool',
    'messages',
    {
      messages: [
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content: parts('text') }] },
      ],
      max_tokens: 9,
    },
  ],
  ['input parts', 'responses', { input: [{ role: 'user', content: parts('input_text') }] }],
  ['input items', 'responses', { input: messages('user') }],
  ['parts of a content', 'generateContent', { contents: [{ role: 'user', parts: parts('') }] }],
  [
    'contents of one role',
    'generateContent',
    { contents: parts('').map((part) => ({ role: 'user', parts: [part] })) },
  ],
];

describe('a text in several places of a request', () => {
  test.each(REQUESTS)('is rejected in %s of %s', async (_, format, members) => {
    await using provider = await llmProvider();
    await using gate = await llmGateway(provider, {
      model: {
        provider: EVERY_FORMAT,
        guardrails: { request: [{ ...rule('reject'), scope: ['systemPrompt', 'messages', 'toolOutput'] }] },
      },
    });
    const { path } = callOf(format, 'm');
    const body = JSON.stringify(format === 'generateContent' ? members : { model: 'm', ...members });
    expect((await send(gate.url + path, { method: 'POST', body })).text).toContain('blocked');
    expect(provider.received).toEqual([]);
  });

  test.each(REQUESTS)('is masked in %s of %s', async (_, format, members) => {
    await using provider = await llmProvider();
    await using gate = await llmGateway(provider, {
      model: {
        provider: EVERY_FORMAT,
        guardrails: { request: [{ ...rule('mask'), scope: ['systemPrompt', 'messages', 'toolOutput'] }] },
      },
    });
    const { path } = callOf(format, 'm');
    const body = JSON.stringify(format === 'generateContent' ? members : { model: 'm', ...members });
    await send(gate.url + path, { method: 'POST', body });
    const sent = saidIn(bodyOf(provider));
    expect(sent).toContain('before <masked> after');
    expect(textOf(provider)).not.toMatch(/SE"|"CR|ET77/);
  });

  test.each<[string, object]>([
    [
      'messages of other roles between them',
      {
        messages: PIECES.flatMap((content) => [
          { role: 'user', content },
          { role: 'assistant', content: 'ok' },
        ]),
      },
    ],
    ['texts of embeddings', { input: PIECES, messages: [] }],
    [
      'two calls of tools',
      {
        messages: [
          { role: 'assistant', tool_calls: PIECES.map((text) => ({ function: { arguments: text } })) },
        ],
      },
    ],
  ])('is not one text with %s', async (_, members) => {
    await using provider = await llmProvider();
    await using gate = await llmGateway(provider, {
      model: { guardrails: { request: [{ ...rule('reject'), scope: ['messages', 'toolInput'] }] } },
    });
    const body = JSON.stringify({ model: 'm', ...members });
    expect((await send(`${gate.url}/v1/chat/completions`, { method: 'POST', body })).status).toBe(200);
  });

  test('10,000 parts of one character are checked at once', async () => {
    await using provider = await llmProvider();
    await using gate = await llmGateway(provider, { model: { guardrails: { request: [rule('mask')] } } });
    const text = `${'x'.repeat(5_000)}SECRET77${'y'.repeat(5_000)}`;
    const content = [...text].map((each) => ({ type: 'text', text: each }));
    const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content }] });
    expect((await send(`${gate.url}/v1/chat/completions`, { method: 'POST', body })).status).toBe(200);
    expect(saidIn(bodyOf(provider))).toContain('x <masked> y');
  });
});

const block = (text: string, index: number): object[] => [
  { type: 'content_block_start', index, content_block: { type: 'text', text: '' } },
  { type: 'content_block_delta', index, delta: { type: 'text_delta', text } },
  { type: 'content_block_stop', index },
];
const outputItem = (text: string, index: number): object[] => [
  {
    type: 'response.output_item.added',
    output_index: index,
    item: { type: 'message', id: `i${index}`, content: [] },
  },
  { type: 'response.output_text.delta', output_index: index, content_index: 0, delta: text },
  { type: 'response.output_text.done', output_index: index, content_index: 0, text },
];

const ANSWERS: readonly (readonly [what: string, format: FormatName, body: object])[] = [
  ['content blocks', 'messages', { content: parts('text') }],
  ['thoughts', 'messages', { content: parts('thinking', 'thinking') }],
  ['parts of a message', 'responses', { output: [{ type: 'message', content: parts('output_text') }] }],
  [
    'messages',
    'responses',
    { output: parts('output_text').map((part) => ({ type: 'message', content: [part] })) },
  ],
  ['parts of a candidate', 'generateContent', { candidates: [{ content: { parts: parts('') } }] }],
  ['parts of a choice', 'completions', { choices: [{ message: { content: parts('text') } }] }],
];

const STREAMS: readonly (readonly [what: string, format: FormatName, events: readonly object[]])[] = [
  ['content blocks', 'messages', PIECES.flatMap(block)],
  ['messages', 'responses', PIECES.flatMap(outputItem)],
  ['parts of a delta', 'completions', [{ choices: [{ index: 0, delta: { content: parts('text') } }] }]],
  ['parts of a candidate', 'generateContent', [{ candidates: [{ content: { parts: parts('') } }] }]],
];

describe('a text in several places of an answer', () => {
  test.each(ANSWERS)('is masked in %s of %s', async (_, format, body) => {
    await using provider = await llmProvider(answering(JSON.stringify(body)));
    const { path, body: request } = callOf(format, 'm');
    for (const action of ['mask', 'reject']) {
      await using gate = await llmGateway(provider, {
        model: { provider: EVERY_FORMAT, guardrails: { response: [rule(action)] } },
      });
      const { text } = await send(gate.url + path, { method: 'POST', body: request });
      expect(text).not.toMatch(/SE"|"CR|ET77/);
      expect(text).toContain(action === 'mask' ? '<masked>' : 'blocked');
    }
  });

  test.each(STREAMS)('is masked in %s of a stream of %s', async (_, format, events) => {
    const sent = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
    await using provider = await llmProvider(streaming((response) => response.end(sent)));
    const { path, body } = callOf(format, 'm', true);
    for (const action of ['mask', 'reject']) {
      await using gate = await llmGateway(provider, {
        model: { provider: EVERY_FORMAT, guardrails: { response: [rule(action)] } },
      });
      const { text } = await send(gate.url + path, { method: 'POST', body });
      expect(text).not.toMatch(/SE"|"CR"|ET77/);
      if (action === 'reject') expect(text).toContain('blocked');
      else expect(saidIn(eventsIn(text))).toBe('before <masked> after');
    }
  });

  test('the end of a text block waits for the next block of text, but not for that of a tool', async () => {
    let resume = (): void => undefined;
    const read = new Promise<void>((resolve) => {
      resume = resolve;
    });
    const tool = {
      type: 'content_block_start',
      index: 1,
      content_block: { type: 'tool_use', id: 't', name: 'f', input: {} },
    };
    const args = {
      type: 'content_block_delta',
      index: 1,
      delta: { type: 'input_json_delta', partial_json: 'x'.repeat(3_000) },
    };
    const line = (event: object): string => `data: ${JSON.stringify(event)}\n\n`;
    await using provider = await llmProvider(
      streaming(async (response) => {
        response.write([...block('the text', 0), tool, args].map(line).join(''));
        await read;
        response.end(line({ type: 'message_stop' }));
      }),
    );
    await using gate = await llmGateway(provider, {
      model: { provider: EVERY_FORMAT, guardrails: { response: [rule('mask')] } },
    });
    const { path, body } = callOf('messages', 'm', true);
    const response = await fetch(gate.url + path, { method: 'POST', body });
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    expect((await reader?.read())?.value).toContain('the text');
    resume();
    for (let rest = await reader?.read(); rest?.done === false; rest = await reader?.read());
  });
});

/** What a value says, in order: its texts without types, roles and repetitions. */
function saidIn(value: unknown): string {
  if (typeof value !== 'object' || value === null || ('type' in value && /\.done$/.test(String(value.type))))
    return '';
  return Object.entries(value)
    .map(([key, member]) => {
      if (typeof member !== 'string') return saidIn(member);
      return /^(?:text|content|thinking|delta)$/.test(key) ? member : '';
    })
    .join('');
}

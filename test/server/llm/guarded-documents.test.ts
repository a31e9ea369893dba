import { describe, expect, test } from 'vitest';
import { exchange } from '../../kit/llm-exchange.ts';
import { callOf, type WIRE } from '../../kit/llm-formats.ts';
import {
  answering,
  EMPTY_ANSWER,
  EVERY_FORMAT,
  llmGateway,
  llmProvider,
  streaming,
  textOf,
} from '../../kit/llm-provider.ts';
import { type HttpReply, send } from '../../kit/send.ts';
import type { HttpUpstream } from '../../kit/upstream.ts';

// Texts that are encoded, that cannot be masked, or that repeat the request.

type FormatName = keyof typeof WIRE;
const TEXT = 'the SECRET77 word';
const MASKED = 'the <masked> word';
const base64 = (text: string, encoding: BufferEncoding = 'utf8'): string =>
  Buffer.from(text, encoding).toString('base64');
const LONG = `${'ä long text '.repeat(200)}${TEXT}`;
const rule = (action: string): object => ({
  regex: { action, rules: [{ pattern: 'SECRET77' }] },
  rejection: { body: 'blocked' },
});

async function asked(
  provider: HttpUpstream,
  format: FormatName,
  members: object,
  guardrails: object,
  isStream = false,
): Promise<HttpReply> {
  await using gate = await llmGateway(provider, { model: { provider: EVERY_FORMAT, guardrails } });
  const { path, body } = callOf(format, 'm', isStream);
  const request = { ...(JSON.parse(body) as object), ...members };
  return await send(gate.url + path, { method: 'POST', body: JSON.stringify(request) });
}

const user = (content: object): object => ({ messages: [{ role: 'user', content: [content] }] });
const source = (data: string, type = 'text/plain'): object =>
  user({ type: 'document', source: { type: 'base64', media_type: type, data } });
const file = (data: string): object => user({ type: 'file', file: { filename: 'a.txt', file_data: data } });
const inline = (data: string, mimeType: string): object => ({
  contents: [{ role: 'user', parts: [{ inlineData: { mimeType, data } }] }],
});

const DOCUMENTS: readonly (readonly [what: string, format: FormatName, of: (text: string) => object])[] = [
  ['a document of text', 'messages', (text) => source(base64(text))],
  ['a document of JSON', 'messages', (text) => source(base64(text), 'application/json')],
  ['a document of another type', 'messages', (text) => source(base64(text), 'application/x-new')],
  ['a file in a `data:` URL', 'completions', (text) => file(`data:text/plain;base64,${base64(text)}`)],
  [
    'a file with a charset',
    'completions',
    (text) => file(`data:text/csv;charset=utf-8;base64,${base64(text)}`),
  ],
  ['a file without a type', 'completions', (text) => file(base64(text))],
  [
    'a percent-encoded `data:` URL',
    'completions',
    (text) => file(`data:text/plain,${encodeURIComponent(text)}`),
  ],
  [
    'a file of the Responses API',
    'responses',
    (text) => ({
      input: [
        {
          role: 'user',
          content: [{ type: 'input_file', file_data: `data:text/markdown;base64,${base64(text)}` }],
        },
      ],
    }),
  ],
  ['inline data', 'generateContent', (text) => inline(base64(text), 'text/plain')],
  ['inline data of XML', 'generateContent', (text) => inline(base64(text), 'application/xml')],
];

describe('text in a document', () => {
  test.each(DOCUMENTS)('is read and masked in %s of %s', async (_, format, of) => {
    await using provider = await llmProvider(answering('{}'));
    for (const [text, masked] of [
      [TEXT, MASKED],
      [LONG, LONG.replace(TEXT, MASKED)],
    ] as const) {
      expect((await asked(provider, format, of(text), { request: [rule('reject')] })).text).toContain(
        'blocked',
      );
      await asked(provider, format, of(text), { request: [rule('mask')] });
      expect(textOf(provider)).toContain(JSON.stringify(of(masked)).slice(1, -1));
    }
    expect(provider.received).toHaveLength(2);
  });

  test.each([
    ['UTF-16', source(base64(TEXT, 'utf16le'))],
    ['Latin-1', source(base64(`Gr\u00fc\u00dfe ${TEXT}`, 'latin1'))],
    ['text that is declared as base64', source('SECRET77')],
  ])('in %s is rejected, because it cannot be masked, or masked', async (_, members) => {
    await using provider = await llmProvider(answering('{}'));
    const { text } = await asked(provider, 'messages', members, { request: [rule('mask')] });
    expect(text.includes('blocked') || !textOf(provider).includes('SECRET77')).toBe(true);
    expect((await asked(provider, 'messages', members, { request: [rule('reject')] })).text).toContain(
      'blocked',
    );
  });

  test('is not looked for in images, recordings and PDFs, which stay byte for byte', async () => {
    await using provider = await llmProvider(answering(EMPTY_ANSWER));
    const bytes = Buffer.concat([
      Buffer.from([0x25, 0x50, 0x44, 0x46, 0, 1, 2]),
      Buffer.from(TEXT.repeat(100)),
    ]).toString('base64');
    for (const type of ['image/png', 'application/pdf', 'application/octet-stream']) {
      const { text } = await asked(provider, 'messages', source(bytes, type), { request: [rule('reject')] });
      expect([type, text]).toEqual([type, EMPTY_ANSWER]);
      expect(textOf(provider)).toContain(bytes);
    }
  });

  test('of a length beyond the limit fails the call', async () => {
    await using provider = await llmProvider(answering('{}'));
    const members = source(base64('x'.repeat(1_048_577)));
    expect((await asked(provider, 'messages', members, { request: [rule('mask')] })).status).toBe(413);
    expect(provider.received).toEqual([]);
  });
});

describe('a text that is no free text', () => {
  const tool = (name: string, input: object): object => ({
    content: [{ type: 'tool_use', id: 't', name, input }],
  });

  test.each([
    ['a key in the input of a tool', tool('f', { SECRET77: 1 })],
    ['a key inside of it', tool('f', { a: [{ SECRET77: true }] })],
    ['the name of a tool', tool('SECRET77', {})],
    [
      'the host of a URL',
      { content: [{ type: 'text', text: 'a', citations: [{ url: 'https://SECRET77/' }] }] },
    ],
  ])('is rejected where it would be masked: %s', async (_, body) => {
    await using provider = await llmProvider(answering(JSON.stringify(body)));
    const { status, text } = await asked(provider, 'messages', {}, { response: [rule('mask')] });
    expect([status, text.includes('blocked'), text.includes('SECRET77')]).toEqual([403, true, false]);
  });

  test('is masked in a URL that stays one', async () => {
    const body = (url: string): string =>
      JSON.stringify({
        choices: [
          { message: { content: 'a', annotations: [{ type: 'url_citation', url_citation: { url } }] } },
        ],
        citations: [url],
      });
    await using provider = await llmProvider(answering(body('https://a.example/x?q=SECRET77')));
    const { text } = await asked(provider, 'completions', {}, { response: [rule('mask')] });
    expect(text).toBe(
      body('https://a.example/x?q=%3Cmasked%3E').replace(
        '"citations":["https://a.example/x?q=%3Cmasked%3E"]',
        '"citations":["https://a.example/x?q=<masked>"]',
      ),
    );
  });

  test.each([
    ['the name of an event', 'event: a SECRET77\ndata: {"choices":[{}]}\n\n'],
    ['a name of one word', 'event: SECRET77\ndata: {"choices":[{}]}\n\n'],
    ['a list', 'data: ["SECRET\\u00377"]\n\n'],
    ['a text', 'data: "SECRET\\u00377"\n\n'],
  ])('ends a stream in %s', async (_, event) => {
    const events = `data: {"choices":[{}]}\n\n${event}`;
    await using provider = await llmProvider(streaming((response) => response.end(events)));
    const { text } = await asked(provider, 'completions', {}, { response: [rule('reject')] }, true);
    expect(text).toContain('blocked');
    expect(text).not.toContain('SECRET');
  });

  test('is not passed on in what is no content of an event', async () => {
    const events = [
      ': SECRET77\n\n',
      'note: SECRET77\nid: SECRET77\nretry: 7\ndata: {"choices":[{}]}\n:SECRET77\n\n',
      'id\r\nid:SECRET77\r\n\r\n',
      '\uFEFFevent: message\rdata:{"choices":\rdata:[]}\r\r',
      'data: [DONE]\n\n',
    ].join('');
    await using provider = await llmProvider(streaming((response) => response.end(events)));
    const { text } = await asked(provider, 'completions', {}, { response: [rule('reject')] }, true);
    expect(text).toBe(
      ':\n\ndata: {"choices":[{}]}\n\n:\n\nevent: message\ndata: {"choices":\ndata: []}\n\ndata: [DONE]\n\n',
    );
  });
});

describe('a text in another spelling', () => {
  const call = (args: string): object => ({
    choices: [{ message: { tool_calls: [{ id: 'c', function: { name: 'f', arguments: args } }] } }],
  });

  test('is found in the arguments of a tool, which are JSON text', async () => {
    const written = '{"a":"\\u0053ECRET77 \\\\u0053 \\u0022"}';
    await using provider = await llmProvider(answering(JSON.stringify(call(written))));
    expect((await asked(provider, 'completions', {}, { response: [rule('reject')] })).text).toBe('blocked');
    const { text } = await asked(provider, 'completions', {}, { response: [rule('mask')] });
    expect(text).toBe(JSON.stringify(call('{"a":"<masked> \\\\u0053 \\u0022"}')));
  });

  test('is found in the arguments of a tool in a stream', async () => {
    const event = (text: string): string =>
      `data: ${JSON.stringify({ choices: [{ index: 0, delta: { tool_calls: [{ index: 0, function: { arguments: text } }] } }] })}\n\n`;
    const events = ['{"a":"\\u00', '53ECR', 'ET77"}'].map(event).join('');
    await using provider = await llmProvider(streaming((response) => response.end(events)));
    const rejected = await asked(provider, 'completions', {}, { response: [rule('reject')] }, true);
    expect(rejected.text).toContain('blocked');
    const masked = await asked(provider, 'completions', {}, { response: [rule('mask')] }, true);
    expect(masked.text).not.toMatch(/53ECR|ET77/);
  });

  test.each([true, false])('a member that occurs twice is sent once (stream: %s)', async (isStream) => {
    const body = '{"choices":[{"index":0,"message":{"content":"SECRET77"},"message":{"content":"a"}}]}';
    await using provider = await llmProvider(
      isStream ? streaming((each) => each.end(`data: ${body}\n\n`)) : answering(body),
    );
    const { text } = await asked(provider, 'completions', {}, { response: [rule('reject')] }, isStream);
    expect(text).toContain('{"choices":[{"index":0,"message":{"content":"a"}}]}');
  });
});

describe('the error of a provider', () => {
  test.each<[string, string, string, string]>([
    [
      'JSON',
      '{"error":{"message":"not SECRET77","code":7.0}}',
      'application/json',
      '{"error":{"message":"not <masked>","code":7.0}}',
    ],
    [
      'a list',
      '[{"error":{"message":"not SECRET77"}}]',
      'application/json',
      '{"type":"error","error":{"type":"invalid_request_error","message":"not <masked>"}}',
    ],
    [
      'JSON that is a text',
      '"not SECRET77"',
      'application/json',
      '{"type":"error","error":{"type":"invalid_request_error","message":"not <masked>"}}',
    ],
    [
      'a text',
      'not SECRET77',
      'text/plain',
      '{"type":"error","error":{"type":"invalid_request_error","message":"the provider responded with HTTP 422: not <masked>"}}',
    ],
  ])('is masked or replaced, and keeps its status: %s', async (_, body, type, masked) => {
    await using provider = await llmProvider(answering(body, 422, { 'content-type': type }));
    expect(await asked(provider, 'messages', {}, { response: [rule('mask')] })).toMatchObject({
      status: 422,
      text: masked,
    });
    const { status, text } = await asked(provider, 'messages', {}, { response: [rule('reject')] });
    expect([status, JSON.parse(text)]).toEqual([
      422,
      {
        type: 'error',
        error: {
          type: 'invalid_request_error',
          message: 'the error of the provider was blocked by a guardrail',
        },
      },
    ]);
  });
});

test.each([
  ['a masked text', '{"error":{"message":"not SECRET77"}}', '{"error":{"message":"not <masked>"}}'],
  [
    'a member that occurs twice',
    '{"error":{"message":"no","a":1,"a":2}}',
    '{"error":{"message":"no","a":2}}',
  ],
])(
  'an error that the provider calls a stream is JSON for the client once it was changed: %s',
  async (_, body, changed) => {
    await using provider = await llmProvider(answering(body, 422, { 'content-type': 'text/event-stream' }));
    const { text, headers } = await asked(provider, 'messages', {}, { response: [rule('mask')] });
    expect([text, headers['content-type']]).toEqual([changed, 'application/json']);
  },
);

test('the error of a provider is checked in the format of the client, too', async () => {
  await using llm = await exchange({ model: { guardrails: { response: [rule('mask')] } } });
  const body = { error: { message: 'not SECRET77', type: 'invalid_request_error' } };
  const { status, text } = await llm.call(
    'completions',
    { body, status: 400 },
    { client: 'messages', stream: false },
  );
  expect([status, text.includes('not <masked>')]).toEqual([400, true]);
});

describe('a response that repeats the request', () => {
  const settings = {
    instructions: TEXT,
    metadata: { key: TEXT },
    tools: [{ type: 'function', name: 'f', description: TEXT }],
  };
  const response = (more: object): object => ({ object: 'response', output: [], ...settings, ...more });

  test.each([true, false])(
    'passes what the client has sent, and nothing else (stream: %s)',
    async (isStream) => {
      const ask = async (body: object): Promise<string> => {
        const json = JSON.stringify(body);
        const event = `data: {"type":"response.created","response":${json}}\n\n`;
        await using provider = await llmProvider(
          isStream ? streaming((each) => each.end(event)) : answering(json),
        );
        return (await asked(provider, 'responses', settings, { response: [rule('reject')] }, isStream)).text;
      };
      expect(await ask(response({}))).not.toContain('blocked');
      expect(await ask(response({ instructions: `${TEXT}.` }))).toContain('blocked');
      expect(await ask(response({ metadata: { SECRET77: 'x' } }))).toContain('blocked');
      expect(
        await ask(
          response({ output: [{ type: 'message', content: [{ type: 'output_text', text: TEXT }] }] }),
        ),
      ).toContain('blocked');
    },
  );
});

test('a webhook may replace all messages of a request that has other texts', async () => {
  await using provider = await llmProvider(answering('{}'));
  await using hook = await llmProvider(
    answering(JSON.stringify({ action: { body: { messages: [{ role: 'user', content: 'one' }] } } })),
  );
  const members = {
    messages: [
      { role: 'user', content: 'a' },
      { role: 'user', content: 'b' },
    ],
    user: 'u',
    tools: [],
  };
  await asked(provider, 'completions', members, {
    request: [{ webhook: { target: { host: hook.address } } }],
  });
  expect(JSON.parse(textOf(provider))).toEqual({
    model: 'm',
    ...members,
    messages: [{ role: 'user', content: 'one' }],
  });
});

import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { TestGateway } from '../../kit/gateway.ts';
import {
  CHAT,
  chunk,
  completion,
  DONE,
  EVERY_FORMAT,
  FINISH,
  llmProvider,
  modelsGateway,
} from '../../kit/llm-provider.ts';
import { type HttpReply, send } from '../../kit/send.ts';
import type { Answer, HttpUpstream } from '../../kit/upstream.ts';

// Answers that no provider should give, and that providers, proxies and load balancers have given.

const GUARDS = {
  regex: { action: 'reject', rules: [{ pattern: 'SECRET' }] },
  rejection: { body: 'blocked' },
};

let answer: Answer;
let calls = 0;
let provider: HttpUpstream;
let gate: TestGateway;

beforeAll(async () => {
  provider = await llmProvider((...call) => answer(...call));
  const params = { baseUrl: `http://${provider.address}/v1` };
  const plain = { provider: EVERY_FORMAT, params };
  const guarded = { ...plain, guardrails: { request: [GUARDS], response: [GUARDS] } };
  const targets = (name: string): object[] => [
    { model: `${name}-1`, priority: 0 },
    { model: `${name}-2`, priority: 1 },
  ];
  const virtualModels = ['safe', 'open'].map((name) => ({
    name,
    routing: { failover: { targets: targets(name) } },
  }));
  gate = await modelsGateway(
    [
      { name: 'plain', ...plain },
      { name: 'guarded', ...guarded },
      ...['safe-1', 'safe-2'].map((name) => ({ name, ...guarded })),
      ...['open-1', 'open-2'].map((name) => ({ name, ...plain })),
    ],
    { virtualModels },
  );
});
afterAll(async () => {
  await gate[Symbol.asyncDispose]();
  await provider.close();
});

interface Asked extends HttpReply {
  readonly line: Readonly<Record<string, string>>;
}

const PATHS = {
  completions: '/v1/chat/completions',
  messages: '/v1/messages',
  responses: '/v1/responses',
  generateContent: '/v1beta/models/MODEL:generateContent',
} as const;
const DATA_PATHS = {
  embeddings: '/v1/embeddings',
  images: '/v1/images/generations',
  moderations: '/v1/moderations',
  rerank: '/v1/rerank',
  tokenCount: '/v1/messages/count_tokens',
  countTokens: '/v1beta/models/MODEL:countTokens',
  embedContent: '/v1beta/models/MODEL:embedContent',
  batchEmbedContents: '/v1beta/models/MODEL:batchEmbedContents',
} as const;
const TEXT_PATHS = { textCompletions: '/v1/completions' } as const;
type Format = keyof typeof PATHS | keyof typeof DATA_PATHS | keyof typeof TEXT_PATHS;

async function ask(
  model: string,
  how: Answer,
  more: object = {},
  format: Format = 'completions',
): Promise<Asked> {
  answer = how;
  const body = {
    ...CHAT,
    max_tokens: 9,
    input: 'Hi',
    contents: [{ parts: [{ text: 'Hi' }] }],
    ...more,
    model,
  };
  const isStream = 'stream' in more;
  const path = { ...PATHS, ...DATA_PATHS, ...TEXT_PATHS }[format].replace('MODEL', model);
  const reply = await send(
    gate.url + (isStream ? path.replace(':generateContent', ':streamGenerateContent?alt=sse') : path),
    { method: 'POST', body: JSON.stringify(body) },
  );
  calls += 1;
  return { ...reply, line: await gate.accessLine(calls) };
}

const STREAM = { stream: true };
const SSE = 'text/event-stream';
const body =
  (bytes: string | Buffer, type = 'application/json', status = 200): Answer =>
  (_, response) =>
    response.writeHead(status, { 'content-type': type }).end(bytes);
const events = (...sent: readonly string[]): Answer => body(sent.join(''), SSE);
const latin1 = (text: string): Buffer => Buffer.from(text, 'latin1');

/** The message of an error in the format of a client. */
const messageIn = (text: string): string =>
  (JSON.parse(text) as { error: { message: string } }).error.message;

describe('a guarded answer', () => {
  test('that is larger than the gateway reads is a 502 with the limit, and nothing of it counts', async () => {
    for (const how of [
      body(completion('x'.repeat(9_000_000))),
      (_: unknown, response: ServerResponse) => {
        response.writeHead(200, { 'content-type': 'application/json' }).write('{"choices":[');
        return response.end('x'.repeat(9_000_000));
      },
    ] as Answer[]) {
      const { status, text, line } = await ask('guarded', how);
      expect([status, messageIn(text)]).toEqual([
        502,
        expect.stringMatching(/response is larger than 8388608 bytes.*ask for fewer tokens, or for a stream/),
      ]);
      expect(line).toMatchObject({ reason: 'UpstreamFailure', error: messageIn(text) });
      expect(line['error.detail']).not.toContain('client');
      expect(line).not.toHaveProperty(['gen_ai.usage.output_tokens']);
    }
  });

  test('with a text that is too long for guardrails is a 502 with the bound', async () => {
    const { status, text, line } = await ask('guarded', body(completion('x'.repeat(1_048_577))));
    expect([status, messageIn(text), line['reason']]).toEqual([
      502,
      expect.stringContaining('a text of the response has more than 1048576 characters'),
      'Guardrail',
    ]);
  });

  test.each<[Format, object]>([
    ['completions', { type: 'invalid_request_error', code: 'request_too_large' }],
    ['messages', { type: 'request_too_large' }],
    ['responses', { code: 'request_too_large' }],
    ['generateContent', { code: 413 }],
  ])('to a request of %s with such a text is a 413 in its format', async (format, error) => {
    const long = 'x'.repeat(1_048_577);
    const more = {
      messages: [{ role: 'user', content: long }],
      input: long,
      contents: [{ parts: [{ text: long }] }],
    };
    const { status, text } = await ask('guarded', body('{}'), more, format);
    expect([status, JSON.parse(text).error]).toEqual([413, expect.objectContaining(error)]);
    expect(messageIn(text)).toContain('more than 1048576 characters');
  });

  const bytes = latin1(completion('SEC\u00ffRET'));
  test.each<[string, Answer]>([
    ['an invalid byte', body(bytes)],
    ['an overlong form', body(latin1(completion('\u00c1\u0093ECRET')))],
    ['half of a surrogate pair', body(latin1(completion('S\u00ed\u00a0\u0080ECRET')))],
    ['UTF-16', body(Buffer.from(completion('SECRET'), 'utf16le'), 'application/json; charset=utf-16le')],
    ['UTF-16 with a mark', body(Buffer.from(`\uFEFF${completion('SECRET')}`, 'utf16le'))],
    ['a mark of UTF-8', body(`\uFEFF${completion('SECRET')}`)],
    ['an error with an invalid byte', body(bytes, 'application/json', 500)],
    ['an event with an invalid byte', body(latin1(`data: ${completion('SEC\u00ffRET')}\n\n${DONE}`), SSE)],
    ['the rest of a stream', body(latin1(`${chunk({ content: 'a' })}data: {"a":"SEC\u00ffRET`), SSE)],
    ['an event that is cut', events(chunk({ content: 'a' }), chunk({ content: 'SECRET' }).slice(0, -6))],
    ['an event without its end', events(chunk({ content: 'SECRET' }).trimEnd())],
    ['data of several lines', events('data: {"choices":[],\ndata: "x":"SECRET"}\n\n', DONE)],
    ['data that is no JSON', events(chunk({ content: 'a' }), 'data: my SECRET\n\n', DONE)],
  ])('with %s does not pass what guardrails have not read', async (_, how) => {
    for (const more of [{}, STREAM]) {
      const { text, line } = await ask('guarded', how, more);
      // A client may leave out what it cannot decode.
      expect(text.replaceAll(/[^A-Za-z]/g, '')).not.toContain('SECRET');
      expect(line['error'] ?? line['error.detail']).toBeDefined();
    }
  });

  test('is labelled as what guardrails have read', async () => {
    for (const charset of ['utf-7', 'utf-16', 'iso-2022-jp', 'utf-8']) {
      const plain = await ask(
        'guarded',
        body(completion('+AFM-ECRET'), `application/json; charset=${charset}`),
      );
      const stream = await ask(
        'guarded',
        body(chunk({ content: 'a' }) + DONE, `${SSE};charset=${charset}`),
        STREAM,
      );
      expect([plain.headers['content-type'], stream.headers['content-type']]).toEqual([
        'application/json',
        SSE,
      ]);
    }
  });
});

describe.each(['plain', 'guarded'])('an answer of no wire format (%s)', (model) => {
  const usage = 'data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":0,"total_tokens":1}}\n\n';
  test.each(Object.keys(PATHS) as Format[])('to a request of %s is a 502', async (format) => {
    for (const text of ['[]', 'null', '"text"', '{}', '5', '', '{"detail":"queued"}', '{"message":"ok"}']) {
      const { status, text: got, line } = await ask(model, body(text), {}, format);
      expect([text, status, messageIn(got)]).toEqual([
        text,
        502,
        expect.stringMatching(/provider answered|not JSON/),
      ]);
      expect(line).toMatchObject({ reason: 'UpstreamFailure' });
      expect(line).not.toHaveProperty(['gen_ai.usage.output_tokens']);
    }
  });

  test.each(Object.keys(DATA_PATHS) as Format[])('to a request of %s is a 502, too', async (format) => {
    const more = {
      prompt: 'Hi',
      content: { parts: [{ text: 'Hi' }] },
      requests: [],
      query: 'Hi',
      documents: [],
    };
    for (const text of ['[]', '"text"', '{}', '{"detail":"queued"}', completion('Hi')]) {
      const { status, text: got, line } = await ask(model, body(text), more, format);
      expect([text, status, messageIn(got)]).toEqual([
        text,
        502,
        expect.stringMatching(/provider answered|not JSON/),
      ]);
      expect(line).toMatchObject({ reason: 'UpstreamFailure' });
    }
    const vectors = '{"data":[],"results":[],"embedding":{"values":[1]},"embeddings":[]}';
    // Text Embeddings Inference and llama.cpp answer with the list alone.
    const ranking = '[{"index":0,"score":0.9}]';
    const good = {
      tokenCount: ['{"input_tokens":7}'],
      countTokens: ['{"totalTokens":7}'],
      rerank: [vectors, ranking],
    };
    for (const text of good[format as keyof typeof good] ?? [vectors])
      expect(await ask(model, body(text), more, format)).toMatchObject({ status: 200, text });
  });

  test.each(Object.keys(PATHS) as Format[])('to a request of %s for a stream is an error', async (format) => {
    const none = [
      '',
      ': ping\n\n',
      'event: ping\ndata: {"type":"ping"}\n\n',
      'data: []\n\n',
      'data: {}\n\n',
      DONE,
      ...(format === 'completions' ? [usage] : []),
    ];
    for (const text of none) {
      const { status, text: got, line } = await ask(model, events(text), STREAM, format);
      expect([text, got]).toEqual([
        text,
        expect.stringContaining('the provider ended the stream without an event'),
      ]);
      expect([text, status]).toEqual([text, text === '' ? 502 : 200]);
      expect(line).toMatchObject({ reason: 'UpstreamFailure' });
      expect(got).not.toContain('[DONE]');
    }
  });

  test('is not one with members that only some servers have, or events without text', async () => {
    const chats = [
      completion('hi', { x_groq: { id: 'x' }, type: 'message', candidates: [], provider: 'x' }),
      '{"choices":[],"prompt_filter_results":[{}]}',
      '{"request_id":"deferred"}',
    ];
    for (const text of chats) expect(await ask(model, body(text))).toMatchObject({ status: 200, text });
    const streams = [
      [':\n\n', chunk({}), usage, DONE],
      [
        'data: {"choices":[],"prompt_filter_results":[{}]}\n\n',
        chunk({ content: 'hi' }),
        FINISH,
        usage,
        DONE,
      ],
      [':\n\n'.repeat(70), chunk({ content: 'hi' }), FINISH, DONE],
      ['data: {"type":"ping"}\n\n'.repeat(70), chunk({ content: 'hi' }), FINISH, DONE],
      [chunk({ content: 'hi' }), FINISH],
    ];
    for (const sent of streams) {
      const { text, line } = await ask(model, events(...sent), {
        ...STREAM,
        stream_options: { include_usage: true },
      });
      expect(text).toBe(sent.join(''));
      expect(line).not.toHaveProperty('error');
    }
    const blocked = '{"promptFeedback":{"blockReason":"SAFETY"}}';
    expect(await ask(model, body(blocked), {}, 'generateContent')).toMatchObject({
      status: 200,
      text: blocked,
    });
  });
});

// router-for-me/CLIProxyAPI#6010, can1357/oh-my-pi#9433, theopenco/llmgateway#1901, ding113/claude-code-hub#156
describe.each(['plain', 'guarded'])('a stream that is closed without an error (%s)', (model) => {
  const data = (...sent: readonly object[]): string =>
    sent.map((each) => `data: ${JSON.stringify(each)}\n\n`).join('');
  const empty = (reason: string | null): object => ({
    choices: [{ index: 0, delta: {}, finish_reason: reason }],
  });
  const text = { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hi' } };
  const part = (more: object): object => ({
    candidates: [{ index: 0, content: { parts: [{ text: 'Hi' }] }, ...more }],
  });
  const output = { type: 'response.output_text.delta', delta: 'Hi', item_id: 'm', output_index: 0 };
  const cases: [Format, string, string[]][] = [
    [
      'completions',
      chunk({ content: 'Hi' }) + data(empty(''), empty(null)),
      [DONE, FINISH, data(empty('stop'), empty(null), { choices: [], usage: {} })],
    ],
    [
      'messages',
      data(text, { type: 'content_block_stop', index: 0 }),
      [data({ type: 'message_stop' }), data({ type: 'message_delta', delta: { stop_reason: 'end_turn' } })],
    ],
    [
      'responses',
      data(output),
      ['completed', 'incomplete', 'failed'].map((how) => data({ type: `response.${how}`, response: {} })),
    ],
    ['generateContent', data(part({})), [data(part({ finishReason: 'STOP' }))]],
  ];
  test.each(cases)('to a request of %s is complete if it has told its end', async (format, begin, ends) => {
    for (const end of ends) {
      const { text: got, line } = await ask(model, events(begin, end), STREAM, format);
      expect(got).toBe(begin + end);
      expect(line['error']).not.toBe('the provider ended the stream early');
    }
    const { text: got, line } = await ask(model, events(begin), STREAM, format);
    expect(got.slice(0, begin.length)).toBe(begin);
    expect(got.slice(begin.length)).toContain('the provider ended the stream early');
    expect(line).toMatchObject({
      error: 'the provider ended the stream early',
      reason: 'UpstreamFailure',
      'gw.ai.usage.estimated': expect.stringContaining('the response ended before the provider reported'),
    });
    expect(line['error.detail']).toContain('it closed the stream before the last event');
  });
});

describe('a failure before the client has got anything', () => {
  const good = [chunk({ content: 'good' }), FINISH, DONE].join('');
  const cut =
    (text: string): Answer =>
    (_, response) => {
      response.writeHead(200, { 'content-type': SSE });
      response.write(text, () => response.destroy());
    };

  test.each<[string, Answer]>([
    ['is cut with a text that guardrails hold back', cut(chunk({ content: 'bad' }))],
    ['is cut in an event', cut(chunk({ role: 'assistant' }) + chunk({ content: 'bad' }).slice(0, -5))],
    ['is cut after an event without choices', cut('data: {"choices":[]}\n\n')],
    ['reports an error', events(chunk({ content: 'bad' }), 'data: {"error":{"code":"overloaded"}}\n\n')],
    ['is closed with a text that guardrails hold back', events(chunk({ content: 'bad' }))],
    ['has no event', events(': ping\n\n')],
    ['has nothing but its end', events(DONE)],
    ['has no choices', events('data: {"choices":[]}\n\n'.repeat(3), DONE)],
    ['is JSON of no format', body('{}')],
    ['is a text', body('busy', 'text/plain')],
    ['has another format', events('event: message_start\ndata: {"type":"message_start"}\n\n')],
  ])('is that of a stream that %s: the next model is called', async (_, how) => {
    let count = 0;
    const inOrder: Answer = (...call) => {
      count += 1;
      return (count === 1 ? how : events(good))(...call);
    };
    const { text, line } = await ask('safe', inOrder, STREAM);
    expect([text, count]).toEqual([good, 2]);
    expect(line).not.toHaveProperty('error');
    expect(line).not.toHaveProperty('error.detail');
  });

  test('is that of an unguarded stream that is closed before its first text', async () => {
    let count = 0;
    const { text } = await ask(
      'open',
      (...call) => {
        count += 1;
        return (count === 1 ? events(chunk({ role: 'assistant' })) : events(good))(...call);
      },
      STREAM,
    );
    expect([text, count]).toEqual([good, 2]);
  });

  test('is that of an answer of no format, and the last one is what the client gets', async () => {
    for (const model of ['safe', 'open']) {
      const before = provider.received.length;
      const { status, text } = await ask(model, body('{}'));
      expect([status, messageIn(text)]).toEqual([502, expect.stringContaining('Chat Completions API')]);
      expect(provider.received).toHaveLength(before + 2);
    }
  });

  test('is none once something was sent, or when a guardrail rejects', async () => {
    const words = Array.from({ length: 300 }, () => chunk({ content: 'some words ' })).join('');
    for (const [how, end] of [
      [cut(words), 'the provider ended the stream early'],
      [events(chunk({ content: 'SECRET' }), DONE), 'blocked'],
    ] as const) {
      const before = provider.received.length;
      const { text } = await ask('safe', how, STREAM);
      expect(text).toContain(end);
      expect(provider.received).toHaveLength(before + 1);
    }
  });
});

describe('a response that no request asked for', () => {
  test.each<[string, (response: ServerResponse) => void]>([
    ['100 (Continue)', (response) => response.writeContinue()],
    ['102 (Processing)', (response) => response.writeProcessing()],
    ['103 (Early Hints)', (response) => response.writeEarlyHints({ link: '</a>; rel=preload' })],
  ])('is ignored before an answer and before a stream: %s', async (_, interim) => {
    const preceded =
      (how: Answer): Answer =>
      (request, response, received) => {
        interim(response);
        interim(response);
        return how(request, response, received);
      };
    const connections = provider.connections;
    for (const model of ['plain', 'guarded']) {
      expect(await ask(model, preceded(body(completion('hi'))))).toMatchObject({
        status: 200,
        text: completion('hi'),
      });
      const sent = chunk({ content: 'hi' }) + FINISH + DONE;
      expect(await ask(model, preceded(events(sent)), STREAM)).toMatchObject({ status: 200, text: sent });
    }
    expect(provider.connections - connections).toBeLessThan(4);
  });
});

test.each<[string, object, number]>([
  ['the maximum of the request', { max_tokens: 500, n: 2 }, 1_000],
  ['what a model may write', {}, 131_072],
])('a large answer without usage, which is not read, is charged by %s at most', async (_, more, tokens) => {
  const image = completion(`data:image/png;base64,${'x'.repeat(10_000_000)}`, { usage: undefined });
  const { status, text, line } = await ask('plain', body(image), { max_tokens: undefined, ...more });
  expect([status, text.length]).toEqual([200, image.length]);
  expect(line['gen_ai.usage.output_tokens']).toBe(String(tokens));
  expect(line['gw.ai.usage.estimated']).toBe('no usage was found in the response');
});

// openai/openai-node, `APIError.generate`: it reads `error` only, so the text of others is lost.
describe('an error of no error shape', () => {
  test.each<[string, string]>([
    ['{"error":"model not found"}', 'model not found'],
    ['{"message":"no such route"}', 'no such route'],
    ['{"detail":"Not Found"}', 'Not Found'],
    [
      '{"detail":[{"loc":["body","messages",0],"msg":"field required"},{"msg":"bad"}]}',
      'body.messages.0: field required; bad',
    ],
    ['{"success":false,"errors":[{"code":7003,"message":"no route"}]}', 'no route'],
    ['"text"', 'text'],
    ['[]', 'the provider responded with HTTP 404: []'],
    ['null', 'the provider responded with HTTP 404: null'],
    ['{"error":{"detail":"no model"}}', 'no model'],
    ['{"error":{"type":-1,"message":"no name"}}', 'no name'],
    ['{"error":{"code":{"__proto__":1},"message":"no code"}}', 'no code'],
    ['{"error":{"code":1}}', 'the provider responded with HTTP 404: {"error":{"code":1}}'],
    ['{"error":null,"id":7}', 'the provider responded with HTTP 404: {"error":null,"id":7}'],
  ])('is one in the format of the client: %s', async (sent, message) => {
    for (const [format, error] of [
      ['completions', { message, type: 'invalid_request_error', code: 'upstream_failed' }],
      ['messages', { type: 'not_found_error', message }],
      ['responses', { message, type: 'invalid_request_error', code: 'upstream_failed' }],
      ['generateContent', { code: 404, message, status: 'NOT_FOUND' }],
      ['embeddings', { message, type: 'invalid_request_error', code: 'upstream_failed' }],
    ] as const)
      for (const model of ['plain', 'guarded']) {
        const { status, text } = await ask(model, body(sent, 'application/json', 404), {}, format);
        expect([status, JSON.parse(text).error]).toEqual([404, error]);
      }
  });

  test('stays as it is where clients read it: a list of Google, and what has an error object', async () => {
    const list = '[{"error":{"code":404,"message":"no","status":"NOT_FOUND"}}]';
    expect((await ask('plain', body(list, 'application/json', 404), {}, 'generateContent')).text).toBe(list);
    expect(messageIn((await ask('plain', body(list, 'application/json', 404))).text)).toBe('no');
    const extra = '{"error":{"message":"no","metadata":{"raw":"x"}},"user_id":"u"}';
    for (const format of Object.keys(PATHS) as Format[])
      expect((await ask('plain', body(extra, 'application/json', 404), {}, format)).text).toBe(extra);
  });
});

describe('an error that is no JSON', () => {
  const PAGE =
    '<!DOCTYPE html><html><head><title>502 Bad Gateway</title><style>b{color:red}</style></head><body bgcolor="white"><script>if (a<b) alert("x")</script><!-- <b>note</b> --><h1>Sorry &amp;\n <b>wait</b></h1></body></html>';
  const SAID = 'the provider responded with HTTP 502: 502 Bad Gateway Sorry & wait';

  test.each<[Format, object]>([
    ['completions', { error: { message: SAID, type: 'api_error', code: 'upstream_failed' } }],
    ['messages', { type: 'error', error: { type: 'api_error', message: SAID } }],
    ['responses', { error: { message: SAID, type: 'api_error', code: 'upstream_failed' } }],
    ['generateContent', { error: { code: 502, message: SAID, status: 'UNKNOWN' } }],
  ])('is one in the format of %s', async (format, error) => {
    for (const [model, more] of [
      ['plain', {}],
      ['guarded', {}],
      ['plain', STREAM],
    ] as const) {
      const { status, text, headers, line } = await ask(model, body(PAGE, 'text/html', 502), more, format);
      expect([status, JSON.parse(text), headers['content-type']]).toEqual([502, error, 'application/json']);
      expect(line).not.toHaveProperty('error.type');
    }
  });

  test.each<[string, string, string]>([
    ['a text', 'upstream connect error\r\n\u0007', ': upstream connect error'],
    ['nothing', '', ''],
    ['a long text', 'word '.repeat(10_000), `: ${'word '.repeat(40)}…`],
    ['a page without an end', `<html>${'<script>'.repeat(3_000)}`, ''],
    ['many tags without an end', '<a '.repeat(5_000), ''],
  ])('is short and plain: %s', async (_, text, said) => {
    const reply = await ask('plain', body(text, 'text/plain', 500));
    expect([reply.status, messageIn(reply.text)]).toEqual([
      500,
      `the provider responded with HTTP 500${said}`,
    ]);
  });
});

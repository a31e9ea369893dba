import { describe, expect, test } from 'vitest';
import { gateway } from '../../kit/gateway.ts';
import {
  answering,
  bodyOf,
  CHAT,
  chat,
  EVERY_FORMAT,
  errorOf,
  formOf,
  guardrail,
  llmGateway,
  llmProvider,
  modelsGateway,
  webhook,
} from '../../kit/llm-provider.ts';
import { type HttpReply, send } from '../../kit/send.ts';

const KEY = 'sk-provider-key';

/** A call with a JSON body. */
function post(url: string, body: object, headers: Record<string, string> = {}): Promise<HttpReply> {
  return send(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
}

/** A call with a form, as fetch encodes it. */
async function postForm(
  url: string,
  fields: readonly (readonly [string, string | File])[],
  headers: Record<string, string> = {},
): Promise<HttpReply> {
  const form = new FormData();
  for (const [name, value] of fields) form.append(name, value);
  const encoded = new Response(form);
  return send(url, {
    method: 'POST',
    headers: { ...headers, 'content-type': encoded.headers.get('content-type') ?? '' },
    body: Buffer.from(await encoded.arrayBuffer()),
  });
}

const RECORDING = new File(['RIFF-sound'], 'a.wav', { type: 'audio/wav' });

describe('paths of the OpenAI API', () => {
  test.each([
    '/chat/completions',
    '/completions',
    '/embeddings',
    '/responses',
    '/messages',
    '/rerank',
    '/moderations',
    '/audio/speech',
    '/images/generations',
  ])('POST %s is served with and without /v1', async (path) => {
    await using provider = await llmProvider();
    await using gate = await llmGateway(provider, {
      model: { provider: EVERY_FORMAT },
      params: { apiKey: KEY },
    });
    for (const asked of [`/v1${path}`, path]) {
      expect((await post(gate.url + asked, CHAT)).status).toBe(200);
      expect(provider.received.at(-1)?.target).toBe(`/v1${path}`);
    }
  });

  test.each([
    ['GET', '/v1/responses/resp_1'],
    ['GET', '/v1/files'],
    ['DELETE', '/v1/models/ft:gpt-x'],
    ['DELETE', '/v1/responses/resp_1'],
    ['PUT', '/v1/chat/completions'],
    ['GET', '/v1/chat/completions'],
    ['POST', '/v1/models'],
    ['POST', '/v1/fine_tuning/jobs'],
    ['POST', '/v1/files'],
    ['POST', '/v1/chat/completions/x'],
    ['POST', '/v1/v1/chat/completions'],
    ['POST', '/v2/chat/completions'],
    ['POST', '/organization/admin_api_keys'],
  ])('%s %s is a 404 in the OpenAI error format without a call to the provider', async (method, path) => {
    await using provider = await llmProvider();
    await using gate = await llmGateway(provider, { params: { apiKey: KEY } });
    const body = method === 'GET' ? {} : { body: JSON.stringify(CHAT) };
    const reply = await send(gate.url + path, { method, ...body });
    expect([reply.status, errorOf(reply)]).toMatchObject([
      404,
      { type: 'invalid_request_error', code: 'unknown_url' },
    ]);
    expect(provider.received).toEqual([]);
  });

  test('a port with only LLM routes answers unknown paths in the OpenAI error format', async () => {
    await using provider = await llmProvider();
    const model = { name: '*', provider: 'oaiCompat', params: { baseUrl: `http://${provider.address}/v1` } };
    const routes = [{ matches: [{ path: { pathPrefix: '/v1' } }], backends: [{ llm: { models: [model] } }] }];
    await using gate = await modelsGateway(
      [{ name: '*', provider: 'echo' }],
      {},
      {
        gateways: { other: { port: 0, routes } },
      },
    );
    const url = `http://127.0.0.1:${gate.ports[0]}`;
    const reply = await send(`${url}/nothing/here`);
    expect([reply.status, errorOf(reply).code]).toEqual([404, 'route_not_found']);
    expect((await send(`${url}/v1/..%2f`)).text).toContain('"error"');
  });

  test('a moderation request without a model uses the default model of the API', async () => {
    await using provider = await llmProvider(answering('{"results":[]}'));
    const models = [
      { name: 'acme', provider: 'echo' },
      {
        name: 'omni-*',
        provider: 'oaiCompat',
        params: { baseUrl: `http://${provider.address}/v1`, apiKey: KEY },
      },
    ];
    const keys = [{ key: 'all' }, { key: 'acme', allowedModels: ['acme'] }];
    await using gate = await modelsGateway(models, { policies: { apiKey: { mode: 'strict', keys } } });
    const ask = (key: string) =>
      post(`${gate.url}/v1/moderations`, { input: 'Hi' }, { authorization: `Bearer ${key}` });
    expect((await ask('all')).status).toBe(200);
    expect(bodyOf(provider)).toEqual({ input: 'Hi' });
    expect(errorOf(await ask('acme')).code).toBe('model_not_allowed');
    expect(provider.received).toHaveLength(1);
    const chatless = await post(
      `${gate.url}/v1/embeddings`,
      { input: 'Hi' },
      { authorization: 'Bearer all' },
    );
    expect(errorOf(chatless).code).toBe('missing_model');
  });

  test('the bytes of an uploaded recording do not count as tokens', async () => {
    const sound = Buffer.alloc(400_000, 1).toString('latin1');
    await using provider = await llmProvider((_, response) =>
      response.writeHead(200, { 'content-type': 'audio/mpeg' }).end(sound),
    );
    await using gate = await llmGateway(provider);
    const reply = await post(`${gate.url}/v1/audio/speech`, {
      model: 'tts-1',
      input: 'abcdefgh',
      voice: 'a',
    });
    expect(reply.text).toHaveLength(400_000);
    const line = await gate.accessLine(1);
    expect([line['gen_ai.usage.input_tokens'], line['gen_ai.usage.output_tokens']]).toEqual(['2', '0']);
  });
});

describe('multipart forms', () => {
  test.each(['/audio/transcriptions', '/audio/translations', '/images/edits', '/images/variations'])(
    'the form of POST %s is forwarded with its model, its file and the configured fields',
    async (path) => {
      await using provider = await llmProvider(answering('{"text":"Hello.","data":[]}'));
      const model = { name: 'whisper', overrides: { language: 'en' }, params: undefined };
      await using gate = await llmGateway(provider, { model, params: { apiKey: KEY, model: 'whisper-1' } });
      const fields = [
        ['model', 'whisper'],
        ['prompt', 'two\nlines "é"'],
        ['timestamp_granularities[]', 'word'],
        ['file', RECORDING],
      ] as const;
      const reply = await postForm(`${gate.url}/v1${path}`, fields);
      expect([reply.status, reply.text]).toEqual([200, '{"text":"Hello.","data":[]}']);
      expect(Object.fromEntries(await formOf(provider))).toEqual({
        model: 'whisper-1',
        // As fetch writes the end of a line.
        prompt: 'two\r\nlines "é"',
        'timestamp_granularities[]': 'word',
        file: 'a.wav RIFF-sound',
        language: 'en',
      });
      expect(provider.received[0]).toMatchObject({
        target: `/v1${path}`,
        headers: { authorization: `Bearer ${KEY}` },
      });
      expect((await gate.accessLine(1))['gen_ai.request.model']).toBe('whisper');
    },
  );

  test.each([
    ['no model', [['prompt', 'x']], 400, 'missing_model'],
    [
      'two models',
      [
        ['model', 'whisper'],
        ['model', 'expensive'],
      ],
      400,
      'invalid_request_body',
    ],
    ['a file for a model', [['model', RECORDING]], 400, 'missing_model'],
    ['an unknown model', [['model', 'other']], 404, 'model_not_found'],
    ['a model that the key is not for', [['model', 'expensive']], 403, 'model_not_allowed'],
  ] as const)('a form with %s is rejected', async (_, fields, status, code) => {
    await using provider = await llmProvider();
    const params = { baseUrl: `http://${provider.address}/v1`, apiKey: KEY };
    const models = ['whisper', 'expensive'].map((name) => ({ name, provider: 'oaiCompat', params }));
    const keys = [{ key: 'k', allowedModels: ['whisper', 'other'] }];
    await using gate = await modelsGateway(models, { policies: { apiKey: { mode: 'strict', keys } } });
    const reply = await postForm(`${gate.url}/v1/audio/transcriptions`, [...fields, ['file', RECORDING]], {
      authorization: 'Bearer k',
    });
    expect([reply.status, errorOf(reply).code]).toEqual([status, code]);
    expect(provider.received).toEqual([]);
  });

  test('a malformed form is rejected, and so is a form where JSON is required', async () => {
    await using provider = await llmProvider();
    await using gate = await llmGateway(provider);
    const headers = { 'content-type': 'multipart/form-data; boundary=x' };
    const ask = (path: string, body: string) => send(gate.url + path, { method: 'POST', headers, body });
    for (const body of ['{"model":"a"}', '', '--x\r\n', '--y\r\n\r\n\r\n--y--'])
      expect(errorOf(await ask('/v1/audio/transcriptions', body)).code).toBe('invalid_request_body');
    const form = '--x\r\nContent-Disposition: form-data; name="model"\r\n\r\na\r\n--x--\r\n';
    expect(errorOf(await ask('/v1/chat/completions', form)).code).toBe('invalid_request_body');
    expect(provider.received).toEqual([]);
  });

  test.each([
    ['of parts', `--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n\r\n`, 30_000, '--x--\r\n'],
    [
      'of header lines',
      'A: b\r\n',
      300_000,
      'Content-Disposition: form-data; name="model"\r\n\r\na\r\n--x--\r\n',
    ],
  ])('a form with a large number %s is rejected before it is parsed', async (_, piece, count, end) => {
    await using provider = await llmProvider();
    await using gate = await llmGateway(provider);
    const reply = await send(`${gate.url}/v1/audio/transcriptions`, {
      method: 'POST',
      headers: { 'content-type': 'multipart/form-data; boundary=x' },
      body: `--x\r\nContent-Disposition: form-data; name="model"\r\n\r\na\r\n--x\r\n${piece.repeat(count)}${end}`,
    });
    expect(errorOf(reply)).toMatchObject({
      code: 'invalid_request_body',
      message: expect.stringMatching(/more than (1000 parts|4096 bytes)/),
    });
  });

  test.each([
    'multipart/form-data; boundary=x',
    'Multipart/Form-Data;boundary="x"',
    'multipart/form-data;boundary=x;charset=UTF-8',
    'multipart/form-data; charset=utf-8; boundary=x',
  ])('a form is recognized by the content type %s', async (type) => {
    await using provider = await llmProvider();
    await using gate = await llmGateway(provider);
    const body = '--x\r\nContent-Disposition: form-data; name="model"\r\n\r\na\r\n--x--\r\n';
    const headers = { 'content-type': type };
    const reply = await send(`${gate.url}/v1/audio/transcriptions`, { method: 'POST', headers, body });
    expect(reply.status).toBe(200);
    expect(Object.fromEntries(await formOf(provider))).toEqual({ model: 'a' });
  });

  test.each([
    ['audio/wav; codecs=1', 'content-type: audio/wav; codecs=1\r\n'],
    // Took minutes while each `;` could be read in two ways.
    [`${'x;'.repeat(60)}x y`, ''],
  ])('a file of a form keeps its type if that is one: %s', async (type, line) => {
    await using provider = await llmProvider();
    await using gate = await llmGateway(provider);
    const part = (rest: string): string => `--x\r\nContent-Disposition: form-data; name=${rest}\r\n`;
    const body = `${part('"model"\r\n\r\na')}${part(`"file"; filename="a.wav"\r\nContent-Type: ${type}\r\n\r\nabc`)}--x--\r\n`;
    const headers = { 'content-type': 'multipart/form-data; boundary=x' };
    const reply = await send(`${gate.url}/v1/audio/transcriptions`, { method: 'POST', headers, body });
    expect(reply.status).toBe(200);
    expect(provider.received[0]?.body).toContain(`filename="a.wav"\r\n${line}\r\nabc`);
  });

  test('a form may be as large as `maxBufferSize`', async () => {
    await using provider = await llmProvider(answering('{"text":"Hello.","data":[]}'));
    const recording = new File([Buffer.alloc(3 * 1024 * 1024, 7)], 'a.wav');
    const fields = [
      ['model', 'a'],
      ['file', recording],
    ] as const;
    const less = { frontendPolicies: { http: { maxBufferSize: 2 * 1024 * 1024 } } };
    await using small = await llmGateway(provider, { more: less });
    const refused = await postForm(`${small.url}/v1/audio/transcriptions`, fields);
    expect([refused.status, errorOf(refused).code]).toEqual([413, 'request_body_too_large']);
    const more = { frontendPolicies: { http: { maxBufferSize: 4 * 1024 * 1024 } } };
    await using large = await llmGateway(provider, { more });
    expect((await postForm(`${large.url}/v1/audio/transcriptions`, fields)).status).toBe(200);
    expect(provider.received[0]?.body.length).toBeGreaterThan(3 * 1024 * 1024);
  });

  test('a form is sent to guardrails, which may mask its texts', async () => {
    await using provider = await llmProvider(answering('{"data":[]}'));
    await using guard = await guardrail(({ messages = [] }) => ({
      body: {
        messages: messages.map(({ role, content }) => ({ role, content: content.replace('SECRET', '*') })),
      },
    }));
    await using gate = await llmGateway(provider, { model: { guardrails: { request: [webhook(guard)] } } });
    const fields = [
      ['model', 'a'],
      ['prompt', 'a SECRET'],
      ['image', RECORDING],
    ] as const;
    expect((await postForm(`${gate.url}/v1/images/edits`, fields)).status).toBe(200);
    expect((await formOf(provider)).get('prompt')).toBe('a *');
  });
});

describe('member names that differ only in case', () => {
  // Decoders of some languages treat them as equal and use the last one.
  test.each([
    { model: 'cheap', MODEL: 'dear' },
    { model: 'cheap', Model: 'cheap' },
    { model: 'cheap', messages: [], Messages: [{ role: 'user', content: 'FORBIDDEN' }] },
    { model: 'cheap', pRompt: 'FORBIDDEN' },
  ])('a body with a member that differs only in case from a known one is rejected: %j', async (body) => {
    await using provider = await llmProvider();
    await using gate = await llmGateway(provider);
    const reply = await post(`${gate.url}/v1/chat/completions`, body);
    expect([reply.status, errorOf(reply).code]).toEqual([400, 'invalid_request_body']);
    expect(provider.received).toEqual([]);
  });
});

describe('input of guardrails', () => {
  test.each([
    ['/v1/rerank', { query: 'a SECRET', documents: ['x'] }],
    ['/v1/rerank', { query: 'a', documents: ['x', { text: 'SECRET' }] }],
    ['/v1/messages', { system: 'SECRET', messages: [] }],
    ['/v1/messages', { system: [{ type: 'text', text: 'SECRET' }], messages: [] }],
  ])('guardrails see the texts of %s: %j', async (path, body) => {
    await using provider = await llmProvider();
    await using guard = await guardrail(({ messages = [] }) =>
      messages.some(({ content }) => content.includes('SECRET')) ? { body: 'no', status_code: 403 } : {},
    );
    await using gate = await llmGateway(provider, { model: { guardrails: { request: [webhook(guard)] } } });
    expect((await post(gate.url + path, { model: 'a', ...body })).status).toBe(403);
    expect(provider.received).toEqual([]);
  });
});

describe('the list of models', () => {
  const models = ['acme-*', 'meta/llama', 'hidden'].map((name) => ({
    name,
    provider: 'echo',
    ...(name === 'hidden' ? { visibility: 'internal' } : {}),
  }));
  const keys = [{ key: 'all' }, { key: 'some', allowedModels: ['acme-1'] }];
  const policies = { apiKey: { mode: 'strict', keys } };

  test.each([
    ['all', '/v1/models/acme-1', 200, 'acme-1'],
    ['all', '/models/acme-1', 200, 'acme-1'],
    ['all', '/v1/models/meta%2Fllama', 200, 'meta/llama'],
    ['all', '/v1/models/meta/llama', 200, 'meta/llama'],
    ['all', '/v1/models/safe', 200, 'safe'],
    ['all', '/v1/models/other', 404, 'model_not_found'],
    ['all', '/v1/models/hidden', 404, 'model_not_found'],
    ['some', '/v1/models/acme-1', 200, 'acme-1'],
    ['some', '/v1/models/acme-2', 403, 'model_not_allowed'],
  ])('key %s: GET %s is %s %s', async (key, path, status, answer) => {
    const virtualModels = [{ name: 'safe', routing: { weighted: { targets: [{ model: 'hidden' }] } } }];
    await using gate = await modelsGateway(models, { policies, virtualModels });
    const reply = await send(gate.url + path, { headers: { authorization: `Bearer ${key}` } });
    expect(reply.status).toBe(status);
    if (status !== 200) expect(errorOf(reply).code).toBe(answer);
    else expect(JSON.parse(reply.text)).toMatchObject({ id: answer, object: 'model', owned_by: 'openai' });
  });

  test('the list of models is served without /v1 and with a trailing slash', async () => {
    await using gate = await modelsGateway(models);
    const all = await Promise.all(
      ['/v1/models', '/models', '/v1/models/'].map(async (path) => (await send(gate.url + path)).text),
    );
    expect(new Set(all).size).toBe(1);
    expect(all[0]).toContain('"id":"acme-*"');
  });
});

test.each([
  ['of its own', {}, 200, 'unknown_url'],
  ['with other routes', { routes: [{ policies: { directResponse: { body: 'other' } } }] }, 200, undefined],
])(
  'LLM routes on a gateway %s leave unknown paths to other routes if there are any',
  async (_what, more, status, code) => {
    await using gate = await gateway(
      JSON.stringify({
        config: { adminAddr: 'off', connectionTerminationDeadline: '100ms' },
        gateways: { local: { port: 0, address: '127.0.0.1', ...more } },
        llm: { gateways: 'local', models: [{ name: '*', provider: 'echo' }] },
      }),
    );
    expect(JSON.parse((await post(`${gate.url}/v1/chat/completions`, CHAT)).text)).toHaveProperty('choices');
    const short = await post(`${gate.url}/chat/completions`, CHAT);
    const unknown = await post(`${gate.url}/nothing`, CHAT);
    expect(short.status).toBe(status);
    if (code === undefined) expect([short.text, unknown.text]).toEqual(['other', 'other']);
    else expect([unknown.status, errorOf(unknown).code]).toEqual([404, code]);
  },
);

describe('keys of the policy apiKey on LLM routes', () => {
  test.each(['x-api-key', 'x-goog-api-key', 'api-key'])(
    'a key in %s, where an official client sends it, is accepted and not passed on',
    async (name) => {
      await using provider = await llmProvider();
      const policies = { apiKey: { mode: 'strict', keys: [{ key: 'team-key' }] } };
      await using gate = await llmGateway(provider, { llm: { policies } });
      expect((await chat(gate, CHAT, { [name]: 'team-key' })).status).toBe(200);
      expect(JSON.stringify(provider.received[0]?.rawHeaders)).not.toContain('team-key');
      expect((await chat(gate, CHAT, { [name]: 'wrong' })).status).toBe(401);
      expect((await chat(gate, CHAT, { [name]: 'team-key', authorization: 'Bearer wrong' })).status).toBe(
        401,
      );
    },
  );

  test('a configured location is the only one', async () => {
    await using provider = await llmProvider();
    const apiKey = {
      mode: 'strict',
      keys: [{ key: 'team-key' }],
      location: { header: { name: 'authorization', prefix: 'Bearer ' } },
    };
    await using gate = await llmGateway(provider, { llm: { policies: { apiKey } } });
    expect((await chat(gate, CHAT, { 'x-api-key': 'team-key' })).status).toBe(401);
  });
});

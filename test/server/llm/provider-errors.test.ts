import { describe, expect, test } from 'vitest';
import {
  answering,
  CHAT,
  chat,
  chunk,
  DONE,
  EVERY_FORMAT,
  errorOf,
  FINISH,
  llmGateway,
  llmProvider,
  modelsGateway,
  streaming,
  webhook,
} from '../../kit/llm-provider.ts';
import { type HttpReply, send } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';

// Minutes of silence are too long for a test.
const SHORT = { options: { limits: { streamIdle: 300 } } };

const STREAM = { ...CHAT, stream: true };
const KEY = { apiKey: 'sk-of-the-gateway' };

describe('provider error types in the access log', () => {
  test.each([
    [
      'by its code',
      403,
      { error: { message: 'm', type: 'invalid_request_error', code: 'invalid_api_key' } },
      'invalid_api_key',
    ],
    [
      'by its type where there is no code',
      400,
      { error: { message: 'm', type: 'invalid_request_error', code: null } },
      'invalid_request_error',
    ],
    [
      'by the status of Google',
      429,
      [{ error: { code: 429, message: 'm', status: 'RESOURCE_EXHAUSTED' } }],
      'RESOURCE_EXHAUSTED',
    ],
    [
      'not by a sentence, which may hold anything',
      400,
      { error: { code: 'you asked: who is Bob', type: 'x'.repeat(65) } },
      undefined,
    ],
    ['not without an error', 404, { detail: 'Not Found' }, undefined],
    ['not when that is a text', 404, { error: 'model "acme-mini" not found' }, undefined],
    ['not when that is nothing', 500, { error: null }, undefined],
    ['not when the answer is nothing', 500, null, undefined],
    [
      'not when the answer is large',
      500,
      { error: { code: 'large', message: 'x'.repeat(70_000) } },
      undefined,
    ],
  ] as const)('the access log has the error type of a provider: %s', async (_, status, answer, name) => {
    const text = JSON.stringify(answer);
    await using provider = await llmProvider(answering(text, status));
    await using withKey = await llmGateway(provider, { params: KEY });
    await using without = await llmGateway(provider);
    for (const served of [withKey, without]) {
      for (const body of [CHAT, STREAM]) expect(await chat(served, body)).toMatchObject({ status });
      for (const at of [1, 2]) {
        const line = await served.accessLine(at);
        expect(line['http.status']).toBe(String(status));
        expect(line['error.type']).toBe(name);
      }
    }
  });

  test('the access log redacts the provider key in an error that repeats it', async () => {
    await using provider = await llmProvider(answering(JSON.stringify({ error: { code: KEY.apiKey } }), 403));
    await using served = await llmGateway(provider, { params: KEY });
    await chat(served);
    const line = await served.accessLine(1);
    expect(line['http.status']).toBe('403');
    expect(JSON.stringify(line)).not.toContain(KEY.apiKey);
  });
});

describe("a provider that does not accept the gateway's credentials", () => {
  const refusal = JSON.stringify({
    error: { message: `Incorrect API key: ${KEY.apiKey}`, type: 'x', code: 'invalid_api_key' },
  });

  test.each([
    ['a key', { params: KEY }],
    ['a header', { model: { requestHeaders: { set: { authorization: `Bearer ${KEY.apiKey}` } } } }],
    ['the key of the route', { llm: { policies: { backendAuth: { key: KEY.apiKey } } } }],
  ])('a provider that refuses %s of the gateway is a 502 that clients do not repeat', async (_, settings) => {
    await using provider = await llmProvider(answering(refusal, 401));
    await using served = await llmGateway(provider, settings);
    for (const body of [CHAT, STREAM]) {
      const reply = await chat(served, body, { authorization: 'Bearer sk-of-the-client' });
      expect(reply.status).toBe(502);
      expect(reply.headers['x-should-retry']).toBe('false');
      expect(errorOf(reply)).toEqual({
        message: "upstream call failed: the provider did not accept the gateway's credentials",
        type: 'api_error',
        code: 'provider_auth_failed',
      });
    }
    const line = await served.accessLine(1);
    expect(line).toMatchObject({ 'http.status': '502', 'error.type': 'invalid_api_key' });
    expect(line['reason']).toBe('UpstreamFailure');
    expect(line['error.detail']).toContain('the provider answered 401 (invalid_api_key)');
    expect(JSON.stringify(line)).not.toContain(KEY.apiKey);
    expect(line).not.toHaveProperty('gen_ai.usage.input_tokens');
  });

  test("a provider that refuses the client's own key is the client's 401", async () => {
    await using provider = await llmProvider(answering(refusal, 401));
    await using served = await llmGateway(provider);
    const reply = await chat(served, CHAT, { authorization: 'Bearer sk-of-the-client' });
    expect(reply).toMatchObject({ status: 401, text: refusal });
    expect(reply.headers).not.toHaveProperty('x-should-retry');
  });

  test('a translated call gets the 502 in the format of its client', async () => {
    await using provider = await llmProvider(answering(refusal, 401));
    await using served = await llmGateway(provider, { params: KEY });
    const reply = await send(`${served.url}/v1/messages`, {
      method: 'POST',
      body: JSON.stringify({ model: 'm', max_tokens: 1, messages: [{ role: 'user', content: 'Hi' }] }),
    });
    expect([reply.status, JSON.parse(reply.text)]).toEqual([
      502,
      { type: 'error', error: expect.objectContaining({ type: 'api_error' }) },
    ]);
  });

  test("a 403 is the provider's own, unless AWS says that it is about the credentials", async () => {
    let type = 'AccessDeniedException';
    await using provider = await llmProvider((_, response) =>
      response.writeHead(403, { 'x-amzn-errortype': `${type}:http://aws` }).end('{"message":"no"}'),
    );
    await using served = await llmGateway(provider, { params: KEY });
    expect((await chat(served)).status).toBe(403);
    type = 'UnrecognizedClientException';
    expect((await chat(served)).status).toBe(502);
  });
});

describe('a stalled provider response in place of a stream', () => {
  test.each([
    ['a refusal', 500, {}],
    ['a refusal, with a key', 500, { params: KEY }],
    ['an answer', 200, {}],
    [
      'an answer that is guarded',
      200,
      { llm: { guardrails: { response: [webhook({ address: '127.0.0.1:1' })] } } },
    ],
  ])(
    'a stalled provider response in place of the requested stream is aborted: %s',
    async (_, status, more) => {
      let hasLeft = false;
      await using provider = await llmProvider((_request, response) => {
        response.writeHead(status, { 'content-type': 'application/json', 'content-length': '1000' });
        response.write('{"error":{');
        response.once('close', () => {
          hasLeft = true;
        });
      });
      await using served = await llmGateway(provider, { ...SHORT, ...more });
      const reply = await chat(served, STREAM).catch(() => undefined);
      expect(reply?.status).toBe(504);
      await until(() => hasLeft);
      const line = await served.accessLine(1);
      expect(line['reason']).toBe('Timeout');
      expect(line['error']).toContain('the response body was silent for too long');
    },
  );
});

describe('provider streams that end with an error', () => {
  const told = { message: 'The server is busy, Bob', type: 'server_error', code: 'overloaded' };
  test.each([
    [
      'in an event',
      [chunk({ content: 'Hel' }), `data: ${JSON.stringify({ error: told })}\n\n`],
      'overloaded',
    ],
    ['in its first event', [`data: ${JSON.stringify({ error: told })}\n\n`], 'overloaded'],
    [
      'before [DONE]',
      [chunk({ content: 'Hel' }), `data: ${JSON.stringify({ error: told })}\n\n`, DONE],
      'overloaded',
    ],
    [
      'without an empty line behind it',
      [chunk({ content: 'Hel' }), `data: ${JSON.stringify({ error: told })}\n`],
      'overloaded',
    ],
    [
      'of the responses API',
      [`event: error\ndata: ${JSON.stringify({ ...told, type: 'error' })}\n\n`],
      'overloaded',
    ],
    ['without a name', ['data: {"error":{"message":"no"}}\n\n'], undefined],
    // Ollama and some proxies.
    ['that is a text', [chunk({ content: 'Hel' }), 'data: {"error":"busy, Bob"}\n\n'], undefined],
  ] as const)('a provider stream that ends with an error %s counts as a failure', async (_, events, name) => {
    await using provider = await llmProvider(streaming((response) => response.end(events.join(''))));
    await using served = await llmGateway(provider);
    // Every byte is forwarded, so the client gets the provider's error.
    expect(await chat(served, STREAM)).toMatchObject({ status: 200, text: events.join('') });
    const line = await served.accessLine(1);
    expect(line['error']).toBe('the provider responded with an error');
    expect(line['error.type']).toBe(name);
    expect(line['reason']).toBe('UpstreamFailure');
    // The text that was sent is charged, an error alone is not.
    expect('gen_ai.usage.input_tokens' in line).toBe(events.join('').includes('Hel'));
    expect(JSON.stringify(line)).not.toContain('Bob');
  });

  test.each([
    ['text that speaks of errors', [chunk({ content: '{"error":{"code":"x"}}' }), FINISH, DONE]],
    ['an error that is null', [chunk({ content: 'Hi' }, { error: null }), DONE]],
  ] as const)('a provider stream with %s does not count as a failure', async (_, events) => {
    await using provider = await llmProvider(streaming((response) => response.end(events.join(''))));
    await using served = await llmGateway(provider);
    expect(await chat(served, STREAM)).toMatchObject({ status: 200, text: events.join('') });
    const line = await served.accessLine(1);
    expect(line['http.status']).toBe('200');
    for (const field of ['error', 'error.type', 'reason']) expect(line).not.toHaveProperty(field);
  });
});

// maximhq/bifrost#4911: OpenRouter answers 200 if the provider behind it fails.
describe('a provider error in an answer of status 200', () => {
  const KEY_OF_GATEWAY = KEY.apiKey;
  const told = { message: 'Provider returned error', code: 429 };
  const text = '{"error":{"message":"Provider returned error","code":429}}';
  const anthropic = { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } };
  const google = { error: { code: 503, message: 'busy', status: 'UNAVAILABLE' } };

  test.each<[string, object, object, number]>([
    ['/chat/completions', {}, { error: told }, 429],
    ['/chat/completions', { stream: true }, { error: told }, 429],
    ['/chat/completions', {}, { error: told, choices: [] }, 429],
    ['/chat/completions', {}, { error: { message: 'busy', code: 'overloaded' } }, 502],
    ['/chat/completions', {}, { error: { message: 'busy', code: '503' } }, 503],
    ['/completions', { prompt: 'Hi' }, { error: told }, 429],
    ['/responses', { input: 'Hi' }, { error: told }, 429],
    ['/embeddings', { input: 'Hi' }, { error: told }, 429],
    ['/moderations', { input: 'Hi' }, { error: told }, 429],
    ['/images/generations', { prompt: 'Hi' }, { error: told }, 429],
    ['/audio/transcriptions', { file: 'x' }, { error: told }, 429],
    ['/messages', { max_tokens: 9 }, anthropic, 529],
    ['beta/models/acme-mini:generateContent', { contents: [] }, google, 503],
    ['beta/models/acme-mini:embedContent', { content: {} }, google, 503],
    ['beta/models/acme-mini:batchEmbedContents', { requests: [] }, google, 503],
  ])('is an error for clients of %s with %j: %j is %d', async (path, members, answer, status) => {
    await using provider = await llmProvider(answering(JSON.stringify(answer)));
    for (const llm of [{}, { guardrails: { response: [{ regex: { rules: [{ builtin: 'ssn' }] } }] } }]) {
      await using served = await llmGateway(provider, { llm });
      const reply = await send(`${served.url}/v1${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ ...CHAT, ...members }),
      });
      expect([reply.status, JSON.parse(reply.text)]).toEqual([status, answer]);
      const line = await served.accessLine(1);
      expect(line['http.status']).toBe(String(status));
      expect(line).not.toHaveProperty('gen_ai.usage.input_tokens');
    }
  });

  test('goes to the next target, and an answer that says itself that it failed does, too', async () => {
    let answer: object = { error: told };
    await using first = await llmProvider((...call) => answering(JSON.stringify(answer))(...call));
    await using second = await llmProvider();
    const models = [first, second].map(({ address }, index) => ({
      name: `m${index}`,
      provider: EVERY_FORMAT,
      params: { baseUrl: `http://${address}/v1` },
      health: { eviction: { consecutiveFailures: 100 } },
    }));
    const targets = [0, 1].map((priority) => ({ model: `m${priority}`, priority }));
    await using served = await modelsGateway(models, {
      virtualModels: [{ name: 'safe', routing: { failover: { targets } } }],
    });
    const ask = (path: string, more: object = {}): Promise<HttpReply> =>
      send(`${served.url}/v1/${path}`, {
        method: 'POST',
        body: JSON.stringify({ ...CHAT, model: 'safe', input: 'Hi', ...more }),
      });
    expect(JSON.parse((await ask('chat/completions')).text)).toHaveProperty('choices');
    expect(JSON.parse((await ask('embeddings')).text)).toHaveProperty('data');
    answer = {
      object: 'response',
      status: 'failed',
      error: { code: 'server_error', message: 'no' },
      output: [],
    };
    expect(JSON.parse((await ask('responses')).text)).toMatchObject({
      object: 'response',
      status: 'completed',
    });
    expect([first.received.length, second.received.length]).toEqual([3, 3]);
    const failed = (more: object): object => ({
      choices: [
        { index: 0, message: { role: 'assistant', content: 'Hel' }, finish_reason: 'error', ...more },
      ],
    });
    for (const answer_ of [failed({}), failed({ finish_reason: null, error: told })]) {
      answer = answer_;
      expect((await ask('chat/completions')).text).toContain('Hello.');
      expect((await ask('chat/completions', { stream: true })).text).toContain('Hello.');
    }
    expect([first.received.length, second.received.length]).toEqual([7, 7]);
    // What is wrong with the request would be wrong at the next target, too.
    answer = failed({ error: { message: 'too long', code: 400 } });
    expect(JSON.parse((await ask('chat/completions')).text)).toEqual(answer);
    expect(second.received).toHaveLength(7);
  });

  test('a response that failed is passed on, and counts as a failure', async () => {
    const failed = JSON.stringify({ object: 'response', status: 'failed', error: { code: 'server_error' } });
    await using provider = await llmProvider(answering(failed));
    await using served = await llmGateway(provider);
    const reply = await send(`${served.url}/v1/responses`, {
      method: 'POST',
      body: JSON.stringify({ model: 'm', input: 'Hi' }),
    });
    expect(reply).toMatchObject({ status: 200, text: failed });
    expect(await served.accessLine(1)).toMatchObject({
      'http.status': '200',
      error: 'the provider responded with an error',
      'error.type': 'server_error',
    });
  });

  test("that refuses the gateway's credentials, or repeats its key", async () => {
    let error = { message: `no key ${KEY_OF_GATEWAY}`, code: 401 };
    await using provider = await llmProvider((...call) => answering(JSON.stringify({ error }))(...call));
    await using served = await llmGateway(provider, { params: KEY });
    expect(errorOf(await chat(served)).code).toBe('provider_auth_failed');
    error = { ...error, code: 403 };
    expect(await chat(served)).toMatchObject({
      status: 403,
      text: text.replace(told.message, 'no key <redacted>').replace('429', '403'),
    });
  });
});

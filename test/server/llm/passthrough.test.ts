import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { describe, expect, test } from 'vitest';
import {
  bodyOf,
  CHAT,
  chat,
  errorOf,
  formOf,
  guardrail,
  llmGateway,
  llmProvider,
  modelsGateway,
  textOf,
  webhook,
} from '../../kit/llm-provider.ts';
import { send } from '../../kit/send.ts';
import type { HttpUpstream } from '../../kit/upstream.ts';

const KEY = 'sk-provider-key';

describe('`passthrough` of a model', () => {
  const passthrough = [
    { path: '/v1/files/*', methods: ['GET', 'DELETE'] },
    { path: '/v1/files', methods: ['GET', 'POST'] },
    { path: '/openai/deployments/*' },
    { path: '/v1beta/models/*' },
  ];

  async function gates(provider: HttpUpstream, allowedModels?: readonly string[]) {
    const params = { baseUrl: `http://${provider.address}/v1`, apiKey: KEY };
    const keys = [{ key: 'k', ...(allowedModels === undefined ? {} : { allowedModels }) }];
    return modelsGateway(
      [
        { name: 'plain', provider: 'oaiCompat', params },
        { name: 'acme', provider: 'oaiCompat', params: { ...params, model: 'acme-1' }, passthrough },
      ],
      { policies: { apiKey: { mode: 'strict', keys } } },
    );
  }
  const headers = { authorization: 'Bearer k' };

  test('`passthrough` opens the listed paths and methods unchanged and no others', async () => {
    await using provider = await llmProvider();
    await using gate = await gates(provider);
    const ask = (method: string, path: string, body?: string, type = 'application/json') =>
      send(gate.url + path, {
        method,
        headers: { ...headers, 'content-type': type },
        ...(body === undefined ? {} : { body }),
      });
    expect((await ask('GET', '/v1/files/f1/content?a=1')).status).toBe(200);
    expect(provider.received.at(-1)).toMatchObject({
      method: 'GET',
      target: '/v1/files/f1/content?a=1',
      headers: { authorization: `Bearer ${KEY}` },
      body: '',
    });
    expect((await ask('DELETE', '/files/f1')).status).toBe(200);
    expect(provider.received.at(-1)?.target).toBe('/v1/files/f1');
    expect((await ask('POST', '/v1/files', 'no JSON at all', 'text/plain')).status).toBe(200);
    expect(textOf(provider)).toBe('no JSON at all');
    const deployment = '/openai/deployments/acme/chat/completions';
    expect((await ask('POST', deployment, JSON.stringify({ ...CHAT, model: 'acme' }))).status).toBe(200);
    expect(bodyOf(provider)['model']).toBe('acme-1');
    expect(provider.received.at(-1)?.target).toBe(`/v1${deployment}`);
    const before = provider.received.length;
    expect(errorOf(await ask('PUT', '/v1/files/f1', '{}')).code).toBe('unknown_url');
    expect(errorOf(await ask('GET', '/v1/filesystem')).code).toBe('unknown_url');
    expect(errorOf(await ask('GET', '/v1/batches')).code).toBe('unknown_url');
    // Opened by `acme`, not by `plain`.
    expect(errorOf(await ask('POST', deployment.replace('acme', 'plain'), '{"model":"plain"}')).code).toBe(
      'unknown_url',
    );
    expect(provider.received).toHaveLength(before);
  });

  test('official clients upload files, create batches and read their results', async () => {
    const lines = '{"custom_id":"a","body":{}}\n{"custom_id":"b","body":{}}\n';
    await using provider = await llmProvider((_, response, { target }) => {
      const isResult = target.endsWith('/content');
      response.writeHead(200, { 'content-type': isResult ? 'application/x-jsonl' : 'application/json' });
      response.end(isResult ? lines : '{"id":"x1"}');
    });
    const params = { baseUrl: `http://${provider.address}/v1`, apiKey: KEY };
    const entries = [
      { path: '/v1/files', methods: ['GET', 'POST'] },
      { path: '/v1/files/*', methods: ['GET', 'DELETE'] },
      { path: '/v1/batches', methods: ['GET', 'POST'] },
      { path: '/v1/messages/batches', methods: ['POST'] },
      { path: '/v1/messages/batches/*', methods: ['GET'] },
    ];
    await using gate = await modelsGateway([
      { name: '*', provider: 'oaiCompat', params, passthrough: entries.slice(0, 3) },
      { name: 'claude', provider: 'anthropic', params, passthrough: entries.slice(3) },
    ]);
    const openai = new OpenAI({ baseURL: `${gate.url}/v1`, apiKey: 'client-key', maxRetries: 0 });
    const file = await openai.files.create({ file: new File([lines], 'in.jsonl'), purpose: 'batch' });
    expect(await formOf(provider)).toEqual(
      new Map([
        ['purpose', 'batch'],
        ['file', `in.jsonl ${lines}`],
      ]),
    );
    const batch = { input_file_id: file.id, endpoint: '/v1/responses', completion_window: '24h' } as const;
    await openai.batches.create(batch);
    expect(bodyOf(provider)).toEqual(batch);
    expect(await (await openai.files.content('x1')).text()).toBe(lines);
    await openai.files.delete('x1');
    const anthropic = new Anthropic({ baseURL: gate.url, apiKey: 'client-key', maxRetries: 0 });
    const asked = { model: 'claude', max_tokens: 9, messages: [{ role: 'user', content: 'Hi' }] } as const;
    await anthropic.messages.batches.create({
      requests: [{ custom_id: 'a', params: { ...asked, messages: [...asked.messages] } }],
    });
    expect(provider.received.at(-1)?.headers).toMatchObject({ 'x-api-key': KEY });
    expect((await anthropic.messages.batches.retrieve('x1')).id).toBe('x1');
    expect(JSON.stringify(provider.received)).not.toContain('client-key');
    expect(provider.received.map(({ method, target }) => `${method} ${target}`)).toEqual([
      'POST /v1/files',
      'POST /v1/batches',
      'GET /v1/files/x1/content',
      'DELETE /v1/files/x1',
      'POST /v1/messages/batches',
      'GET /v1/messages/batches/x1',
    ]);
  });

  test('`passthrough` opens a path only for keys that may use the model, wherever the request names a model', async () => {
    await using provider = await llmProvider();
    await using gate = await gates(provider, ['plain', 'other']);
    const ask = (method: string, path: string, body?: string, type = 'application/json') =>
      send(gate.url + path, {
        method,
        headers: { ...headers, 'content-type': type },
        ...(body === undefined ? {} : { body }),
      });
    expect(errorOf(await ask('GET', '/v1/files/f1')).code).toBe('model_not_allowed');
    expect(errorOf(await ask('POST', '/v1/files', 'no JSON at all', 'text/plain')).code).toBe(
      'model_not_allowed',
    );
    // A provider may parse JSON of any content type and read members that the gateway does not know.
    for (const body of ['{"model":"plain","model":"acme"}', ' {"model":"acme"', '[{"model":"acme"}]'])
      expect(errorOf(await ask('POST', '/v1/files', body)).code).toBe('invalid_request_body');
    const hidden = await ask('POST', '/v1/files', '{"model":"plain","model":"acme"}', 'text/plain');
    expect(errorOf(hidden).code).toBe('invalid_request_body');
    expect(errorOf(await ask('POST', '/v1/files', '{"model":"acme"}')).code).toBe('model_not_allowed');
    // In the format of Google.
    expect(errorOf(await ask('POST', '/v1beta/models/acme:batchGenerateContent', '{}'))).toMatchObject({
      status: 'PERMISSION_DENIED',
    });
    expect(errorOf(await ask('GET', '/v1/files/f1?model=acme')).code).toBe('model_not_allowed');
    expect(errorOf(await ask('GET', '/v1/files/f1?mod%65l=acme')).code).toBe('model_not_allowed');
    const form = 'application/x-www-form-urlencoded';
    expect(errorOf(await ask('POST', '/v1/files', 'a=b&mod%65l=acme', form)).code).toBe('model_not_allowed');
    // The provider could use either of them.
    expect(errorOf(await ask('POST', '/v1/files?model=acme', '{"model":"plain"}')).code).toBe(
      'ambiguous_model',
    );
    expect(errorOf(await ask('POST', '/v1/chat/completions?model=acme', '{"model":"plain"}')).code).toBe(
      'ambiguous_model',
    );
    const deployment = '/openai/deployments/acme/chat/completions';
    expect(errorOf(await ask('POST', deployment, '{"model":"plain"}')).code).toBe('ambiguous_model');
    expect(errorOf(await ask('POST', deployment, '{}')).code).toBe('model_not_allowed');
    expect(provider.received).toEqual([]);
  });

  test('`passthrough` does not bypass guardrails: requests that they cannot read are rejected', async () => {
    await using provider = await llmProvider();
    await using guard = await guardrail(() => ({}));
    const model = { passthrough, guardrails: { request: [webhook(guard)] } };
    await using gate = await llmGateway(provider, { model });
    const ask = (body: string) => send(`${gate.url}/v1/files`, { method: 'POST', body });
    expect(errorOf(await ask('no JSON at all')).code).toBe('guardrail_unsupported');
    expect((await ask('{"model":"a"}')).status).toBe(200);
    expect((await send(`${gate.url}/v1/files`)).status).toBe(200);
  });

  test.each([
    ['v1/files', 'expected a path'],
    ['/v1/*/files', 'expected a path'],
    ['/v1/files?a=1', 'expected a path'],
  ])('`passthrough` rejects %s as a path in the configuration', async (path, message) => {
    await expect(modelsGateway([{ name: '*', provider: 'echo', passthrough: [{ path }] }])).rejects.toThrow(
      message,
    );
  });

  test('the built-in model supports no `passthrough` calls and says so', async () => {
    await using gate = await modelsGateway([
      { name: '*', provider: 'echo', passthrough: [{ path: '/v1/files', methods: ['GET'] }] },
    ]);
    expect(errorOf(await send(`${gate.url}/v1/files`)).message).toContain(
      'the echo model does not support GET /v1/files',
    );
    expect((await chat(gate)).text).toContain('Hi');
  });
});

describe('passthrough of everything', () => {
  test.each(['detect', 'opaque'])(
    'passthrough %s forwards any call, and translates none',
    async (passthrough) => {
      await using provider = await llmProvider();
      await using gate = await llmGateway(provider, { model: { provider: 'oaiCompat', passthrough } });
      const body = '{"model": "m",  "max_tokens": 1, "messages": []}';
      expect((await send(`${gate.url}/v1/messages`, { method: 'POST', body })).status).toBe(200);
      expect((await send(`${gate.url}/v1/files/f1`, { method: 'DELETE' })).status).toBe(200);
      expect(provider.received.map(({ method, target }) => `${method} ${target}`)).toEqual([
        'POST /v1/messages',
        'DELETE /v1/files/f1',
      ]);
      expect(provider.received[0]?.body).toBe(body);
    },
  );

  test('passthrough counts the tokens of calls that it recognizes, unless it is opaque', async () => {
    const counted = async (passthrough: string) => {
      await using provider = await llmProvider();
      await using gate = await llmGateway(provider, { model: { passthrough } });
      await chat(gate);
      return (await gate.accessLine(1))['gen_ai.usage.output_tokens'];
    };
    expect([await counted('detect'), await counted('opaque')]).toEqual(['7', undefined]);
  });
});

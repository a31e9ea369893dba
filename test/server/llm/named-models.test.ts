import { describe, expect, test } from 'vitest';
import { gateway } from '../../kit/gateway.ts';
import { callOf, WIRE } from '../../kit/llm-formats.ts';
import { answering, EVERY_FORMAT, errorOf, llmProvider, modelsGateway } from '../../kit/llm-provider.ts';
import { realtimeClient, realtimeProvider } from '../../kit/realtime.ts';
import { type HttpReply, send } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';

// Requests that name models beside `model`: alternatives, models of tools, models in paths. A key is not to reach a model that it
// does not allow (LiteLLM #41810, #31120 and #4321; OpenRouter's `models`).

const DENIED = 'acme-large';
const ALLOWED = 'acme-mini';
const HEADERS = { authorization: 'Bearer k', 'content-type': 'application/json' };

/** A gateway with every model of the provider, and a key for one of them. */
async function restricted(provider: { address: string }): ReturnType<typeof modelsGateway> {
  const keys = [{ key: 'k', allowedModels: [ALLOWED] }];
  const params = { baseUrl: `http://${provider.address}/v1` };
  return modelsGateway([{ name: '*', provider: EVERY_FORMAT, params }], {
    policies: { apiKey: { mode: 'strict', keys } },
  });
}

/** A gateway whose allowed model has all paths of the provider, and where a call that names no model is one of it. */
function passing(
  provider: { address: string },
  more: Readonly<Record<string, unknown>> = {},
): ReturnType<typeof modelsGateway> {
  const keys = [{ key: 'k', allowedModels: [ALLOWED] }];
  const entry = { provider: EVERY_FORMAT, params: { baseUrl: `http://${provider.address}/v1` } };
  return modelsGateway(
    [
      { ...entry, name: ALLOWED, passthrough: [{ path: '/*' }] },
      { ...entry, name: '*', passthrough: [{ path: '/*' }] },
    ],
    { policies: { apiKey: { mode: 'strict', keys } } },
    more,
  );
}

/** Members that name a model, as clients write them. */
const MEMBERS: Readonly<Record<string, (model: string) => object>> = {
  'alternatives of OpenRouter': (name) => ({ models: [ALLOWED, name], route: 'fallback' }),
  'one alternative as a text': (name) => ({ models: name }),
  'alternatives of LiteLLM': (name) => ({ fallbacks: [name] }),
  'alternatives of LiteLLM with settings': (name) => ({ fallbacks: [{ model: name, messages: [] }] }),
  'alternatives of LiteLLM by model': (name) => ({ context_window_fallbacks: [{ [ALLOWED]: [name] }] }),
  'a fallback model': (name) => ({ fallback_model: name }),
  'fallback models in camel case': (name) => ({ fallbackModels: [name] }),
  'a fallback as an object': (name) => ({ fallback: { id: name } }),
  'another spelling of `model`': (name) => ({ MODELS: [name] }),
  'an extra body': (name) => ({ extra_body: { model: name } }),
  'the model of an image tool': (name) => ({ tools: [{ type: 'image_generation', model: name }] }),
  'the model of an advisor tool': (name) => ({
    tools: [{ type: 'advisor_20260301', name: 'a', model: name }],
  }),
  'a plugin with models': (name) => ({ plugins: [{ id: 'auto-router', allowed_models: [name] }] }),
  'a plugin with a model': (name) => ({ plugins: [{ id: 'fusion', settings: { judge_model: name } }] }),
  'a model id': (name) => ({ modelId: name }),
  'a deployment': (name) => ({ deployment_id: name }),
  'an engine': (name) => ({ engine: name }),
  'the request whose tokens are counted': (name) => ({
    generateContentRequest: { model: `models/${name}`, contents: [] },
  }),
  'the same in snake case': (name) => ({
    generate_content_request: { model: `models/${name}`, contents: [] },
  }),
  'requests of a batch': (name) => ({ batch: { requests: [{ custom_id: 'a', params: { model: name } }] } }),
  'a session': (name) => ({ session: { audio: { input: { transcription: { model: name } } } } }),
};

describe('a model that a request names beside `model`', () => {
  test.each(Object.keys(WIRE) as (keyof typeof WIRE)[])(
    'is checked in every member of a request of %s',
    async (format) => {
      await using provider = await llmProvider(answering('{}'));
      await using gate = await restricted(provider);
      const { path, body } = callOf(format, ALLOWED);
      const ask = (more: object): Promise<HttpReply> =>
        send(gate.url + path, {
          method: 'POST',
          headers: HEADERS,
          body: JSON.stringify({ ...(JSON.parse(body) as object), ...more }),
        });
      for (const [what, member] of Object.entries(MEMBERS)) {
        const reply = await ask(member(DENIED));
        expect([what, reply.status]).toEqual([what, 403]);
        expect(reply.text).toContain(`: \\"${DENIED}\\"`);
        expect(reply.text).not.toContain(ALLOWED);
      }
      expect(provider.received).toEqual([]);
      for (const [what, member] of Object.entries(MEMBERS))
        expect([what, (await ask(member(ALLOWED))).status]).not.toEqual([what, 403]);
      expect(provider.received).toHaveLength(Object.keys(MEMBERS).length);
    },
  );

  test('is not looked for in texts, schemas, metadata and data of tools', async () => {
    await using provider = await llmProvider(answering('{"choices":[{"message":{}}]}'));
    await using gate = await restricted(provider);
    const schema = { type: 'object', properties: { model: { type: 'string', default: DENIED } } };
    const request = {
      model: ALLOWED,
      messages: [
        { role: 'user', content: DENIED, model: DENIED },
        { role: 'assistant', tool_calls: [{ function: { name: 'f', arguments: `{"model":"${DENIED}"}` } }] },
      ],
      tools: [{ type: 'function', function: { name: 'f', parameters: schema } }],
      plugins: [{ id: 'web', engine: 'exa' }],
      response_format: { type: 'json_schema', json_schema: { name: 'r', schema } },
      metadata: { model: DENIED },
      provider: { allow_fallbacks: true },
    };
    const reply = await send(`${gate.url}/v1/chat/completions`, {
      method: 'POST',
      headers: HEADERS,
      body: JSON.stringify(request),
    });
    expect(reply.status).toBe(200);
  });

  test.each([
    ['a preset', { preset: 'mine' }],
    ['a route without alternatives', { route: 'fallback' }],
    ['a route with an empty list', { route: 'fallback', models: [] }],
  ])('%s lets the provider choose, which needs a key for all models', async (_, more) => {
    await using provider = await llmProvider();
    await using gate = await restricted(provider);
    await using open = await modelsGateway([
      { name: '*', provider: EVERY_FORMAT, params: { baseUrl: `http://${provider.address}/v1` } },
    ]);
    const body = JSON.stringify({ model: ALLOWED, messages: [], ...more });
    const ask = async (url: string): Promise<number> =>
      (await send(`${url}/v1/chat/completions`, { method: 'POST', headers: HEADERS, body })).status;
    expect(await ask(gate.url)).toBe(403);
    expect(provider.received).toEqual([]);
    expect(await ask(open.url)).toBe(200);
  });

  test('has to be a model of the configuration, under the name that the provider gets', async () => {
    await using provider = await llmProvider();
    const params = { baseUrl: `http://${provider.address}/v1` };
    await using gate = await modelsGateway([
      { name: 'acme-mini', provider: EVERY_FORMAT, params },
      { name: 'acme-plus', provider: EVERY_FORMAT, params },
      { name: 'acme-hidden', provider: EVERY_FORMAT, params, visibility: 'internal' },
      { name: 'fast', provider: EVERY_FORMAT, params: { ...params, model: 'acme-fast' } },
      { name: 'own-*', provider: EVERY_FORMAT, params: { ...params, model: 'own' } },
    ]);
    const ask = (name: string): Promise<HttpReply> =>
      send(`${gate.url}/v1/chat/completions`, {
        method: 'POST',
        headers: HEADERS,
        body: JSON.stringify({ model: 'acme-mini', messages: [], models: [name] }),
      });
    expect((await ask('acme-plus')).status).toBe(200);
    for (const name of ['acme-hidden', 'acme-fast', 'fast', 'own-large', 'unknown']) {
      const reply = await ask(name);
      expect([name, reply.status, errorOf(reply).code]).toEqual([name, 404, 'model_not_found']);
    }
    expect(provider.received).toHaveLength(1);
  });

  test('obeys the `authorization` of its own entry', async () => {
    await using provider = await llmProvider();
    const params = { baseUrl: `http://${provider.address}/v1` };
    await using gate = await modelsGateway([
      { name: 'acme-mini', provider: EVERY_FORMAT, params },
      {
        name: 'acme-large',
        provider: EVERY_FORMAT,
        params,
        authorization: { rules: [{ require: 'request.headers["x-team"] == "a"' }] },
      },
    ]);
    const ask = async (team: string): Promise<number> => {
      const body = JSON.stringify({ model: 'acme-mini', messages: [], fallbacks: ['acme-large'] });
      const headers = { ...HEADERS, 'x-team': team };
      return (await send(`${gate.url}/v1/chat/completions`, { method: 'POST', headers, body })).status;
    };
    expect([await ask('a'), await ask('b')]).toEqual([200, 403]);
  });
});

describe('a model in a path', () => {
  test.each(['generateContent', 'streamGenerateContent?alt=sse', 'countTokens', 'embedContent'])(
    'a tuned model is another one than that of the same name: %s',
    async (method) => {
      await using provider = await llmProvider(answering('{}'));
      await using gate = await restricted(provider);
      await using tuned = await modelsGateway(
        [{ name: '*', provider: EVERY_FORMAT, params: { baseUrl: `http://${provider.address}/v1` } }],
        {
          policies: {
            apiKey: { mode: 'strict', keys: [{ key: 'k', allowedModels: [`tunedModels/${ALLOWED}`] }] },
          },
        },
      );
      const ask = (url: string, path: string): Promise<HttpReply> =>
        send(`${url}/v1beta/${path}/${ALLOWED}:${method}`, { method: 'POST', headers: HEADERS, body: '{}' });
      expect((await ask(gate.url, 'tunedModels')).status).toBe(403);
      expect((await ask(tuned.url, 'models')).status).toBe(403);
      expect(provider.received).toEqual([]);
      await ask(tuned.url, 'tunedModels');
      expect(provider.received.map(({ target }) => target)).toEqual([
        `/v1beta/tunedModels/${ALLOWED}:${method}`,
      ]);
    },
  );

  test('an entry that replaces the name of a tuned model sends the call to that model', async () => {
    await using provider = await llmProvider(answering('{}'));
    const params = { baseUrl: `http://${provider.address}/v1` };
    await using gate = await modelsGateway([
      { name: 'tunedModels/mine', provider: EVERY_FORMAT, params: { ...params, model: 'acme-mini' } },
      { name: 'mine', provider: EVERY_FORMAT, params: { ...params, model: 'tunedModels/other' } },
    ]);
    for (const path of ['tunedModels/mine', 'models/mine'])
      await send(`${gate.url}/v1beta/${path}:countTokens`, { method: 'POST', headers: HEADERS, body: '{}' });
    expect(provider.received.map(({ target }) => target)).toEqual([
      '/v1beta/models/acme-mini:countTokens',
      '/v1beta/tunedModels/other:countTokens',
    ]);
  });

  test.each([
    '/v1beta/models/acme-large:batchGenerateContent',
    '/v1beta/tunedModels/acme-mini:batchGenerateContent',
    '/v1beta//models//acme-large:batchGenerateContent',
    '/v1beta/Models/acme-large:batchGenerateContent',
    '/v1beta%2Fmodels%2Facme-large:batchGenerateContent',
    '/v1beta/models/acme-mini%2Flarge:batchGenerateContent',
    '/v1/projects/p/locations/l/publishers/google/models/acme-large:rawPredict',
    '/v1/projects/p/locations/l/endpoints/acme-large:predict',
    '/openai/deployments/acme-large/completions',
    '/openai/Deployments/acme%2Dlarge/completions',
    '/v1/engines/acme-large/completions',
    '/model/acme-large/invoke',
    '/model/acme-mini:large/invoke',
    '/model/acme-mini%3Alarge/converse-stream',
    '/batch/jobs?model=acme-large',
    '/batch/jobs?models=acme-large',
    '/batch/jobs?deployment=acme-large',
  ])('%s is a call of a model that the key does not allow', async (path) => {
    await using provider = await llmProvider();
    await using gate = await passing(provider);
    const reply = await send(gate.url + path, { method: 'POST', headers: HEADERS, body: '{}' });
    // 400: encoded slashes are refused before.
    expect(reply.status).toBe(path.includes('%2F') ? 400 : 403);
    expect(provider.received).toEqual([]);
  });

  test('encoded and repeated slashes that are kept hide no model', async () => {
    await using provider = await llmProvider();
    await using gate = await passing(provider, { config: { http: { pathNormalization: 'keep' } } });
    for (const path of [
      '/v1beta%2Fmodels%2Facme-large:run',
      '/v1//models//acme-large',
      '/model%2F/acme-large/x',
    ]) {
      const reply = await send(gate.url + path, { method: 'POST', headers: HEADERS, body: '{}' });
      expect([path, reply.status]).toEqual([path, 403]);
    }
    expect(provider.received).toEqual([]);
  });

  test.each([
    '/v1beta/models/acme-mini:batchGenerateContent',
    '/model/acme-mini/invoke',
    '/openai/deployments/acme-mini/completions',
  ])('%s is a call of a model that the key allows', async (path) => {
    await using provider = await llmProvider();
    await using gate = await passing(provider);
    expect((await send(gate.url + path, { method: 'POST', headers: HEADERS, body: '{}' })).status).toBe(200);
  });

  test('requests of a batch are calls of the models that they name', async () => {
    await using provider = await llmProvider();
    await using gate = await passing(provider);
    const ask = async (model: string): Promise<number> => {
      const requests = [{ custom_id: 'a', params: { model, max_tokens: 9, messages: [] } }];
      const body = JSON.stringify({ model: ALLOWED, requests });
      const url = `${gate.url}/v1/messages/batches`;
      return (await send(url, { method: 'POST', headers: HEADERS, body })).status;
    };
    expect([await ask(ALLOWED), await ask(DENIED)]).toEqual([200, 403]);
  });
});

describe('a model that a realtime session names', () => {
  const config = (baseUrl: string): string =>
    JSON.stringify({
      llm: {
        port: 0,
        policies: {
          apiKey: { mode: 'strict', keys: [{ key: 'k', allowedModels: ['acme-live', 'acme-hear'] }] },
        },
        models: [{ name: '*', provider: 'oaiCompat', params: { baseUrl } }],
      },
    });
  const headers = { authorization: 'Bearer k' };

  test.each([
    ['in a session', { session: { model: 'acme-large' } }],
    ['for transcription', { session: { audio: { input: { transcription: { model: 'acme-large' } } } } }],
    ['in the older form', { session: { input_audio_transcription: { model: 'acme-large' } } }],
    ['in a response', { type: 'response.create', response: { fallback_model: 'acme-large' } }],
  ])('is checked %s', async (_, event) => {
    await using provider = await realtimeProvider();
    await using gate = await gateway(config(provider.baseUrl));
    await using client = await realtimeClient(`${gate.url}/v1/realtime?model=acme-live`, { headers });
    const update = { type: 'session.update', event_id: 'e1', ...event };
    client.socket.send(JSON.stringify(update).replace('model"', '\\u006dodel"'));
    client.socket.send(JSON.stringify(update).replaceAll('acme-large', 'acme-hear'));
    client.socket.send('{"type":"input_audio_buffer.append","audio":"AAAA"}');
    await until(() => provider.messages.length === 2 && client.received.length === 2);
    expect(JSON.parse(String(client.received[1]))).toMatchObject({
      type: 'error',
      error: { code: 'model_not_allowed', event_id: 'e1' },
    });
    expect(provider.messages.join('')).not.toContain('acme-large');
  });

  test.each(['?model=acme-live&deployment=acme-large', '?deployment=acme-live', '?model=acme-live&models=x'])(
    'the query %s is refused',
    async (query) => {
      await using provider = await realtimeProvider();
      await using gate = await gateway(config(provider.baseUrl));
      await expect(realtimeClient(`${gate.url}/v1/realtime${query}`, { headers })).rejects.toThrow('400');
      expect(provider.sessions).toHaveLength(0);
    },
  );
});

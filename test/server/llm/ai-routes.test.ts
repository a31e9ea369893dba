import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import Anthropic from '@anthropic-ai/sdk';
import { describe, expect, test } from 'vitest';
import { temporaryFolder } from '../../kit/folder.ts';
import { gateway, type TestGateway } from '../../kit/gateway.ts';
import {
  answering,
  bodyOf,
  CHAT,
  chat,
  chunk,
  completion,
  DONE,
  errorOf,
  FINISH,
  guardrail,
  llmProvider,
  streaming,
  webhook,
} from '../../kit/llm-provider.ts';
import { send } from '../../kit/send.ts';
import type { HttpUpstream } from '../../kit/upstream.ts';

/** An entry of `ai` that calls a test provider. */
const at = ({ address }: HttpUpstream, name = 'test', settings: object = {}, more: object = {}): object => ({
  name,
  provider: { openAI: settings },
  hostOverride: address,
  ...more,
});

/** A gateway with one route. */
function routed(ai: object, policies: object = {}): Promise<TestGateway> {
  const config = { adminAddr: 'off', connectionTerminationDeadline: '100ms' };
  const routes = [{ policies, backends: [{ ai }] }];
  return gateway(JSON.stringify({ config, gateways: { default: { port: 0 } }, routes }));
}

describe('a route with the backend ai', () => {
  test('a route of one provider gets every model name, and the client key', async () => {
    await using provider = await llmProvider();
    await using served = await routed(at(provider));
    const reply = await chat(served, CHAT, { authorization: 'Bearer sk-client' });
    expect(reply.status).toBe(200);
    expect(provider.received[0]).toMatchObject({
      target: '/v1/chat/completions',
      headers: { authorization: 'Bearer sk-client' },
    });
    expect(bodyOf(provider)).toEqual(CHAT);
    expect(await served.accessLine(1)).toMatchObject({
      protocol: 'llm',
      'gen_ai.provider.name': 'openai',
      'gen_ai.request.model': 'acme-mini',
    });
  });

  test('the model of a provider replaces the requested one', async () => {
    await using provider = await llmProvider();
    await using served = await routed(at(provider, 'test', { model: 'acme-large' }));
    await chat(served);
    expect(bodyOf(provider)).toEqual({ ...CHAT, model: 'acme-large' });
    const list = await send(`${served.url}/v1/models`);
    expect(JSON.parse(list.text)).toMatchObject({ data: [{ id: 'acme-large' }] });
  });

  test.each([
    [{ resourceName: 'acme' }, '/openai/v1/chat/completions'],
    [{ resourceName: 'acme', apiVersion: 'preview' }, '/openai/v1/chat/completions?api-version=preview'],
    [
      { resourceName: 'acme', resourceType: 'foundry', projectName: 'p1' },
      '/api/projects/p1/openai/v1/chat/completions',
    ],
  ])('azure %j is called at %s', async (azure, target) => {
    await using provider = await llmProvider();
    const policies = { backendAuth: { key: 'azure-key' } };
    await using served = await routed({ ...at(provider), provider: { azure }, policies });
    expect((await chat(served)).status).toBe(200);
    expect(provider.received[0]).toMatchObject({ target, headers: { 'api-key': 'azure-key' } });
  });

  test('the model of a provider is filled in if the client names none, also in a fallback provider', async () => {
    const { model: _, ...unnamed } = CHAT;
    await using broken = await llmProvider(answering('{"error":{}}', 500));
    await using works = await llmProvider();
    const groups = [
      { providers: [at(broken, 'first', { model: 'm1' })] },
      { providers: [at(works, 'second', { model: 'm2' })] },
    ];
    await using served = await routed({ groups });
    expect((await chat(served, unnamed)).status).toBe(200);
    expect([bodyOf(broken), bodyOf(works)]).toEqual([
      { ...CHAT, model: 'm1' },
      { ...CHAT, model: 'm2' },
    ]);
    expect((await served.accessLine(1))['gen_ai.request.model']).toBe('m1');
    expect((await chat(served, { ...unnamed, model: 5 })).status).toBe(400);
  });

  test('a client must name a model if a provider has none of its own', async () => {
    const { model: _, ...unnamed } = CHAT;
    await using provider = await llmProvider();
    await using served = await routed({
      groups: [{ providers: [at(provider, 'first', { model: 'm1' }), at(provider, 'second')] }],
    });
    const reply = await chat(served, unnamed);
    expect([reply.status, errorOf(reply).code]).toEqual([400, 'missing_model']);
  });

  test('calls that need no model are not given one', async () => {
    await using provider = await llmProvider();
    await using served = await routed(at(provider, 'test', { model: 'm1' }));
    await send(`${served.url}/v1/moderations`, { method: 'POST', body: JSON.stringify({ input: 'Hi' }) });
    expect(bodyOf(provider)).toEqual({ input: 'Hi' });
  });

  test('pathOverride is the path of every call of a provider', async () => {
    await using provider = await llmProvider();
    await using served = await routed(at(provider, 'test', {}, { pathOverride: '/api/chat' }));
    await chat(served);
    await send(`${served.url}/v1/messages`, {
      method: 'POST',
      body: JSON.stringify({ model: 'x', max_tokens: 1, messages: [{ role: 'user', content: 'Hi' }] }),
    });
    expect(provider.received.map(({ target }) => target)).toEqual(['/api/chat', '/api/chat']);
  });

  test('calls are translated for a provider with another API', async () => {
    await using provider = await llmProvider();
    await using served = await routed(at(provider));
    const client = new Anthropic({ baseURL: served.url, apiKey: 'sk-client', maxRetries: 0 });
    const message = await client.messages.create({
      model: 'acme-mini',
      max_tokens: 10,
      messages: [{ role: 'user', content: 'Hi' }],
    });
    expect(message.content).toEqual([{ type: 'text', text: 'Hello.' }]);
    expect(provider.received[0]?.target).toBe('/v1/chat/completions');
  });

  test('a call goes to the first group, and to the next one if it fails', async () => {
    await using broken = await llmProvider(answering('{"error":{}}', 500));
    await using works = await llmProvider();
    const groups = [
      { providers: [at(broken, 'first')] },
      { providers: [at(works, 'second', { model: 'm2' })] },
    ];
    await using served = await routed({ groups });
    for (let count = 0; count < 3; count += 1) expect((await chat(served)).status).toBe(200);
    // Evicted by its first failure.
    expect([broken.received.length, works.received.length]).toEqual([1, 3]);
    expect(bodyOf(broken)['model']).toBe('acme-mini');
    expect(bodyOf(works)['model']).toBe('m2');
  });

  test('a call goes to the next provider if the first one does not accept its key', async () => {
    await using broken = await llmProvider(answering('{"error":{}}', 401));
    await using works = await llmProvider();
    const policies = { backendAuth: { key: 'sk-revoked' } };
    const groups = [
      { providers: [at(broken, 'first', {}, { policies })] },
      { providers: [at(works, 'second')] },
    ];
    await using served = await routed({ groups });
    expect((await chat(served)).status).toBe(200);
    expect([broken.received.length, works.received.length]).toEqual([1, 1]);
  });

  test('a stream that fails before its first output comes from the next provider', async () => {
    await using broken = await llmProvider(streaming((response) => response.destroy()));
    await using works = await llmProvider(
      streaming((response) => response.end(chunk({ content: 'Hello.' }) + FINISH + DONE)),
    );
    await using served = await routed({
      groups: [{ providers: [at(broken, 'first')] }, { providers: [at(works, 'second')] }],
    });
    const reply = await chat(served, { ...CHAT, stream: true });
    expect(reply.text).toBe(chunk({ content: 'Hello.' }) + FINISH + DONE);
  });

  test('the key of a provider is sent in its own header, and redacted if the provider repeats it', async () => {
    const error = '{"type":"error","error":{"type":"authentication_error","message":"bad sk-ant-secret"}}';
    await using provider = await llmProvider(answering(error, 403));
    await using served = await routed({
      name: 'claude',
      provider: { anthropic: { model: 'claude-x' } },
      hostOverride: provider.address,
      policies: { backendAuth: { key: 'sk-ant-secret' } },
    });
    const reply = await send(`${served.url}/v1/messages`, {
      method: 'POST',
      headers: { 'x-api-key': 'sk-client', authorization: 'Bearer sk-client' },
      body: JSON.stringify({ model: 'x', max_tokens: 1, messages: [{ role: 'user', content: 'Hi' }] }),
    });
    expect(reply.status).toBe(403);
    expect(reply.text).not.toContain('sk-ant-secret');
    const { headers } = provider.received[0] as HttpUpstream['received'][0];
    expect(headers['x-api-key']).toBe('sk-ant-secret');
    expect(headers).not.toHaveProperty('authorization');
  });

  test.each<[string, object, RegExp]>([
    ['two kinds', { name: 'a', provider: { openAI: {}, gemini: {} } }, /expected exactly one of `openAI`/],
    ['no kind', { name: 'a', provider: {} }, /expected exactly one of `openAI`/],
    ['no name', { provider: { openAI: {} } }, /name/],
    [
      'a URL as host',
      { name: 'a', provider: { openAI: {} }, hostOverride: 'http://a:1' },
      /expected `host:port`/,
    ],
    [
      'two paths',
      { name: 'a', provider: { openAI: {} }, pathPrefix: '/v1', pathOverride: '/chat' },
      /pathOverride: `pathPrefix` and `pathOverride` are mutually exclusive/,
    ],
    [
      'two providers of one name',
      {
        groups: [
          {
            providers: [
              { name: 'a', provider: { openAI: {} } },
              { name: 'a', provider: { openAI: {} } },
            ],
          },
        ],
      },
      /two providers are named `a`/,
    ],
  ])('a route with %s is a configuration error', async (_, ai, expected) => {
    await expect(routed(ai)).rejects.toThrow(expected);
  });
});

describe('the policy ai', () => {
  test('fields are overridden, computed and filled in before those of a model', async () => {
    await using provider = await llmProvider();
    await using served = await routed(at(provider), {
      ai: {
        defaults: { temperature: 0.5, max_tokens: 7 },
        overrides: { seed: 3 },
        transformations: { user: '"u-" + request.headers["x-user"]' },
        finalTransformations: { top_p: '0.25' },
      },
    });
    await chat(served, { ...CHAT, temperature: 1, seed: 9 }, { 'x-user': 'kim' });
    expect(bodyOf(provider)).toEqual({
      ...CHAT,
      temperature: 1,
      seed: 3,
      max_tokens: 7,
      user: 'u-kim',
      top_p: 0.25,
    });
  });

  const PROMPTS = {
    prepend: [{ role: 'system', content: 'Be brief.' }],
    append: [
      { role: 'system', content: 'Use emojis.' },
      { role: 'user', content: 'Go on.' },
    ],
  };

  test('prompts are added around the messages of a chat', async () => {
    await using provider = await llmProvider();
    await using served = await routed(at(provider), { ai: { prompts: PROMPTS } });
    await chat(served);
    expect(bodyOf(provider)['messages']).toEqual([...PROMPTS.prepend, ...CHAT.messages, ...PROMPTS.append]);
  });

  test.each<[string, object, object]>([
    [
      'a text as input',
      { input: 'Hi' },
      { input: [...PROMPTS.prepend, { role: 'user', content: 'Hi' }, ...PROMPTS.append] },
    ],
    [
      'a list as input',
      { input: [{ role: 'user', content: 'Hi' }] },
      { input: [...PROMPTS.prepend, { role: 'user', content: 'Hi' }, ...PROMPTS.append] },
    ],
  ])('prompts are added to responses with %s', async (_, sent, received) => {
    await using provider = await llmProvider();
    await using served = await routed(at(provider), { ai: { prompts: PROMPTS } });
    await send(`${served.url}/v1/responses`, {
      method: 'POST',
      body: JSON.stringify({ model: 'm', ...sent }),
    });
    expect(bodyOf(provider)).toMatchObject(received);
  });

  test('prompts with the system role are system prompts of the Anthropic API', async () => {
    await using provider = await llmProvider();
    await using served = await routed(
      { name: 'claude', provider: { anthropic: {} }, hostOverride: provider.address },
      { ai: { prompts: PROMPTS } },
    );
    const body = { model: 'm', max_tokens: 1, system: 'Own.', messages: [{ role: 'user', content: 'Hi' }] };
    await send(`${served.url}/v1/messages`, { method: 'POST', body: JSON.stringify(body) });
    expect(bodyOf(provider)).toEqual({
      ...body,
      system: ['Be brief.', 'Own.', 'Use emojis.'].map((text) => ({ type: 'text', text })),
      messages: [
        { role: 'user', content: 'Hi' },
        { role: 'user', content: 'Go on.' },
      ],
    });
  });

  test('prompts are added to the contents and system instruction of the Gemini API', async () => {
    await using provider = await llmProvider();
    await using served = await routed(
      { name: 'gemini', provider: { gemini: {} }, hostOverride: provider.address },
      { ai: { prompts: PROMPTS } },
    );
    const contents = [{ role: 'user', parts: [{ text: 'Hi' }] }];
    const body = { systemInstruction: { parts: [{ text: 'Own.' }] }, contents };
    await send(`${served.url}/v1beta/models/m:generateContent`, {
      method: 'POST',
      body: JSON.stringify(body),
    });
    expect(bodyOf(provider)).toEqual({
      systemInstruction: { parts: ['Be brief.', 'Own.', 'Use emojis.'].map((text) => ({ text })) },
      contents: [...contents, { role: 'user', parts: [{ text: 'Go on.' }] }],
    });
  });

  test('prompts do not change calls without a conversation', async () => {
    await using provider = await llmProvider();
    await using served = await routed(at(provider), { ai: { prompts: PROMPTS } });
    const body = '{"model":"m","input":"Hi"}';
    await send(`${served.url}/v1/embeddings`, { method: 'POST', body });
    expect(provider.received[0]?.body).toBe(body);
  });

  test('aliases replace the name that is sent, the most specific first; the log has that of the client', async () => {
    await using provider = await llmProvider();
    await using served = await routed(at(provider), {
      ai: { modelAliases: { fast: 'acme-mini', 'fa*': 'acme-wide', '*': 'acme-any' } },
    });
    for (const model of ['fast', 'fancy', 'other']) await chat(served, { ...CHAT, model });
    expect(provider.received.map((_, index) => bodyOf(provider, index)['model'])).toEqual([
      'acme-mini',
      'acme-wide',
      'acme-any',
    ]);
    expect((await served.accessLine(1))['gen_ai.request.model']).toBe('fast');
  });

  test('aliases select models of the backend llm', async () => {
    await using provider = await llmProvider();
    const params = { baseUrl: `http://${provider.address}/v1` };
    const models = [{ name: 'acme-mini', provider: 'oaiCompat', params }];
    await using served = await gateway(
      JSON.stringify({
        gateways: { default: { port: 0 } },
        routes: [
          { policies: { ai: { modelAliases: { fast: 'acme-mini' } } }, backends: [{ llm: { models } }] },
        ],
      }),
    );
    expect((await chat(served, { ...CHAT, model: 'fast' })).status).toBe(200);
    expect(bodyOf(provider)['model']).toBe('acme-mini');
    expect((await chat(served, { ...CHAT, model: 'unknown' })).status).toBe(404);
  });

  test('guardrails of the route check requests and responses', async () => {
    await using provider = await llmProvider(answering(completion('the secret')));
    await using refuses = await guardrail(() => ({ body: 'no', status_code: 451 }));
    const masks = { regex: { rules: [{ pattern: 'secret' }] } };
    await using masked = await routed(at(provider), { ai: { promptGuard: { response: [masks] } } });
    expect((await chat(masked)).text).toContain('the <masked>');
    await using refused = await routed(at(provider), {
      ai: { promptGuard: { request: [webhook(refuses)] } },
    });
    expect((await chat(refused)).status).toBe(451);
    expect(provider.received).toHaveLength(1);
  });

  test('routes name the allowed calls by the end of their path, and their types', async () => {
    await using provider = await llmProvider();
    await using served = await routed(at(provider), {
      ai: { routes: { '/ask': 'completions', '/v1/models': 'models', '/files': 'passthrough' } },
    });
    const post = (path: string) =>
      send(`${served.url}${path}`, { method: 'POST', body: JSON.stringify(CHAT) });
    expect((await post('/team/ask')).status).toBe(200);
    expect((await served.accessLine(1))['gen_ai.usage.output_tokens']).toBe('7');
    expect((await post('/v1/chat/completions')).status).toBe(404);
    expect((await send(`${served.url}/v1/models`)).status).toBe(200);
    expect((await send(`${served.url}/v1/files`)).status).toBe(200);
    expect(provider.received.map(({ method, target }) => `${method} ${target}`)).toEqual([
      'POST /v1/chat/completions',
      'GET /v1/files',
    ]);
  });

  test('routes with * forward everything else', async () => {
    await using provider = await llmProvider();
    await using served = await routed(at(provider), {
      ai: { routes: { '/v1/chat/completions': 'completions', '*': 'passthrough' } },
    });
    expect((await chat(served)).status).toBe(200);
    expect((await send(`${served.url}/v1/batches/b1`)).status).toBe(200);
    expect(provider.received[1]?.target).toBe('/v1/batches/b1');
  });

  test.each<[string, object, RegExp]>([
    ['a type that does not exist', { routes: { '/a': 'chat' } }, /routes/],
    ['an alias with two wildcards', { modelAliases: { '*a*': 'b' } }, /wildcard may only appear once/],
    ['an expression that does not compile', { transformations: { a: '1 +' } }, /CEL|expression/],
  ])('%s is a configuration error', async (_, policy, expected) => {
    const ai = { name: 'a', provider: { openAI: {} } };
    await expect(routed(ai, { ai: policy })).rejects.toThrow(expected);
  });

  test('a route without models must not have the policy', async () => {
    const routes = [{ policies: { ai: {} }, backends: [{ host: '127.0.0.1:1' }] }];
    await expect(gateway(JSON.stringify({ gateways: { default: { port: 0 } }, routes }))).rejects.toThrow(
      /`ai` has no effect on a route without models/,
    );
  });
});

describe('the policy backendAuth', () => {
  test('models of a route get its key, in the header of the provider', async () => {
    await using provider = await llmProvider();
    await using served = await routed(at(provider), { backendAuth: { key: 'sk-route' } });
    await chat(served, CHAT, { authorization: 'Bearer sk-client', 'x-api-key': 'sk-client' });
    const { headers } = provider.received[0] as HttpUpstream['received'][0];
    expect(headers.authorization).toBe('Bearer sk-route');
    expect(JSON.stringify(headers)).not.toContain('sk-client');
  });

  test('the key of a provider takes precedence over that of the route', async () => {
    await using provider = await llmProvider();
    const own = { policies: { backendAuth: { key: 'sk-own' } } };
    await using served = await routed(at(provider, 'test', {}, own), { backendAuth: { key: 'sk-route' } });
    await chat(served);
    expect(provider.received[0]?.headers.authorization).toBe('Bearer sk-own');
  });

  test('the key may be in `value`, also in a file, as in configurations of upstream', async () => {
    await using folder = await temporaryFolder();
    await writeFile(join(folder.path, 'key'), 'sk-file\n');
    await using provider = await llmProvider();
    for (const [value, sent] of [
      ['sk-text', 'Bearer sk-text'],
      [{ file: join(folder.path, 'key') }, 'Bearer sk-file'],
    ] as const) {
      await using served = await routed(at(provider), { backendAuth: { key: { value } } });
      await chat(served);
      expect(provider.received.at(-1)?.headers.authorization).toBe(sent);
    }
    await expect(
      routed(at(provider), {
        backendAuth: { key: { value: 'sk-text', location: { header: { name: 'x' } } } },
      }),
    ).rejects.toThrow(/location: the credential of a model is always in the header/);
  });

  test('the key of a route is redacted if a provider repeats it', async () => {
    await using provider = await llmProvider(answering('{"error":{"message":"bad sk-route-key"}}', 403));
    await using served = await routed(at(provider), { backendAuth: { key: 'sk-route-key' } });
    const reply = await chat(served);
    expect(errorOf(reply).message).toBe('bad <redacted>');
  });

  test('an HTTP service gets the key instead of the client credential', async () => {
    await using service = await llmProvider();
    await using served = await gateway(
      JSON.stringify({
        gateways: { default: { port: 0 } },
        routes: [{ policies: { backendAuth: { key: 'sk-route' } }, backends: [{ host: service.address }] }],
      }),
    );
    await send(`${served.url}/any`, { headers: { authorization: 'Bearer sk-client' } });
    expect(service.received[0]?.headers.authorization).toBe('Bearer sk-route');
  });
});

import { describe, expect, test } from 'vitest';
import { callOf, WIRE } from '../../kit/llm-formats.ts';
import {
  answering,
  CHAT,
  chat,
  EMPTY_ANSWER,
  errorOf,
  llmGateway,
  llmProvider,
  modelsGateway,
} from '../../kit/llm-provider.ts';
import { send } from '../../kit/send.ts';

const KEY = 'sk-provider-key';

describe('client credentials', () => {
  const credentials = {
    authorization: 'Bearer client-1',
    'x-api-key': 'client-2',
    'api-key': 'client-3',
    'x-goog-api-key': 'client-4',
    'openai-organization': 'org-client',
    'openai-project': 'proj-client',
    'X-Auth-Token': 'client-5',
    'ocp-apim-subscription-key': 'client-6',
    'cf-aig-authorization': 'Bearer client-7',
    'x-goog-user-project': 'client-8',
    'x-amz-security-token': 'client-9',
    'anthropic-workspace-id': 'client-10',
    'anthropic-organization-id': 'client-11',
    'anthropic-user-profile-id': 'client-12',
  };
  const others = {
    'openai-beta': 'assistants=v2',
    'anthropic-version': '2023-06-01',
    'idempotency-key': 'once',
  };

  test('client credentials of any scheme, also in the query, are not sent to a provider whose model has a key', async () => {
    await using provider = await llmProvider();
    await using gate = await llmGateway(provider, { params: { apiKey: KEY } });
    const query = '?key=client-a&api_key=client-b&api-key=client-c&access_token=client-d&api%2Dversion=1';
    const reply = await send(`${gate.url}/v1/chat/completions${query}`, {
      method: 'POST',
      headers: { ...credentials, ...others },
      body: JSON.stringify(CHAT),
    });
    expect(reply.status).toBe(200);
    const { headers, target } = provider.received[0] ?? {};
    expect(JSON.stringify([headers, target])).not.toContain('client');
    expect(target).toBe('/v1/chat/completions?api%2Dversion=1');
    expect(headers).toMatchObject({ ...others, authorization: `Bearer ${KEY}` });
  });

  test.each(Object.keys(WIRE) as (keyof typeof WIRE)[])(
    'client credentials on a call of %s are not sent to a provider whose model has a key',
    async (format) => {
      await using provider = await llmProvider(answering(EMPTY_ANSWER));
      const { path, body } = callOf(format, 'm');
      const kind = path.includes('/v1beta/') ? 'gemini' : format === 'messages' ? 'anthropic' : 'openai';
      await using gate = await llmGateway(provider, { params: { apiKey: KEY }, model: { provider: kind } });
      const reply = await send(`${gate.url}${path}?key=client-a`, {
        method: 'POST',
        headers: { ...credentials, ...others },
        body,
      });
      expect(reply.status).toBe(200);
      const { headers = {}, target } = provider.received[0] ?? {};
      expect(JSON.stringify([headers, target])).not.toContain('client');
      const sent = {
        anthropic: { 'x-api-key': KEY },
        gemini: { 'x-goog-api-key': KEY },
        openai: { authorization: `Bearer ${KEY}` },
      };
      expect(headers).toMatchObject(sent[kind]);
      expect(Object.values(headers).filter((value) => value?.includes(KEY))).toHaveLength(1);
    },
  );

  test('client credentials are forwarded when the model has no key, and configured headers override them regardless of letter case', async () => {
    await using provider = await llmProvider();
    await using open = await llmGateway(provider);
    await chat(open, CHAT, credentials);
    expect(provider.received[0]?.headers).toMatchObject({
      'x-api-key': 'client-2',
      authorization: 'Bearer client-1',
    });
    const requestHeaders = { set: { 'openai-organization': 'org-ours' } };
    await using keyed = await llmGateway(provider, { params: { apiKey: KEY }, model: { requestHeaders } });
    await chat(keyed, CHAT, credentials);
    expect(provider.received[1]?.headers).toMatchObject({ 'openai-organization': 'org-ours' });
  });
});

test("a header set by a policy replaces the client's header at the provider", async () => {
  await using provider = await llmProvider();
  const policies = {
    requestHeaderModifier: { set: { 'openai-organization': 'org-ours', authorization: 'Bearer ours' } },
  };
  await using gate = await llmGateway(provider, { params: { apiKey: KEY }, llm: { policies } });
  await chat(gate, CHAT, { 'openai-organization': 'org-client' });
  expect(provider.received[0]?.headers).toMatchObject({
    'openai-organization': 'org-ours',
    authorization: `Bearer ${KEY}`,
  });
});

describe('provider redirects', () => {
  test.each([301, 302, 303, 307, 308])(
    'a provider redirect with %i is a 502 that does not reveal the address',
    async (status) => {
      const location = 'http://elsewhere.example/v1/chat/completions?token=t0ps3cret';
      await using provider = await llmProvider(answering('moved', status, { location }));
      await using gate = await llmGateway(provider, { params: { apiKey: KEY } });
      const reply = await chat(gate);
      expect(reply.status).toBe(502);
      expect(reply.headers).not.toHaveProperty('location');
      expect(errorOf(reply)).toMatchObject({ type: 'api_error', code: 'upstream_failed' });
      expect(reply.text).not.toContain('elsewhere');
      const line = await gate.accessLine(1);
      expect(line['error.detail']).toContain(`${provider.address}: the provider responded with ${status}`);
      expect(line['error.detail']).toContain('http://elsewhere.example');
      expect(JSON.stringify(line)).not.toContain('t0ps3cret');
      expect(provider.received).toHaveLength(1);
    },
  );

  test('a Location header on a response that is not a redirect is removed', async () => {
    const headers = { location: 'http://internal/files/1', refresh: '0; url=http://internal/' };
    await using provider = await llmProvider(answering(EMPTY_ANSWER, 201, headers));
    await using gate = await llmGateway(provider);
    const reply = await chat(gate);
    expect(reply.status).toBe(201);
    expect(reply.headers).not.toHaveProperty('location');
    expect(reply.headers).not.toHaveProperty('refresh');
  });

  test("provider headers about the provider's own origin are removed", async () => {
    const headers = {
      'alt-svc': 'h3=":443"; ma=86400',
      'strict-transport-security': 'max-age=31536000; includeSubDomains',
      'clear-site-data': '"cookies"',
      'x-request-id': 'r1',
    };
    await using provider = await llmProvider(answering(EMPTY_ANSWER, 200, headers));
    await using gate = await llmGateway(provider);
    const reply = await chat(gate);
    expect(reply.headers['x-request-id']).toBe('r1');
    for (const name of ['alt-svc', 'strict-transport-security', 'clear-site-data'])
      expect(reply.headers).not.toHaveProperty(name);
  });

  test('a web page of a provider is an error that names the setting, and not an empty answer', async () => {
    await using provider = await llmProvider(
      answering('<html></html>', 200, { 'content-type': 'text/html' }),
    );
    await using gate = await llmGateway(provider);
    const reply = await chat(gate);
    expect(reply.status).toBe(502);
    expect(reply.text).toContain('the provider responded with a web page');
    expect(await gate.accessLine(1)).toMatchObject({
      reason: 'UpstreamFailure',
      'error.detail': expect.stringContaining('check the path of `baseUrl`'),
    });
  });

  test('a provider redirect counts as a failure of its model, and another model takes over', async () => {
    await using moved = await llmProvider(answering('', 302, { location: 'http://elsewhere.example/' }));
    await using works = await llmProvider();
    const models = [moved, works].map(({ address }, index) => ({
      name: `m${index}`,
      provider: 'oaiCompat',
      params: { baseUrl: `http://${address}/v1` },
    }));
    const targets = [
      { model: 'm0', priority: 0 },
      { model: 'm1', priority: 1 },
    ];
    await using gate = await modelsGateway(models, {
      virtualModels: [{ name: 'safe', routing: { failover: { targets } } }],
    });
    const ask = async () => (await chat(gate, { ...CHAT, model: 'safe' })).status;
    expect([await ask(), await ask()]).toEqual([200, 200]);
    expect([moved.received.length, works.received.length]).toEqual([1, 2]);
  });
});

import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { gateway } from '../../kit/gateway.ts';
import { CHAT, chat, llmGateway, llmProvider } from '../../kit/llm-provider.ts';
import { answeringGateway, proxyGateway, routesConfig } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { recorded } from '../../kit/trace.ts';
import { httpUpstream, type Received } from '../../kit/upstream.ts';

const KEY = 'sk-canary-1';
const bearer = (key: string): { authorization: string } => ({ authorization: `Bearer ${key}` });

/** Status for each set of headers in a mode. */
async function statuses(mode: string | undefined, ...headers: Record<string, string>[]): Promise<number[]> {
  const policy = { keys: [{ key: KEY }], ...(mode === undefined ? {} : { mode }) };
  await using gate = await answeringGateway({ apiKey: policy });
  const all = [];
  for (const each of headers) all.push((await send(gate.url, { headers: each })).status);
  return all;
}

describe('apiKey modes', () => {
  const requests = [{}, bearer(KEY), bearer('wrong'), { authorization: 'Basic YTpi' }, bearer('')];

  test('apiKey mode strict requires a known key', async () => {
    expect(await statuses('strict', ...requests)).toEqual([401, 200, 401, 401, 401]);
  });

  test('apiKey mode optional, the default, rejects only unknown keys', async () => {
    expect(await statuses('optional', ...requests)).toEqual([200, 200, 401, 200, 200]);
    expect(await statuses(undefined, ...requests)).toEqual([200, 200, 401, 200, 200]);
  });

  test('apiKey mode permissive rejects no request', async () => {
    expect(await statuses('permissive', ...requests)).toEqual([200, 200, 200, 200, 200]);
  });

  test('apiKey ignores headers of LLM clients on other routes', async () => {
    expect(await statuses('strict', { 'x-api-key': KEY })).toEqual([401]);
  });

  test('apiKey compares the scheme case-insensitively and the key case-sensitively', async () => {
    const odd = [{ authorization: `bEARER ${KEY}` }, { authorization: `Bearer ${KEY.toUpperCase()}` }];
    const others = [{ authorization: KEY }, { authorization: `Bearer-${KEY}` }];
    expect(await statuses('strict', ...odd, ...others)).toEqual([200, 401, 401, 401]);
  });
});

describe('apiKey rejections', () => {
  test('apiKey rejections state whether the key was missing or wrong without quoting it', async () => {
    await using gate = await answeringGateway({ apiKey: { mode: 'strict', keys: [{ key: KEY }] } });
    expect(await send(gate.url)).toMatchObject({
      status: 401,
      text: 'api key authentication failure: no API Key found',
    });
    const wrong = await send(gate.url, { headers: bearer('sk-canary-2') });
    expect(wrong).toMatchObject({ status: 401, text: 'api key authentication failure: invalid credentials' });
    expect(await gate.accessLine(2)).toMatchObject({
      'http.status': '401',
      error: 'api key authentication failure: invalid credentials',
      reason: 'APIKeyAuth',
    });
    expect([...gate.accessLog, ...gate.log].join('')).not.toContain('canary');
  });

  // RFC 9110 §15.5.2: a 401 must carry it.
  test('apiKey rejections name the scheme in WWW-Authenticate', async () => {
    await using gate = await answeringGateway({ apiKey: { mode: 'strict', keys: [{ key: KEY }] } });
    expect((await send(gate.url)).headers['www-authenticate']).toMatch(/^Bearer/);
  });
});

describe('apiKey keys', () => {
  test('apiKey accepts a SHA-256 hash of the key', async () => {
    const keyHash = `sha256:${createHash('sha256').update(KEY).digest('hex')}`;
    await using gate = await answeringGateway({ apiKey: { mode: 'strict', keys: [{ keyHash }] } });
    expect((await send(gate.url, { headers: bearer(KEY) })).status).toBe(200);
    expect((await send(gate.url, { headers: bearer(keyHash) })).status).toBe(401);
    const refused = answeringGateway({ apiKey: { keys: [{ keyHash: 'sha256:ABC' }] } });
    await expect(refused).rejects.toThrow(/keyHash: .*64 lower-case/);
    await expect(answeringGateway({ apiKey: { keys: [{ key: 'a', keyHash }] } })).rejects.toThrow(
      /exactly one of/,
    );
    await expect(answeringGateway({ apiKey: { keys: [{}] } })).rejects.toThrow(/exactly one of/);
  });

  test('apiKey metadata is readable by rules, rate limits, header expressions and the access log', async () => {
    const keys = [
      { key: 'k-a', metadata: { team: 'a', level: 3, tags: ['x'] } },
      { key: 'k-b', metadata: { team: 'b' } },
    ];
    const policies = {
      apiKey: { mode: 'strict', keys },
      authorization: { rules: ['apiKey.team == "a" ? apiKey.level + 1 == 4 && "x" in apiKey.tags : true'] },
      localRateLimit: [{ maxTokens: 1, fillInterval: '1h', key: 'apiKey.team' }],
      directResponse: { bodyExpression: 'apiKey.team' },
    };
    await using gate = await answeringGateway(policies, {
      frontendPolicies: { accessLog: { add: { team: 'apiKey.team', tags: 'apiKey.tags' } } },
    });
    const reply = async (key: string) => {
      const { status, text } = await send(gate.url, { headers: bearer(key) });
      return `${status} ${text}`;
    };
    expect(await reply('k-a')).toBe('200 a');
    expect(await reply('k-b')).toBe('200 b');
    expect(await reply('k-a')).toMatch(/^429 rate limit exceeded: .*requests with your key/);
    expect(await gate.accessLine(1)).toMatchObject({ team: 'a', tags: '["x"]' });
    const second = await gate.accessLine(2);
    expect(second).toMatchObject({ team: 'b' });
    expect(second).not.toHaveProperty('tags');
    expect(await gate.accessLine(3)).toMatchObject({ team: 'a', 'http.status': '429' });
  });
});

describe('apiKey location', () => {
  /** The request that the backend received with the key at that location. */
  async function received(
    location: object | undefined,
    request: { headers?: Record<string, string | string[]>; target?: string },
    status = 200,
  ): Promise<Received | undefined> {
    await using backend = await httpUpstream();
    const apiKey = { mode: 'strict', keys: [{ key: KEY }], ...(location === undefined ? {} : { location }) };
    await using gate = await proxyGateway(backend.address, { apiKey });
    expect((await send(gate.url, request)).status).toBe(status);
    return backend.received[0];
  }

  test('apiKey reads the Authorization header and removes it before the backend', async () => {
    const { headers } = (await received(undefined, { headers: { ...bearer(KEY), 'x-a': '1' } })) ?? {};
    expect(headers).toMatchObject({ 'x-a': '1' });
    expect(headers).not.toHaveProperty('authorization');
  });

  test('apiKey reads a custom header with and without a prefix', async () => {
    const bare = await received(
      { header: { name: 'X-Api-Key' } },
      { headers: { 'x-api-key': KEY, ...bearer('t') } },
    );
    expect(bare?.headers).toMatchObject({ authorization: 'Bearer t' });
    expect(bare?.headers).not.toHaveProperty('x-api-key');
    await received({ header: { name: 'x-k', prefix: 'Key ' } }, { headers: { 'x-k': `key ${KEY}` } });
    await received({ header: { name: 'x-k', prefix: 'Key ' } }, { headers: { 'x-k': KEY } }, 401);
  });

  test('apiKey reads a query parameter, removes it and keeps the other parameters byte for byte', async () => {
    const location = { queryParameter: { name: 'api key' } };
    const { target } = (await received(location, { target: `/p?a=%7e&api%20key=${KEY}&b&c=d+e` })) ?? {};
    expect(target).toBe('/p?a=%7e&b&c=d+e');
    expect((await received(location, { target: `/p?api+key=${KEY}` }))?.target).toBe('/p');
    // Every parameter of that name is removed, including those that were not read.
    expect((await received(location, { target: `/p?api+key=${KEY}&x=1&api+key=other` }))?.target).toBe(
      '/p?x=1',
    );
  });

  test('apiKey reads a cookie, removes it and keeps the other cookies', async () => {
    const location = { cookie: { name: 'session' } };
    const { headers } = (await received(location, { headers: { cookie: `a=1; session=${KEY}; b=2` } })) ?? {};
    expect(headers?.cookie).toBe('a=1; b=2');
    expect(
      (await received(location, { headers: { cookie: `session="${KEY}"` } }))?.headers,
    ).not.toHaveProperty('cookie');
  });

  test('apiKey reads a cookie with a space before its equals sign', async () => {
    const location = { cookie: { name: 'session' } };
    const { headers } = (await received(location, { headers: { cookie: `session =${KEY}; a=1` } })) ?? {};
    expect(headers?.cookie).toBe('a=1');
  });

  // Clients of LiteLLM send `x-litellm-api-key` beside another header, and Claude Code `x-api-key` beside `Authorization`.
  test.each([
    [undefined, bearer(KEY), ''],
    [{ header: { name: 'x-key' } }, { 'x-key': KEY }, ''],
    [{ cookie: { name: 'k' } }, {}, ''],
    [{ queryParameter: { name: 'k' } }, {}, '&k=sk%2dcanary-1'],
    [{ expression: 'request.headers["x-litellm-api-key"].substring(7)' }, {}, ''],
  ])('apiKey %j removes the key from every place that has it', async (location, own, query) => {
    const { headers, target } =
      (await received(location, {
        target: `/p?a=${KEY}x&copy=${KEY}${query}`,
        headers: {
          'x-litellm-api-key': `Bearer ${KEY}`,
          'x-api-key': KEY,
          'x-device': `v1:${KEY}`,
          cookie: `a=1; k=${KEY}; other="${KEY}"`,
          'x-other': `${KEY}0`,
          ...own,
        },
      })) ?? {};
    expect(target).toBe(`/p?a=${KEY}x`);
    expect(headers).toMatchObject({ cookie: 'a=1', 'x-other': `${KEY}0` });
    expect(Object.values(headers ?? {}).filter((value) => String(value).includes(KEY))).toEqual([`${KEY}0`]);
  });

  test('a key that is a word of other headers leaves what the message is', async () => {
    await using backend = await httpUpstream();
    const apiKey = { mode: 'strict', keys: [{ key: 'application' }] };
    await using gate = await proxyGateway(backend.address, { apiKey });
    const described = {
      'content-type': 'application/json',
      accept: 'application/json',
      'user-agent': 'my application',
    };
    const headers = { ...bearer('application'), ...described, host: 'application', 'x-copy': 'application' };
    expect((await send(gate.url, { headers })).status).toBe(200);
    expect(backend.received[0]?.headers).toMatchObject({ ...described, host: 'application' });
    expect(backend.received[0]?.headers).not.toHaveProperty('x-copy');
  });

  test('apiKey reads the key from an expression', async () => {
    const location = { expression: 'request.headers["x-user"].split(":")[1]' };
    const { headers } = (await received(location, { headers: { 'x-user': `me:${KEY}`, 'x-a': '1' } })) ?? {};
    expect(headers).toMatchObject({ 'x-a': '1' });
    expect(headers).not.toHaveProperty('x-user');
    await received(location, { headers: { 'x-user': 'me' } }, 401);
    await received(location, {}, 401);
  });

  test('apiKey location expression that reads apiKey does not hide the key it finds', async () => {
    const location = { expression: 'has(apiKey.team) ? "" : request.headers["x-key"]' };
    const policies = {
      apiKey: { mode: 'strict', keys: [{ key: KEY, metadata: { team: 'a' } }], location },
      authorization: { rules: ['apiKey.team == "a"'] },
    };
    await using gate = await answeringGateway(policies);
    expect((await send(gate.url, { headers: { 'x-key': KEY } })).status).toBe(200);
  });

  test('apiKey rejects a configuration with two locations', async () => {
    const location = { header: { name: 'a' }, cookie: { name: 'b' } };
    await expect(answeringGateway({ apiKey: { keys: [{ key: KEY }], location } })).rejects.toThrow(
      /exactly one of/,
    );
  });

  test('apiKey never writes a key from a header or query to the log', async () => {
    await using gate = await answeringGateway(
      { apiKey: { mode: 'strict', keys: [{ key: KEY }], location: { header: { name: 'x-key' } } } },
      {
        frontendPolicies: {
          accessLog: { add: { headers: 'request.headers', path: 'request.pathAndQuery' } },
        },
      },
    );
    expect((await send(gate.url, { headers: { 'x-key': KEY } })).status).toBe(200);
    await gate.accessLine(1);
    expect([...gate.accessLog, ...gate.log].join('')).not.toContain('canary');
  });

  test('apiKey removes the key from http.path in the access log', async () => {
    await using gate = await answeringGateway({
      apiKey: { mode: 'strict', keys: [{ key: KEY }], location: { queryParameter: { name: 'k' } } },
    });
    expect((await send(gate.url, { target: `/p?k=${KEY}&a=1` })).status).toBe(200);
    expect((await gate.accessLine(1))['http.path']).toBe('/p?a=1');
  });
});

test('a key that an expression has found is in no event of a trace, whatever else the header has', async () => {
  const expression = 'request.headers["x-device"].split(":")[1]';
  // The text of a key in the configuration is known anyway.
  const keyHash = `sha256:${createHash('sha256').update(KEY).digest('hex')}`;
  await using gate = await answeringGateway({
    apiKey: { mode: 'strict', keys: [{ keyHash }], location: { expression } },
  });
  const headers = { 'x-device': `v1:${KEY}` };
  const trace = await recorded(gate, async () => {
    expect((await send(gate.url, { headers })).status).toBe(200);
  });
  expect(JSON.stringify(trace)).not.toContain(KEY);
});

test.each(['x-api-key', 'x-goog-api-key', 'api-key'])(
  'on routes with models, nothing behind apiKey sees a key in %s',
  async (name) => {
    await using provider = await llmProvider();
    await using service = await httpUpstream();
    const policies = {
      apiKey: { mode: 'strict', keys: [{ key: KEY }] },
      extAuthz: { host: service.address, protocol: { http: {} }, includeRequestHeaders: [name, 'x-a'] },
    };
    await using gate = await llmGateway(provider, { llm: { policies } });
    expect((await chat(gate, CHAT, { [name]: KEY, 'x-a': '1' })).status).toBe(200);
    expect(service.received[0]?.headers).toMatchObject({ 'x-a': '1' });
    expect(service.received[0]?.headers).not.toHaveProperty(name);
  },
);

test('extAuthz and authorization run after apiKey has removed the key from the request', async () => {
  await using service = await httpUpstream();
  const policies = {
    apiKey: { mode: 'strict', keys: [{ key: KEY }] },
    extAuthz: { host: service.address, protocol: { http: {} } },
    authorization: { rules: ['!has(request.headers.authorization)'] },
    directResponse: {},
  };
  await using gate = await gateway(routesConfig([{ policies }]));
  expect((await send(gate.url, { headers: bearer(KEY) })).status).toBe(200);
  expect(service.received[0]?.headers).not.toHaveProperty('authorization');
});

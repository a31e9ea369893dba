import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { gateway, type TestGateway } from '../../kit/gateway.ts';
import { llmGateway, llmProvider } from '../../kit/llm-provider.ts';
import { rawRequest, sendRaw } from '../../kit/raw-http.ts';
import { routesConfig } from '../../kit/routes.ts';
import { type HttpUpstream, httpUpstream } from '../../kit/upstream.ts';

let backend: HttpUpstream;
beforeAll(async () => {
  backend = await httpUpstream();
});
afterAll(() => backend.close());

function gatewayWith(http: object, routes: object[] = [{ name: 'all' }]): Promise<TestGateway> {
  const backends = [{ host: backend.address }];
  return gateway(
    routesConfig(
      routes.map((route) => ({ backends, ...route })),
      { config: { http }, frontendPolicies: { accessLog: { add: { seen: 'request.path' } } } },
    ),
  );
}

/** Status and text of the response, and the target that the backend received. */
async function ask(gate: TestGateway, target: string, lines: string[] = []) {
  const before = backend.received.length;
  const count = gate.accessLog.length + 1;
  const { text, statuses } = await sendRaw(gate.port, rawRequest(`GET ${target} HTTP/1.1`, lines), {
    responses: 1,
  });
  const { route, seen } = await gate.accessLine(count);
  return { status: statuses[0], text, route, seen, reached: backend.received[before]?.target };
}

const AMBIGUOUS = {
  'an encoded slash': '/a%2fb',
  'an encoded slash in capitals': '/a%2Fb',
  'an encoded backslash': '/a%5cb',
  'a backslash': '/a\\b',
};

describe('config.http.pathNormalization', () => {
  test.each(Object.entries({ ...AMBIGUOUS, 'a NUL': '/a%00b' }))(
    'pathNormalization by default rejects a path with %s with 400 that names the setting',
    async (_what, target) => {
      await using gate = await gatewayWith({});
      const { status, text, reached } = await ask(gate, target);
      expect({ status, reached }).toEqual({ status: 400, reached: undefined });
      expect(text).toContain('config.http.pathNormalization');
    },
  );

  test('pathNormalization reject also rejects repeated slashes and semicolons', async () => {
    await using gate = await gatewayWith({ pathNormalization: 'reject' });
    for (const target of ['/a//b', '//a', '/a;x', '/a;x/b', '/a%3bx', ...Object.values(AMBIGUOUS)]) {
      const { status, text, reached } = await ask(gate, target);
      expect({ target, status, reached }).toEqual({ target, status: 400, reached: undefined });
      expect(text).toContain('config.http.pathNormalization');
    }
    expect(await ask(gate, '/a/b/')).toMatchObject({ status: 200, reached: '/a/b/' });
  });

  test('pathNormalization keep forwards every spelling in the form that rules see', async () => {
    await using gate = await gatewayWith({ pathNormalization: 'keep' });
    for (const [target, path] of [
      ['/a//b', '/a//b'],
      ['/a%2fb', '/a%2Fb'],
      ['/a%5cb', '/a%5Cb'],
      ['/a\\b', '/a%5Cb'],
      ['/a;x=1/b', '/a;x=1/b'],
    ] as const)
      expect(await ask(gate, target)).toMatchObject({ status: 200, reached: path, seen: path });
  });

  test.each(['merge', 'reject', 'keep'])(
    'pathNormalization %s rejects dot segments in every spelling and control characters',
    async (pathNormalization) => {
      await using gate = await gatewayWith({ pathNormalization });
      for (const target of [
        '/a/../b',
        '/a/./b',
        '/a/%2e%2e/b',
        '/a/.%2E/b',
        '/a/..;x/b',
        '/a%2f..%2fb',
        '/a\\..\\b',
        '/a/%00',
        '/a%0d',
        '/..',
      ])
        expect(await ask(gate, target)).toMatchObject({ status: 400, reached: undefined });
    },
  );

  test('pathNormalization applies to configured paths too', async () => {
    const named = (name: string, path: object) => ({ name, matches: [{ path }] });
    await using gate = await gatewayWith({}, [
      named('cafe', { exact: '/caf\u00e9' }),
      named('tilde', { pathPrefix: '/%7Euser//home' }),
      named('brace', { exact: '/{id}' }),
    ]);
    expect((await ask(gate, '/caf%c3%a9')).route).toBe('default/cafe');
    expect((await ask(gate, '/~user/home/x')).route).toBe('default/tilde');
    expect((await ask(gate, '/%7Bid%7D')).route).toBe('default/brace');
  });
});

describe('encoded slashes in model ids', () => {
  test('an encoded slash in a model id reaches the LLM endpoint and is rejected elsewhere', async () => {
    await using provider = await llmProvider();
    await using gate = await llmGateway(provider);
    const statusOf = async (target: string) =>
      (await sendRaw(gate.port, rawRequest(`GET ${target} HTTP/1.1`), { responses: 1 })).statuses[0];
    expect(await statusOf('/v1/models/org%2Fname')).not.toBe(400);
    expect(await statusOf('/v1/models/org%2F..%2Fname')).toBe(400);
    expect(await statusOf('/v1%2Fmodels')).toBe(400);
    expect(await statusOf('/v1/files/org%2Fname')).toBe(400);
  });

  test('an encoded slash in a model id is rejected on a route to a plain service', async () => {
    await using gate = await gatewayWith({});
    const { status, text, reached } = await ask(gate, '/v1/models/org%2Fname');
    expect({ status, reached }).toEqual({ status: 400, reached: undefined });
    expect(text).toContain('config.http.pathNormalization');
  });
});

describe('host normalization', () => {
  test.each(['name.example', 'NAME.example.', 'name.example.:80', 'name.example:'])(
    'the Host %s matches the route of name.example',
    async (host) => {
      await using gate = await gatewayWith({}, [
        { name: 'named', hostnames: ['name.example'] },
        { name: 'rest', backends: [], policies: { directResponse: { status: 418 } } },
      ]);
      const count = gate.accessLog.length + 1;
      const bytes = `GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`;
      expect((await sendRaw(gate.port, bytes, { responses: 1 })).statuses).toEqual([200]);
      expect((await gate.accessLine(count))['route']).toBe('default/named');
    },
  );

  test('a configured host name is normalized', async () => {
    await using gate = await gatewayWith({}, [{ name: 'named', hostnames: ['Name.Example.'] }]);
    const bytes = 'GET / HTTP/1.1\r\nHost: name.example\r\n\r\n';
    expect((await sendRaw(gate.port, bytes, { responses: 1 })).statuses).toEqual([200]);
  });

  test('rules, matches and external authorization see the normalized host', async () => {
    const rules = ['request.host == "name.example"', 'request.headers["host"] == "name.example"'];
    await using gate = await gatewayWith({}, [{ name: 'all', policies: { authorization: { rules } } }]);
    const bytes = 'GET / HTTP/1.1\r\nHost: Name.Example.\r\n\r\n';
    expect((await sendRaw(gate.port, bytes, { responses: 1 })).statuses).toEqual([200]);
  });

  test.each(['a..b', 'name..', '.name', '.'])('the Host %s with an empty label is rejected', async (host) => {
    await using gate = await gatewayWith({});
    const { statuses } = await sendRaw(gate.port, `GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
    expect(statuses).toEqual([400]);
  });
});

describe('config.http.headersWithUnderscores', () => {
  const LINES = ['X_User: forged', 'Content_Length: 5', 'X-User: 1'];
  const rules = ['!("x_user" in request.headers)'];

  test('headersWithUnderscores by default drops the headers before rules and the backend', async () => {
    await using gate = await gatewayWith({}, [{ name: 'all', policies: { authorization: { rules } } }]);
    expect((await ask(gate, '/', LINES)).status).toBe(200);
    const { headers } = backend.received.at(-1) ?? {};
    expect(headers).toMatchObject({ 'x-user': '1' });
    expect(Object.keys(headers ?? {}).filter((name) => name.includes('_'))).toEqual([]);
  });

  test('headersWithUnderscores reject rejects the request with 400 that names the setting', async () => {
    await using gate = await gatewayWith({ headersWithUnderscores: 'reject' });
    const { status, text, reached } = await ask(gate, '/', LINES);
    expect({ status, reached }).toEqual({ status: 400, reached: undefined });
    expect(text).toContain('config.http.headersWithUnderscores');
  });

  test('headersWithUnderscores allow forwards the headers', async () => {
    await using gate = await gatewayWith({ headersWithUnderscores: 'allow' });
    expect((await ask(gate, '/', LINES)).status).toBe(200);
    expect(backend.received.at(-1)?.headers).toMatchObject({ x_user: 'forged', content_length: '5' });
  });
});

test('an unsupported Expect value is rejected with 417 and logged', async () => {
  await using gate = await gatewayWith({});
  const { statuses } = await sendRaw(gate.port, rawRequest('GET /x HTTP/1.1', ['Expect: x-magic']));
  expect(statuses).toEqual([417]);
  expect(await gate.accessLine(1)).toMatchObject({ 'http.status': '417', reason: 'InvalidRequest' });
});

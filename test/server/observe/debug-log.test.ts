import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { chaos } from '../../kit/config.ts';
import { gateway, parseAccessLine, type TestGateway } from '../../kit/gateway.ts';
import { type Idp, startIdp } from '../../kit/idp.ts';
import { CHAT, chat, guardrail, llmProvider, webhook } from '../../kit/llm-provider.ts';
import { openSession } from '../../kit/mcp.ts';
import { routesConfig } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { signIn } from '../../kit/sign-in.ts';
import { refusingPort } from '../../kit/upstream.ts';
import { verifies } from '../../kit/verifies.ts';

const OPERATOR = { config: { adminAddr: 'off', connectionTerminationDeadline: '100ms' } };

/** Module, message and fields of every line of these modules, as text. */
function linesOf({ log }: TestGateway, ...scopes: string[]): string[] {
  return log
    .map((line) => line.trimEnd().split('\t'))
    .filter(([, , scope]) => scopes.includes(scope as string))
    .map(([, level, , message, fields]) => `${level} ${message} ${fields}`);
}

const levels = async ({ admin }: TestGateway, query: string): Promise<string> =>
  (await send(`${admin}/logging?${query}`, { method: 'POST' })).text;

describe('debug lines of requests', () => {
  verifies(
    'gateway.admin.logging.modules',
    "debug lines of requests are written while their module's level is raised, and refer to the access log",
    async () => {
      await using gate = await gateway(
        JSON.stringify({ ...OPERATOR, mcp: { port: 0, targets: [chaos('one', '--tools=echo')] } }),
        { admin: true, level: 'info' },
      );
      const modules = ['proxy::httpproxy', 'mcp::call', 'mcp::session', 'mcp'];
      const before = await openSession(`${gate.url}/mcp`);
      await before.end();
      await gate.accessLine(3);
      expect(linesOf(gate, ...modules)).toEqual([]);
      expect(gate.accessLog.join('')).not.toContain('request.id=');

      await levels(gate, 'level=proxy::httpproxy=debug,mcp=debug');
      const session = await openSession(`${gate.url}/mcp`);
      await session.request('tools/call', { name: 'echo', arguments: { secret: 'body-canary' } });
      await gate.accessLine(6);
      await session.end();
      const access = parseAccessLine(gate.accessLog[5] as string);
      const own = gate.log.filter((line) => line.includes(`request.id=${access['request.id']} `));
      expect(own.map((line) => line.split('\t').slice(1).join(' ').trim())).toEqual([
        expect.stringMatching(
          /^debug proxy::httpproxy route selected request.id=\d+ method="POST" path="\/mcp" route="/,
        ),
        expect.stringMatching(/^debug mcp::call call started request.id=\d+ to="stdio:one"$/),
        expect.stringMatching(/^debug mcp::call call completed request.id=\d+ to="stdio:one" ms=\d+$/),
      ]);
      const sessions = linesOf(gate, 'mcp::session');
      expect(sessions.map((line) => line.split(' mcp.')[0])).toEqual([
        'debug session started',
        'debug session ended',
      ]);
      for (const line of sessions) expect(line).toContain(`mcp.session.id="${access['mcp.session.id']}"`);
      expect(linesOf(gate, 'mcp')).toContainEqual(
        expect.stringMatching(/^debug target is ready target="one" version=/),
      );

      await levels(gate, 'reset=1');
      const count = gate.log.length;
      await (await openSession(`${gate.url}/mcp`)).end();
      expect((await gate.accessLine(10))['request.id']).toBeUndefined();
      expect(gate.log.length).toBe(count);
      expect(gate.log.join('')).not.toMatch(new RegExp(`body-canary|${session.id}`));
    },
  );

  test('debug lines give the reason for no route, and the policy decision with its configuration line', async () => {
    const routes = [
      { name: 'a', hostnames: ['a.example'], policies: { directResponse: { body: 'a' } } },
      {
        name: 'b',
        matches: [{ path: { pathPrefix: '/b' } }],
        policies: {
          directResponse: { body: 'b' },
          localRateLimit: [{ maxTokens: 1, fillInterval: '1h' }],
          authorization: { rules: [{ deny: 'request.method == "DELETE"' }] },
        },
      },
    ];
    await using gate = await gateway(routesConfig(routes, OPERATOR), { level: 'info,proxy=debug' });
    for (const [method, path] of [
      ['GET', '/c'],
      ['DELETE', '/b'],
      ['GET', '/b'],
      ['GET', '/b'],
    ] as const)
      await send(`${gate.url}${path}?q=query-canary`, { method });
    const { port } = gate;
    const plain = (line: string): string =>
      line.replace(/request.id=\d+ /, '').replaceAll(String(port), 'PORT');
    expect(linesOf(gate, 'proxy::httpproxy', 'proxy::policy').map(plain)).toMatchInlineSnapshot(`
      [
        "debug no route matches method="GET" path="/c" skipped.1="gateway/default/default/a: host 127.0.0.1 is not a.example" skipped.2="gateway/default/default/b: path /c is not below /b"",
        "debug request failed http.status=404 error="route not found" reason="NotFound"",
        "debug route selected method="DELETE" path="/b" route="gateway/default/default/b" config="test.yaml:1:126"",
        "debug rules denied policy="authorization" reason="deny rule is true: request.method == \\"DELETE\\"" config="test.yaml:1:310"",
        "debug request failed http.status=403 error="authorization failed" error.detail="deny rule is true: request.method == \\"DELETE\\"" reason="Authorization"",
        "debug route selected method="GET" path="/b" route="gateway/default/default/b" config="test.yaml:1:126"",
        "debug rules allowed policy="authorization" reason="every rule holds" config="test.yaml:1:276"",
        "debug policy applied policy="localRateLimit" reason="no bucket is empty" remaining=0 config="test.yaml:1:221"",
        "debug policy sent the response policy="directResponse" reason="status 200" config="test.yaml:1:191"",
        "debug route selected method="GET" path="/b" route="gateway/default/default/b" config="test.yaml:1:126"",
        "debug rules allowed policy="authorization" reason="every rule holds" config="test.yaml:1:276"",
        "debug policy denied the request policy="localRateLimit" reason="the bucket is empty" limit=1 config="test.yaml:1:221"",
        "debug request failed http.status=429 error="rate limit exceeded" error.detail="gateways.default.routes.1.policies.localRateLimit.0" reason="RateLimit"",
      ]
    `);
    expect(gate.log.join('')).not.toContain('canary');
  });

  test('debug lines name the failover target, the guardrail result and the calls to both', async () => {
    await using second = await llmProvider();
    await using hook = await guardrail(() => ({}));
    const entry = (name: string, address: string): object => ({
      name,
      provider: 'oaiCompat',
      params: { baseUrl: `http://${address}/v1`, apiKey: 'sk-provider-canary' },
    });
    const refused = `127.0.0.1:${await refusingPort()}`;
    const targets = [{ model: 'first' }, { model: 'second', priority: 1 }];
    const llm = {
      port: 0,
      models: [entry('first', refused), entry('second', second.address)],
      virtualModels: [{ name: 'safe', routing: { failover: { targets } } }],
      guardrails: { request: [webhook(hook)] },
    };
    await using gate = await gateway(JSON.stringify({ ...OPERATOR, llm }), {
      level: 'info,llm=debug,proxy=debug',
    });
    const messages = [{ role: 'user', content: 'body-canary' }];
    expect(
      (await chat(gate, { ...CHAT, model: 'safe', messages }, { authorization: 'Bearer client-canary' }))
        .status,
    ).toBe(200);
    await gate.accessLine(1);
    const shown = linesOf(gate, 'proxy::httpproxy', 'llm', 'llm::guardrail').map((line) =>
      line
        .replace(/request.id=\d+ /, '')
        .replace(/ ms=\d+/, '')
        .replaceAll(refused, 'FIRST')
        .replaceAll(second.address, 'SECOND')
        .replaceAll(hook.address, 'HOOK'),
    );
    expect(shown).toMatchInlineSnapshot(`
      [
        "debug route selected method="POST" path="/v1/chat/completions" route="llm:request" config="test.yaml:1:71"",
        "debug model selected requested="safe" model="first" provider="openai"",
        "debug call started to="HOOK"",
        "debug call completed to="HOOK" status=200",
        "debug guardrail verdict phase="request" verdict="pass" config="test.yaml:1:484"",
        "debug call started to="FIRST"",
        "debug call failed to="FIRST" problem="upstream call failed: connection refused"",
        "debug model evicted model="first" for="3s"",
        "debug trying the next target failed="first" next="second"",
        "debug model selected requested="safe" model="second" provider="openai"",
        "debug call started to="HOOK"",
        "debug call completed to="HOOK" status=200",
        "debug guardrail verdict phase="request" verdict="pass" config="test.yaml:1:484"",
        "debug call started to="SECOND"",
        "debug call completed to="SECOND" status=200",
      ]
    `);
    expect(gate.log.join('')).not.toContain('canary');
  });

  test('a trace watcher receives all events of a request that also writes debug lines', async () => {
    const routes = [{ policies: { directResponse: { body: 'x' } } }];
    await using gate = await gateway(routesConfig(routes, OPERATOR), { level: 'info,proxy=debug' });
    const types: string[] = [];
    gate.running.traceSubscribers.subscribe({
      sink: ({ message }) => types.push(message.type),
      ended: () => undefined,
    });
    await send(gate.url);
    await gate.accessLine(1);
    expect(types).toEqual(expect.arrayContaining(['requestSnapshot', 'bodySnapshot', 'requestFinished']));
    expect(linesOf(gate, 'proxy::policy')).toHaveLength(1);
  });
});

describe('secrets in debug lines', () => {
  let idp: Idp;
  beforeAll(async () => {
    idp = await startIdp();
  });
  afterAll(() => idp.upstream.close());

  test('debug lines never contain a token, a key or request contents', async () => {
    const policies = {
      ...signIn(idp.issuer),
      authorization: { rules: ['int(request.headers["x-note"]) > 0'] },
      cors: { allowOrigins: ['http://good.example'] },
    };
    const keys = [{ key: 'sk-known-canary', metadata: { owner: 'metadata-canary' } }];
    const on = (path: string, more: object): object => ({
      name: path,
      matches: [{ path: { pathPrefix: `/${path}` } }],
      policies: { directResponse: { body: 'x' }, ...more },
    });
    await using gate = await gateway(
      routesConfig([on('token', policies), on('key', { apiKey: { keys, mode: 'strict' } })], OPERATOR),
      { level: 'trace' },
    );
    const bearer = idp.token({ sub: 'claim-canary' });
    const refused = idp.token({ sub: 'claim-canary', aud: 'another-service' });
    const headers = {
      'x-note': 'header-canary',
      origin: 'http://origin-canary.example',
      cookie: 'a=cookie-canary',
    };
    const body = 'body-canary';
    for (const token of [bearer, refused, 'not.a.token-canary', undefined])
      for (const path of ['token', 'key', 'none'])
        await send(`${gate.url}/${path}?a=query-canary`, {
          method: 'POST',
          headers: { ...headers, ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) },
          body,
        });
    await send(`${gate.url}/key`, { headers: { ...headers, authorization: 'Bearer sk-known-canary' } });
    await gate.accessLine(13);
    const auth = linesOf(gate, 'auth').join('\n');
    expect(auth).toMatch(/debug policy applied .*policy="mcpAuthentication" reason="the token is valid"/);
    expect(auth).toMatch(/debug policy denied the request .*policy="mcpAuthentication" reason="no token"/);
    expect(auth).toMatch(/debug policy applied .*policy="apiKey" reason="the key is valid"/);
    expect(auth).toMatch(/debug policy denied the request .*policy="apiKey" reason="invalid credentials"/);
    expect(auth).toMatch(/debug signing keys were read keys=\d+ changed=false/);
    const all = gate.log.join('');
    expect(all).not.toContain('canary');
    for (const token of [bearer, refused])
      for (const part of token.split('.').slice(1)) expect(all).not.toContain(part);
  });
});

import { describe, expect, test } from 'vitest';
import { methodsOf } from '../../src/admin/endpoint.ts';
import { endpoints } from '../../src/admin/endpoints/index.ts';
import { gateway, type TestGateway } from '../kit/gateway.ts';
import { send } from '../kit/send.ts';
import { until } from '../kit/until.ts';
import { verifies } from '../kit/verifies.ts';

const YAML = `# apiKey: sk-old-and-forgotten
config:
  adminAddr: off
  connectionTerminationDeadline: 100ms
  session:
    key: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
frontendPolicies:
  accessLog:
    add: {who: jwt.sub}
gateways:
  edge:
    port: 0
    routes:
      - name: tools
        matches: [{path: {pathPrefix: /mcp}}]
        policies:
          cors: {allowOrigins: ['*'], maxAge: 90s}
          localRateLimit: [{maxTokens: 10, fillInterval: 1s}]
          apiKey: {keys: [{key: client-key-123456}]}
        backends:
          - mcp:
              targets:
                - name: echo
                  stdio: {cmd: node, args: [echo.js, --token, option-secret-1], env: {API_TOKEN: $TOKEN}}
                - name: far
                  mcp: {host: 'http://127.0.0.1:1/mcp'}
      - name: plain
        backends: [{host: 'localhost:8080'}]
      - name: fixed
        matches: [{path: {exact: /fixed}}]
        policies: {directResponse: {body: ok}}
llm:
  port: 0
  models:
    - name: small
      provider: oaiCompat
      params: {baseUrl: 'http://127.0.0.1:9/v1', apiKey: sk-live-abcdef123456}
      transformation: {temperature: '0.5'}
`;

const start = (): Promise<TestGateway> =>
  gateway(YAML, { admin: true, level: 'debug,request=info', env: { TOKEN: 'env-token-987654' } });

/** Values that differ from run to run, replaced by their kind. */
function normalised(text: string, running: TestGateway): string {
  const ports = [...running.ports, Number(new URL(running.admin).port)];
  let out = text;
  for (const [index, port] of ports.entries()) out = out.replaceAll(String(port), `<port${index}>`);
  return out
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '<time>')
    .replace(/node-v[\w.-]+/g, '<target>')
    .replace(/"machine": "[^"]*"/, '"machine": <machine>')
    .replace(/"(version|pid|node|availableCpus|uptimeSeconds)": (?:"v?\d[^"]*"|\d+)/g, '"$1": <$1>')
    .replace(/\b\d+ms\b/g, '<duration>')
    .replace(/127\.0\.0\.1:\d+(?=")/g, '127.0.0.1:<port>')
    .replace(/<span>\d+\.\d+\.\d+|<p>\d+\.\d+\.\d+/g, '<p><version>')
    .replace(/up \d+ (?:s|min|h)/g, 'up <time>');
}

describe('recorded responses of the admin endpoints', () => {
  test.each([
    ['config_dump', 'GET', '/config_dump'],
    ['logging', 'GET', '/logging'],
    ['logging-set', 'POST', '/logging?level=mcp%3Ddebug'],
    ['logging-bad', 'POST', '/logging?level=loud'],
    ['api-config', 'GET', '/api/config'],
    ['api-overview', 'GET', '/api/overview'],
    ['api-requests', 'GET', '/api/requests'],
    ['debug-tasks', 'GET', '/debug/tasks'],
    ['ui-status', 'GET', '/ui/status'],
    ['root', 'GET', '/'],
    [
      'cel',
      'POST',
      '/api/cel',
      '{"expression":"request.headers[\\"X-A\\"]","requestState":{"request":{"headers":{"x-a":"1"}}}}',
    ],
    ['cel-bad', 'POST', '/api/cel', '{"expression":"request.("}'],
    ['cel-failing', 'POST', '/api/cel', '{"expression":"jwt.sub"}'],
    ['validate', 'POST', '/api/config/validate', 'gateways: {a: {prt: 1}}\n'],
  ])(
    'the admin response %s equals the recorded one byte for byte',
    async (name, method, path, body?: string) => {
      await using running = await start();
      await send(`${running.url}/fixed`);
      await until(() => running.accessLog.length === 1);
      const { status, headers, text } = await send(`${running.admin}${path}`, {
        method,
        ...(body === undefined ? {} : { body }),
      });
      const head = ['content-type', 'location', 'allow'].flatMap((field) =>
        headers[field] === undefined ? [] : [`${field}: ${headers[field]}`],
      );
      const stable = path === '/debug/tasks' ? text.replace(/"admin":\[[^\]]*\]/, '"admin":[…]') : text;
      const recorded = `${method} ${path} ${status}\n${head.join('\n')}\n\n${normalised(stable, running)}\n`;
      await expect(recorded).toMatchFileSnapshot(`recorded/${name}.txt`);
    },
  );
});

test('/api/cel evaluates an expression with variables whose members have names or types that none of a trace has', async () => {
  await using running = await start();
  const names = ['__defineGetter__', 'constructor', '__proto__', 'valueOf']
    .map((name) => `"${name}":1`)
    .join(',');
  for (const odd of ['null', '1', '[]', '{"toString":1}', '[{"toString":1}]']) {
    const message = `{"method":"GET","headers":{"a":${odd},"b":"x"},"body":${odd},"startTime":${odd},${names}}`;
    const { status, text } = await send(`${running.admin}/api/cel`, {
      method: 'POST',
      body: `{"expression":"request.headers['b'] + request.method","requestState":{"request":${message},"response":${odd}}}`,
    });
    expect([status, JSON.parse(text)]).toEqual([200, { result: 'xGET', error: null }]);
  }
});

describe('methods and paths', () => {
  test('another method is 405 with the allowed methods, and another path is 404: with JSON below /api, without a body elsewhere', async () => {
    await using running = await start();
    for (const endpoint of endpoints) {
      const { path } = endpoint;
      const methods = methodsOf(endpoint);
      const said = path.startsWith('/api/') ? message(`${path} is called with ${methods.join(' or ')}`) : '';
      for (const method of ['GET', 'POST', 'PUT', 'DELETE', 'HEAD', 'PROPFIND']) {
        if ((methods as readonly string[]).includes(method)) continue;
        const reply = await send(`${running.admin}${path}`, { method });
        expect([path, method, reply.status, reply.headers['allow'], reply.text]).toEqual([
          path,
          method,
          405,
          methods.join(','),
          method === 'HEAD' ? '' : said,
        ]);
      }
    }
    for (const path of [
      '/nothing',
      '/ui/nothing',
      '/ui/..%2f..%2fpackage.json',
      '/ui/%00',
      '/config_dump/x',
    ]) {
      const reply = await send(`${running.admin}/`, { target: path });
      expect([path, reply.status, reply.text]).toEqual([path, 404, '']);
    }
  });

  const message = (text: string): string => JSON.stringify({ error: { message: text } }, null, 2);

  /** What is wrong with a request of each endpoint that can be asked wrongly. */
  const WRONG: readonly (readonly [
    target: string,
    body: string | undefined,
    status: number,
    said: RegExp,
  ])[] = [
    ['/api/nothing', undefined, 404, /docs\/admin\.md/],
    ['/api/%zz', undefined, 400, /percent-encode/],
    ['/api/records', undefined, 409, /set config\.database\.url/],
    ['/api/records/x', undefined, 409, /set config\.database\.url/],
    ['/api/usage', undefined, 409, /set config\.database\.url/],
    ['/api/keys', undefined, 409, /set config\.database\.url/],
    ['/api/keys', '{}', 409, /set config\.database\.url/],
    ['/api/keys/revoke', '{}', 409, /set config\.database\.url/],
    ['/api/budgets', undefined, 409, /set config\.database\.url/],
    ['/api/users', undefined, 409, /set config\.mcp\.signIn/],
    ['/api/users/revoke', '{}', 409, /set config\.mcp\.signIn/],
    ['/api/audit?limit=0', undefined, 400, /limit is not a number from 1 to/],
    ['/api/audit?x=1', undefined, 400, /unknown parameter "x": expected /],
    ['/api/services?step=x', undefined, 400, /step/],
    ['/api/mcp/callers', '[]', 400, /expected \{"gateway"/],
    [
      '/api/mcp/callers',
      '{"gateway":"a","route":"b","target":"c","tool":"d"}',
      404,
      /configuration may have changed/,
    ],
    ['/api/config', '{}', 403, /no file to write/],
    ['/api/config/schema?path=x', undefined, 400, /expected a JSON array/],
    ['/api/cel', '[]', 400, /expression/],
    ['/api/playground/send', '[]', 400, /expected a JSON object with `port`/],
    ['/api/cel', 'x'.repeat(2 ** 20 + 1), 413, /at most 1048576 bytes/],
  ];

  /** They take no parameters, or any. */
  const NEVER_WRONG = [
    'config/file',
    'config/validate',
    'me',
    'metrics',
    'overview',
    'requests',
    'requests/open',
  ];

  test('errors of each endpoint below /api are JSON, and say what is wrong and what to do', async () => {
    await using running = await start();
    for (const [target, body, status, said] of WRONG) {
      const method = body === undefined ? 'GET' : 'POST';
      const url = `${running.admin}/`;
      const reply = await send(url, { target, method, ...(body !== undefined && { body }) });
      const { error } = JSON.parse(reply.text);
      expect([target, reply.status, reply.headers['content-type'], error.message]).toEqual([
        target,
        status,
        expect.stringMatching(/^application\/json/),
        expect.stringMatching(said),
      ]);
      expect(error.message).not.toContain('\n');
    }
    const asked = WRONG.map(([target]) => target.replace(/\?.*/, '').replace(/records\/.*/, 'records/:id'));
    const rest = endpoints
      .map(({ path }) => path)
      .filter((path) => path.startsWith('/api/') && !asked.includes(path));
    expect(rest.toSorted()).toEqual(NEVER_WRONG.map((name) => `/api/${name}`).toSorted());
    const foreign = await send(`${running.admin}/api/overview`, { headers: { host: 'evil.example' } });
    expect([foreign.status, JSON.parse(foreign.text).error.message]).toEqual([
      403,
      expect.stringContaining('config.adminHosts'),
    ]);
  });

  test('admin pages may not be framed, sniffed, cached or load content from elsewhere', async () => {
    await using running = await start();
    const { headers, text } = await send(`${running.admin}/ui`);
    expect(headers['content-security-policy']).toBe(
      "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    );
    expect(headers['x-content-type-options']).toBe('nosniff');
    expect(headers['cache-control']).toBe('no-store');
    expect(text).not.toMatch(/<script| style=| on\w+=/);
  });
});

describe('log levels', () => {
  verifies(
    ['gateway.admin.logging', 'gateway.admin.logging.set'],
    'log levels can be read, set and reset',
    async () => {
      await using running = await start();
      const post = async (query: string): Promise<string> =>
        (await send(`${running.admin}/logging${query}`, { method: 'POST' })).text;
      const before = (await send(`${running.admin}/logging`)).text;
      expect(before).toBe('current log level is request=info,debug\n');
      expect(await post('?level=warn')).toBe('current log level is request=info,warn\n');
      expect(await post('?level=mcp:trace')).toBe('current log level is request=info,mcp=trace,warn\n');
      expect(await post('?reset&level=proxy::gateway%3Dinfo')).toBe(
        'current log level is proxy::gateway=info,request=info,debug\n',
      );
      expect(await post('?reset')).toBe(before);
      expect((await send(`${running.admin}/logging`)).text).toBe(before);
    },
  );

  test('a log level change by GET is rejected, because an image in a page could cause it', async () => {
    await using running = await start();
    const { status, headers } = await send(`${running.admin}/logging?level=off`);
    expect([status, headers['allow']]).toEqual([405, 'POST']);
    expect((await send(`${running.admin}/logging`)).text).toContain('debug');
  });

  test('a temporary log level change is reverted, and permanent changes made meanwhile are kept', async () => {
    await using running = await start();
    const set = (query: string): Promise<{ text: string }> =>
      send(`${running.admin}/logging?${query}`, { method: 'POST' });
    await set('level=error');
    expect((await set('level=trace&for=1h')).text).toMatch(
      /^current log level is request=info,trace \(until 20[^ ]+Z, then request=info,error\)/,
    );
    await set('level=trace&for=60ms');
    await until(() => running.directives.current === 'request=info,error');
    // Long enough for the next request to arrive before it ends, also on a busy machine.
    await set('level=mcp%3Dtrace,cel%3Dtrace&for=1s');
    expect((await set('level=llm%3Ddebug,cel%3Dwarn')).text).toContain(
      'request=info,cel=warn,llm=debug,mcp=trace,error (until 20',
    );
    await until(() => running.directives.current === 'request=info,cel=warn,llm=debug,error');
    expect((await set('')).text).not.toContain('until');
    expect((await set('level=trace&for=soon')).text).toMatch(/^Invalid time provided: soon/);
  });

  test('a temporary log level change says which levels remain, including permanent changes in the meantime', async () => {
    await using running = await start();
    const set = (query: string): Promise<{ text: string }> =>
      send(`${running.admin}/logging?${query}`, { method: 'POST' });
    await set('level=error');
    await set('level=debug&for=1h');
    expect((await set('level=mcp%3Dtrace')).text).toMatch(
      / is request=info,mcp=trace,debug \(until 20[^ ]+Z, then request=info,mcp=trace,error\)\n$/,
    );
  });

  test('an invalid log level changes nothing and cannot forge a log line', async () => {
    await using running = await start();
    for (const level of ['loud', 'a%0A2026-01-01T00:00:00Z%20info', 'x'.repeat(8000), 'info,,']) {
      const reply = await send(`${running.admin}/logging?reset&level=${level}`, { method: 'POST' });
      expect(reply.status).toBe(400);
      expect(reply.text.split('\n')[1]).toBe('');
      expect(reply.text.length).toBeLessThan(1000);
    }
    expect(running.directives.current).toBe('request=info,debug');
  });
});

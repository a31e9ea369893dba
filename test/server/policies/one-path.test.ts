import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { askPolicy } from '../../kit/authz.ts';
import { gateway, type TestGateway } from '../../kit/gateway.ts';
import { rawRequest, sendRaw } from '../../kit/raw-http.ts';
import { routesConfig } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { type HttpUpstream, httpUpstream } from '../../kit/upstream.ts';

let service: HttpUpstream;
let backend: HttpUpstream;
let gate: TestGateway;
beforeAll(async () => {
  service = await httpUpstream();
  backend = await httpUpstream();
  const policies = {
    ...askPolicy(service.address, { path: '"/check" + request.pathAndQuery' }),
    authorization: { rules: [{ deny: 'request.path.startsWith("/app/secret")' }] },
  };
  gate = await gateway(
    routesConfig(
      [
        {
          name: 'app',
          matches: [{ path: { pathPrefix: '/app' } }],
          policies,
          backends: [{ host: backend.address }],
        },
        { name: 'rest', policies: { directResponse: { status: 404 } } },
      ],
      { frontendPolicies: { accessLog: { add: { seen: 'request.path' } } } },
    ),
  );
});
afterAll(() => Promise.all([gate.close(), service.close(), backend.close()]));

interface Seen {
  readonly status: number | undefined;
  readonly route: string | undefined;
  readonly asked: string | undefined;
  readonly reached: string | undefined;
  readonly cel: string | undefined;
  readonly logged: string | undefined;
}

/** The path that each component saw for a request target. */
async function targetSeen(target: string, ...lines: string[]): Promise<Seen> {
  const before = {
    asked: service.received.length,
    reached: backend.received.length,
    logged: gate.accessLog.length,
  };
  const { statuses } = await sendRaw(gate.port, rawRequest(`GET ${target} HTTP/1.1`, lines), {
    responses: 1,
  });
  const line = await gate.accessLine(before.logged + 1);
  return {
    status: statuses[0],
    route: line['route']?.replace('default/', ''),
    asked: service.received[before.asked]?.target,
    reached: backend.received[before.reached]?.target,
    cel: line['seen'],
    logged: line['http.path'],
  };
}

describe('path seen by the route, rules, external authorization, backend and log', () => {
  test.each([
    ['/app', '/app'],
    ['/app/', '/app/'],
    ['/%61pp/x', '/app/x'],
    ['/app/%7Euser', '/app/~user'],
    ['/app//x', '/app/x'],
    ['//app///x//', '/app/x/'],
    ['/app/{a|b}', '/app/%7Ba%7Cb%7D'],
    ['/app/%e2%98%80', '/app/%E2%98%80'],
    ['/app/a;v=1', '/app/a;v=1'],
    ['http://localhost/app/x', '/app/x'],
  ])('every component sees the path of %s as %s', async (target, path) => {
    expect(await targetSeen(target)).toEqual({
      status: 200,
      route: 'app',
      asked: `/check${path}`,
      reached: path,
      cel: path,
      logged: path,
    });
  });

  test('the query reaches every component unchanged and does not affect routing', async () => {
    const query = '?x=/../secret&a=%2e%2E&b=c+d&e=%zz';
    const seen = await targetSeen(`/app/x${query}`);
    expect(seen).toMatchObject({
      status: 200,
      asked: `/check/app/x${query}`,
      reached: `/app/x${query}`,
      cel: '/app/x',
    });
  });

  test.each([
    '/app/secret',
    '/%61pp/%73ecret',
    '/app/%73%65cret/x',
    '//app//secret',
    '/app//secret',
    'http://localhost/app/secret',
    'http://localhost//app/secret',
  ])('the path %s is rejected by the authorization rule', async (target) => {
    expect(await targetSeen(target)).toMatchObject({ status: 403, route: 'app', reached: undefined });
  });

  test.each([
    '/app/../secret',
    '/app/x/../secret',
    '/app/%2e%2e/secret',
    '/app/.%2e/secret',
    '/app/x%2f..%2fsecret',
    '/app/x%5c..%5csecret',
    '/app/x\\..\\secret',
    '/app/..;/secret',
    '/app/./secret',
    '/app%00/secret',
    '/app/secret%0a',
    '/app#secret',
    '/app/%',
    'http://other.example/app/secret',
    '/app%2fsecret',
    '/app/a%2Fb',
    '/app%5csecret',
    '/app/x\\secret',
  ])('the path %s is rejected before routing and authorization', async (target) => {
    expect(await targetSeen(target)).toMatchObject({ status: 400, asked: undefined, reached: undefined });
  });

  test.each(['/APP/secret', '/app.secret', '/app;/secret', '/app;x=1/secret', '//evil.example/app'])(
    'the path %s matches another route',
    async (target) => {
      expect(await targetSeen(target)).toMatchObject({ status: 404, route: 'rest', asked: undefined });
    },
  );
});

describe('forwarding headers of the client', () => {
  const FORGED = [
    'X-Forwarded-For: 10.0.0.1',
    'X-Forwarded-Host: admin.example',
    'X-Forwarded-Proto: https',
    'Forwarded: for=10.0.0.1;host=admin.example;proto=https',
    'X-Real-IP: 10.0.0.1',
    'X-Original-URL: /app/secret',
    'X-Rewrite-URL: /app/secret',
    'X-HTTP-Method-Override: DELETE',
    'X-Agctl-Internal: 1',
    'X-Agctl-Client: 10.0.0.1 1 10.0.0.1 1 https',
    'X-Agctl-Playground: 1',
    'X-Internal-Address: 10.0.0.1',
  ];

  test('forwarding headers of the client change neither address nor path nor method', async () => {
    const policies = {
      authorization: {
        rules: [
          'source.address == "127.0.0.1"',
          'request.scheme == "http"',
          'request.host == "localhost"',
          'request.method == "GET"',
          'request.path == "/app"',
        ],
      },
      directResponse: {},
    };
    await using strict = await gateway(routesConfig([{ policies }]));
    const { statuses } = await sendRaw(strict.port, rawRequest('GET /app HTTP/1.1', FORGED), {
      responses: 1,
    });
    expect(statuses).toEqual([200]);
    expect(await strict.accessLine(1)).toMatchObject({
      'src.addr': expect.stringMatching(/^127\.0\.0\.1:/),
      'http.path': '/app',
      'http.method': 'GET',
    });
  });

  test('forwarding headers of the client do not select another backend', async () => {
    await send(`${gate.url}/app`, {
      headers: { host: 'evil.example:1', 'x-forwarded-host': 'evil.example' },
    });
    // The backend receives the client's Host, but the connections go to the configured addresses.
    expect(backend.received.at(-1)?.headers.host).toBe('evil.example:1');
    expect(service.received.at(-1)?.headers.host).toBe(service.address);
  });
});

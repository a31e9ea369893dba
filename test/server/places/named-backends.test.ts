import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createLog } from '../../../src/core/log.ts';
import { loadConfigText } from '../../../src/server/config/load.ts';
import { compileRuntime } from '../../../src/server/runtime/runtime.ts';
import { gateway } from '../../kit/gateway.ts';
import { send } from '../../kit/send.ts';
import { type HttpUpstream, httpUpstream } from '../../kit/upstream.ts';

let upstream: HttpUpstream;
beforeAll(async () => {
  upstream = await httpUpstream();
});
afterAll(() => upstream.close());

const route = (path: string, more: object, backend: object = {}) => ({
  name: path.slice(1),
  matches: [{ path: { exact: path } }],
  ...more,
  backends: [{ backend: 'shared', ...backend }],
});

/** A gateway whose routes share a backend with this key. */
function config(routes: object[], more: object = {}): string {
  return JSON.stringify({
    gateways: { default: { port: 0 } },
    backends: [
      {
        name: 'shared',
        host: upstream.address,
        policies: {
          backendAuth: { key: 'of-the-backend' },
          requestHeaderModifier: { set: { 'x-backend': 'general' } },
        },
      },
    ],
    routes,
    ...more,
  });
}

describe('top-level backends', () => {
  test('routes share a backend by name, with its policies', async () => {
    await using server = await gateway(
      config([route('/a', {}), { ...route('/b', {}), backends: [{ backend: '/shared' }] }]),
    );
    for (const path of ['/a', '/b']) {
      expect((await send(`${server.url}${path}`)).status).toBe(200);
      expect(upstream.received.at(-1)).toMatchObject({
        target: path,
        headers: { authorization: 'Bearer of-the-backend', 'x-backend': 'general' },
      });
    }
    expect(upstream.connections).toBe(1);
  });

  test('policies at the reference replace those of the backend', async () => {
    const own = { policies: { requestHeaderModifier: { set: { 'x-own': 'yes' } } } };
    await using server = await gateway(config([route('/a', {}, own)]));
    await send(`${server.url}/a`);
    const { headers } = upstream.received.at(-1) as { headers: Record<string, string> };
    expect([headers['x-own'], headers['x-backend'], headers['authorization']]).toEqual([
      'yes',
      undefined,
      'Bearer of-the-backend',
    ]);
  });

  test('a credential of the route takes precedence over that of a named backend', async () => {
    await using server = await gateway(
      config([route('/a', { policies: { backendAuth: { key: 'of-the-route' } } })]),
    );
    await send(`${server.url}/a`);
    expect(upstream.received.at(-1)?.headers['authorization']).toBe('Bearer of-the-route');
  });

  test('an unknown backend is refused with the known names', async () => {
    await expect(gateway(config([{ backends: [{ backend: 'shard' }] }]))).rejects.toThrow(
      'routes.0.backends.0.backend: unknown backend `shard`',
    );
  });

  test('a reference with a kind of its own is refused', async () => {
    await expect(gateway(config([route('/a', {}, { host: 'localhost:1' })]))).rejects.toThrow(
      'routes.0.backends.0.host: `host` cannot be used with `backend`',
    );
  });

  test('a backend that nothing refers to is reported', () => {
    const text = config([{ policies: { directResponse: { status: 204 } } }]);
    const { config: parsed, source } = loadConfigText(text, 'test.yaml', {});
    if (parsed === undefined) throw new Error('the configuration is valid');
    const log = createLog(
      { write: () => undefined, dropped: 0, flush: () => Promise.resolve() },
      'off',
      'text',
    );
    const { diagnostics } = compileRuntime({ config: parsed, source, log, folder: '/', env: {} });
    expect(diagnostics.map(({ message }) => message)).toContain('nothing refers to the backend `shared`');
  });
});

describe('top-level policies', () => {
  const attached = (target: object, policy: object, phase = 'route') => ({
    name: { name: `p${JSON.stringify(target).length}`, namespace: 'default' },
    target,
    phase,
    policy,
  });
  const answer = { policies: { directResponse: { status: 200, body: 'ok' } } };
  const set = (name: string) => ({ responseHeaderModifier: { set: { 'x-level': name } } });
  const all = { gatewayName: 'default', gatewayNamespace: 'default' };

  test('the policy of the most specific level applies', async () => {
    const server = await gateway(
      JSON.stringify({
        gateways: { default: { port: 0 }, other: { port: 0 } },
        routes: [
          { name: 'plain', matches: [{ path: { exact: '/plain' } }], ...answer },
          { name: 'named', matches: [{ path: { exact: '/named' } }], ...answer },
          {
            name: 'own',
            matches: [{ path: { exact: '/own' } }],
            policies: { ...answer.policies, ...set('own') },
          },
          { gateways: 'other', name: 'far', ...answer },
        ],
        policies: [
          attached({ route: { name: 'named', namespace: 'default' } }, set('route')),
          attached({ gateway: { ...all, listenerName: 'default' } }, set('listener')),
          attached({ gateway: all }, set('gateway')),
          attached({ route: { name: 'own' } }, set('attached to the route')),
        ],
      }),
    );
    await using _closed = server;
    const level = async (path: string, port = server.port) =>
      (await send(`http://127.0.0.1:${port}${path}`)).headers['x-level'];
    expect(await level('/plain')).toBe('listener');
    expect(await level('/named')).toBe('route');
    expect(await level('/own')).toBe('own');
    expect(await level('/', server.ports[1])).toBe('gateway');
  });

  test('rules of all levels are combined: a deny rule of any denies, an allow rule of any is enough', async () => {
    const rules = (...list: object[]) => ({ authorization: { rules: list } });
    await using server = await gateway(
      JSON.stringify({
        gateways: { default: { port: 0 } },
        routes: [
          { name: 'r', policies: { ...answer.policies, ...rules({ allow: 'request.path == "/own"' }) } },
        ],
        policies: [
          attached(
            { gateway: all },
            rules({ allow: 'request.path == "/general"' }, { deny: 'request.method == "DELETE"' }),
          ),
        ],
      }),
    );
    const status = async (path: string, method = 'GET') =>
      (await send(`${server.url}${path}`, { method })).status;
    expect(await status('/own')).toBe(200);
    expect(await status('/general')).toBe(200);
    expect(await status('/else')).toBe(403);
    expect(await status('/own', 'DELETE')).toBe(403);
  });

  test('a policy for the gateway phase runs before routing', async () => {
    await using server = await gateway(
      JSON.stringify({
        gateways: { default: { port: 0 } },
        routes: [{ matches: [{ path: { exact: '/known' } }], ...answer }],
        policies: [
          attached({ gateway: all }, { apiKey: { mode: 'strict', keys: [{ key: 'k1' }] } }, 'gateway'),
        ],
      }),
    );
    expect((await send(`${server.url}/unknown`)).status).toBe(401);
    expect((await send(`${server.url}/unknown`, { headers: { authorization: 'Bearer k1' } })).status).toBe(
      404,
    );
  });

  test('routes share the state of an attached policy', async () => {
    const limit = { localRateLimit: [{ maxTokens: 1, tokensPerFill: 1, fillInterval: '1h' }] };
    await using server = await gateway(
      JSON.stringify({
        gateways: { default: { port: 0 } },
        routes: [
          { name: 'a', matches: [{ path: { exact: '/a' } }], ...answer },
          { name: 'b', matches: [{ path: { exact: '/b' } }], ...answer },
        ],
        policies: [attached({ gateway: all }, limit)],
      }),
    );
    expect((await send(`${server.url}/a`)).status).toBe(200);
    expect((await send(`${server.url}/b`)).status).toBe(429);
  });

  test('a policy for a backend runs for the routes that use it', async () => {
    await using server = await gateway(
      config([route('/a', {}), { name: 'other', ...answer }], {
        policies: [
          attached(
            { backend: { backend: { name: 'shared', namespace: '' } } },
            {
              authorization: { rules: ['request.method == "GET"'] },
            },
          ),
        ],
      }),
    );
    expect((await send(`${server.url}/a`)).status).toBe(200);
    expect((await send(`${server.url}/a`, { method: 'PUT' })).status).toBe(403);
    expect((await send(`${server.url}/`, { method: 'PUT' })).status).toBe(200);
  });

  test.for<[string, object]>([
    ['policies.0.target.route: no route is called `default/x`', attached({ route: { name: 'x' } }, set('x'))],
    [
      'policies.0.target.gateway: no listener is the target',
      attached({ gateway: { gatewayName: 'web' } }, set('x')),
    ],
    [
      'policies.0.target: the policy has several targets',
      attached({ gateway: all, route: { name: 'r' } }, set('x')),
    ],
    ['policies.0.policy: `policy` has no policy', attached({ gateway: all }, {})],
    [
      'policies.0.phase: `phase: gateway` needs a target `gateway`',
      attached({ route: { name: 'r' } }, set('x'), 'gateway'),
    ],
    [
      'policies.0.policy.responseHeaderModifier: `responseHeaderModifier` cannot be attached to a gateway before routing',
      attached({ gateway: all }, set('x'), 'gateway'),
    ],
    [
      'policies.0.target.backend: no backend is called `b`',
      attached({ backend: { backend: { name: 'b' } } }, set('x')),
    ],
  ])('a policy without effect is refused: %s', async ([message, policy]) => {
    const text = JSON.stringify({
      gateways: { default: { port: 0 } },
      routes: [{ name: 'r', ...answer }],
      policies: [policy],
    });
    await expect(gateway(text)).rejects.toThrow(message);
  });
});

test('the configuration dump has attached policies, references to backends and route groups', async () => {
  await using server = await gateway(
    config([route('/a', {}), { name: 'g', backends: [{ routeGroup: 'group' }] }], {
      routeGroups: [
        { name: 'group', routes: [{ name: 'in', policies: { directResponse: { status: 204 } } }] },
      ],
      policies: [
        {
          name: { name: 'p', namespace: 'default' },
          target: { gateway: {} },
          policy: { cors: { allowOrigins: ['*'] } },
        },
      ],
    }),
    { admin: true },
  );
  const dump = JSON.parse((await send(`${server.admin}/config_dump`)).text);
  const [bind] = dump.binds;
  const routes = bind.listeners['gateway/default'].routes;
  expect(routes['gateway/default/default/a'].backends).toMatchObject([{ weight: 1, backend: '/shared' }]);
  expect(routes['gateway/default/default/g'].backends).toEqual([{ weight: 1, routeGroup: 'group' }]);
  expect(Object.keys(dump.routes.routeGroups.group)).toEqual(['routegroup/group/default/in']);
  expect(dump.policies).toMatchObject([{ key: 'default/p', policy: { traffic: { phase: 'route' } } }]);
  expect(dump.backends).toMatchObject([{ backend: { host: { name: 'shared' } } }]);
  expect(JSON.stringify(dump)).not.toContain('of-the-backend');
});

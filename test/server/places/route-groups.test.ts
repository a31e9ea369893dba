import { describe, expect, test } from 'vitest';
import { gateway } from '../../kit/gateway.ts';
import { send } from '../../kit/send.ts';

const answer = (body: string, more: object = {}) => ({
  policies: { directResponse: { status: 200, body }, ...more },
});
const prefix = (pathPrefix: string, more: object = {}) => ({ matches: [{ path: { pathPrefix }, ...more }] });

const config = JSON.stringify({
  gateways: { default: { port: 0 } },
  routes: [
    {
      name: 'parent',
      ...prefix('/api', { headers: [{ name: 'x-team', value: { exact: 'one' } }] }),
      policies: {
        responseHeaderModifier: { set: { 'x-level': 'parent' } },
        localRateLimit: [{ maxTokens: 4, tokensPerFill: 1, fillInterval: '1h' }],
      },
      backends: [{ routeGroup: 'api' }],
    },
    { name: 'other', ...prefix('/'), ...answer('other') },
  ],
  routeGroups: [
    {
      name: 'api',
      routes: [
        { name: 'users', ...prefix('/api/users'), ...answer('users') },
        {
          name: 'own',
          ...prefix('/api/own'),
          ...answer('own', { responseHeaderModifier: { set: { 'x-level': 'child' } } }),
        },
        { name: 'orders', ...prefix('/api/orders'), backends: [{ routeGroup: 'orders' }] },
      ],
    },
    { name: 'orders', routes: [{ name: 'list', ...prefix('/api/orders/list'), ...answer('list') }] },
  ],
});

async function ask(url: string, path: string, team = 'one') {
  const { status, text, headers } = await send(`${url}${path}`, { headers: { 'x-team': team } });
  return [status, text, headers['x-level']];
}

describe('route groups', () => {
  test('a request must match the route and a route of its group, over several levels', async () => {
    await using server = await gateway(config);
    expect(await ask(server.url, '/api/users')).toEqual([200, 'users', 'parent']);
    expect(await ask(server.url, '/api/orders/list')).toEqual([200, 'list', 'parent']);
    expect(await ask(server.url, '/api/orders/else')).toEqual([404, 'route not found', undefined]);
    expect(await ask(server.url, '/api/else')).toEqual([404, 'route not found', undefined]);
    expect(await ask(server.url, '/api/users', 'two')).toEqual([200, 'other', undefined]);
    expect(await server.accessLine(2)).toMatchObject({ route: 'default/list' });
  });

  test('routes of a group inherit policies with their state, unless they have their own', async () => {
    await using server = await gateway(config);
    expect(await ask(server.url, '/api/own')).toEqual([200, 'own', 'child']);
    for (const path of ['/api/users', '/api/own', '/api/orders/list']) await ask(server.url, path);
    expect((await ask(server.url, '/api/users'))[0]).toBe(429);
  });

  test('a route can share its requests between a group and a backend, by weight', async () => {
    const yaml = JSON.stringify({
      gateways: { default: { port: 0 } },
      routes: [
        {
          name: 'mixed',
          backends: [
            { routeGroup: 'g', weight: 1 },
            { host: 'localhost:1', weight: 0 },
          ],
        },
      ],
      routeGroups: [{ name: 'g', routes: [{ name: 'in', ...answer('group') }] }],
    });
    await using server = await gateway(yaml);
    expect((await ask(server.url, '/'))[1]).toBe('group');
  });

  test.for<[string, object[], object[]]>([
    ['routes.0.backends.0.routeGroup: unknown route group `x`', [{ backends: [{ routeGroup: 'x' }] }], []],
    [
      'route groups delegate in a circle: `a` → `b` → `a`',
      [{ backends: [{ routeGroup: 'a' }] }],
      [
        { name: 'a', routes: [{ backends: [{ routeGroup: 'b' }] }] },
        { name: 'b', routes: [{ backends: [{ routeGroup: 'a' }] }] },
      ],
    ],
    [
      'routeGroups.1.name: two route groups are called `a`',
      [{ backends: [{ routeGroup: 'a' }] }],
      [{ name: 'a', routes: [answer('x')] }, { name: 'a' }],
    ],
  ])('a mistake in route groups is refused: %s', async ([message, routes, routeGroups]) => {
    const yaml = JSON.stringify({ gateways: { default: { port: 0 } }, routes, routeGroups });
    await expect(gateway(yaml)).rejects.toThrow(message);
  });
});

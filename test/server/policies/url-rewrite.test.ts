import { describe, expect, test } from 'vitest';
import { gateway } from '../../kit/gateway.ts';
import { routesConfig } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { httpUpstream } from '../../kit/upstream.ts';

/** The target that the service receives for `target`, and the logged one. */
async function rewritten(path: object, target: string, match?: object): Promise<[string?, string?]> {
  await using backend = await httpUpstream();
  const matches = match === undefined ? {} : { matches: [{ path: match }] };
  const route = { ...matches, policies: { urlRewrite: { path } }, backends: [{ host: backend.address }] };
  await using gate = await gateway(routesConfig([route]));
  await send(gate.url, { target });
  return [backend.received[0]?.target, (await gate.accessLine(1))['http.path']];
}

describe('urlRewrite.path', () => {
  test.each([
    [{ full: '/new' }, '/api/users?x=1', '/new?x=1'],
    [{ prefix: '/v2' }, '/api/users?x=1', '/v2/users?x=1'],
    [{ prefix: '/v2/' }, '/api/users', '/v2/users'],
    [{ prefix: '/v2' }, '/api', '/v2'],
    [{ prefix: '/' }, '/api/users', '/users'],
    [{ prefix: '/' }, '/api', '/'],
    [{ prefix: '' }, '/api?x', '/?x'],
    [{ prefix: '/' }, '/api/', '/'],
  ])(
    'urlRewrite with path %j sends %s as %s, and the access log keeps the requested path',
    async (path, from, to) => {
      expect(await rewritten(path, from, { pathPrefix: '/api' })).toEqual([to, from]);
    },
  );

  test('urlRewrite puts a prefix in front of every path of a route without matches', async () => {
    expect((await rewritten({ prefix: '/v2' }, '/a/b'))[0]).toBe('/v2/a/b');
    expect((await rewritten({ prefix: '/v2' }, '/a/b', { pathPrefix: '/' }))[0]).toBe('/v2/a/b');
  });

  test('urlRewrite leaves the path that rules and routing see as requested', async () => {
    await using backend = await httpUpstream();
    const policies = {
      authorization: { rules: ['request.path == "/api/a"'] },
      urlRewrite: { path: { prefix: '/admin' } },
    };
    const route = {
      matches: [{ path: { pathPrefix: '/api' } }],
      policies,
      backends: [{ host: backend.address }],
    };
    await using gate = await gateway(routesConfig([route]));
    expect((await send(`${gate.url}/api/a`)).status).toBe(200);
    expect((await send(`${gate.url}/api/b`)).status).toBe(403);
    expect(backend.received.map(({ target }) => target)).toEqual(['/admin/a']);
  });

  test.each([
    [{ full: 'new' }],
    [{ full: '//evil' }],
    [{ full: '/a?b' }],
    [{ full: '/a/../b' }],
    [{ prefix: '/a/%2e%2e' }],
    [{ prefix: '/x', full: '/y' }],
    [{}],
  ])('urlRewrite rejects the path %j', async (path) => {
    await expect(rewritten(path, '/a')).rejects.toThrow();
  });

  test('urlRewrite rejects a prefix for a route that matches whole paths', async () => {
    await expect(rewritten({ prefix: '/x' }, '/a', { exact: '/a' })).rejects.toThrow('pathPrefix');
  });
});

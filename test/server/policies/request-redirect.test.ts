import { describe, expect, test } from 'vitest';
import { gateway } from '../../kit/gateway.ts';
import { routesConfig } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';

const HOST = { host: 'shop.example:8080' };

/** Status and `Location` for a request to `path` of a route that redirects and has no backend. */
async function redirected(
  requestRedirect: object,
  path = '/old/cart?item=1&item=2',
  more: object = {},
): Promise<[status: number, location: unknown]> {
  await using gate = await gateway(routesConfig([{ policies: { requestRedirect } }], more));
  const { status, headers } = await send(`${gate.url}${path}`, { headers: HOST });
  return [status, headers['location']];
}

describe('requestRedirect', () => {
  test('requestRedirect changes the scheme and keeps host, path and query', async () => {
    expect(await redirected({ scheme: 'https', status: 308 })).toEqual([
      308,
      'https://shop.example:8080/old/cart?item=1&item=2',
    ]);
  });

  test.each([
    [{ full: 'new.example' }, 'https://new.example/old'],
    [{ host: 'new.example' }, 'https://new.example:8080/old'],
    [{ port: 8443 }, 'https://shop.example:8443/old'],
    [{ port: 443 }, 'https://shop.example/old'],
  ])('requestRedirect rewrites the authority with %j', async (authority, location) => {
    expect(await redirected({ scheme: 'https', authority }, '/old')).toEqual([302, location]);
  });

  test('requestRedirect sends only a path when neither scheme nor authority is configured', async () => {
    expect(await redirected({ path: { full: '/new' } })).toEqual([302, '/new?item=1&item=2']);
  });

  test('requestRedirect replaces the matched prefix, and auto keeps the requested authority', async () => {
    const requestRedirect = { scheme: 'https', authority: 'auto', path: { prefix: '/new' } };
    const route = { matches: [{ path: { pathPrefix: '/old' } }], policies: { requestRedirect } };
    await using gate = await gateway(routesConfig([route]));
    const { headers } = await send(`${gate.url}/old/cart?item=1`, { headers: HOST });
    expect(headers['location']).toBe('https://shop.example:8080/new/cart?item=1');
  });

  test('requestRedirect never sends a path that browsers read as another host', async () => {
    const keep = { config: { http: { pathNormalization: 'keep' } } };
    expect(await redirected({}, '//evil.example/x', keep)).toEqual([
      302,
      'http://shop.example:8080//evil.example/x',
    ]);
  });

  test.each([
    [{ path: { full: '//evil.example' } }],
    [{ path: { full: '/new?x=1' } }],
    [{ path: { full: 'new' } }],
    [{ status: 200 }],
    [{ authority: { full: 'a.example/path' } }],
    [{ scheme: 'ftp' }],
  ])('requestRedirect rejects the configuration %j', async (requestRedirect) => {
    await expect(redirected(requestRedirect)).rejects.toThrow();
  });
});

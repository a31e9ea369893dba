import { describe, expect, test } from 'vitest';
import { gateway } from '../../kit/gateway.ts';
import { Browser, backend, client, SECRET, scripted, site } from '../../kit/oidc-site.ts';
import { send } from '../../kit/send.ts';

const logout = { path: '/app/logout' };
const redirectURI = 'https://app.example/bye';

describe('oidc signs browsers out', () => {
  test('without an end_session_endpoint, the session ends here, and the refresh token is revoked', async () => {
    await using provider = await scripted();
    provider.refreshToken = 'canary-refresh';
    provider.metadata = { revocation_endpoint: `${provider.issuer}/revoke` };
    await using upstream = await backend();
    await using page = await site(upstream, { ...client(provider.issuer), logout }, { level: 'trace' });
    const browser = new Browser();
    await browser.follow(`${page.url}/app`);
    const reply = await browser.open(`${page.url}/app/logout`);
    expect([reply.status, reply.text, reply.headers['cache-control']]).toEqual([
      200,
      'you are signed out',
      'no-store',
    ]);
    expect(browser.cookies.size).toBe(0);
    expect(provider.forms('/revoke').map((form) => form.get('token'))).toEqual(['canary-refresh']);
    expect((await browser.open(`${page.url}/app`)).status).toBe(302);
    expect(upstream.received).toHaveLength(1);
    expect([...page.gate.accessLog, ...page.gate.log].join('')).not.toContain('canary');
  });

  test('with an end_session_endpoint, the browser goes there with the ID token, and from there to redirectURI', async () => {
    await using provider = await scripted();
    provider.metadata = { end_session_endpoint: `${provider.issuer}/end?tenant=1` };
    await using upstream = await backend();
    const policy = { ...client(provider.issuer), logout: { ...logout, redirectURI } };
    await using page = await site(upstream, policy);
    const browser = new Browser();
    await browser.follow(`${page.url}/app`);
    const ended = new URL(String((await browser.open(`${page.url}/app/logout`)).headers['location']));
    expect(`${ended.origin}${ended.pathname}`).toBe(`${provider.issuer}/end`);
    const { id_token_hint: hint = '', ...others } = Object.fromEntries(ended.searchParams);
    expect(others).toEqual({ tenant: '1', client_id: 'web', post_logout_redirect_uri: redirectURI });
    expect(JSON.parse(Buffer.from(hint.split('.')[1] ?? '', 'base64url').toString())).toMatchObject({
      sub: 'alice',
    });
    expect(browser.cookies.size).toBe(0);
    // Without a session here, there may still be one at the provider.
    const again = await browser.open(`${page.url}/app/logout`);
    expect(String(again.headers['location'])).toMatch(/\/end\?tenant=1&client_id=web&post_logout/);
  });

  test('a session also ends while the provider is down', async () => {
    await using provider = await scripted();
    provider.refreshToken = 'refresh';
    provider.metadata = { revocation_endpoint: `${provider.issuer}/revoke` };
    await using upstream = await backend();
    const policy = { ...client(provider.issuer), logout: { ...logout, redirectURI } };
    await using page = await site(upstream, policy);
    const browser = new Browser();
    await browser.follow(`${page.url}/app`);
    provider.answer = { status: 503 };
    const reply = await browser.open(`${page.url}/app/logout`);
    expect([reply.status, reply.headers['location'], browser.cookies.size]).toEqual([302, redirectURI, 0]);
  });

  test.each([
    ['a page of another site', 'GET', { 'sec-fetch-site': 'cross-site' }, 403],
    ['a browser that loads pages in advance', 'GET', { 'sec-purpose': 'prefetch' }, 403],
    ['another method', 'DELETE', {}, 405],
  ])('sign-out is refused to %s', async (_, method, headers, status) => {
    await using provider = await scripted();
    await using upstream = await backend();
    await using page = await site(upstream, { ...client(provider.issuer), logout });
    const reply = await send(`${page.url}/app/logout`, { method, headers });
    expect([reply.status, reply.headers['set-cookie']]).toEqual([status, undefined]);
    expect(upstream.received).toEqual([]);
  });
});

describe('oidc configuration of logout', () => {
  const issuer = 'https://idp.example';
  const explicit = {
    authorizationEndpoint: `${issuer}/a`,
    tokenEndpoint: `${issuer}/t`,
    jwks: '{"keys":[]}',
  };

  test.each([
    ['the root', { logout: { path: '/' } }, /expected a path such as `\/oauth\/logout`/],
    ['a query', { logout: { path: '/a?b' } }, /expected a path such as/],
    ['another host', { logout: { path: '//else/a' } }, /expected a path such as/],
    ['the path of redirectURI', { logout: { path: '/cb' } }, /`redirectURI` has the same path/],
    ['an endpoint besides metadata', { logout, endSessionEndpoint: `${issuer}/e` }, /the metadata decides/],
    ['an unused endpoint', { ...explicit, endSessionEndpoint: `${issuer}/e` }, /used by `logout` only/],
  ])('logout with %s is refused', async (_, more, expected) => {
    const oidc = { ...client(issuer), redirectURI: 'http://a.example/cb', ...more };
    const route = { policies: { directResponse: { body: 'a' }, oidc } };
    const yaml = JSON.stringify({ gateways: { default: { port: 0, routes: [route] } } });
    await expect(gateway(yaml, { env: SECRET })).rejects.toThrow(expected);
  });
});

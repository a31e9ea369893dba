import { describe, expect, test } from 'vitest';
import { gateway } from '../../kit/gateway.ts';
import { Browser, backend, client, SECRET, scripted, site } from '../../kit/oidc-site.ts';
import { REDIS_SERVER, redisServer } from '../../kit/redis.ts';
import { send } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';
import { httpUpstream } from '../../kit/upstream.ts';
import { workerGateway } from '../../kit/workers.ts';

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

  /** Opens a stream of a signed-in browser. */
  async function stream(url: string, { cookies }: Browser) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const leaving = new AbortController();
    const response = await fetch(`${url}/app/events`, { headers: { cookie }, signal: leaving.signal });
    expect(response.status).toBe(200);
    let ended = false;
    const end = (): void => {
      ended = true;
    };
    void response.text().then(end, end);
    return { hasEnded: () => ended, leave: () => leaving.abort() };
  }

  /** A backend with a stream of events that goes on. */
  const streaming = () =>
    httpUpstream((_, response, { target }) => {
      if (target !== '/app/events') return response.end('the page');
      return response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n');
    });

  /** A browser with the same cookies. */
  function copied({ cookies }: Browser): Browser {
    const copy = new Browser();
    for (const [name, value] of cookies) copy.cookies.set(name, value);
    return copy;
  }

  /** A browser that has signed in at one of several gateways, whose redirect URI is that of something in front of them. */
  async function signedIn(url: string): Promise<Browser> {
    const browser = new Browser();
    const to = async (at: string): Promise<URL> =>
      new URL(String((await browser.open(at)).headers['location']));
    const { pathname, search } = await to((await to(`${url}/app`)).href);
    await browser.open(url + pathname + search);
    return browser;
  }

  test('streams of the session end, and copies of its cookies are worth nothing, while another session of the user goes on', async () => {
    await using provider = await scripted();
    await using upstream = await streaming();
    const policy = { ...client(provider.issuer), logout };
    await using page = await site(upstream, policy, { limits: { keyRefresh: 20 } });
    const [browser, other] = [new Browser(), new Browser()];
    for (const each of [browser, other]) await each.follow(`${page.url}/app`);
    const thief = copied(browser);
    expect((await thief.open(`${page.url}/app`)).status).toBe(200);
    const [one, two] = [await stream(page.url, browser), await stream(page.url, other)];
    await browser.open(`${page.url}/app/logout`);
    await until(one.hasEnded);
    expect((await thief.open(`${page.url}/app`)).status).toBe(302);
    expect(two.hasEnded()).toBe(false);
    expect((await other.open(`${page.url}/app`)).status).toBe(200);
    two.leave();
  });

  test.skipIf(REDIS_SERVER === undefined)(
    'a session that ends at one replica ends at all that share Redis, and only there while Redis is gone',
    async () => {
      await using redis = await redisServer();
      await using provider = await scripted();
      await using upstream = await streaming();
      const policy = { ...client(provider.issuer), logout, redirectURI: 'http://127.0.0.1:1/oauth/callback' };
      const options = {
        limits: { keyRefresh: 20, storeRetryInterval: 20 },
        more: {
          config: { adminAddr: 'off', shared: { redis: redis.url }, session: { key: '5e'.repeat(32) } },
        },
      };
      await using one = await site(upstream, policy, options);
      await using two = await site(upstream, policy, options);
      const [first, second] = [await signedIn(one.url), await signedIn(one.url)];
      const { hasEnded } = await stream(two.url, first);
      const copy = copied(first);
      await first.open(`${one.url}/app/logout`);
      await until(hasEnded);
      expect((await copy.open(`${two.url}/app`)).status).toBe(302);
      expect(await redis.client.pttl((await redis.client.keys('*oidc*'))[0] ?? '')).toBeGreaterThan(0);
      await redis.kill();
      expect((await second.open(`${two.url}/app`)).status).toBe(200);
      const kept = copied(second);
      expect((await second.open(`${one.url}/app/logout`)).status).toBe(200);
      expect((await kept.open(`${one.url}/app`)).status).toBe(302);
    },
  );

  test('a session ends at all workers', async () => {
    await using provider = await scripted();
    await using upstream = await streaming();
    const oidc = { ...client(provider.issuer), logout, redirectURI: 'http://127.0.0.1:1/oauth/callback' };
    const route = { policies: { oidc }, backends: [{ host: upstream.address }] };
    const config = { gateways: { default: { port: 0, routes: [route] } } };
    await using gate = await workerGateway(config, { env: SECRET });
    const browser = await signedIn(gate.url);
    const streams = await Promise.all(Array.from({ length: 4 }, () => stream(gate.url, browser)));
    await browser.open(`${gate.url}/app/logout`);
    await until(() => streams.every(({ hasEnded }) => hasEnded()));
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

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { browserTest } from '../../kit/browser.ts';
import { GOOD_TLS } from '../../kit/certificates.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { gateway, type TestGateway } from '../../kit/gateway.ts';
import { startOidcProvider } from '../../kit/oidc-provider.ts';
import { Browser, backend, client, SECRET, type Site, scripted, site } from '../../kit/oidc-site.ts';
import { freePort } from '../../kit/ports.ts';
import { send } from '../../kit/send.ts';
import { seconds } from '../../kit/tokens.ts';
import { until } from '../../kit/until.ts';
import { type HttpUpstream, httpUpstream, refusingPort } from '../../kit/upstream.ts';

describe('oidc with metadata in the configuration', () => {
  const metadata = (issuer: string, path = '/auth'): string =>
    JSON.stringify({
      issuer,
      authorization_endpoint: `${issuer}${path}`,
      token_endpoint: `${issuer}/token`,
      jwks_uri: `${issuer}/keys`,
    });
  const policy = (issuer: string, discovery: unknown): object => ({
    issuer,
    discovery,
    clientId: 'web',
    clientSecret: 'of-the-client',
  });
  const startOf = async ({ url }: Site): Promise<string> => {
    const { location } = (await new Browser().open(`${url}/app`)).headers;
    return String(location).split('?')[0] as string;
  };

  test('oidc reads the metadata from the configuration, and asks the provider for none', async () => {
    await using provider = await httpUpstream();
    await using upstream = await backend();
    const issuer = `http://${provider.address}`;
    await using page = await site(upstream, policy(issuer, metadata(issuer)));
    expect(await startOf(page)).toBe(`${issuer}/auth`);
    expect(provider.received).toEqual([]);
  });

  test('oidc reads the metadata of a file, again when it changes', async () => {
    await using folder = await temporaryFolder();
    await using upstream = await backend();
    const issuer = 'http://127.0.0.1:9';
    const file = join(folder.path, 'metadata.json');
    writeFileSync(file, metadata(issuer));
    await using page = await site(upstream, policy(issuer, { file }), {
      folder: folder.path,
      live: 'watched',
    });
    expect(await startOf(page)).toBe(`${issuer}/auth`);
    writeFileSync(file, metadata(issuer, '/new'));
    await until(async () => (await startOf(page)) === `${issuer}/new`);
    writeFileSync(file, '{');
    await until(async () => {
      expect(await startOf(page)).toBe(`${issuer}/new`);
      return page.gate.log.join('').includes('metadata of the identity provider could not be read');
    });
  });

  test.each([
    ['{', 'the metadata is not valid JSON'],
    ['{"keys":[]}', 'the metadata has no `issuer`'],
    [{ file: '/nowhere/metadata.json' }, 'file not found: /nowhere/metadata.json'],
  ])('oidc.discovery that is %j is an error of the configuration', async (discovery, problem) => {
    await using upstream = await backend();
    await expect(site(upstream, policy('http://127.0.0.1:9', discovery))).rejects.toThrow(problem);
  });
});

describe('oidc at a real provider', () => {
  /** A gateway in front of a page, whose client is registered at the provider. */
  async function registeredSite(issuer: string, upstream: HttpUpstream, tls?: object): Promise<Site> {
    const port = await freePort();
    const origin = tls === undefined ? `http://127.0.0.1:${port}` : `https://localhost:${port}`;
    const after = `${origin}/bye`;
    const registered = await send(`${issuer}/clients-registrations/openid-connect`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        redirect_uris: [`${origin}/oauth/callback`],
        post_logout_redirect_uris: [after],
        token_endpoint_auth_method: 'client_secret_basic',
        grant_types: ['authorization_code', 'refresh_token'],
      }),
    });
    const answer = JSON.parse(registered.text) as Record<string, string>;
    const logout = { path: '/app/logout', redirectURI: after };
    const policy = { issuer, clientId: answer['client_id'], clientSecret: answer['client_secret'], logout };
    return site(upstream, policy, { port, ...(tls && { tls }) });
  }

  test('oidc signs a user in at the provider, and returns to the page', async () => {
    await using provider = await startOidcProvider();
    await using upstream = await backend();
    await using page = await registeredSite(provider.issuer, upstream);
    const browser = new Browser();
    const { url, reply } = await browser.follow(`${page.url}/app/a?b=1`);
    expect([url, reply.status, reply.text]).toEqual([`${page.url}/app/a?b=1`, 200, 'the page']);
    expect(upstream.received[0]?.headers.cookie ?? '').not.toContain('agctl_oidc');
    expect((await browser.open(`${page.url}/app/c`)).status).toBe(200);
    expect(await page.gate.accessLine(page.gate.accessLog.length)).toMatchObject({ subject: 'alice' });
    expect(provider.asked.filter((line) => line.endsWith('/token'))).toHaveLength(1);
  });

  test('oidc renews the session at the provider shortly before the ID token expires', async () => {
    await using provider = await startOidcProvider({ idTokenLifetime: 2 });
    await using upstream = await backend();
    await using page = await registeredSite(provider.issuer, upstream);
    const browser = new Browser();
    await browser.follow(`${page.url}/app`);
    await until(async () => {
      const { status, headers } = await browser.open(`${page.url}/app`);
      return status === 200 && headers['set-cookie'] !== undefined;
    });
    expect(provider.asked.filter((line) => line.endsWith('/token'))).toHaveLength(2);
    expect(provider.asked.filter((line) => line.endsWith('/auth'))).toHaveLength(1);
  });

  browserTest(
    'oidc signs a user of a real browser in and out, over HTTPS with HTTP/2, and its scripts have the session',
    async (chromium) => {
      await using provider = await startOidcProvider();
      await using upstream = await httpUpstream((_, response) => {
        response.writeHead(200, { 'content-type': 'text/html' });
        response.end('<title>in</title><a href="/app/logout">sign out</a>');
      });
      await using site = await registeredSite(provider.issuer, upstream, GOOD_TLS);
      // Its certificates come from an authority of the tests.
      const context = await chromium.newContext({ ignoreHTTPSErrors: true });
      const page = await context.newPage();
      await page.goto(`${site.url}/app/a?b=1#part`);
      expect([page.url(), await page.title()]).toEqual([`${site.url}/app/a?b=1#part`, 'in']);
      expect(await page.evaluate("performance.getEntriesByType('navigation')[0].nextHopProtocol")).toBe('h2');
      const fetched = (): Promise<number> => page.evaluate(async () => (await fetch('/app/data')).status);
      expect(await fetched()).toBe(200);
      expect(await page.evaluate('document.cookie')).toBe('');
      await page.getByText('sign out').click();
      await page.getByRole('button', { name: /yes/i }).click();
      await page.waitForURL(`${site.url}/bye**`);
      expect((await context.cookies(site.url)).map(({ name }) => name)).toEqual([]);
      expect(provider.asked).toContain('POST /realms/main/session/end/confirm');
      expect(await fetched()).toBe(401);
    },
  );
});

describe('oidc sessions', () => {
  test('a sign-in that begins at one gateway ends at another with the same secret, and both know its session', async () => {
    await using provider = await scripted();
    await using upstream = await backend();
    await using one = await site(upstream, client(provider.issuer));
    const redirectURI = `${one.url}/oauth/callback`;
    await using two = await site(upstream, { ...client(provider.issuer), redirectURI });
    const browser = new Browser();
    const begun = await browser.open(`${one.url}/app`);
    const back = await browser.open(String(begun.headers['location']));
    const ended = await browser.open(String(back.headers['location']).replace(one.url, two.url));
    expect([ended.status, ended.headers['location']]).toEqual([302, '/app']);
    for (const { url } of [one, two]) expect((await browser.open(`${url}/app`)).text).toBe('the page');
  });

  test('oidc asks for a code with PKCE, state and nonce, and keeps them in an encrypted cookie', async () => {
    await using provider = await scripted();
    await using upstream = await backend();
    await using page = await site(upstream, { ...client(provider.issuer), scopes: ['profile', 'openid'] });
    const reply = await new Browser().open(`${page.url}/app`);
    expect([reply.status, reply.headers['cache-control']]).toEqual([302, 'no-store']);
    const { searchParams } = new URL(String(reply.headers['location']));
    expect(Object.fromEntries(searchParams)).toMatchObject({
      response_type: 'code',
      client_id: 'web',
      scope: 'openid profile',
      code_challenge_method: 'S256',
      redirect_uri: `${page.url}/oauth/callback`,
    });
    for (const name of ['state', 'nonce', 'code_challenge'])
      expect(searchParams.get(name)?.length).toBeGreaterThan(40);
    const [cookie = ''] = [reply.headers['set-cookie'] ?? []].flat();
    expect(cookie).toMatch(/; Path=\/; HttpOnly; SameSite=Lax$/);
    for (const name of ['state', 'nonce']) expect(cookie).not.toContain(searchParams.get(name));
  });

  test('oidc authenticates with the secret of the client, and logs neither code nor cookie nor token', async () => {
    await using provider = await scripted();
    await using upstream = await backend();
    await using page = await site(upstream, client(provider.issuer), { level: 'trace' });
    const browser = new Browser();
    await browser.follow(`${page.url}/app`);
    const redeemed = provider.received.find(({ target }) => target === '/token');
    expect(redeemed?.headers.authorization).toBe(`Basic ${Buffer.from('web:c%2Fs%2B1').toString('base64')}`);
    expect(redeemed?.body).toContain('code_verifier=');
    const all = [...page.gate.accessLog, ...page.gate.log].join('');
    for (const value of browser.cookies.values()) expect(all).not.toContain(value.slice(0, 60));
    expect(all).not.toContain('c/s+1');
  });

  test('oidc splits a large session over several cookies, and refuses one that no browser would keep', async () => {
    await using provider = await scripted();
    await using upstream = await backend();
    await using page = await site(upstream, client(provider.issuer));
    provider.claims = { groups: Array.from({ length: 200 }, (_, n) => `group-number-${n}`) };
    const browser = new Browser();
    expect((await browser.follow(`${page.url}/app`)).reply.status).toBe(200);
    expect(browser.cookies.size).toBeGreaterThan(1);
    // A later, shorter session replaces only the first cookie; the browser still sends the others.
    const [name = ''] = browser.cookies.keys();
    browser.cookies.set(name, 'expired');
    provider.claims = {};
    expect((await browser.follow(`${page.url}/app`)).reply.status).toBe(200);
    expect(browser.cookies.size).toBeGreaterThan(1);
    provider.claims = { groups: Array.from({ length: 1000 }, (_, n) => `group-number-${n}`) };
    expect((await new Browser().follow(`${page.url}/app`)).reply.status).toBe(400);
  });

  test('oidc lets a session end with its ID token, and a session of another key begin anew', async () => {
    await using provider = await scripted();
    await using upstream = await backend();
    await using page = await site(upstream, client(provider.issuer));
    const browser = new Browser();
    await browser.follow(`${page.url}/app`);
    const [[name, value] = ['', '']] = [...browser.cookies];
    browser.cookies.set(name, `${value.slice(0, -3)}AAA`);
    expect((await browser.open(`${page.url}/app`)).status).toBe(302);
    provider.claims = { exp: seconds(-3000) };
    expect((await new Browser().follow(`${page.url}/app`)).reply.status).toBe(400);
    const other = { OIDC_COOKIE_SECRET: 'another-secret-of-32-characters-or-more' };
    await using elsewhere = await site(upstream, client(provider.issuer), { env: other });
    browser.cookies.set(name, value);
    expect((await browser.open(`${page.url}/app`)).status).toBe(200);
    expect((await browser.open(`${elsewhere.url}/app`)).status).toBe(302);
  });

  test('oidc answers scripts and preflights with 401, and redirects no POST', async () => {
    await using provider = await scripted();
    await using upstream = await backend();
    await using page = await site(upstream, client(provider.issuer));
    const status = async (method: string, headers: Record<string, string>): Promise<number> =>
      (await send(`${page.url}/app`, { method, headers })).status;
    expect(await status('GET', { 'sec-fetch-mode': 'cors' })).toBe(401);
    expect(await status('GET', { 'x-requested-with': 'XMLHttpRequest' })).toBe(401);
    expect(await status('POST', {})).toBe(401);
    // `curl` and other programs accept anything.
    expect(await status('GET', { accept: '*/*' })).toBe(401);
    expect(await status('GET', {})).toBe(401);
    expect(await status('GET', { accept: 'text/html,*/*;q=0.8' })).toBe(302);
    expect(await status('GET', { 'sec-fetch-mode': 'navigate' })).toBe(302);
    const preflight = { origin: 'https://a.example', 'access-control-request-method': 'GET' };
    expect(await status('OPTIONS', preflight)).toBe(401);
    expect(upstream.received).toEqual([]);
  });
});

describe('callbacks of oidc that do not end a sign-in', () => {
  /** The callback that the provider sends the browser to, and the browser. */
  async function callbackOf(page: Site): Promise<{ browser: Browser; callback: URL }> {
    const browser = new Browser();
    const begun = await browser.open(`${page.url}/app`);
    const back = await send(String(begun.headers['location']));
    return { browser, callback: new URL(String(back.headers['location'])) };
  }

  test.each([
    ['another state', (url: URL) => url.searchParams.set('state', 'x'.repeat(43))],
    [
      'an error of the provider',
      (url: URL) => {
        url.searchParams.delete('code');
        url.searchParams.set('error', 'access_denied');
      },
    ],
    ['a code that is not valid', (url: URL) => url.searchParams.set('code', 'canary-1')],
    ['an issuer that is not the provider', (url: URL) => url.searchParams.set('iss', 'https://else.example')],
    ['two states', (url: URL) => url.searchParams.append('state', 'second')],
    [
      'the same state twice',
      (url: URL) => url.searchParams.append('state', url.searchParams.get('state') ?? ''),
    ],
    ['two codes', (url: URL) => url.searchParams.append('code', 'second')],
    [
      'the same code twice',
      (url: URL) => url.searchParams.append('code', url.searchParams.get('code') ?? ''),
    ],
    ['two issuers', (url: URL) => url.searchParams.append('iss', 'a') ?? url.searchParams.append('iss', 'b')],
  ])('oidc refuses a callback with %s', async (_, change) => {
    await using provider = await scripted();
    await using upstream = await backend();
    await using page = await site(upstream, client(provider.issuer));
    const { browser, callback } = await callbackOf(page);
    change(callback);
    const reply = await browser.open(callback.href);
    expect([reply.status, reply.text]).toEqual([400, 'the sign-in failed; open the page again to sign in']);
    expect(upstream.received).toEqual([]);
  });

  test('oidc refuses a callback without the issuer of a provider that always names it', async () => {
    await using provider = await scripted();
    provider.metadata = { authorization_response_iss_parameter_supported: true };
    await using upstream = await backend();
    await using page = await site(upstream, client(provider.issuer));
    const unnamed = await callbackOf(page);
    expect((await unnamed.browser.open(unnamed.callback.href)).status).toBe(400);
    const { browser, callback } = await callbackOf(page);
    callback.searchParams.set('iss', provider.issuer);
    expect((await browser.open(callback.href)).status).toBe(302);
  });

  test('oidc refuses a callback in another browser, and one that is sent twice', async () => {
    await using provider = await scripted();
    await using upstream = await backend();
    await using page = await site(upstream, client(provider.issuer));
    const { browser, callback } = await callbackOf(page);
    expect((await new Browser().open(callback.href)).status).toBe(400);
    const stolen = new Map(browser.cookies);
    expect((await browser.open(callback.href)).status).toBe(302);
    expect((await browser.open(callback.href)).status).toBe(400);
    // With the cookie of the login too, it is the provider that refuses the code.
    const thief = new Browser();
    for (const [name, value] of stolen) thief.cookies.set(name, value);
    expect((await thief.open(callback.href)).status).toBe(400);
    expect((await page.gate.accessLine(3))['http.path']).toBe(
      '/oauth/callback?code=<redacted>&state=<redacted>',
    );
    for (const name of ['code', 'state'])
      expect(page.gate.accessLog.join('')).not.toContain(callback.searchParams.get(name));
  });

  test('oidc refuses a callback later than five minutes after the sign-in began', async () => {
    onTestFinished(() => void vi.useRealTimers());
    await using provider = await scripted();
    await using upstream = await backend();
    await using page = await site(upstream, client(provider.issuer));
    for (const [secondsLater, status] of [
      [299, 302],
      [300, 400],
    ] as const) {
      vi.useFakeTimers({ toFake: ['Date'] });
      const { browser, callback } = await callbackOf(page);
      vi.setSystemTime(Date.now() + secondsLater * 1000);
      expect([secondsLater, (await browser.open(callback.href)).status]).toEqual([secondsLater, status]);
    }
  });

  test.each([
    ['another nonce', { nonce: 'else' }],
    ['no nonce', { nonce: undefined }],
    ['another audience', { aud: 'else' }],
    ['another issuer', { iss: 'https://else.example' }],
    ['a time of expiry that has passed', { exp: seconds(-100) }],
  ])('oidc refuses an ID token with %s', async (_, claims) => {
    await using provider = await scripted();
    await using upstream = await backend();
    await using page = await site(upstream, client(provider.issuer));
    provider.claims = claims;
    expect((await new Browser().follow(`${page.url}/app`)).reply.status).toBe(400);
    expect(upstream.received).toEqual([]);
  });

  test('oidc answers 502 while the token endpoint or the metadata of the provider fails', async () => {
    await using provider = await scripted();
    await using upstream = await backend();
    await using page = await site(upstream, client(provider.issuer));
    provider.answer = { status: 503 };
    expect((await new Browser().follow(`${page.url}/app`)).reply.status).toBe(502);
    await using down = await site(upstream, client(`http://127.0.0.1:${await refusingPort()}`));
    expect((await new Browser().open(`${down.url}/app`)).status).toBe(502);
  });
});

describe('oidc of a gateway', () => {
  test.each(['gateway', 'listener', 'bind'])(
    'oidc of a %s signs in for all of its routes, at paths without a route',
    async (place) => {
      await using provider = await scripted();
      await using upstream = await backend();
      const port = await freePort();
      const url = `http://127.0.0.1:${port}`;
      const oidc = {
        ...client(provider.issuer),
        redirectURI: `${url}/oauth/callback`,
        logout: { path: '/oauth/logout' },
      };
      const routes = [{ matches: [{ path: { exact: '/app' } }], backends: [{ host: upstream.address }] }];
      const config = {
        gateway: { gateways: { default: { port, oidc, routes } } },
        listener: { gateways: { default: { port, listeners: [{ name: 'a', oidc }] } }, routes },
        bind: { binds: [{ port, listeners: [{ policies: { oidc }, routes }] }] },
      }[place];
      await using gate = await gateway(JSON.stringify(config), { env: SECRET });
      const browser = new Browser();
      const { reply } = await browser.follow(`${gate.url}/app`);
      expect([reply.status, reply.text]).toEqual([200, 'the page']);
      expect((await browser.open(`${gate.url}/nowhere`)).status).toBe(404);
      expect((await browser.open(`${gate.url}/oauth/logout`)).text).toBe('you are signed out');
      expect((await browser.open(`${gate.url}/nowhere`)).status).toBe(302);
    },
  );
});

describe('oidc returns to its own site only', () => {
  test.each([
    ['//else.example/a', '/'],
    ['/%5c%5celse.example', '/%5C%5Celse.example'],
    [`/app/${'x'.repeat(3000)}`, '/'],
    ['/app/a?to=https://else.example', '/app/a?to=https://else.example'],
  ])('oidc returns from %s to %s', async (path, expected) => {
    await using provider = await scripted();
    await using upstream = await backend();
    const port = await freePort();
    const route = {
      policies: {
        oidc: { ...client(provider.issuer), redirectURI: `http://127.0.0.1:${port}/oauth/callback` },
      },
      backends: [{ host: upstream.address }],
    };
    const http = { pathNormalization: 'keep' };
    await using gate = await gateway(
      JSON.stringify({ config: { http }, gateways: { default: { port, routes: [route] } } }),
      { env: SECRET },
    );
    const browser = new Browser();
    const begun = await browser.open(`${gate.url}${path}`);
    const back = await send(String(begun.headers['location']));
    const ended = await browser.open(String(back.headers['location']));
    expect([ended.status, ended.headers['location']]).toEqual([302, expected]);
  });
});

describe('oidc configuration', () => {
  const valid = { ...client('https://idp.example'), redirectURI: 'http://a.example/cb' };
  const run = (policy: object, env: Record<string, string> = SECRET): Promise<TestGateway> =>
    gateway(
      JSON.stringify({
        gateways: {
          default: { port: 0, routes: [{ policies: { directResponse: { body: 'a' }, oidc: policy } }] },
        },
      }),
      { env },
    );

  test.each([
    ['a redirect URI without a path', { redirectURI: 'http://a.example' }, /expected a URL with a path/],
    ['a redirect URI with a query', { redirectURI: 'http://a.example/cb?a=b' }, /expected a URL with a path/],
    ['one endpoint only', { tokenEndpoint: 'https://idp.example/token' }, /expected all of/],
    ['a method without an endpoint', { tokenEndpointAuth: 'clientSecretPost' }, /the metadata decides/],
    ['no secret', { clientSecret: undefined }, /clientSecret/],
  ])('oidc with %s is refused', async (_, more, expected) => {
    await expect(run({ ...valid, ...more })).rejects.toThrow(expected);
  });

  test('oidc refuses a short secret of cookies, and warns if there is none', async () => {
    await expect(run(valid, { OIDC_COOKIE_SECRET: 'short' })).rejects.toThrow(/fewer than 32 characters/);
    await using gate = await run(valid, {});
    expect(gate.running).toBeDefined();
  });
});

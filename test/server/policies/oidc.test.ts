import { describe, expect, test } from 'vitest';
import { browserTest } from '../../kit/browser.ts';
import { gateway, type TestGateway, type TestGatewayOptions } from '../../kit/gateway.ts';
import { json } from '../../kit/idp.ts';
import { startOidcProvider } from '../../kit/oidc-provider.ts';
import { freePort } from '../../kit/ports.ts';
import { send } from '../../kit/send.ts';
import { seconds, signingKey, token } from '../../kit/tokens.ts';
import { type HttpUpstream, httpUpstream, refusingPort } from '../../kit/upstream.ts';

const SECRET = { OIDC_COOKIE_SECRET: '0123456789abcdef0123456789abcdef' };

/** Cookies of one browser, which follows redirects only when it is told to. */
class Browser {
  readonly cookies = new Map<string, string>();

  async open(url: string, headers: Record<string, string> = {}): ReturnType<typeof send> {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const reply = await send(url, { headers: { ...(cookie === '' ? {} : { cookie }), ...headers } });
    for (const field of [reply.headers['set-cookie'] ?? []].flat()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(field) ?? [];
      if (/Max-Age=0/i.test(field) || /expires=Thu, 01 Jan 1970/i.test(field)) this.cookies.delete(name);
      else this.cookies.set(name, value);
    }
    return reply;
  }

  /** Follows redirects until there is none. */
  async follow(url: string): Promise<{ url: string; reply: Awaited<ReturnType<typeof send>> }> {
    let at = url;
    for (let hops = 0; hops < 20; hops += 1) {
      const reply = await this.open(at);
      const location = reply.headers['location'];
      if (typeof location !== 'string') return { url: at, reply };
      at = new URL(location, at).href;
    }
    throw new Error('too many redirects');
  }
}

interface Site extends AsyncDisposable {
  readonly gate: TestGateway;
  readonly url: string;
}

/** A gateway with `oidc` in front of a backend, at a port that its redirect URI names. */
async function site(
  upstream: HttpUpstream,
  policy: object,
  { port, ...options }: TestGatewayOptions & { port?: number } = {},
): Promise<Site> {
  const own = port ?? (await freePort());
  const route = {
    name: 'pages',
    matches: [{ path: { pathPrefix: '/app' } }],
    policies: { oidc: { redirectURI: `http://127.0.0.1:${own}/oauth/callback`, ...policy } },
    backends: [{ host: upstream.address }],
  };
  const more = { frontendPolicies: { accessLog: { add: { subject: 'default(jwt.sub, "nobody")' } } } };
  const yaml = JSON.stringify({ gateways: { default: { port: own, routes: [route] } }, ...more });
  const gate = await gateway(yaml, { env: SECRET, ...options });
  return { gate, url: `http://127.0.0.1:${own}`, [Symbol.asyncDispose]: () => gate.close() };
}

interface Scripted extends HttpUpstream {
  issuer: string;
  /** Claims of ID tokens, instead of the usual ones. */
  claims: Record<string, unknown>;
  /** Of the token endpoint, instead of tokens. */
  answer: { status: number } | undefined;
}

/** A provider that signs in at once, and says what a test wants it to say. */
async function scripted(): Promise<Scripted> {
  const key = signingKey('k1');
  const nonces = new Map<string, string>();
  const provider: Scripted = Object.assign(
    await httpUpstream((_, response, { target, body }) => {
      const url = new URL(target, provider.issuer);
      if (url.pathname === '/.well-known/openid-configuration')
        return json(response, 200, {
          issuer: provider.issuer,
          authorization_endpoint: `${provider.issuer}/authorize`,
          token_endpoint: `${provider.issuer}/token`,
          jwks_uri: `${provider.issuer}/keys`,
        });
      if (url.pathname === '/keys') return json(response, 200, { keys: [key.jwk] });
      if (url.pathname === '/authorize') {
        const code = `code-${nonces.size}`;
        nonces.set(code, url.searchParams.get('nonce') ?? '');
        const back = new URL(url.searchParams.get('redirect_uri') ?? '');
        back.searchParams.set('code', code);
        back.searchParams.set('state', url.searchParams.get('state') ?? '');
        return response.writeHead(302, { location: back.href }).end();
      }
      if (provider.answer !== undefined)
        return json(response, provider.answer.status, { error: 'invalid_grant' });
      const code = new URLSearchParams(body).get('code') ?? '';
      const nonce = nonces.get(code);
      if (nonce === undefined) return json(response, 400, { error: 'invalid_grant' });
      nonces.delete(code);
      const claims = {
        iss: provider.issuer,
        aud: 'web',
        sub: 'alice',
        iat: seconds(),
        exp: seconds(600),
        nonce,
      };
      return json(response, 200, {
        access_token: 'a',
        token_type: 'Bearer',
        id_token: token(key, { ...claims, ...provider.claims }),
      });
    }),
    { issuer: '', claims: {}, answer: undefined as { status: number } | undefined },
  );
  provider.issuer = `http://${provider.address}`;
  return provider;
}

const client = (issuer: string): object => ({ issuer, clientId: 'web', clientSecret: 'c/s+1' });
const backend = (): Promise<HttpUpstream> => httpUpstream((_, response) => response.end('the page'));

describe('oidc at a real provider', () => {
  /** A gateway in front of a page, whose client is registered at the provider. */
  async function registeredSite(issuer: string, upstream: HttpUpstream): Promise<Site> {
    const port = await freePort();
    const redirectURI = `http://127.0.0.1:${port}/oauth/callback`;
    const registered = await send(`${issuer}/clients-registrations/openid-connect`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        redirect_uris: [redirectURI],
        token_endpoint_auth_method: 'client_secret_basic',
      }),
    });
    const answer = JSON.parse(registered.text) as Record<string, string>;
    const policy = { issuer, clientId: answer['client_id'], clientSecret: answer['client_secret'] };
    return site(upstream, policy, { port });
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

  browserTest(
    'oidc signs a user of a real browser in, whose scripts then have the session',
    async (chromium) => {
      await using provider = await startOidcProvider();
      await using upstream = await httpUpstream((_, response) => {
        response.writeHead(200, { 'content-type': 'text/html' }).end('<title>in</title>the page');
      });
      await using site = await registeredSite(provider.issuer, upstream);
      const page = await chromium.newPage();
      await page.goto(`${site.url}/app/a?b=1#part`);
      expect([page.url(), await page.title()]).toEqual([`${site.url}/app/a?b=1#part`, 'in']);
      const fetched = (): Promise<number> => page.evaluate(async () => (await fetch('/app/data')).status);
      expect(await fetched()).toBe(200);
      expect(await page.evaluate('document.cookie')).toBe('');
      await page.context().clearCookies({ domain: '127.0.0.1', name: /^agctl_oidc/ });
      expect(await fetched()).toBe(401);
      await page.context().close();
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
    const reply = await send(`${page.url}/app`);
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

  test('oidc answers scripts with 401, lets preflight requests through, and redirects no POST', async () => {
    await using provider = await scripted();
    await using upstream = await backend();
    await using page = await site(upstream, client(provider.issuer));
    const status = async (method: string, headers: Record<string, string>): Promise<number> =>
      (await send(`${page.url}/app`, { method, headers })).status;
    expect(await status('GET', { 'sec-fetch-mode': 'cors' })).toBe(401);
    expect(await status('GET', { 'x-requested-with': 'XMLHttpRequest' })).toBe(401);
    expect(await status('POST', {})).toBe(401);
    expect(await status('GET', { 'sec-fetch-mode': 'navigate' })).toBe(302);
    const preflight = { origin: 'https://a.example', 'access-control-request-method': 'GET' };
    expect(await status('OPTIONS', preflight)).toBe(200);
    expect(upstream.received).toHaveLength(1);
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
    expect((await send(`${down.url}/app`)).status).toBe(502);
  });
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

import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { SealedCookies } from '../../../src/server/policies/oidc/cookies.ts';
import { Browser, backend, client, type Scripted, SECRET, scripted, site } from '../../kit/oidc-site.ts';
import { seconds } from '../../kit/tokens.ts';
import { until } from '../../kit/until.ts';

// What identity providers answer when browsers sign in, and what sealed cookies may contain.

/** The status of a page after the sign-in, with what the provider says. */
async function signedIn(change: (provider: Scripted) => void): Promise<{ status: number; browser: Browser }> {
  await using provider = await scripted();
  await using upstream = await backend();
  await using page = await site(upstream, client(provider.issuer));
  change(provider);
  const browser = new Browser();
  const { reply } = await browser.follow(`${page.url}/app`);
  expect(page.gate.log.filter((line) => line.includes('internal error'))).toEqual([]);
  // Another browser can still sign in.
  provider.issued = {};
  provider.claims = {};
  if (Object.keys(provider.metadata).length === 0)
    expect((await new Browser().follow(`${page.url}/app`)).reply.status).toBe(200);
  return { status: reply.status, browser };
}

test.each([
  ['a text as lifetime', { expires_in: '3600' }],
  ['no number as lifetime', { expires_in: 'soon' }],
  ['null as lifetime', { expires_in: null }],
  ['a negative lifetime', { expires_in: -1 }],
  ['a lifetime of 1e308', { expires_in: 1e308 }],
  ['a list as lifetime', { expires_in: [] }],
  ['null as refresh token and scope', { refresh_token: null, scope: null }],
])('oidc signs a user in if the provider sends %s', async (_, issued) => {
  const { status } = await signedIn((provider) => {
    provider.issued = issued;
  });
  expect(status).toBe(200);
});

test.each([
  ['no ID token', { id_token: undefined }],
  ['null as ID token', { id_token: null }],
  ['a number as ID token', { id_token: 7 }],
  ['a text that is no token as ID token', { id_token: 'a.b.c' }],
  ['a number as access token', { access_token: 7 }],
  ['a number as refresh token', { refresh_token: 7 }],
  ['an object as scope', { scope: {} }],
  ['a list as type', { token_type: ['Bearer'] }],
])('oidc refuses a sign-in with 400 if the provider sends %s', async (_, issued) => {
  const { status } = await signedIn((provider) => {
    provider.issued = issued;
  });
  expect(status).toBe(400);
});

test.each([
  ['a text', { exp: 'tomorrow' }],
  ['1e300', { exp: 1e300 }],
  ['null', { exp: null }],
  ['a list', { exp: [] }],
])('oidc refuses an ID token whose exp is %s', async (_, claims) => {
  const { status } = await signedIn((provider) => {
    provider.claims = claims;
  });
  expect(status).toBe(400);
});

test.each([
  ['a fraction', seconds(100) + 0.5, 161],
  ['the end of the year 9999', 253_402_300_799, 3600],
])('oidc keeps a session for whole seconds, an hour at most, if exp is %s', async (_, exp, most) => {
  await using provider = await scripted();
  await using upstream = await backend();
  await using page = await site(upstream, client(provider.issuer));
  provider.claims = { exp };
  const browser = new Browser();
  const begun = await browser.open(`${page.url}/app`);
  const back = await browser.open(String(begun.headers['location']));
  const ended = await browser.open(String(back.headers['location']));
  const [field = ''] = [ended.headers['set-cookie'] ?? []].flat();
  const [, maxAge] = /; Max-Age=([^;]*);/.exec(field) ?? [];
  expect(maxAge).toMatch(/^\d+$/);
  expect(Number(maxAge)).toBeGreaterThan(most - 10);
  expect(Number(maxAge)).toBeLessThanOrEqual(most);
  expect((await browser.open(`${page.url}/app`)).status).toBe(200);
});

test.each<[string, object]>([
  ['another issuer', { issuer: 'http://evil.example' }],
  ['an object as issuer', { issuer: { toString: 1 } }],
  ['no token endpoint', { token_endpoint: null }],
  ['a script as authorization endpoint', { authorization_endpoint: 'javascript:alert(1)' }],
  ['a list as keys', { jwks_uri: ['http://a.example/'] }],
])('oidc answers 502 if metadata of the provider has %s', async (_, metadata) => {
  const { status } = await signedIn((provider) => {
    provider.metadata = { ...metadata };
  });
  expect(status).toBe(502);
});

test.each<[string, unknown]>([
  ['a list', []],
  ['a text', 'x'],
  ['no token', { expires: seconds(100) }],
  ['a number as token', { token: 7, expires: seconds(100) }],
  ['a text as expiry', { token: 'a.b.c', expires: 'never' }],
  ['a text that is no token', { token: 'a', expires: seconds(100) }],
  ['a refresh token that is no text', { token: 'a.b.c', expires: seconds(100), refresh: { a: 1 } }],
])('oidc begins a sign-in if another build has sealed %s as a session', async (_, value) => {
  await using provider = await scripted();
  await using upstream = await backend();
  await using page = await site(upstream, client(provider.issuer));
  const id = createHash('sha256')
    .update(JSON.stringify([provider.issuer, 'web', `${page.url}/oauth/callback`]))
    .digest('hex')
    .slice(0, 16);
  const cookies = new SealedCookies(Buffer.from(SECRET.OIDC_COOKIE_SECRET), id, false);
  const browser = new Browser();
  for (const field of (await cookies.set(cookies.name('s'), 'session', Object(value), 100)) ?? []) {
    const [, name = '', sealed = ''] = /^([^=]+)=([^;]*)/.exec(field) ?? [];
    browser.cookies.set(name, sealed);
  }
  const reply = await browser.open(`${page.url}/app`);
  expect([reply.status, String(reply.headers['location']).startsWith(provider.issuer)]).toEqual([302, true]);
});

test.each<[string, object]>([
  ['no expiry', { expires: undefined }],
  ['a text as expiry', { expires: 'never' }],
  ['no nonce', { nonce: undefined }],
  ['a list as place to return to', { to: ['https://evil.example/'] }],
  ['a number as verifier', { verifier: 7 }],
])('oidc refuses a callback if another build has sealed a sign-in with %s', async (_, more) => {
  await using provider = await scripted();
  await using upstream = await backend();
  await using page = await site(upstream, client(provider.issuer));
  const id = createHash('sha256')
    .update(JSON.stringify([provider.issuer, 'web', `${page.url}/oauth/callback`]))
    .digest('hex')
    .slice(0, 16);
  const cookies = new SealedCookies(Buffer.from(SECRET.OIDC_COOKIE_SECRET), id, false);
  const name = cookies.name(`l${createHash('sha256').update('state-1').digest('hex').slice(0, 16)}`);
  const login = { state: 'state-1', nonce: 'n', verifier: 'v'.repeat(43), to: '/app', expires: seconds(100) };
  const [field = ''] = (await cookies.set(name, 'login', { ...login, ...more }, 100)) ?? [];
  const browser = new Browser();
  browser.cookies.set(name, /^[^=]+=([^;]*)/.exec(field)?.[1] ?? '');
  const reply = await browser.open(`${page.url}/oauth/callback?state=state-1&code=c`);
  expect(reply.status).toBe(400);
  expect(provider.forms('/token')).toEqual([]);
});

// "Wrong client secret" was "server responded with an error in the response body", which says nothing of the secret.
test.each([
  [
    'a client secret that it does not know',
    { status: 401, error: 'invalid_client', error_description: 'secret sk-provider-words' },
    'the provider answered `invalid_client`: it does not know the client id, or has another client secret',
  ],
  ['no error code', { status: 403, error: undefined }, 'the provider answered 403 without an error code'],
  [
    'a code that is none',
    { status: 400, error: 'a b\nc' },
    'the provider answered 400 without an error code',
  ],
])(
  'a sign-in that the provider refuses with %s says what it answered and where to look',
  async (_, answer, said) => {
    await using provider = await scripted();
    await using upstream = await backend();
    await using page = await site(upstream, client(provider.issuer));
    provider.answer = answer;
    const { reply } = await new Browser().follow(`${page.url}/app`);
    expect(reply.status).toBe(400);
    await until(() => page.gate.accessLog.some((line) => line.includes(said)));
    const line = page.gate.accessLog.find((each) => each.includes(said));
    expect(line).toContain('compare `clientId`, `clientSecret`');
    expect([reply.text, ...page.gate.accessLog, ...page.gate.log].join('')).not.toContain('provider-words');
  },
);

test('a sign-in of a user without a name is refused', async () => {
  const { status } = await signedIn((provider) => {
    provider.claims = { sub: '' };
  });
  expect(status).toBe(400);
});

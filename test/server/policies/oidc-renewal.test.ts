import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { LIMITS } from '../../../src/core/limits.ts';
import { Renewals } from '../../../src/server/policies/oidc/renewals.ts';
import { gateway } from '../../kit/gateway.ts';
import { Browser, client, type Scripted, SECRET, type Site, scripted, site } from '../../kit/oidc-site.ts';
import { freePort } from '../../kit/ports.ts';
import { seconds } from '../../kit/tokens.ts';
import { until } from '../../kit/until.ts';
import { type HttpUpstream, httpUpstream } from '../../kit/upstream.ts';

/** Claims of an ID token that is accepted for `left` more seconds (the leeway is 60), and renewed at its first use. */
const stale = (left = 30): object => ({ iat: seconds(-120), exp: seconds(left - 60) });

const cached = (): Promise<HttpUpstream> =>
  httpUpstream((_, response) => {
    response.setHeader('cache-control', 'public, max-age=60');
    response.end('the page');
  });

/** A browser that has signed in, with an ID token that is due for renewal. */
async function signedIn(provider: Scripted, page: Site, left = 30): Promise<Browser> {
  provider.refreshToken = 'canary-refresh-1';
  provider.claims = { ...stale(left) };
  const browser = new Browser();
  const begun = await browser.open(`${page.url}/app`);
  const back = await browser.open(String(begun.headers['location']));
  await browser.open(String(back.headers['location']));
  provider.refreshToken = 'canary-refresh-2';
  provider.claims = { nonce: undefined };
  return browser;
}

const renewals = (provider: Scripted): number => provider.forms('/token', 'refresh_token').length;

describe('oidc of a gateway and of its route', () => {
  test.each([
    ['the same client share one session', ['/a', '/a'], 1],
    ['different redirect URIs have a session each', ['/a', '/b'], 2],
  ])('oidc of a gateway and of a route with %s, which is renewed', async (_, callbacks, sessions) => {
    await using provider = await scripted();
    await using upstream = await cached();
    const port = await freePort();
    const [atGateway, atRoute] = callbacks.map((path) => ({
      ...client(provider.issuer),
      redirectURI: `http://127.0.0.1:${port}${path}`,
    }));
    const routes = [{ policies: { oidc: atRoute }, backends: [{ host: upstream.address }] }];
    const gateways = { default: { port, oidc: atGateway, routes } };
    await using gate = await gateway(JSON.stringify({ gateways }), { env: SECRET });
    const issued = Array.from({ length: 20 }, (_, index) => `refresh-${index}`);
    Object.defineProperty(provider, 'refreshToken', { get: () => issued.pop() });
    const browser = new Browser();
    expect((await browser.follow(`${gate.url}/app`)).reply.text).toBe('the page');
    expect(provider.forms('/token', 'authorization_code')).toHaveLength(sessions);
    expect(browser.cookies.size).toBe(sessions);

    browser.cookies.clear();
    provider.claims = { ...stale() };
    await browser.follow(`${gate.url}/app`);
    provider.claims = { nonce: undefined };
    const before = renewals(provider);
    const renewed = await browser.open(`${gate.url}/app`);
    expect([renewed.text, renewed.headers['set-cookie']]).toEqual(['the page', expect.any(Array)]);
    expect(renewed.headers['set-cookie']).toHaveLength(sessions);
    const next = await browser.open(`${gate.url}/app`);
    expect([next.text, next.headers['set-cookie']]).toEqual(['the page', undefined]);
    expect(renewals(provider) - before).toBe(sessions);
    expect(upstream.received.every(({ headers }) => headers.cookie === undefined)).toBe(true);
  });
});

describe('oidc renews sessions with the refresh token', () => {
  test('a session whose ID token expires is renewed without the provider showing a page', async () => {
    await using provider = await scripted();
    await using upstream = await cached();
    await using page = await site(upstream, client(provider.issuer), { level: 'trace' });
    const browser = await signedIn(provider, page);
    const before = new Map(browser.cookies);
    const renewed = await browser.open(`${page.url}/app`, { 'sec-fetch-mode': 'cors' });
    expect([renewed.status, renewed.text]).toEqual([200, 'the page']);
    expect(renewed.headers['cache-control']).toBe('no-store');
    expect(browser.cookies).not.toEqual(before);
    expect(Object.fromEntries(provider.forms('/token', 'refresh_token')[0] ?? [])).toEqual({
      grant_type: 'refresh_token',
      refresh_token: 'canary-refresh-1',
    });
    const next = await browser.open(`${page.url}/app`);
    expect([next.status, next.headers['set-cookie'], next.headers['cache-control']]).toEqual([
      200,
      undefined,
      'public, max-age=60',
    ]);
    expect(renewals(provider)).toBe(1);
    expect(await page.gate.accessLine(4)).toMatchObject({ subject: 'alice' });
    expect([...page.gate.accessLog, ...page.gate.log].join('')).not.toContain('canary');
    expect(upstream.received.map(({ headers }) => headers.cookie)).toEqual([undefined, undefined]);
  });

  test('a session ends 12 hours after the sign-in, also if its cookie is still sent', async () => {
    const start = Date.now();
    vi.useFakeTimers({ toFake: ['Date'], now: start });
    onTestFinished(() => void vi.useRealTimers());
    await using provider = await scripted();
    await using upstream = await cached();
    await using page = await site(upstream, client(provider.issuer));
    const browser = await signedIn(provider, page);
    const hours = 3_600_000;
    vi.setSystemTime(start + 11.9 * hours);
    expect((await browser.open(`${page.url}/app`)).status).toBe(200);
    vi.setSystemTime(start + 12.1 * hours);
    expect((await browser.open(`${page.url}/app`)).status).toBe(302);
    expect(renewals(provider)).toBe(1);
  });

  test('requests with the same cookie use a refresh token once, also one that arrives later', async () => {
    await using provider = await scripted();
    await using upstream = await cached();
    await using page = await site(upstream, client(provider.issuer));
    const browser = await signedIn(provider, page);
    const old = new Map(browser.cookies);
    const withOldCookie = async (): Promise<number> => {
      const tab = new Browser();
      for (const [name, value] of old) tab.cookies.set(name, value);
      return (await tab.open(`${page.url}/app`)).status;
    };
    expect(await Promise.all(Array.from({ length: 8 }, withOldCookie))).toEqual(
      Array.from({ length: 8 }, () => 200),
    );
    expect(await withOldCookie()).toBe(200);
    expect(renewals(provider)).toBe(1);
  });

  test.each([
    ['is of another user', { sub: 'mallory' }],
    ['is for another client', { aud: 'else' }],
    ['has expired', { exp: seconds(-300) }],
  ])('oidc keeps the session if the renewed ID token %s', async (_, claims) => {
    await using provider = await scripted();
    await using upstream = await cached();
    await using page = await site(upstream, client(provider.issuer));
    const browser = await signedIn(provider, page);
    provider.claims = { nonce: undefined, ...claims };
    const reply = await browser.open(`${page.url}/app`);
    expect([reply.status, reply.headers['set-cookie']]).toEqual([200, undefined]);
    expect(renewals(provider)).toBe(1);
    expect(await page.gate.accessLine(3)).toMatchObject({ subject: 'alice' });
  });

  test('a session that the provider does not renew ends with its ID token, and a page then signs in again', async () => {
    await using provider = await scripted();
    await using upstream = await cached();
    await using page = await site(upstream, client(provider.issuer));
    const browser = await signedIn(provider, page, 3);
    provider.answer = { status: 400 };
    expect((await browser.open(`${page.url}/app`)).status).toBe(200);
    await until(async () => (await browser.open(`${page.url}/app`)).status === 302);
    expect((await browser.open(`${page.url}/app`, { 'sec-fetch-mode': 'cors' })).status).toBe(401);
    // A refusal is remembered for a moment, however many requests a page sends.
    expect(renewals(provider)).toBe(1);
  });

  test('while the provider is down, a session lasts as long as its ID token, and is then answered with 502', async () => {
    await using provider = await scripted();
    await using upstream = await cached();
    await using page = await site(upstream, client(provider.issuer));
    const browser = await signedIn(provider, page, 3);
    provider.answer = { status: 503 };
    expect((await browser.open(`${page.url}/app`)).status).toBe(200);
    await until(async () => (await browser.open(`${page.url}/app`)).status === 502);
    expect(renewals(provider)).toBe(1);
  });

  test('no more sessions than the limit are renewed at the same time', async () => {
    const renewals = new Renewals({ refresh: () => new Promise(() => undefined) });
    for (let count = 0; count < LIMITS.sessionRenewals; count += 1) void renewals.renew(`token ${count}`);
    const refused = renewals.renew('one more');
    expect(renewals.size).toBe(LIMITS.sessionRenewals);
    expect(await refused).toEqual({
      problem: expect.stringContaining('at the same time'),
      isRefused: false,
    });
  });

  test('a refresh token that is too large for cookies is not kept, and the session ends with its ID token', async () => {
    await using provider = await scripted();
    await using upstream = await cached();
    await using page = await site(upstream, client(provider.issuer));
    provider.refreshToken = 'r'.repeat(20_000);
    const browser = new Browser();
    expect((await browser.follow(`${page.url}/app`)).reply.status).toBe(200);
    expect([...browser.cookies.values()].join('').length).toBeLessThan(4_000);
  });

  test.each([
    ['50 s slow or fast: accepted', { iat: seconds(50), nbf: seconds(50), exp: seconds(600) }, 200],
    ['too fast: refused', { iat: seconds(300), exp: seconds(600) }, 400],
    ['too slow: refused', { iat: seconds(-900), exp: seconds(-300) }, 400],
  ])('the clock of the provider is %s', async (_, claims, status) => {
    await using provider = await scripted();
    await using upstream = await cached();
    await using page = await site(upstream, client(provider.issuer));
    provider.claims = claims;
    expect((await new Browser().follow(`${page.url}/app`)).reply.status).toBe(status);
  });
});

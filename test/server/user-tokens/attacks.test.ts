import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { temporaryFolder } from '../../kit/folder.ts';
import type { McpSession } from '../../kit/mcp.ts';
import type { McpUpstream } from '../../kit/mcp-upstream.ts';
import { startOidcProvider } from '../../kit/oidc-provider.ts';
import { scripted } from '../../kit/oidc-site.ts';
import { seconds, signingKey, token } from '../../kit/tokens.ts';
import { recorded } from '../../kit/trace.ts';
import { httpUpstream } from '../../kit/upstream.ts';
import {
  actors,
  basic,
  claimsOf,
  linkIn,
  protectedServer,
  type SignInGateway,
  signInGateway,
  UserBrowser,
} from '../../kit/user-sign-in.ts';

const SAY = { name: 'say', arguments: { message: 'hello' } };
const call = (session: McpSession) => session.request('tools/call', SAY);

interface Scene extends AsyncDisposable {
  readonly gate: SignInGateway;
  readonly server: McpUpstream;
  readonly folder: string;
  /** Who signs in at the authorization server next. */
  account: string;
  agrees: boolean;
}

async function scene(options: Parameters<typeof signInGateway>[2] = {}): Promise<Scene> {
  const folder = await temporaryFolder();
  const provider = await startOidcProvider({ account: () => found.account, agrees: () => found.agrees });
  const server = await protectedServer(provider.issuer);
  const gate = await signInGateway(folder.path, { github: server }, options);
  const found: Scene = {
    gate,
    server,
    folder: folder.path,
    account: 'alice',
    agrees: true,
    [Symbol.asyncDispose]: async () => {
      await gate.close();
      await server[Symbol.asyncDispose]();
      await provider[Symbol.asyncDispose]();
      await folder.remove();
    },
  };
  return found;
}

/** Requests without credentials reach the page, as those of clients with API keys do. */
const KEYS = {
  policies: {
    apiKey: {
      keys: [
        { key: 'key-of-ann', metadata: { name: 'ann' } },
        { key: 'key-of-bob', metadata: { name: 'bob' } },
      ],
    },
  },
  pagePolicies: {},
  signIn: { users: 'code' },
};
const key = (name: string) => ({ authorization: `Bearer key-of-${name}` });

/** Confirms in a browser. Returns where the browser is sent. */
async function confirm(browser: UserBrowser, { url, code = '' }: ReturnType<typeof linkIn>): Promise<string> {
  const reply = await browser.open(url, { code });
  return String(reply.headers['location']);
}

describe('one user never gets the token of another', () => {
  // IBM/mcp-context-forge#1078: the first token that was found for a server was used for everybody.
  test('each user acts with the own account', async () => {
    await using at = await scene();
    const ann = await at.gate.session(basic('ann'));
    const bob = await at.gate.session(basic('bob'));
    await new UserBrowser(basic('ann')).signIn(linkIn(await call(ann)));
    const refused = await call(bob);
    expect(refused.result.isError).toBe(true);
    at.account = 'robert';
    await new UserBrowser(basic('bob')).signIn(linkIn(refused));
    await Promise.all([call(ann), call(bob), call(ann), call(bob)]);
    expect(actors(at.server).sort()).toEqual(['alice', 'alice', 'robert', 'robert']);
  });

  test('the link of a user is refused for another user, and stays valid', async () => {
    await using at = await scene();
    const ann = await at.gate.session(basic('ann'));
    const link = linkIn(await call(ann));
    const page = await new UserBrowser(basic('bob')).signIn(link);
    expect([page.status, page.text]).toEqual([400, expect.stringContaining('belongs to another user')]);
    const posted = await new UserBrowser(basic('bob')).open(link.url, {});
    expect(posted.status).toBe(400);
    expect((await new UserBrowser(basic('ann')).signIn(link)).text).toContain('You are signed in');
  });

  // PrefectHQ/fastmcp#3201: who has confirmed sends the address of the authorization server to somebody else.
  test.each([
    ['another user', {}, basic('ann'), basic('bob')],
    ['a person without a user', KEYS, {}, {}],
  ])('the address of the authorization server is of no use to %s', async (_, options, own, others) => {
    await using at = await scene(options);
    const session = await at.gate.session('policies' in options ? key('ann') : basic('ann'));
    const browser = new UserBrowser(own);
    const url = await confirm(browser, linkIn(await call(session)));
    at.account = 'victim';
    const victim = new UserBrowser(others);
    const ended = await victim.follow(await victim.open(url), url);
    expect(ended.url).toContain('/sign-in/callback/');
    expect(ended.reply.status).toBe(400);
    expect((await call(session)).result.isError).toBe(true);
    // It was used up.
    expect((await browser.open(ended.url)).status).toBe(400);
    expect(actors(at.server)).toEqual([]);
  });

  // RFC 9700 §4.4: the authorization server of one MCP server sends browsers on to that of another one, which sends no `iss`.
  test.each([
    ['registers itself', {}],
    ['has been registered', { clientId: 'web' }],
  ])(
    'what a browser brings back from another authorization server is sent to nobody, where the gateway %s',
    async (_, oauth) => {
      await using folder = await temporaryFolder();
      await using honest = await scripted();
      await using evil = await scripted();
      await using target = await protectedServer(honest.issuer);
      await using trap = await protectedServer(evil.issuer);
      const register = await httpUpstream((_, response) => {
        response.writeHead(201, { 'content-type': 'application/json' }).end('{"client_id":"c"}');
      });
      for (const each of [honest, evil])
        each.metadata = {
          code_challenge_methods_supported: ['S256'],
          token_endpoint_auth_methods_supported: ['none'],
          registration_endpoint: `http://${register.address}/register`,
        };
      await using gate = await signInGateway(folder.path, { github: target, trap }, { oauth });
      const session = await gate.session(basic('ann'));
      const link = async (name: string) =>
        linkIn(await session.request('tools/call', { name: `${name}_gateway_sign_in`, arguments: {} }));
      // The attacker knows the address of the honest server, also as a user of the gateway.
      const address = new URL(await confirm(new UserBrowser(basic('ann')), await link('github')));
      const victim = new UserBrowser(basic('ann'));
      const begun = new URL(await confirm(victim, await link('trap')));
      expect(begun.searchParams.get('redirect_uri')).not.toBe(address.searchParams.get('redirect_uri'));
      address.searchParams.set('state', begun.searchParams.get('state') ?? '');
      const { url, reply } = await victim.follow(await victim.open(address.href), address.href);
      expect([url, reply.status, reply.text]).toEqual([
        expect.stringContaining('code='),
        400,
        expect.stringContaining('signed in at another server'),
      ]);
      expect(evil.forms('/token')).toEqual([]);
      await register.close();
    },
  );

  test('a cookie of one sign-in is of no use to another', async () => {
    await using at = await scene(KEYS);
    const ann = await at.gate.session(key('ann'));
    const bob = await at.gate.session(key('bob'));
    const browser = new UserBrowser();
    await confirm(browser, linkIn(await call(ann)));
    const others = new UserBrowser();
    const url = await confirm(others, linkIn(await call(bob)));
    const { url: callback } = await others.follow(await others.open(url), url, at.gate.page);
    expect((await browser.open(callback)).status).toBe(400);
    expect((await call(bob)).result.isError).toBe(true);
  });

  test('a cookie of the right name with another value is of no use', async () => {
    await using at = await scene(KEYS);
    const session = await at.gate.session(key('ann'));
    const browser = new UserBrowser();
    const first = await confirm(browser, linkIn(await call(session)));
    const [[name] = ['']] = browser.cookies;
    expect(name).toContain('agctl_sign_in_');
    const victim = new UserBrowser();
    victim.cookies.set(name, 'x'.repeat(32));
    const { reply } = await victim.follow(await victim.open(first), first);
    expect([reply.status, reply.text]).toEqual([400, expect.stringContaining('not begun in this browser')]);
  });

  test('a link without the code of the client is of no use', async () => {
    await using at = await scene(KEYS);
    const ann = await at.gate.session(key('ann'));
    const { url, code } = linkIn(await call(ann));
    for (const wrong of ['', 'BBBB-BBBB', 'x'.repeat(500), code?.slice(0, 4) ?? ''])
      expect((await new UserBrowser().open(url, { code: wrong })).status).toBe(400);
    // The fifth attempt is the last one.
    expect(
      (await new UserBrowser().signIn({ url, code: code?.toLowerCase().replace('-', ' ') })).text,
    ).toContain('You are signed in');
  });

  test('codes cannot be tried out', async () => {
    await using at = await scene(KEYS);
    const link = linkIn(await call(await at.gate.session(key('ann'))));
    for (let attempt = 0; attempt < 5; attempt += 1)
      await new UserBrowser().open(link.url, { code: 'BBBB-BBBB' });
    const page = await new UserBrowser().open(link.url, { code: link.code ?? '' });
    expect([page.status, page.text]).toEqual([400, expect.stringContaining('Too many codes')]);
  });

  test('without a policy that authenticates, the page refuses everybody, unless codes are allowed', async () => {
    await using at = await scene({ pagePolicies: {} });
    const link = linkIn(await call(await at.gate.session(basic('ann'))));
    expect(link.code).toBeUndefined();
    expect((await new UserBrowser().signIn(link)).text).toContain('does not know who you are');
    expect((await new UserBrowser().open(link.url, { code: '' })).status).toBe(400);
  });

  test('users whom nobody has authenticated cannot sign in', async () => {
    await using at = await scene({ policies: {}, pagePolicies: {}, signIn: { users: 'code' } });
    const session = await at.gate.session({}).catch((error: unknown) => String(error));
    expect(session).toContain('no policy of the route has authenticated a user');
    expect(at.server.received).toEqual([]);
  });

  // The hash of the token would be the user: each new token another one, whose tokens nobody gets or removes.
  test('a token without `sub` is no user who could sign in', async () => {
    const idp = signingKey('k1');
    const issuer = 'https://id.example.com';
    const jwks = JSON.stringify({ keys: [idp.jwk] });
    const policies = { jwtAuth: { mode: 'strict', issuer, audiences: ['tools'], jwks } };
    await using at = await scene({ policies, pagePolicies: {}, signIn: { users: 'code' } });
    const bearer = (more: object) => ({
      authorization: `Bearer ${token(idp, { iss: issuer, aud: 'tools', exp: seconds(600), ...more })}`,
    });
    const session = await at.gate.session(bearer({})).catch((error: unknown) => String(error));
    expect(session).toContain('the token of the caller has no `sub`');
    expect(linkIn(await call(await at.gate.session(bearer({ sub: 'ann' })))).code).toMatch(/-/);
  });
});

describe('the page of a sign-in', () => {
  test.each([
    ['a page of another site', { 'sec-fetch-site': 'cross-site' }],
    ['a page of another host', { 'sec-fetch-site': 'same-site' }],
    ['another origin', { origin: 'https://evil.example' }],
  ])('a form of %s is refused', async (_, headers) => {
    await using at = await scene();
    const { url } = linkIn(await call(await at.gate.session(basic('ann'))));
    const reply = await new UserBrowser(basic('ann')).open(url, {}, headers);
    expect(reply.headers['location']).toBeUndefined();
    expect(reply.status).toBe(400);
  });

  test('a callback is accepted once, and only as the authorization server has sent it', async () => {
    await using at = await scene();
    const session = await at.gate.session(basic('ann'));
    const callback = async (change: (url: URL) => void): Promise<number> => {
      const browser = new UserBrowser(basic('ann'));
      const first = await confirm(browser, linkIn(await call(session)));
      const { url } = await browser.follow(await browser.open(first), first, at.gate.page);
      const changed = new URL(url);
      change(changed);
      return (await browser.open(changed.href)).status;
    };
    expect(await callback(({ searchParams }) => searchParams.set('state', 'another'))).toBe(400);
    expect(await callback(({ searchParams }) => searchParams.append('code', 'another'))).toBe(400);
    // RFC 9207: the server says that it sends `iss`.
    expect(await callback(({ searchParams }) => searchParams.delete('iss'))).toBe(400);
    expect(await callback(({ searchParams }) => searchParams.set('iss', 'https://evil.example'))).toBe(400);
    expect(await callback(({ searchParams }) => searchParams.set('code', 'another'))).toBe(400);
    expect((await call(session)).result.isError).toBe(true);
    expect(await callback(() => undefined)).toBe(200);
    expect((await call(session)).result.isError).toBeUndefined();
  });

  test('a user who does not agree stays without a token', async () => {
    await using at = await scene();
    at.agrees = false;
    const session = await at.gate.session(basic('ann'));
    const page = await new UserBrowser(basic('ann')).signIn(linkIn(await call(session)));
    expect([page.status, page.text]).toEqual([400, expect.stringContaining('was cancelled')]);
    expect((await call(session)).result.isError).toBe(true);
  });

  test('a link expires', async () => {
    await using at = await scene({ limits: { signInLifetime: 1 } });
    const link = linkIn(await call(await at.gate.session(basic('ann'))));
    const page = await new UserBrowser(basic('ann')).signIn(link);
    expect([page.status, page.text]).toEqual([400, expect.stringContaining('has expired')]);
  });

  test('the page cannot be framed or cached, and repeats nothing of its address', async () => {
    await using at = await scene();
    const { url } = linkIn(await call(await at.gate.session(basic('ann'))));
    const page = await new UserBrowser(basic('ann')).open(url);
    expect(page.headers).toMatchObject({
      'cache-control': 'no-store',
      'content-security-policy': expect.stringContaining("default-src 'none'"),
      'x-frame-options': 'DENY',
    });
    expect(page.text).not.toContain(new URL(url).searchParams.get('link_token'));
    const odd = await new UserBrowser(basic('ann')).open(`${at.gate.page}?link_token=%3Cscript%3E`);
    expect([odd.status, odd.text.includes('<script')]).toEqual([400, false]);
  });
});

// BerriAI/litellm#37497: tools worked, and requests for prompts and resources had no token.
test('every request to the server carries the token of the user', async () => {
  await using at = await scene();
  const session = await at.gate.session(basic('ann'));
  await new UserBrowser(basic('ann')).signIn(linkIn(await call(session)));
  await call(session);
  for (const method of ['tools/list', 'prompts/list', 'resources/list', 'resources/templates/list'])
    await session.request(method);
  await session.request('prompts/get', { name: 'p' });
  await session.request('resources/read', { uri: 'a:b' });
  await session.end();
  const sent = at.server.received.filter(({ path, headers }) => path === '/mcp' && headers['mcp-session-id']);
  expect(new Set(sent.map((request) => claimsOf(request)?.sub))).toEqual(new Set(['alice']));
  expect(sent.some(({ verb }) => verb === 'DELETE')).toBe(true);
});

test('no secret is in the log, traces, the dump of the configuration or the database', async () => {
  await using at = await scene({ ...KEYS, admin: true, level: 'trace' });
  const session = await at.gate.session(key('ann'));
  const traces: string[] = [];
  /** Does something, with a live trace of the request that it sends to the gateway. */
  const traced = async <T>(act: () => Promise<T>): Promise<T> => {
    let result: Promise<T> | undefined;
    const events = await recorded(at.gate, () => {
      result = act();
      return result;
    });
    expect(events.length).toBeGreaterThan(2);
    traces.push(JSON.stringify(events));
    return result as Promise<T>;
  };
  const link = linkIn(await traced(() => call(session)));
  await traced(() => session.request('tools/list'));
  const browser = new UserBrowser();
  await traced(() => browser.open(link.url));
  const first = await traced(() => confirm(browser, link));
  const { url: callback } = await browser.follow(await browser.open(first), first, at.gate.page);
  const [cookie = ''] = browser.cookies.values();
  await traced(() => browser.open(callback));
  await traced(() => call(session));
  const { searchParams } = new URL(callback);
  const token = String(at.server.of('tools/call')[0]?.headers['authorization']).slice('Bearer '.length);
  const secrets = [
    new URL(link.url).searchParams.get('link_token'),
    searchParams.get('code'),
    searchParams.get('state'),
    token,
    cookie,
    link.code,
  ].map(String);
  expect(secrets.map((secret) => secret.length > 8)).toEqual(secrets.map(() => true));
  const dump = await (await fetch(`${at.gate.admin}/config_dump`)).text();
  const database = readdirSync(at.folder)
    .filter((name) => name.startsWith('agctl.db'))
    .map((name) => readFileSync(join(at.folder, name), 'latin1'))
    .join('');
  expect(database).toContain('agctl_user_tokens');
  const places = {
    traces: traces.join('\n'),
    log: at.gate.log.join('\n'),
    access: at.gate.accessLog.join('\n'),
    dump,
    database,
  };
  const found = Object.entries(places).flatMap(([place, text]) =>
    secrets.filter((secret) => text.includes(secret)).map((secret) => `${place}: ${secret}`),
  );
  expect(found).toEqual([]);
});

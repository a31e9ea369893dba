import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { cli } from '../../kit/cli.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import type { McpSession } from '../../kit/mcp.ts';
import { startOidcProvider } from '../../kit/oidc-provider.ts';
import { scripted } from '../../kit/oidc-site.ts';
import { freePort } from '../../kit/ports.ts';
import { recorded } from '../../kit/trace.ts';
import {
  actors,
  basic,
  claimsOf,
  linkIn,
  protectedServer,
  signInGateway,
  UserBrowser,
} from '../../kit/user-sign-in.ts';

const SAY = { name: 'say', arguments: { message: 'hello' } };
const call = (session: McpSession) => session.request('tools/call', SAY);
const isSignedOut = async (session: McpSession): Promise<boolean> =>
  (await call(session)).result?.isError === true;
const TOKEN = 'POST /realms/main/protocol/openid-connect/token';

// anomalyco/opencode#34074: several calls that find the token expired renew it with the same refresh token, which a server that
// rotates them takes for theft. This one does, and voids the grant.
test('calls at two replicas renew a refused token once, with rotation', async () => {
  await using folder = await temporaryFolder();
  await using provider = await startOidcProvider({ rotates: true });
  let refused: string | undefined;
  await using server = await protectedServer(provider.issuer, {
    accepts: ({ jti }) => (jti === refused ? 401 : undefined),
  });
  const port = await freePort();
  const limits = { freshToken: 0 };
  await using first = await signInGateway(folder.path, { github: server }, { port, limits });
  await using second = await signInGateway(folder.path, { github: server }, { publicPort: port, limits });
  const sessions = [await first.session(basic('ann')), await second.session(basic('ann'))];
  const [one, other] = sessions as [McpSession, McpSession];
  await new UserBrowser(basic('ann')).signIn(linkIn(await call(one)));
  for (let round = 1; round <= 3; round += 1) {
    await Promise.all([call(one), call(other)]);
    refused = claimsOf(server.of('tools/call').at(-1) ?? { headers: {} }).jti;
    const asked = provider.asked.filter((request) => request === TOKEN).length;
    const replies = await Promise.all(
      Array.from({ length: 16 }, (_, index) => call(index % 2 ? one : other)),
    );
    expect(replies.map(({ result }) => result?.isError)).toEqual(replies.map(() => undefined));
    expect(provider.asked.filter((request) => request === TOKEN).length - asked).toBe(1);
  }
});

test('a token is renewed before it expires, and calls that run meanwhile use the current one', async () => {
  await using folder = await temporaryFolder();
  // Within the margin from the beginning.
  await using provider = await startOidcProvider({ rotates: true, accessTokenLifetime: 20 });
  await using server = await protectedServer(provider.issuer);
  await using gate = await signInGateway(folder.path, { github: server });
  const session = await gate.session(basic('ann'));
  await new UserBrowser(basic('ann')).signIn(linkIn(await call(session)));
  const replies = await Promise.all(Array.from({ length: 12 }, () => call(session)));
  expect(replies.every(({ result }) => result?.isError === undefined)).toBe(true);
  expect(await isSignedOut(session)).toBe(false);
  expect(provider.asked.filter((request) => request === TOKEN).length).toBeGreaterThan(1);
});

/** Tokens that `protectedServer` accepts. */
function accessToken(sub: string, more: object = {}): string {
  const claims = { sub, exp: Math.floor(Date.now() / 1000) + 600, ...more };
  return `h.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.s`;
}

/** A server whose authorization server says what a test wants it to say. */
async function scriptedScene() {
  const folder = await temporaryFolder();
  const provider = await scripted();
  provider.metadata = { code_challenge_methods_supported: ['S256'] };
  provider.refreshToken = 'refresh-token-of-the-test';
  provider.issued = { access_token: accessToken('alice'), expires_in: 10, scope: 'read' };
  const server = await protectedServer(provider.issuer);
  const oauth = { clientId: 'web', clientSecret: 'secret' };
  const gate = await signInGateway(folder.path, { github: server }, { oauth });
  const session = await gate.session(basic('ann'));
  await new UserBrowser(basic('ann')).signIn(linkIn(await call(session)));
  return {
    provider,
    server,
    session,
    gate,
    [Symbol.asyncDispose]: async () => {
      await gate.close();
      await server[Symbol.asyncDispose]();
      await provider[Symbol.asyncDispose]();
      await folder.remove();
    },
  };
}

test('a refresh token that is refused ends the sign-in, and the user can sign in again', async () => {
  await using at = await scriptedScene();
  expect(await isSignedOut(at.session)).toBe(false);
  at.provider.answer = { status: 400 };
  const refused = await call(at.session);
  expect(refused.text).toContain('the sign-in of the user at the server has ended');
  at.provider.answer = undefined;
  at.provider.issued = { access_token: accessToken('alice'), scope: 'read' };
  await new UserBrowser(basic('ann')).signIn(linkIn(refused));
  expect(await isSignedOut(at.session)).toBe(false);
});

// A server that is taken over names an authorization server of the attacker.
test('a refresh token is sent to the authorization server that has issued it, and to no other', async () => {
  await using folder = await temporaryFolder();
  await using provider = await scripted();
  await using other = await scripted();
  for (const each of [provider, other])
    each.metadata = {
      code_challenge_methods_supported: ['S256'],
      revocation_endpoint: `${each.issuer}/revoke`,
    };
  provider.refreshToken = 'refresh-token-of-the-test';
  provider.issued = { access_token: accessToken('alice'), expires_in: 10 };
  let issuer = provider.issuer;
  await using server = await protectedServer(() => issuer);
  const options = { oauth: { clientId: 'web', clientSecret: 'secret' } };
  const first = await signInGateway(folder.path, { github: server }, options);
  await new UserBrowser(basic('ann')).signIn(linkIn(await call(await first.session(basic('ann')))));
  await first.close();
  issuer = other.issuer;
  await using second = await signInGateway(folder.path, { github: server }, { ...options, admin: true });
  const session = await second.session(basic('ann'));
  // The token is still valid for some seconds.
  expect(await isSignedOut(session)).toBe(false);
  expect(second.log.join('')).toContain('names another authorization server');
  const { stdout } = await cli(['users', 'revoke', 'ann', '--admin', second.admin]);
  expect(stdout).toContain('not revoked there');
  expect([...other.forms('/token'), ...other.forms('/revoke')]).toEqual([]);
});

test('secrets that an authorization server repeats are not in the log', async () => {
  await using at = await scriptedScene();
  const description = { error_description: 'no grant for refresh-token-of-the-test and secret' };
  Object.assign(at.provider, { answer: { status: 400, ...description } });
  expect((await call(at.session)).text).toContain('has ended');
  const [line] = at.gate.log.filter((each) => each.includes('could not be renewed'));
  expect(line).toContain('invalid_grant (no grant for <redacted> and <redacted>)');
});

test('who is signed out while a token is renewed loses the new token too', async () => {
  await using at = await scriptedScene();
  at.provider.metadata = { ...at.provider.metadata, revocation_endpoint: `${at.provider.issuer}/revoke` };
  await using folder = await temporaryFolder();
  const oauth = { clientId: 'web', clientSecret: 'secret' };
  await using gate = await signInGateway(folder.path, { github: at.server }, { oauth });
  const session = await gate.session(basic('ann'));
  await new UserBrowser(basic('ann')).signIn(linkIn(await call(session)));
  const access = accessToken('alice', { jti: 'renewed' });
  Object.defineProperty(at.provider, 'issued', {
    get() {
      using database = new DatabaseSync(join(folder.path, 'agctl.db'));
      database.exec('DELETE FROM agctl_user_tokens');
      return { access_token: access, scope: 'read' };
    },
  });
  expect((await call(session)).text).toContain('has ended');
  expect(at.provider.forms('/revoke').map((form) => form.get('token'))).toEqual([
    'refresh-token-of-the-test',
    access,
  ]);
});

test('an authorization server that does not answer leaves users signed in', async () => {
  await using at = await scriptedScene();
  at.provider.answer = { status: 503 };
  // The token is still valid for some seconds.
  expect(await isSignedOut(at.session)).toBe(false);
  at.provider.answer = undefined;
  expect(await isSignedOut(at.session)).toBe(false);
  expect(at.provider.forms('/token', 'refresh_token').length).toBeGreaterThan(1);
});

test('refresh tokens, verifiers and the secret of the client are neither in the log nor in traces', async () => {
  await using folder = await temporaryFolder();
  await using provider = await scripted();
  Object.assign(provider, {
    metadata: {
      code_challenge_methods_supported: ['S256'],
      token_endpoint_auth_methods_supported: ['client_secret_post'],
    },
    refreshToken: 'refresh-token-of-the-test',
    issued: { access_token: accessToken('alice'), expires_in: 10 },
  });
  await using server = await protectedServer(provider.issuer);
  const oauth = { clientId: 'web', clientSecret: 'canary-of-the-client' };
  await using gate = await signInGateway(
    folder.path,
    { github: server },
    { oauth, admin: true, level: 'trace' },
  );
  const session = await gate.session(basic('ann'));
  const browser = new UserBrowser(basic('ann'));
  const link = linkIn(await call(session));
  const { location } = (await browser.open(link.url, {})).headers;
  const back = String((await browser.open(String(location))).headers['location']);
  const traces = [
    await recorded(gate, () => browser.open(back)),
    // The token expires soon, and is renewed.
    await recorded(gate, () => call(session)),
  ].map((events) => JSON.stringify(events));
  const forms = provider.forms('/token');
  expect(new Set(forms.map((form) => form.get('client_secret')))).toEqual(new Set([oauth.clientSecret]));
  const secrets = [oauth.clientSecret, 'refresh-token-of-the-test', String(forms[0]?.get('code_verifier'))];
  for (const text of [...traces, gate.log.join(''), gate.accessLog.join('')])
    expect([text.length > 100, secrets.filter((secret) => text.includes(secret))]).toEqual([true, []]);
});

test('the secret of the client is in no dump', async () => {
  await using folder = await temporaryFolder();
  await using provider = await scripted();
  await using server = await protectedServer(provider.issuer);
  const oauth = { clientId: 'client-of-the-test', clientSecret: 'canary-of-the-client' };
  await using gate = await signInGateway(folder.path, { github: server }, { oauth, admin: true });
  for (const path of ['/config_dump', '/api/config', '/api/overview']) {
    const text = await (await fetch(`${gate.admin}${path}`)).text();
    expect([path, text.includes('github'), text.includes(oauth.clientSecret)]).toEqual([path, true, false]);
  }
});

test('requests for tokens name the resource, and use PKCE', async () => {
  await using at = await scriptedScene();
  await call(at.session);
  const resource = at.server.url;
  const [code] = at.provider.forms('/token', 'authorization_code');
  expect(Object.fromEntries(code ?? [])).toMatchObject({ resource, code_verifier: expect.any(String) });
  expect(at.provider.forms('/token', 'refresh_token')[0]?.get('resource')).toBe(resource);
  const [authorize] = at.provider.received.filter(({ target }) => target.startsWith('/authorize'));
  const query = new URL(authorize?.target ?? '', at.provider.issuer).searchParams;
  expect(Object.fromEntries(query)).toMatchObject({
    resource,
    code_challenge_method: 'S256',
    scope: 'read',
    client_id: 'web',
  });
});

test.each([
  ['another issuer', { issuer: 'https://evil.example' }],
  ['no PKCE', { code_challenge_methods_supported: ['plain'] }],
  ['a token endpoint without TLS on another host', { token_endpoint: 'http://evil.example/token' }],
  ['a page that runs code', { authorization_endpoint: 'javascript:alert(1)' }],
  ['a page without TLS on another host', { authorization_endpoint: 'http://evil.example/authorize' }],
  ['a page with a user', { authorization_endpoint: 'https://a:b@evil.example/authorize' }],
])('metadata of an authorization server with %s is refused', async (_, metadata) => {
  await using folder = await temporaryFolder();
  await using provider = await scripted();
  provider.metadata = { code_challenge_methods_supported: ['S256'], ...metadata };
  await using server = await protectedServer(provider.issuer);
  const oauth = { clientId: 'web', clientSecret: 'secret' };
  await using gate = await signInGateway(folder.path, { github: server }, { oauth });
  const link = linkIn(await call(await gate.session(basic('ann'))));
  const reply = await new UserBrowser(basic('ann')).open(link.url, {});
  expect([reply.status, reply.headers['location']]).toEqual([502, undefined]);
});

test('a server that requires another scope gets it after the user has agreed', async () => {
  await using folder = await temporaryFolder();
  await using provider = await startOidcProvider();
  await using server = await protectedServer(provider.issuer, {
    accepts: ({ scope }, { message }) =>
      message?.method === 'tools/call' && !String(scope).includes('write') ? 403 : undefined,
  });
  await using gate = await signInGateway(folder.path, { github: server });
  const session = await gate.session(basic('ann'));
  await new UserBrowser(basic('ann')).signIn(linkIn(await call(session)));
  const refused = await call(session);
  expect(refused.text).toContain('requires more permissions');
  await new UserBrowser(basic('ann')).signIn(linkIn(refused));
  expect(await isSignedOut(session)).toBe(false);
  expect(
    claimsOf(server.of('tools/call').at(-1) ?? { headers: {} })
      .scope.split(' ')
      .sort(),
  ).toEqual(['read', 'write']);
});

test('a server that refuses each token is asked once more per call, and the user is told', async () => {
  await using folder = await temporaryFolder();
  await using provider = await startOidcProvider();
  await using server = await protectedServer(provider.issuer, {
    accepts: (_, { message }) => (message?.method === 'tools/call' ? 401 : undefined),
  });
  await using gate = await signInGateway(folder.path, { github: server }, { limits: { freshToken: 0 } });
  const session = await gate.session(basic('ann'));
  await new UserBrowser(basic('ann')).signIn(linkIn(await call(session)));
  expect((await call(session)).text).toContain('no longer accepts the token');
  expect(actors(server)).toEqual(['alice', 'alice']);
});

test('another replica ends a sign-in that one had begun', async () => {
  await using folder = await temporaryFolder();
  await using provider = await startOidcProvider();
  await using server = await protectedServer(provider.issuer);
  const port = await freePort();
  const first = await signInGateway(folder.path, { github: server }, { port });
  const link = linkIn(await call(await first.session(basic('ann'))));
  const browser = new UserBrowser(basic('ann'));
  const { location } = (await browser.open(link.url, {})).headers;
  await first.close();
  await using second = await signInGateway(folder.path, { github: server }, { port });
  const { reply } = await browser.follow(await browser.open(String(location)), String(location));
  expect(reply.text).toContain('You are signed in');
  expect(await isSignedOut(await second.session(basic('ann')))).toBe(false);
});

// A model that is told to sign in, and then that the user has done so, calls the tool for ever.
test('a refused token without a refresh token signs the user out, and the tool that lists offer has the link', async () => {
  await using at = await scriptedScene();
  at.provider.refreshToken = undefined;
  at.provider.issued = { access_token: accessToken('alice', { jti: 'revoked' }), scope: 'read' };
  let refused: string | undefined;
  await using server = await protectedServer(at.provider.issuer, {
    accepts: ({ jti }) => (jti === refused ? 401 : undefined),
  });
  await using folder = await temporaryFolder();
  const oauth = { clientId: 'web', clientSecret: 'secret' };
  await using gate = await signInGateway(folder.path, { github: server }, { oauth, admin: true });
  const session = await gate.session(basic('ann'));
  await new UserBrowser(basic('ann')).signIn(linkIn(await call(session)));
  expect(await isSignedOut(session)).toBe(false);
  refused = 'revoked';
  expect((await call(session)).text).toContain('no longer accepts the token');
  expect((await session.request('tools/list')).result.tools).toMatchObject([{ name: 'gateway_sign_in' }]);
  const led = await session.request('tools/call', { name: 'gateway_sign_in', arguments: {} });
  expect(led.text).not.toContain('has signed in');
  expect((await cli(['users', 'list', '--admin', gate.admin])).stdout).toContain('nobody has signed in');
  expect(gate.log.filter((line) => line.includes('no longer accepts the token'))).toEqual([
    expect.stringMatching(/warn.*ann/),
  ]);
  at.provider.issued = { access_token: accessToken('alice'), scope: 'read' };
  await new UserBrowser(basic('ann')).signIn(linkIn(led));
  expect(await isSignedOut(session)).toBe(false);
});

test.each([401, 403] as const)(
  'the tool that lists offer has the link while the server answers them with %i',
  async (status) => {
    await using folder = await temporaryFolder();
    await using provider = await startOidcProvider();
    let refuses = false;
    await using server = await protectedServer(provider.issuer, {
      accepts: () => (refuses ? status : undefined),
    });
    await using gate = await signInGateway(folder.path, { github: server, other: server });
    const session = await gate.session(basic('ann'));
    const signIn = () => session.request('tools/call', { name: 'github_gateway_sign_in', arguments: {} });
    await new UserBrowser(basic('ann')).signIn(linkIn(await signIn()));
    expect((await signIn()).text).toContain('has signed in');
    refuses = true;
    expect((await session.request('tools/list')).text).toContain('github_gateway_sign_in');
    expect(linkIn(await signIn()).url).toContain('link_token');
  },
);

import { expect, test } from 'vitest';
import { cli } from '../kit/cli.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { startOidcProvider } from '../kit/oidc-provider.ts';
import { scripted } from '../kit/oidc-site.ts';
import { actors, basic, linkIn, protectedServer, signInGateway, UserBrowser } from '../kit/user-sign-in.ts';

const SAY = { name: 'say', arguments: { message: 'hello' } };
const REVOKE = 'POST /realms/main/token/revocation';

test('an operator sees who has signed in where, and signs a user out', async () => {
  await using folder = await temporaryFolder();
  await using provider = await startOidcProvider();
  await using server = await protectedServer(provider.issuer);
  await using gate = await signInGateway(folder.path, { github: server }, { admin: true });
  const users = (...args: string[]) => cli(['users', ...args, '--admin', gate.admin]);
  expect((await users('list')).stdout).toBe('nobody has signed in at an MCP server\n');
  const sessions = { ann: await gate.session(basic('ann')), bob: await gate.session(basic('bob')) };
  for (const name of ['ann', 'bob'] as const)
    await new UserBrowser(basic(name)).signIn(linkIn(await sessions[name].request('tools/call', SAY)));
  await sessions.ann.request('tools/call', SAY);
  const { stdout } = await users('list');
  expect(stdout).toMatch(/^USER +ID +SERVER +SCOPES +SIGNED IN +TOKEN EXPIRES\n/);
  expect(stdout).toMatch(
    new RegExp(`\nann +[\\w-]{43} +${server.url} +read +[-\\d]{10} [:\\d]{5} +[-\\d]{10} [:\\d]{5}\n`),
  );
  const json = (await users('list', '-o', 'json')).stdout;
  const token = String(server.of('tools/call')[0]?.headers['authorization']).split('.')[1] ?? '';
  expect([token.length > 50, json.includes(token)]).toEqual([true, false]);

  expect(await users('revoke', 'ann')).toMatchObject({
    code: 0,
    stdout: `signed out ann at ${server.url}: the token was revoked there\n`,
  });
  expect(provider.asked).toContain(REVOKE);
  expect((await sessions.ann.request('tools/call', SAY)).result.isError).toBe(true);
  expect((await sessions.bob.request('tools/call', SAY)).result.isError).toBeUndefined();
  expect((await users('list')).stdout).not.toMatch(/\nann /);
  expect(actors(server)).toEqual(['alice', 'alice']);

  expect(await users('revoke', 'ann')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('no such user'),
  });
  const id = JSON.parse((await users('list', '-o', 'json')).stdout).signIns[0].id;
  expect((await users('revoke', id, '--server', 'https://other.example')).stderr).toContain('no such user');
  expect((await users('revoke', id, '--server', server.url)).code).toBe(0);
  const audit = await cli(['audit', '--action', 'user.revoke', '-o', 'json', '--admin', gate.admin]);
  const events = audit.stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(events.toReversed()).toMatchObject([
    {
      outcome: 'done',
      target: expect.stringMatching(/^[\w-]{43} \(ann\)$/),
      detail: `signed out at ${server.url}`,
    },
    { outcome: 'failed' },
    { outcome: 'failed' },
    { outcome: 'done', target: `${id} (bob)` },
  ]);
});

test.each([
  [
    'with a refresh token',
    'refresh-of-the-test',
    undefined,
    ['refresh_token', 'access_token'],
    'revoked there',
  ],
  ['without a refresh token', undefined, undefined, ['access_token'], 'revoked there'],
  [
    'at a server that refuses',
    'refresh-of-the-test',
    { status: 400 },
    ['refresh_token', 'access_token'],
    'not revoked there',
  ],
])('who is signed out loses each token: %s', async (_, refreshToken, answer, hints, how) => {
  await using folder = await temporaryFolder();
  await using provider = await scripted();
  Object.assign(provider, {
    metadata: {
      code_challenge_methods_supported: ['S256'],
      revocation_endpoint: `${provider.issuer}/revoke`,
    },
    refreshToken,
    issued: { access_token: 'access-of-the-test' },
  });
  await using server = await protectedServer(provider.issuer);
  const oauth = { clientId: 'web', clientSecret: 'secret' };
  await using gate = await signInGateway(folder.path, { github: server }, { admin: true, oauth });
  const session = await gate.session(basic('ann'));
  await new UserBrowser(basic('ann')).signIn(linkIn(await session.request('tools/call', SAY)));
  provider.answer = answer;
  const { stdout } = await cli(['users', 'revoke', 'ann', '--admin', gate.admin]);
  expect(stdout).toContain(how);
  expect((await cli(['users', 'list', '--admin', gate.admin])).stdout).toContain('nobody has signed in');
  const forms = provider.forms('/revoke').map((form) => Object.fromEntries(form));
  expect(forms.map(({ token_type_hint: hint }) => hint)).toEqual(hints);
  expect(forms.at(-1)?.['token']).toBe('access-of-the-test');
  expect(gate.log.filter((line) => line.includes('could not be revoked')).length).toBe(
    answer === undefined ? 0 : 2,
  );
});

test('a gateway whose users do not sign in says so', async () => {
  const { gateway } = await import('../kit/gateway.ts');
  await using gate = await gateway('gateways: { default: { port: 0, routes: [] } }', { admin: true });
  const { code, stderr } = await cli(['users', 'list', '--admin', gate.admin]);
  expect([code, stderr]).toEqual([1, expect.stringContaining('config.mcp.signIn')]);
});

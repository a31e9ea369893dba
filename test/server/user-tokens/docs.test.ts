import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { blocksIn, codeOfPages } from '../../kit/documentation.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { gateway } from '../../kit/gateway.ts';
import { startOidcProvider } from '../../kit/oidc-provider.ts';
import { scripted } from '../../kit/oidc-site.ts';
import { freePort } from '../../kit/ports.ts';
import {
  actors,
  basic,
  linkIn,
  protectedServer,
  SESSION_KEY,
  signInGateway,
  UserBrowser,
  userSession,
} from '../../kit/user-sign-in.ts';

test('the documented configuration for clients with API keys signs a user in with the code', async () => {
  const [block] = blocksIn('docs/sign-in.md').filter(({ text }) => text.includes('users: code'));
  await using folder = await temporaryFolder();
  await using provider = await startOidcProvider();
  await using server = await protectedServer(provider.issuer);
  const port = await freePort();
  const yaml = (block?.text ?? '')
    .replace('https://tools.example.com', `http://127.0.0.1:${port}`)
    .replace('https://tickets.example.com/mcp', server.url)
    .replace('port: 3000', `port: ${port}`);
  const env = { SESSION_KEY, ANN_KEY: 'key-of-ann' };
  await using gate = await gateway(yaml, { folder: folder.path, env });
  const session = await userSession(gate.url, { authorization: 'Bearer key-of-ann' });
  const say = () => session.request('tools/call', { name: 'say', arguments: { message: 'hello' } });
  const link = linkIn(await say());
  expect(link.code).toMatch(/^\w{4}-\w{4}$/);
  expect((await new UserBrowser().open(link.url, { code: 'BBBB-BBBB' })).status).toBe(400);
  expect((await new UserBrowser().signIn(link)).text).toContain('for ann');
  expect((await say()).result).not.toHaveProperty('isError');
  expect(actors(server)).toEqual(['alice']);
});

test('the documented name of the tool that leads to the link is that of one of several targets', async () => {
  await using folder = await temporaryFolder();
  await using provider = await startOidcProvider();
  await using server = await protectedServer(provider.issuer);
  await using gate = await signInGateway(folder.path, { github: server, slack: server });
  const { result } = await (await gate.session(basic('ann'))).request('tools/list');
  const guide = codeOfPages().spans.filter(({ page }) => page === 'docs/guides/act-as-the-user.md');
  expect(guide.map(({ text }) => text)).toContain(result.tools[0].name);
});

test('why a server did not accept a sign-in is where the documentation says', async () => {
  await using folder = await temporaryFolder();
  await using provider = await scripted();
  provider.metadata = { code_challenge_methods_supported: ['S256'] };
  provider.answer = { status: 400, error_description: 'no such code' };
  await using server = await protectedServer(provider.issuer);
  const oauth = { clientId: 'web', clientSecret: 'secret' };
  await using gate = await signInGateway(folder.path, { github: server }, { oauth });
  const session = await gate.session(basic('ann'));
  const link = linkIn(await session.request('tools/call', { name: 'gateway_sign_in', arguments: {} }));
  const page = await new UserBrowser(basic('ann')).signIn(link);
  const [text = 'another page'] = /The server did not accept the sign-in/.exec(page.text) ?? [];
  const rows = readFileSync(new URL('../../../docs/troubleshooting.md', import.meta.url), 'utf8');
  const [, field = ''] = new RegExp(`${text}.*\\| \`([\\w.]+)\` in the access log`).exec(rows) ?? [];
  const line = gate.accessLog.find((each) => each.includes('/callback/')) ?? '';
  expect(line).toMatch(new RegExp(` ${field}="[^"]*no such code`));
});

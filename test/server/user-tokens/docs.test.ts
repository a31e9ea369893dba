import { expect, test } from 'vitest';
import { blocksIn } from '../../kit/documentation.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { gateway } from '../../kit/gateway.ts';
import { startOidcProvider } from '../../kit/oidc-provider.ts';
import { freePort } from '../../kit/ports.ts';
import {
  actors,
  linkIn,
  protectedServer,
  SESSION_KEY,
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

import { expect, test } from 'vitest';
import { temporaryFolder } from '../../kit/folder.ts';
import { startOidcProvider } from '../../kit/oidc-provider.ts';
import {
  actors,
  basic,
  linkIn,
  protectedServer,
  signInGateway,
  UserBrowser,
} from '../../kit/user-sign-in.ts';

const SAY = { name: 'say', arguments: { message: 'hello' } };

test('a user signs in at a server, and calls of the user carry the token', async () => {
  await using folder = await temporaryFolder();
  await using provider = await startOidcProvider();
  await using server = await protectedServer(provider.issuer);
  await using gate = await signInGateway(folder.path, { github: server });
  const session = await gate.session(basic('ann'));
  const listed = await session.request('tools/list');
  expect(listed.result.tools.map(({ name }: { name: string }) => name)).toEqual(['gateway_sign_in']);
  const refused = await session.request('tools/call', SAY);
  expect(refused.result.isError).toBe(true);
  const page = await new UserBrowser(basic('ann')).signIn(linkIn(refused));
  expect(page.text).toContain('You are signed in');
  const said = await session.request('tools/call', SAY);
  expect(said.result).not.toHaveProperty('isError');
  expect(actors(server)).toEqual(['alice']);
});

import { expect, test } from 'vitest';
import { temporaryFolder } from '../../kit/folder.ts';
import { startOidcProvider } from '../../kit/oidc-provider.ts';
import { freePort } from '../../kit/ports.ts';
import {
  actors,
  basic,
  linkIn,
  protectedServer,
  signInConfig,
  UserBrowser,
  userSession,
} from '../../kit/user-sign-in.ts';
import { freshly, workerGateway } from '../../kit/workers.ts';

const SAY = { name: 'say', arguments: { message: 'hello' } };

test('with workers, one ends a sign-in that another has begun, and the admin server signs the user out at all', async () => {
  await using folder = await temporaryFolder();
  await using provider = await startOidcProvider();
  await using server = await protectedServer(provider.issuer);
  const port = await freePort();
  const { config } = signInConfig(
    port,
    { github: server },
    {
      config: {
        adminAddr: 'off',
        workers: 2,
        connectionTerminationDeadline: '100ms',
        database: { url: `sqlite://${folder.path}/agctl.db` },
        session: { key: 'a5'.repeat(32) },
        mcp: { signIn: { url: `http://127.0.0.1:${port}/sign-in` } },
      },
    },
  );
  await using gate = await workerGateway(config);
  const sessions = await Promise.all([1, 2, 3, 4].map(() => userSession(gate.url, basic('ann'))));
  const [first, ...others] = sessions;
  const refused = await first?.request('tools/call', SAY);
  // Each request of this browser has a connection of its own, so both workers get some.
  await new UserBrowser(basic('ann')).signIn(linkIn(refused ?? { text: '' }));
  for (const session of sessions)
    expect((await session.request('tools/call', SAY)).result.isError).toBeUndefined();
  expect(actors(server)).toEqual(['alice', 'alice', 'alice', 'alice']);
  const users = await freshly(`${gate.admin}/api/users`);
  expect(JSON.parse(users.text)).toMatchObject({ signIns: [{ user: 'ann', server: server.url }] });
  const out = await freshly(`${gate.admin}/api/users/revoke`, {
    method: 'POST',
    body: JSON.stringify({ user: 'ann' }),
  });
  expect(JSON.parse(out.text)).toMatchObject({ signIns: [{ user: 'ann', revoked: true }] });
  for (const session of others) expect((await session.request('tools/call', SAY)).result.isError).toBe(true);
});

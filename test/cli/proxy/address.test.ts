import { expect, test } from 'vitest';
import { adminAddress } from '../../../src/cli/proxy/address.ts';
import { cli } from '../../kit/cli.ts';
import { fakeAdmin } from '../../kit/fake-admin.ts';
import { temporaryFolder } from '../../kit/folder.ts';

test('without options and AGCTL_ADMIN, the gateway is the one on this machine', () => {
  const machine = { host: '127.0.0.1', port: 15000 };
  const stderr = process.stderr;
  expect(adminAddress({}, { env: {}, stderr })).toMatchObject(machine);
  expect(adminAddress({}, { env: { AGCTL_ADMIN: '' }, stderr })).toMatchObject(machine);
  const env = { AGCTL_ADMIN: 'other:1' };
  expect(adminAddress({ local: true }, { env, stderr })).toMatchObject(machine);
  expect(adminAddress({ admin: 'third:2' }, { env, stderr })).toMatchObject({ host: 'third', port: 2 });
});

// The gateway on this machine may be a real one, so that commands are run with an address from the environment.
test.each([
  [['config', 'diff', '/dev/null', 'running']],
  [['keys', 'create', '--name', 'a']],
  [['keys', 'list']],
  [['keys', 'revoke', 'a']],
  [['logs']],
  [['proxy', 'config', 'all']],
  [['proxy', 'config', 'backends']],
  [['proxy', 'config', 'routes']],
  [['proxy', 'log']],
  [['proxy', 'memory']],
  [['proxy', 'profile', 'cpu', '--seconds', '1']],
  [['proxy', 'profile', 'heap', '--seconds', '1']],
  [['proxy', 'shutdown']],
  [['proxy', 'tasks']],
  [['proxy', 'trace']],
  [['usage']],
])('agctl %j needs no option that says which gateway', async (args) => {
  await using gone = await fakeAdmin({});
  await gone[Symbol.asyncDispose]();
  await using folder = await temporaryFolder();
  const ran = await cli(args, { env: { AGCTL_ADMIN: gone.address }, cwd: folder.path });
  expect([ran.code, ran.stderr]).toEqual([3, expect.stringContaining(`no gateway at ${gone.address}`)]);
});

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type AdminOptions, adminAddress } from '../../../src/cli/proxy/address.ts';
import { cli } from '../../kit/cli.ts';
import { fakeAdmin } from '../../kit/fake-admin.ts';
import { temporaryFolder } from '../../kit/folder.ts';

test('without options and AGCTL_ADMIN, the gateway is the one on this machine', () => {
  const machine = { host: '127.0.0.1', port: 15000 };
  const { stdout, stderr } = process;
  const of = (options: AdminOptions, env: Record<string, string> = {}, cwd = '/') =>
    adminAddress(options, { env, stdout, stderr, cwd });
  expect(of({})).toMatchObject(machine);
  expect(of({}, { AGCTL_ADMIN: '' })).toMatchObject(machine);
  const env = { AGCTL_ADMIN: 'other:1' };
  expect(of({ local: true }, env)).toMatchObject(machine);
  expect(of({ admin: 'third:2' }, env)).toMatchObject({ host: 'third', port: 2 });
});

test('the configuration of the folder, or of -f, says where its gateway is', async () => {
  await using folder = await temporaryFolder();
  const { stdout, stderr } = process;
  const of = (text: string, options: AdminOptions = {}, env: Record<string, string> = {}) => {
    writeFileSync(join(folder.path, 'gateway.yaml'), text);
    return adminAddress(options, { env, stdout, stderr, cwd: folder.path });
  };
  const at = (address: string): string => `config: { adminAddr: "${address}" }`;
  expect(of(at('localhost:15009'))).toMatchObject({
    host: '127.0.0.1',
    port: 15009,
    shown: '127.0.0.1:15009',
  });
  expect(of(at(':15009'))).toMatchObject({ host: '127.0.0.1', port: 15009 });
  expect(of(at('[::1]:15009'))).toMatchObject({ host: '::1', port: 15009, shown: '[::1]:15009' });
  expect(of(at('unix:/run/a.sock'))).toMatchObject({ socketPath: '/run/a.sock', shown: 'unix:/run/a.sock' });
  // Other mistakes do not matter, nor does a file that says nothing of use: the gateway may run with an earlier one.
  expect(of(`${at('localhost:15009')}\nllm: $UNSET\nbinds: 5`)).toMatchObject({ port: 15009 });
  for (const text of ['', 'llm: {}', 'a: [', at('localhost:0'), at('nowhere'), at('$UNSET')])
    expect(of(text)).toMatchObject({ host: '127.0.0.1', port: 15000 });
  writeFileSync(join(folder.path, 'gateway.env'), 'ADMIN_ADDR=localhost:15008\n');
  expect(of(at('localhost:15009'))).toMatchObject({ port: 15008 });
  // What is said in the command goes first.
  expect(of(at('localhost:15009'), { local: true })).toMatchObject({ port: 15000 });
  expect(of(at('localhost:15009'), {}, { AGCTL_ADMIN: 'other:1' })).toMatchObject({ host: 'other' });
  writeFileSync(join(folder.path, 'other.yaml'), at('localhost:15007'));
  const named = { file: 'other.yaml' };
  expect(of(at('localhost:15009'), named, { AGCTL_ADMIN: 'other:1' })).toMatchObject({ port: 15007 });
  expect(() => of('', { ...named, admin: 'x:1' })).toThrow('--admin and -f name two different gateways');
  expect(() => of('', { file: 'none.yaml' })).toThrow('no such file: none.yaml');
  writeFileSync(join(folder.path, 'other.yaml'), at('off'));
  expect(() => of('', named)).toThrow('other.yaml: `config.adminAddr` is `off`');
  writeFileSync(join(folder.path, 'other.yaml'), at('nowhere'));
  expect(() => of('', named)).toThrow('other.yaml: `config.adminAddr` is not an address');
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
  [['users', 'list']],
  [['users', 'revoke', 'ann']],
])('agctl %j needs no option that says which gateway', async (args) => {
  await using gone = await fakeAdmin({});
  await gone[Symbol.asyncDispose]();
  await using folder = await temporaryFolder();
  const outcome = [3, expect.stringContaining(`no gateway at ${gone.address}`)];
  const ran = await cli(args, { env: { AGCTL_ADMIN: gone.address }, cwd: folder.path });
  expect([ran.code, ran.stderr]).toEqual(outcome);
  const config = `config: { adminAddr: "${gone.address}" }`;
  writeFileSync(join(folder.path, 'gateway.yaml'), config);
  const inFolder = await cli(args, { cwd: folder.path });
  expect([inFolder.code, inFolder.stderr]).toEqual(outcome);
  if (!/^(?:keys|usage|users)$/.test(args[0] ?? '')) return;
  writeFileSync(join(folder.path, 'gateway.yaml'), '');
  writeFileSync(join(folder.path, 'other.yaml'), config);
  const named = await cli([...args, '-f', 'other.yaml'], { cwd: folder.path });
  expect([named.code, named.stderr]).toEqual(outcome);
});

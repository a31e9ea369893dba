import { chmodSync, chownSync, mkdirSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { cli } from '../kit/cli.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { service } from '../kit/process.ts';
import { until } from '../kit/until.ts';

const CONFIG = `
config: { adminAddr: off, logging: { format: json } }
gateways:
  default:
    port: 0
    routes:
      - policies:
          directResponse: { status: 200, body: $GREETING }
`;

/** A folder with a configuration and the file of variables beside it, which only this user can read. */
async function folderWith(files: Readonly<Record<string, string>> = {}) {
  const folder = await temporaryFolder();
  const all = { 'gateway.yaml': CONFIG, 'gateway.env': 'GREETING=hello\n', ...files };
  for (const [name, text] of Object.entries(all))
    writeFileSync(join(folder.path, name), text, { mode: 0o600 });
  const path = (name: string): string => join(folder.path, name);
  const validate = (args: readonly string[] = [], env: Record<string, string> = {}) =>
    cli(['config', 'validate', ...args], { cwd: folder.path, env });
  return { cwd: folder.path, path, validate, [Symbol.asyncDispose]: folder[Symbol.asyncDispose] };
}

test('serve reads gateway.env beside gateway.yaml and says so, and the environment takes precedence', async () => {
  await using folder = await folderWith();
  await using first = await service(['serve'], { cwd: folder.cwd });
  expect(await (await fetch(first.url)).text()).toBe('hello');
  expect(first.stderr).toContain('"variables":"gateway.env"');
  await using second = await service(['serve'], { cwd: folder.cwd, env: { GREETING: 'mine' } });
  expect(await (await fetch(second.url)).text()).toBe('mine');
  const overrides = 'the environment has other values than gateway.env, and takes precedence: GREETING;';
  // Not a warning: on servers it is usually meant.
  const line = second.stderr.split('\n').find((each) => each.includes(overrides));
  expect(JSON.parse(line ?? '{}')).toMatchObject({ level: 'info' });
  expect(line).toContain('or remove them from it if this is meant');
  expect((await folder.validate([], { GREETING: 'mine' })).stderr).toContain(`note: ${overrides}`);
  expect((await folder.validate([], { GREETING: 'hello' })).stderr).not.toContain('other values');
});

test.each([
  [['config', 'validate', '-f', 'gateway.yaml'], 'gateway.yaml: valid (1 port, variables of gateway.env)'],
  [['check', '-f', 'gateway.yaml', '--offline'], 'configuration   gateway.yaml, variables of gateway.env'],
  [['config', 'convert', 'gateway.yaml'], 'nothing to convert'],
])('`agctl %j` reads gateway.env beside gateway.yaml', async (args, printed) => {
  await using folder = await folderWith();
  const { code, stdout, stderr } = await cli(args, { cwd: folder.cwd });
  expect([code, `${stdout}${stderr}`]).toEqual([0, expect.stringContaining(printed)]);
});

test('auth explain reads gateway.yaml of the working folder and gateway.env beside it', async () => {
  await using folder = await folderWith({ 'token.jwt': 'a.b.c' });
  const { stderr } = await cli(['auth', 'explain', '--token-file', 'token.jwt'], { cwd: folder.cwd });
  // The configuration is valid, and has no policy for tokens.
  expect(stderr).toContain('no route validates tokens');
});

test('each of several configurations has its own file of variables, in its folder', async () => {
  await using folder = await folderWith({ 'other.yml': CONFIG });
  const { stderr } = await folder.validate(['gateway.yaml', 'other.yml']);
  expect(stderr).toContain('gateway.yaml: valid');
  expect(stderr).toContain('other.yml: 1 error');
  expect(stderr.replace(/\s+/g, ' ')).toContain('in the environment or in `other.env` beside this file');
  mkdirSync(folder.path('deeper'));
  writeFileSync(folder.path('deeper/other.yml'), CONFIG);
  writeFileSync(folder.path('deeper/other.env'), 'GREETING=hello', { mode: 0o600 });
  expect(await folder.validate(['deeper/other.yml'])).toMatchObject({
    code: 0,
    stderr: expect.stringContaining('variables of deeper/other.env'),
  });
});

test('--env-from replaces the file beside the configuration', async () => {
  await using folder = await folderWith({ '.env': 'ANOTHER=one' });
  const { code, stderr } = await folder.validate(['--env-from', '.env']);
  expect([code, stderr]).toEqual([1, expect.stringContaining('`GREETING` is not defined')]);
});

test('a configuration from standard input has no file of variables', async () => {
  await using folder = await folderWith();
  const { code, stderr } = await cli(['config', 'validate', '-'], { cwd: folder.cwd, input: CONFIG });
  expect([code, stderr.replace(/\s+/g, ' ')]).toEqual([
    1,
    expect.stringContaining('define it in the environment or with --env-from'),
  ]);
});

test('a file of variables that everybody can read is read with a warning', async () => {
  await using folder = await folderWith();
  chmodSync(folder.path('gateway.env'), 0o644);
  expect(await folder.validate()).toMatchObject({
    code: 0,
    stderr: expect.stringContaining(
      'warning: every user of this machine can read the secrets in gateway.env: chmod 600 gateway.env',
    ),
  });
  await using gateway = await service(['serve'], { cwd: folder.cwd });
  expect(gateway.stderr).toMatch(/^\{.*"level":"warn".*every user of this machine can read/m);
});

test('something at gateway.env that is not a file is ignored with a warning, as variables may all be set', async () => {
  await using folder = await temporaryFolder();
  writeFileSync(join(folder.path, 'gateway.yaml'), CONFIG);
  mkdirSync(join(folder.path, 'gateway.env'));
  const { code, stderr } = await cli(['config', 'validate'], { cwd: folder.path, env: { GREETING: 'a' } });
  expect([code, stderr]).toEqual([0, expect.stringContaining('gateway.env is ignored: it is not a regular')]);
});

const isRoot = process.geteuid?.() === 0;

test.runIf(isRoot)(
  'gateway.env of another user is ignored, unless the configuration is theirs too',
  async () => {
    await using folder = await folderWith();
    chownSync(folder.path('gateway.env'), 12_345, 12_345);
    const { code, stderr } = await folder.validate();
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining('gateway.env is ignored: it belongs to another user (uid 12345)'),
    ]);
    chownSync(folder.path('gateway.yaml'), 12_345, 12_345);
    expect((await folder.validate()).code).toBe(0);
  },
);

/** A gateway of `CONFIG` that asks for a key, and whose greeting is `hello` to begin with. */
const KEYED = CONFIG.replace(
  'directResponse:',
  'apiKey: { mode: strict, keys: [{ key: $CLIENT_KEY }] }\n          directResponse:',
);

test.each([
  ['one process', KEYED],
  ['two workers', KEYED.replace('adminAddr: off', 'adminAddr: off, workers: 2')],
])(
  'a changed secret in gateway.env takes effect without a restart, and is not logged: %s',
  async (_, config) => {
    const before = 'CLIENT_KEY=key-canary-1\nGREETING=hello\n';
    await using folder = await folderWith({ 'gateway.yaml': config, 'gateway.env': before });
    await using gateway = await service(['serve'], { cwd: folder.cwd });
    const answer = async (key: string): Promise<string | number> => {
      const response = await fetch(gateway.url, { headers: { authorization: `Bearer ${key}` } });
      return response.ok ? response.text() : response.status;
    };
    expect([await answer('key-canary-1'), await answer('key-canary-2')]).toEqual(['hello', 401]);
    writeFileSync(folder.path('gateway.env'), 'CLIENT_KEY=key-canary-2\nGREETING=hello\n');
    await until(() => gateway.stderr.includes('configuration reloaded'));
    expect([await answer('key-canary-1'), await answer('key-canary-2')]).toEqual([401, 'hello']);
    expect(gateway.stderr).toMatch(/"message":"configuration reloaded".*"variables":"CLIENT_KEY"/);
    expect(gateway.stderr + gateway.stdout).not.toContain('canary');
  },
);

test('a file of --env-from is read again by a reload', async () => {
  await using folder = await folderWith({ 'other.env': 'GREETING=first\n' });
  await using gateway = await service(['--env-from', 'other.env', 'serve'], { cwd: folder.cwd });
  expect(await (await fetch(gateway.url)).text()).toBe('first');
  writeFileSync(folder.path('other.env'), 'GREETING=second\n');
  await until(async () => (await (await fetch(gateway.url)).text()) === 'second');
  await until(() => /"message":"configuration reloaded".*"variables":"GREETING"/.test(gateway.stderr));
});

test('a gateway.env that cannot be read, or lacks a variable, makes a reload fail and keeps what is served', async () => {
  await using folder = await folderWith();
  await using gateway = await service(['serve'], { cwd: folder.cwd });
  const failures = (): number => gateway.stderr.split('Failed to reload config').length - 1;
  rmSync(folder.path('gateway.env'));
  mkdirSync(folder.path('gateway.env'));
  await until(() => failures() === 1);
  expect(gateway.stderr).toContain('gateway.env cannot be read: it is not a regular file');
  rmdirSync(folder.path('gateway.env'));
  await until(() => failures() === 2);
  expect(gateway.stderr).toContain('the environment variable `GREETING` is not defined');
  expect(gateway.stderr).toContain(
    '"variables":"define it in gateway.env; those of the environment need a restart"',
  );
  expect(await (await fetch(gateway.url)).text()).toBe('hello');
  writeFileSync(folder.path('gateway.env'), 'GREETING=again\n', { mode: 0o600 });
  await until(async () => (await (await fetch(gateway.url)).text()) === 'again');
});

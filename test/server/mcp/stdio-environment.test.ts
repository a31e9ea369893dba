import { realpathSync } from 'node:fs';
import { expect, test } from 'vitest';
import { chaos, mcpConfig } from '../../kit/config.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { gateway } from '../../kit/gateway.ts';
import { openSession } from '../../kit/mcp.ts';

const CANARY = 'canary-of-a-provider-key';

/** What the child of a target with these settings sees as its environment. */
async function environmentWith(
  stdio: object,
  env: Record<string, string> = {},
): Promise<Record<string, string>> {
  const target = chaos('a');
  const targets = [{ ...target, stdio: { ...target.stdio, ...stdio } }];
  await using gate = await gateway(mcpConfig(targets), { env: { PROVIDER_API_KEY: CANARY, ...env } });
  const session = await openSession(`${gate.url}/mcp`);
  const { result } = await session.request('tools/call', { name: 'env' });
  expect([...gate.log, ...gate.accessLog].join('')).not.toContain(CANARY);
  return JSON.parse(result.content[0].text);
}

test('a child gets what programs need, and nothing else of ours', async () => {
  const own = { LANG: 'C.UTF-8', LC_ALL: 'C', TZ: 'UTC', TMPDIR: '/tmp', USER: 'me', XDG_CONFIG_HOME: '/x' };
  const secret = {
    AWS_SECRET_ACCESS_KEY: 'x',
    NODE_OPTIONS: '--no-warnings',
    LD_PRELOAD: '',
    HTTP_PROXY: 'http://u:p@x',
    PATHOLOGY: 'x',
  };
  const seen = await environmentWith({}, { ...own, ...secret });
  expect(seen).toEqual({ PATH: process.env['PATH'], HOME: process.env['HOME'], ...own });
});

test('`env` adds to that, and wins', async () => {
  const seen = await environmentWith({ env: { API_KEY: 'its-own', LANG: 'de', EMPTY: '' } }, { LANG: 'C' });
  expect(seen).toMatchObject({ API_KEY: 'its-own', LANG: 'de', EMPTY: '', PATH: process.env['PATH'] });
  expect(Object.values(seen)).not.toContain(CANARY);
});

test('`env` can take single variables of the gateway', async () => {
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the configuration expands it, not this file.
  const seen = await environmentWith({ env: { KEY: '${PROVIDER_API_KEY}', PRICE: '$$5' } });
  expect(seen).toMatchObject({ KEY: CANARY, PRICE: '$5' });
});

test('`inheritEnv` gives it everything', async () => {
  const seen = await environmentWith({ inheritEnv: true, env: { LANG: 'de' } }, { LANG: 'C', OTHER: '1' });
  expect(seen).toMatchObject({ PROVIDER_API_KEY: CANARY, OTHER: '1', LANG: 'de' });
});

test('`clear_env` gives it nothing but `env`', async () => {
  expect(await environmentWith({ clear_env: true, env: { ONLY: '1' } })).toEqual({ ONLY: '1' });
});

test('`clear_env` wins over `inheritEnv`', async () => {
  expect(await environmentWith({ clear_env: true, inheritEnv: true })).toEqual({});
});

test('a child runs in the folder of the configuration', async () => {
  await using own = await temporaryFolder();
  const folder = realpathSync(own.path);
  await using gate = await gateway(mcpConfig([chaos('a')]), { folder });
  const session = await openSession(`${gate.url}/mcp`);
  const { result } = await session.request('tools/call', { name: 'cwd' });
  expect(result.content[0].text).toBe(folder);
});

test('arguments reach the command as they are, without a shell', async () => {
  const script =
    'require("node:fs").writeSync(2, JSON.stringify(process.argv.slice(1)) + "\\n"); process.exit(9)';
  const args = ['-e', script, '--', '$HOME', '`id`', 'a b', '; rm -rf /', '*', '"', ''];
  const target = {
    name: 'a',
    stdio: { cmd: process.execPath, args: args.map((arg) => arg.replaceAll('$', '$$$$')) },
  };
  await using gate = await gateway(mcpConfig([target]));
  await expect(openSession(`${gate.url}/mcp`)).rejects.toThrow('exited with code 9');
  const line = gate.log.find((each) => each.includes('stream="stderr"')) as string;
  expect(line).toContain(JSON.stringify(['$HOME', '`id`', 'a b', '; rm -rf /', '*', '"', '']));
});

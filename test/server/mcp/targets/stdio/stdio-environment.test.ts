import { realpathSync } from 'node:fs';
import { expect, test } from 'vitest';
import { chaos, mcpConfig } from '../../../../kit/config.ts';
import { temporaryFolder } from '../../../../kit/folder.ts';
import { gateway } from '../../../../kit/gateway.ts';
import { openSession } from '../../../../kit/mcp.ts';
import { until } from '../../../../kit/until.ts';

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

test('a child process gets the environment variables that programs need, and no others of the gateway', async () => {
  const own = { LANG: 'C.UTF-8', LC_ALL: 'C', TZ: 'UTC', TMPDIR: '/tmp', USER: 'me', XDG_CONFIG_HOME: '/x' };
  const secret = {
    AWS_SECRET_ACCESS_KEY: 'x',
    NODE_OPTIONS: '--no-warnings',
    LD_PRELOAD: '',
    PATHOLOGY: 'x',
    MY_HTTP_PROXY: 'x',
    PIPELINE_TOKEN: 'x',
    my_npm_config_x: 'x',
  };
  const seen = await environmentWith({}, { ...own, ...secret });
  expect(seen).toEqual({ PATH: process.env['PATH'], HOME: process.env['HOME'], ...own });
});

test('a child process gets the environment variables for network access and package installation', async () => {
  const own = {
    NODE_EXTRA_CA_CERTS: '/etc/ssl/certs/ca-certificates.crt',
    SSL_CERT_FILE: '/ca.pem',
    SSL_CERT_DIR: '/certs',
    HTTP_PROXY: 'http://user:password@proxy:3128',
    https_proxy: 'http://proxy:3128',
    ALL_PROXY: 'socks5://proxy:1080',
    NO_PROXY: 'localhost',
    no_proxy: 'localhost',
    npm_config_registry: 'https://npm.example.com',
    'npm_config_//npm.example.com/:_authToken': 'of-the-registry',
    NPM_CONFIG_CAFILE: '/ca.pem',
    UV_INDEX_URL: 'https://pypi.example.com/simple',
    PIP_INDEX_URL: 'https://pypi.example.com/simple',
  };
  expect(await environmentWith({}, own)).toMatchObject(own);
});

test('a child process does not get the command that npm started the gateway with', async () => {
  // Of `npm exec --package=agctl --call="agctl serve"`: npx in a child would run that again, not its own server.
  const seen = await environmentWith(
    {},
    { npm_config_call: 'agctl serve', npm_config_package: 'agctl', npm_config_cache: '/cache' },
  );
  expect(Object.keys(seen).filter((name) => name.startsWith('npm_'))).toEqual(['npm_config_cache']);
});

test('the password of a proxy is not logged when a child process prints it', async () => {
  const script = `
    const proxy = process.env.https_proxy;
    console.error('cannot reach ' + proxy + ' with ' + new URL(proxy).password);
    process.exit(9)`;
  const target = { name: 'a', stdio: { cmd: process.execPath, args: ['-e', script] } };
  await using gate = await gateway(mcpConfig([target]), {
    env: { https_proxy: `http://me:${CANARY}@proxy.example.com:3128` },
  });
  await expect(openSession(`${gate.url}/mcp`)).rejects.toThrow('exited with code 9');
  expect(gate.log.join('')).toContain(
    'cannot reach http://me:<redacted>@proxy.example.com:3128 with <redacted>',
  );
  expect([...gate.log, ...gate.accessLog].join('')).not.toContain(CANARY);
});

test('`env` adds variables and overrides inherited ones', async () => {
  const seen = await environmentWith({ env: { API_KEY: 'its-own', LANG: 'de', EMPTY: '' } }, { LANG: 'C' });
  expect(seen).toMatchObject({ API_KEY: 'its-own', LANG: 'de', EMPTY: '', PATH: process.env['PATH'] });
  expect(Object.values(seen)).not.toContain(CANARY);
});

test('`env` can refer to single variables of the gateway', async () => {
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the configuration expands it, not this file.
  const seen = await environmentWith({ env: { KEY: '${PROVIDER_API_KEY}', PRICE: '$$5' } });
  expect(seen).toMatchObject({ KEY: CANARY, PRICE: '$5' });
});

test('`inheritEnv` passes the whole environment of the gateway to the child process', async () => {
  const seen = await environmentWith({ inheritEnv: true, env: { LANG: 'de' } }, { LANG: 'C', OTHER: '1' });
  expect(seen).toMatchObject({ PROVIDER_API_KEY: CANARY, OTHER: '1', LANG: 'de' });
});

test('`clear_env` passes only `env` to the child process', async () => {
  expect(await environmentWith({ clear_env: true, env: { ONLY: '1' } })).toEqual({ ONLY: '1' });
});

test('`clear_env` takes precedence over `inheritEnv`', async () => {
  expect(await environmentWith({ clear_env: true, inheritEnv: true })).toEqual({});
});

test('a child process runs in the folder of the configuration', async () => {
  await using own = await temporaryFolder();
  const folder = realpathSync(own.path);
  await using gate = await gateway(mcpConfig([chaos('a')]), { folder });
  const session = await openSession(`${gate.url}/mcp`);
  const { result } = await session.request('tools/call', { name: 'cwd' });
  expect(result.content[0].text).toBe(folder);
});

test('arguments reach the command unchanged, without a shell', async () => {
  const script =
    'require("node:fs").writeSync(2, JSON.stringify(process.argv.slice(1)) + "\\n"); process.exit(9)';
  const args = ['-e', script, '--', '$HOME', '`id`', 'a b', '; rm -rf /', '*', '"', ''];
  const target = {
    name: 'a',
    stdio: { cmd: process.execPath, args: args.map((arg) => arg.replaceAll('$', '$$$$')) },
  };
  await using gate = await gateway(mcpConfig([target]));
  await expect(openSession(`${gate.url}/mcp`)).rejects.toThrow('exited with code 9');
  // The exit may be known before the last line has been read.
  const printed = (): string | undefined => gate.log.find((each) => each.includes('stream="stderr"'));
  await until(() => printed() !== undefined);
  expect(printed()).toContain(JSON.stringify(['$HOME', '`id`', 'a b', '; rm -rf /', '*', '"', '']));
});

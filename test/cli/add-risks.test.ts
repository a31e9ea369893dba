import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { cli } from '../kit/cli.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { npmPackage, serverJson } from '../kit/server-json.ts';

// What a foreign server.json may do to this machine, before it is added: a gateway that runs starts what is added.

const CONFIG = `gateways: { default: { port: 0, address: 127.0.0.1 } }
mcp:
  toolPinning: enforce
  targets: []
`;

/** Runs `agctl add weather` with commands that record that they were started. */
async function adding(server: object, ...args: string[]) {
  await using folder = await temporaryFolder();
  const cwd = folder.path;
  writeFileSync(join(cwd, 'gateway.yaml'), CONFIG);
  writeFileSync(join(cwd, 'server.json'), JSON.stringify(server));
  mkdirSync(join(cwd, 'bin'));
  for (const name of ['npx', 'uvx', 'docker', 'dnx'])
    writeFileSync(join(cwd, 'bin', name), `#!/bin/sh\ntouch "${cwd}/started"\nexit 1\n`, { mode: 0o755 });
  const env = { HOME: cwd, PATH: [join(cwd, 'bin'), '/usr/bin', '/bin'].join(delimiter) };
  const { code, stdout, stderr } = await cli(['add', 'weather', '--from', 'server.json', ...args], {
    cwd,
    env,
  });
  const text = readFileSync(join(cwd, 'gateway.yaml'), 'utf8');
  const isStarted = existsSync(join(cwd, 'started'));
  return { code, stdout, stderr, isChanged: text !== CONFIG, targets: parse(text).mcp.targets, isStarted };
}

const named = (name: string, value?: string) => ({
  type: 'named',
  name,
  ...(value !== undefined && { value }),
});
const positional = (value: string) => ({ type: 'positional', value });
const image = (runtimeArguments: object[] = [], more: object = {}) =>
  serverJson({
    packages: [
      { registryType: 'oci', identifier: 'ghcr.io/example/weather:1.2.3', runtimeArguments, ...more },
    ],
  });
const npx = (runtimeArguments: object[], more: object = {}) =>
  serverJson({ packages: [npmPackage({ runtimeArguments, ...more })] });
const uvx = (runtimeArguments: object[]) =>
  serverJson({ packages: [npmPackage({ registryType: 'pypi', identifier: 'weather', runtimeArguments })] });
const remote = (url: string, more: object = {}) =>
  serverJson({ remotes: [{ type: 'streamable-http', url, ...more }] });

describe('a server that asks for more than usual is refused with what it means, and nothing is started', () => {
  test.each([
    [[named('-v', '/:/host')], '`-v /:/host`: the container reads and writes / of this machine'],
    [[named('--volume=/etc:/etc:ro')], '`--volume=/etc:/etc:ro`: the container reads /etc of this machine'],
    [[named('-v/:/host')], 'reads and writes / of this machine'],
    [[positional('-iv'), positional('/:/host')], '`-iv /:/host`: the container reads and writes /'],
    [[named('-v', 'C:\\:/host')], 'reads and writes C:\\ of this machine'],
    [[named('-v', '~/.ssh:/keys')], 'reads and writes ~/.ssh of this machine'],
    [
      [named('--mount', 'type=bind,source=/var/run/docker.sock,target=/s')],
      'reads and writes /var/run/docker.sock',
    ],
    [[named('--mount', 'type=volume,target=/x,volume-opt=device=/,volume-opt=o=bind')], 'less separate'],
    [[named('--privileged')], '`--privileged`: the container can do everything on this machine'],
    [[named('--privileged=true')], 'can do everything'],
    [[named('--network', 'host')], '`--network host`: the container reaches every server of this machine'],
    [[named('--net=host')], 'reaches every server of this machine'],
    [[named('--pid', 'host')], 'less separate from this machine'],
    [[named('--security-opt', 'seccomp=unconfined')], 'less separate from this machine'],
    [[named('--network', 'name=host')], 'less separate from this machine'],
    [[named('--network=container:db')], 'less separate from this machine'],
    [[named('--add-host', 'x:host-gateway')], 'the container reaches servers of this machine'],
    [[named('--mount', '"type=bind","Source=/",target=/x')], 'reads and writes / of this machine'],
    [
      [{ ...named('-v', '{a}:/x'), variables: { a: { isSecret: true, default: '/' } } }],
      'the container reads and writes / of this machine',
    ],
    [[{ ...named('-v', '/:/x'), isSecret: true }], 'the container reads and writes / of this machine'],
    [[named('--cap-add', 'SYS_ADMIN'), named('--device', '/dev/sda')], 'less separate from this machine'],
    [[named('-p', '0.0.0.0:80:80')], 'a port of this machine is opened'],
    [[named('-P')], 'a port of this machine is opened'],
    [[named('--env-file', '/etc/secrets')], '`--env-file` of docker is not known to be harmless'],
    [[named('--gadget')], '`--gadget` of docker is not known to be harmless'],
    [[positional('evil/image')], '`evil/image` stands where docker expects what to run'],
    [[named('--init'), positional('evil/image')], '`evil/image` stands where docker'],
  ])('docker with %j', async (words, text) => {
    const { code, stdout, stderr, isChanged, isStarted } = await adding(image(words));
    expect([code, stdout, isChanged, isStarted]).toEqual([1, '', false, false]);
    expect(stderr).toContain(text);
    expect(stderr).toMatch(/\nerror: weather is not added: .*\n.*--allow-risks/);
  });

  test.each([
    [
      'another registry of npm',
      npx([], { registryBaseUrl: 'https://npm.evil.example' }),
      'the package comes from https://npm.evil.example',
    ],
    [
      'a registry among the options',
      npx([named('--registry', 'https://npm.evil.example')]),
      '`--registry https://npm.evil.example`: packages come from',
    ],
    ['a package among the options', npx([named('--package', 'evil')]), 'another package is installed: evil'],
    ['an alias of npm', npx([named('-p', '@example/weather-mcp@npm:evil')]), 'another package is installed'],
    ['a package in front', npx([positional('evil')]), '`evil` stands where npx expects what to run'],
    [
      'a source of uvx',
      uvx([named('--from', 'git+https://evil.example/x')]),
      'another package is installed: git+https',
    ],
    [
      'a name that begins the same',
      uvx([named('--from', 'weather-evil')]),
      'another package is installed: weather-evil',
    ],
    [
      'an index',
      uvx([named('--index-url', 'https://evil.example/simple')]),
      'packages come from https://evil.example/simple',
    ],
    ['one more package', uvx([named('--with', 'evil')]), '`--with` of uvx is not known to be harmless'],
    [
      'an image of another registry',
      image([], { identifier: 'images.evil.example/x:1' }),
      'the image comes from images.evil.example',
    ],
    [
      'a registry of images',
      image([], { identifier: 'x/y:1', registryBaseUrl: 'https://evil.example' }),
      'the image comes from evil.example',
    ],
    [
      'a plain address',
      remote('http://weather.example.com/mcp'),
      'http://weather.example.com/mcp is not encrypted',
    ],
    [
      'a plain address whose host the user sets',
      remote('http://{host}/mcp', { variables: { host: { isRequired: true } } }),
      'is not encrypted',
    ],
    [
      'a plain address in a secret',
      remote('{address}/mcp', { variables: { address: { isSecret: true, value: 'http://a.example' } } }),
      'is not encrypted',
    ],
    [
      'a plain address with a variable',
      remote('http://{host}/mcp', { variables: { host: { value: 'a.example' } } }),
      'is not encrypted',
    ],
  ])('%s', async (_what, server, text) => {
    const { code, stderr, isChanged, isStarted } = await adding(server);
    expect([code, isChanged, isStarted]).toEqual([1, false, false]);
    expect(stderr).toContain(text);
  });

  test.each([
    [
      'options that stay in the container',
      image([
        named('--init'),
        named('-e', 'A=1'),
        named('--name=x'),
        named('-u', '1000'),
        named('--network', 'none'),
        named('--security-opt', 'no-new-privileges'),
        named('-v', 'data:/data'),
        named('-v', '/cache'),
        named('--mount', 'type=tmpfs,target=/x'),
      ]),
    ],
    [
      'a folder that the user chooses',
      image([{ ...named('-v', '{folder}:/work'), variables: { folder: { isRequired: true } } }]),
    ],
    ['versions of the package itself', uvx([named('--from', 'weather[sse]==1.0')])],
    ['the usual registry', npx([named('--registry', 'https://registry.npmjs.org/')])],
    ['an address of this machine', remote('http://127.0.0.1:1/mcp')],
  ])('%s: no risk', async (_what, server) => {
    const { code, stderr, isChanged } = await adding(server, '--no-start');
    expect([code, isChanged, stderr]).toEqual([0, true, '']);
  });

  test('--allow-risks prints the same and goes on', async () => {
    const refused = await adding(image([named('-v', '/:/host')]));
    const { code, stderr, isChanged, targets } = await adding(
      image([named('-v', '/:/host')]),
      '--allow-risks',
      '--no-start',
    );
    expect([code, isChanged]).toEqual([0, true]);
    expect(refused.stderr.startsWith(stderr)).toBe(true);
    expect(stderr).toBe('risk     `-v /:/host`: the container reads and writes / of this machine\n');
    expect(targets[0].stdio.args).toContain('/:/host');
    expect((await adding(image([named('-v', '/:/host')]), '--allow-risks')).isStarted).toBe(true);
  });

  test('init, which starts nothing, prints them', async () => {
    await using folder = await temporaryFolder();
    const cwd = folder.path;
    writeFileSync(join(cwd, 'server.json'), JSON.stringify(image([named('--privileged')])));
    const { code, stdout } = await cli(['init', '--yes', '--from', 'server.json'], {
      cwd,
      env: { HOME: cwd },
    });
    expect(code).toBe(0);
    expect(stdout).toContain(
      'read before you start them\n  weather: `--privileged`: the container can do everything',
    );
  });
});

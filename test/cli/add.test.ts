import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { delimiter, join } from 'node:path';
import { parseEnv } from 'node:util';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { cli } from '../kit/cli.ts';
import { everythingHttp } from '../kit/everything-target.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { openSession } from '../kit/mcp.ts';
import { agctl, service } from '../kit/process.ts';
import { npmPackage, serverJson } from '../kit/server-json.ts';
import { hasTerminal, terminal } from '../kit/terminal.ts';

const EVERYTHING = join(import.meta.dirname, '../kit/everything-server.ts');
const SECRET = 'ghp_0123456789abcdefghij';

const CONFIG = `# mine
gateways:
  default: { port: 0, address: 127.0.0.1 }   # on any port

mcp:
  toolPinning: enforce # as reviewed
  targets:
    - name: one
      stdio: { cmd: 'true' }
      # tools: { exclude: [ a ] }
    # - name: two

config:
  connectionTerminationDeadline: 100ms
`;

/** A folder with a configuration and other files, and an `npx` that starts a real server whatever package it is given. */
async function project(
  files: Readonly<Record<string, unknown>> = {},
  npx = `exec "${process.execPath}" "${EVERYTHING}"`,
) {
  const folder = await temporaryFolder();
  const cwd = folder.path;
  for (const [name, content] of Object.entries({
    'gateway.yaml': CONFIG,
    'server.json': serverJson(),
    ...files,
  }))
    writeFileSync(join(cwd, name), typeof content === 'string' ? content : JSON.stringify(content));
  mkdirSync(join(cwd, 'bin'));
  writeFileSync(join(cwd, 'bin/npx'), `#!/bin/sh\nprintf '%s\\n' "$@" >"${cwd}/words"\n${npx}\n`, {
    mode: 0o755,
  });
  const { NODE_COMPILE_CACHE } = process.env;
  const env = {
    HOME: cwd,
    PATH: [join(cwd, 'bin'), '/usr/bin', '/bin'].join(delimiter),
    ...(NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE }),
  };
  const read = (name: string): string => readFileSync(join(cwd, name), 'utf8');
  return {
    cwd,
    env,
    read,
    /** In this process. */
    add: (args: readonly string[], more: Record<string, string> = {}) =>
      cli(['add', ...args], { cwd, env: { ...env, ...more } }),
    targets: () => parse(read('gateway.yaml')).mcp.targets,
    has: (name: string) => existsSync(join(cwd, name)),
    [Symbol.asyncDispose]: folder[Symbol.asyncDispose],
  };
}

/** A configuration whose tools are not pinned, so that no server is started. */
const unpinned = (text = CONFIG): string => text.replace('enforce', 'off');

describe('through the command, with a server that is started', () => {
  test('a server of a registry is added and pinned, and the gateway offers exactly what was pinned', async () => {
    await using mine = await project();
    const { cwd, env } = mine;
    const { code, stdout, stderr } = await agctl(['add', 'weather', '--from', 'server.json'], { cwd, env });
    expect([code, stderr]).toEqual([0, 'starting weather to list its tools\n']);
    expect(stdout).toContain('weather: npm @example/weather-mcp 1.2.3 was chosen\n');
    expect(stdout).toContain('weather to gateway.yaml   npx -y @example/weather-mcp@1.2.3\n');
    expect(stdout).toMatch(
      /pinned {3}\d+ tools in tools\.lock\.yaml: test_simple_text, test_image_content, /,
    );
    const added = [
      '    # From server.json',
      '    - name: weather',
      '      stdio:',
      '        cmd: npx',
      '        args: [ -y, "@example/weather-mcp@1.2.3" ]',
      '        warm: 1',
    ];
    expect(mine.read('gateway.yaml')).toBe(
      CONFIG.replace('    # - name: two\n', (line) => `${line}${added.join('\n')}\n`),
    );
    expect(mine.read('words')).toBe('-y\n@example/weather-mcp@1.2.3\n');
    const pins = mine.read('tools.lock.yaml');
    const pinned = Object.keys(parse(pins).targets.weather);
    expect(stdout).toContain(`pinned   ${pinned.length} tools`);
    await using gateway = await service(['serve'], { cwd, env });
    const session = await openSession(`${gateway.url}/mcp`);
    const { result } = await session.send({ jsonrpc: '2.0', id: 1, method: 'tools/list' });
    const names = result.tools.map(({ name }: { name: string }) => name.replace('weather_', ''));
    expect(names.toSorted()).toEqual(pinned.toSorted());
    expect(mine.read('tools.lock.yaml')).toBe(pins);
  });

  test('a server whose key is missing is added without being started, and the next steps are printed', async () => {
    const needy = npmPackage({
      environmentVariables: [{ name: 'API_KEY', isRequired: true, isSecret: true }],
    });
    const before = '# mine\nOTHER="two words"';
    await using mine = await project({
      'server.json': serverJson({ packages: [needy] }),
      'gateway.env': before,
    });
    const { cwd, env } = mine;
    chmodSync(join(cwd, 'gateway.env'), 0o600);
    const { code, stdout, stderr } = await agctl(['add', 'weather', '--from', 'server.json'], { cwd, env });
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toContain('fill in: WEATHER_API_KEY\n');
    expect(stdout).toContain('next\n  fill in WEATHER_API_KEY in gateway.env: ');
    expect(stdout).toContain('its tools are pinned when the gateway lists them for the first time');
    expect(mine.has('words')).toBe(false);
    expect(mine.has('tools.lock.yaml')).toBe(false);
    expect(mine.targets()[1].stdio.env).toEqual({ API_KEY: `\${WEATHER_API_KEY}` });
    const text = mine.read('gateway.env');
    expect(text.startsWith(`${before}\n\n`)).toBe(true);
    expect(parseEnv(text)).toEqual({ OTHER: 'two words' });
    expect(stdout).toContain('until then, a running gateway keeps the former configuration');
    expect(statSync(join(cwd, 'gateway.env')).mode & 0o777).toBe(0o600);
    // A value of digits stays a text.
    writeFileSync(join(cwd, 'gateway.env'), text.replace('# WEATHER_API_KEY=', 'WEATHER_API_KEY=12345'));
    const checked = await agctl(['check', '--only', 'targets', '--start', '-o', 'json'], { cwd, env });
    expect(JSON.parse(checked.stdout).checks[1]).toMatchObject({
      status: 'ok',
      message: expect.stringMatching(/^weather {3}started in /),
    });
  });

  test.each([
    ['is started without a secret that its file calls optional', { isRequired: false }, true],
    ['is not started without a secret of which its file says nothing', {}, false],
  ])('a server %s', async (_, more, isStarted) => {
    const environmentVariables = [{ name: 'API_KEY', isSecret: true, ...more }];
    const packages = [npmPackage({ environmentVariables })];
    await using mine = await project({ 'server.json': serverJson({ packages }) });
    const { code, stdout } = await mine.add(['weather', '--from', 'server.json']);
    expect(code).toBe(0);
    expect(stdout).toContain('fill in if it is needed: WEATHER_API_KEY\n');
    expect([mine.has('words'), mine.has('tools.lock.yaml')]).toEqual([isStarted, isStarted]);
    expect(mine.targets()[1].stdio.env).toEqual({ API_KEY: `\${WEATHER_API_KEY:-}` });
    expect(parseEnv(mine.read('gateway.env'))).toEqual({ WEATHER_API_KEY: '' });
  });

  test('a server that does not start leaves every file as it was', async () => {
    const servers = { github: { command: 'npx', args: ['x'], env: { GITHUB_TOKEN: SECRET } } };
    await using mine = await project(
      { 'mcp.json': { mcpServers: servers } },
      'echo no such package >&2; exit 7',
    );
    const { cwd, env } = mine;
    const files = readdirSync(cwd);
    const { code, stdout, stderr } = await agctl(['add', 'github', '--from', 'mcp.json'], { cwd, env });
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toMatch(/error: github cannot list its tools: .*exited with code 7.*no such package/);
    expect(stderr).toContain('nothing was changed; --no-start adds the server without pinning its tools');
    expect(mine.read('gateway.yaml')).toBe(CONFIG);
    expect(readdirSync(cwd).filter((name) => name !== 'words')).toEqual(files);
  });

  test('the tools of a remote server are pinned, too', async () => {
    const remote = await everythingHttp('a', 'both');
    const { host } = (remote.config as unknown as { mcp: { host: string } }).mcp;
    try {
      await using mine = await project({ 'mcp.json': { mcpServers: { far: { url: host } } } });
      const { cwd, env } = mine;
      expect((await agctl(['add', 'near', '--from', 'mcp.json'], { cwd, env })).code).toBe(0);
      expect(mine.targets()[1]).toEqual({ name: 'near', mcp: { host } });
      expect(parse(mine.read('tools.lock.yaml')).targets.near).toHaveProperty('test_simple_text');
    } finally {
      await remote.stop();
    }
  });
});

test.runIf(hasTerminal)('at a terminal, add asks for the values of a server and pins its tools', async () => {
  const environmentVariables = [
    { name: 'API_KEY', isRequired: true, isSecret: true, description: 'Of your account' },
    { name: 'UNITS', isRequired: true },
    { name: 'LOG_FILE' },
  ];
  const packages = [npmPackage({ environmentVariables })];
  await using mine = await project({ 'server.json': serverJson({ packages }) });
  await using screen = await terminal({ columns: 160, rows: 40 });
  const { HOME, PATH } = mine.env;
  await screen.agctl(
    ['add', 'weather', '--from', 'server.json'],
    `cd ${mine.cwd}; HOME=${HOME} PATH=${PATH}`,
  );
  await screen.shows('WEATHER_API_KEY   `env` of weather in server.json: Of your account   (empty: later)');
  await screen.press('k 1', 'Enter');
  expect(await screen.shows('WEATHER_UNITS   `env`')).not.toContain('k 1');
  await screen.press('metric', 'Enter');
  expect(await screen.shows('code 0')).toMatch(/pinned {3}\d+ tools/);
  expect(parseEnv(mine.read('gateway.env'))).toEqual({ WEATHER_API_KEY: 'k 1', WEATHER_UNITS: 'metric' });
});

test('values of a client’s file go to a new gateway.env, which only its owner can read', async () => {
  const servers = {
    github: { command: 'npx', args: ['server'], env: { GITHUB_TOKEN: SECRET } },
    other: { command: 'npx', env: { OTHER_TOKEN: SECRET } },
  };
  await using mine = await project({ 'gateway.yaml': unpinned(), 'mcp.json': { mcpServers: servers } });
  const several = await mine.add(['hub', '--from', 'mcp.json']);
  expect(several).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('several servers: github, other'),
  });
  expect(several.stderr).toContain('--server NAME');
  const { code, stderr, stdout } = await mine.add(['hub', '--from', 'mcp.json', '--server', 'github']);
  expect([code, stderr]).toEqual([0, '']);
  expect(stdout).not.toContain(SECRET);
  expect(mine.targets()[1]).toMatchObject({
    name: 'hub',
    stdio: { env: { GITHUB_TOKEN: `\${GITHUB_TOKEN}` } },
  });
  expect(parseEnv(mine.read('gateway.env'))).toEqual({ GITHUB_TOKEN: SECRET });
  expect(mine.read('gateway.env')).toContain('# Variables of gateway.yaml');
  expect(statSync(join(mine.cwd, 'gateway.env')).mode & 0o777).toBe(0o600);
});

test('a variable of the configuration or the environment is never given to a new server', async () => {
  const needy = npmPackage({
    environmentVariables: ['A_KEY', 'B_KEY', 'C_KEY'].map((name) => ({ name, isRequired: true })),
  });
  await using mine = await project({
    'gateway.yaml': unpinned(CONFIG.replace("'true'", "'true', env: { A: $A_KEY }")),
    'server.json': serverJson({ packages: [needy] }),
    'gateway.env': 'B_KEY=b\n',
  });
  expect((await mine.add(['weather', '--from', 'server.json'], { C_KEY: 'c' })).code).toBe(0);
  expect(mine.targets()[1].stdio.env).toEqual({
    A_KEY: `\${WEATHER_A_KEY}`,
    B_KEY: `\${WEATHER_B_KEY}`,
    C_KEY: `\${WEATHER_C_KEY}`,
  });
});

test('--package and --remote choose another way, by number or registry', async () => {
  const remotes = ['eu', 'us'].map((region) => ({
    type: 'streamable-http',
    url: `https://${region}.example.com/mcp`,
  }));
  const packages = [npmPackage(), { registryType: 'oci', identifier: 'example/weather:1.2.3' }];
  await using mine = await project({
    'gateway.yaml': unpinned(),
    'server.json': serverJson({ packages, remotes }),
  });
  const from = ['--from', 'server.json'];
  for (const args of [
    ['a', ...from, '--package', '2'],
    ['b', ...from, '--package', 'oci'],
    ['c', ...from, '--remote'],
    ['d', ...from, '--remote', '2'],
  ])
    expect((await mine.add(args)).code).toBe(0);
  expect(mine.targets().slice(1)).toMatchObject([
    ...[{ stdio: { cmd: 'docker' } }, { stdio: { cmd: 'docker' } }],
    ...[{ mcp: { host: 'https://eu.example.com/mcp' } }, { mcp: { host: 'https://us.example.com/mcp' } }],
  ]);
  expect(await mine.add(['e', ...from, '--package', 'pypi'])).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(
      /server\.json has no such package\n.*package 1 \(npm .*remote 2 \(https:\/\/us/,
    ),
  });
});

test('a server of a registry’s list is chosen by its name', async () => {
  const servers = ['one', 'two'].map((name) => ({
    server: { ...serverJson({ packages: [npmPackage({ identifier: name })] }), name: `io.github.a/${name}` },
  }));
  await using mine = await project({ 'gateway.yaml': unpinned(), 'list.json': { servers } });
  expect(await mine.add(['x', '--from', 'list.json'])).toMatchObject({ code: 2 });
  expect(await mine.add(['x', '--from', 'list.json', '--server', 'three'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('it has one, two'),
  });
  expect((await mine.add(['x', '--from', 'list.json', '--server', 'two'])).code).toBe(0);
  expect(mine.targets()[1].name).toBe('x');
});

test('--no-start adds a server that cannot be started here', async () => {
  await using mine = await project({}, 'exit 1');
  const { code, stdout } = await mine.add(['weather', '--from', 'server.json', '--no-start']);
  expect(code).toBe(0);
  expect(stdout).toContain('its tools are pinned when the gateway lists them for the first time');
  expect(mine.has('words')).toBe(false);
});

describe('the text of the configuration', () => {
  const head = 'gateways: { default: { port: 0, address: 127.0.0.1 } }\n';
  const one = { name: 'one', stdio: { cmd: 'true' } };

  test.each([
    ['a list in one line', `${head}mcp: { targets: [ {name: one, stdio: {cmd: 'true'}} ] } # end`],
    ['an empty list', `${head}mcp:\n  targets: [] # none yet\n  prefixMode: always\n`],
    ['an empty list in one line', `${head}mcp: { targets: [] }\n`],
    [
      'JSON',
      JSON.stringify(
        { gateways: { default: { port: 0, address: '127.0.0.1' } }, mcp: { targets: [one] } },
        null,
        1,
      ),
    ],
    [
      'a list that is not indented',
      `${head}mcp:\n  targets:\n  - name: one\n    stdio: {cmd: 'true'}\n  # of prefixMode\n  prefixMode: always\n`,
    ],
    [
      'four spaces',
      `${head}mcp:\n    targets:\n        - name: one\n          stdio:\n              cmd: 'true'\n\n# end\n`,
    ],
    [
      'line breaks of Windows',
      `${head}mcp:\n  targets:\n    - name: one\n      stdio: {cmd: 'true'}\n# end\n`.replaceAll(
        '\n',
        '\r\n',
      ),
    ],
    ['no line break at the end', `${head}mcp:\n  targets:\n    - name: one\n      stdio: {cmd: 'true'}`],
    [
      'a block of text at the end',
      `${head}mcp:\n  targets:\n    - name: one\n      stdio:\n        cmd: sh\n        args:\n          - -c\n          - |\n            echo a\n            # text\n`,
    ],
    [
      'references to variables that are not set',
      `${head}mcp:\n  targets:\n    - name: one\n      stdio: { cmd: "$ONE", args: ["\${TWO}"] }\n`,
    ],
    [
      'a section of a route',
      `gateways:\n  default:\n    port: 0\n    address: 127.0.0.1\n    routes:\n      - backends:\n          - mcp:\n              targets:\n                - name: one\n                  stdio: {cmd: 'true'}\n`,
    ],
  ])('a target is added to %s, and nothing else changes', async (_, text) => {
    await using mine = await project({ 'gateway.yaml': text });
    const { code, stderr } = await mine.add(['weather', '--from', 'server.json']);
    expect([code, stderr]).toEqual([0, '']);
    const after = mine.read('gateway.yaml');
    expect(JSON.stringify(parse(after))).toContain('"name":"weather"');
    // What is there is what was there, with one insertion.
    let [start, end] = [0, 0];
    while (start < text.length && text[start] === after[start]) start += 1;
    while (end < text.length - start && text.at(-1 - end) === after.at(-1 - end)) end += 1;
    const gone = text.slice(start, text.length - end);
    expect(gone).toMatch(/^[\s[\]]*(?:# none yet)?[\s\]]*$/);
    expect(after.includes('\r\n')).toBe(text.includes('\r\n'));
    expect(after.replaceAll('\r\n', '').includes('\r')).toBe(false);
    for (const comment of text.match(/# (?:end|none yet|of prefixMode)/g) ?? [])
      expect(after).toContain(comment);
    // The second one is added to what the first made.
    expect((await mine.add(['again', '--from', 'server.json'])).code).toBe(0);
  });

  test('a comment below the last target stays with it, that of the next key does not move', async () => {
    await using mine = await project({
      'gateway.yaml': `${head}mcp:\n  targets:\n  - name: one\n    stdio: {cmd: 'true'}\n    # of one\n\n  # of prefixMode\n  prefixMode: always\n`,
    });
    await mine.add(['weather', '--from', 'server.json']);
    expect(mine.read('gateway.yaml')).toMatch(
      /# of one\n {2}# From server\.json\n {2}- name: weather\n[^#]*\n\n {2}# of prefixMode\n/,
    );
  });

  test.each([
    ['no section', head, 'gateway.yaml has no `mcp` section', 'add the line `mcp: { targets: [] }`'],
    [
      'a section without a list',
      `${head}mcp:\n  prefixMode: always\n`,
      'gateway.yaml:2: `mcp` has no list of targets',
      'write `targets: []` in it',
    ],
    [
      'a list that is a reference',
      `${head}x: &a [ { name: one, stdio: { cmd: x } } ]\nmcp:\n  targets: *a\n`,
      'gateway.yaml:3: `mcp` has no list',
      'reference',
    ],
    [
      'several sections',
      `${head}mcp: { targets: [] }\nroutes:\n  - backends:\n      - mcp: { targets: [] }\n`,
      'gateway.yaml has several `mcp` sections: mcp (line 2), routes[0].backends[0].mcp (line 5)',
      'expected one',
    ],
    ['no YAML', `${head}mcp: [\n`, 'gateway.yaml:3: not valid YAML', 'agctl config validate'],
    [
      'a name that is taken',
      `${head}mcp:\n  targets:\n    - stdio: { cmd: x }\n      name: weather\n`,
      'gateway.yaml:4: there is a target named `weather` already',
      'choose another name',
    ],
    [
      'an error',
      `${head}mcp:\n  prefixMode: sometimes\n  targets: []\n`,
      'gateway.yaml:3: ',
      'correct the configuration first',
    ],
  ])('a configuration with %s is refused, with the place and what to do', async (_, text, message, help) => {
    await using mine = await project({ 'gateway.yaml': text });
    const { code, stdout, stderr } = await mine.add(['weather', '--from', 'server.json']);
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toContain(message);
    expect(stderr).toContain(help);
    expect(mine.read('gateway.yaml')).toBe(text);
    expect(mine.has('gateway.env')).toBe(false);
  });
});

describe('what is refused', () => {
  const from = ['--from', 'server.json'];

  test.each([
    [['Weather', ...from], 2, '`Weather` cannot be the name of a target'],
    [['My_server', ...from], 2, 'such as `my-server`'],
    [['weather\u001b[2J', ...from], 2, 'cannot be the name of a target'],
    [['weather', '--from', 'none.json'], 2, 'no such file'],
    [['weather', ...from, '-f', '-'], 2, 'standard input cannot be changed'],
    [['weather', ...from, '-f', 'none.yaml'], 2, 'none.yaml'],
    [['weather', 'other', ...from], 2, 'too many arguments'],
    [['weather', '--from', 'gateway.yaml'], 2, 'gateway.yaml does not describe an MCP server'],
    [['weather', '--from', 'mcp.json', '--package', 'npm'], 2, 'mcp.json has no packages to choose from'],
    [
      ['weather', '--from', 'bundle.json'],
      1,
      'weather in bundle.json cannot be added: package 1 (mcpb x): an MCP bundle is',
    ],
    [['weather', '--from', 'cursor'], 2, 'no MCP servers of Cursor found'],
    [['weather'], 2, "required option '--from <source>'"],
  ])('add %j ends with %i', async (args, expected, message) => {
    await using mine = await project({
      'mcp.json': { mcpServers: { a: { command: 'npx' } } },
      'bundle.json': serverJson({ packages: [{ registryType: 'mcpb', identifier: 'x' }] }),
    });
    const { code, stdout, stderr } = await mine.add(args);
    expect([code, stdout]).toEqual([expected, '']);
    expect(stderr).toContain(message);
    expect(stderr).not.toContain('\u001b');
    expect(mine.read('gateway.yaml')).toBe(CONFIG);
  });

  test('a command that is not installed is named before anything is written', async () => {
    const packages = [{ registryType: 'oci', identifier: 'example/weather:1.2.3' }];
    await using mine = await project({ 'server.json': serverJson({ packages }) });
    const { code, stderr } = await mine.add(['weather', ...from], { PATH: join(mine.cwd, 'bin') });
    expect([code, stderr]).toEqual([1, expect.stringContaining('command not found: docker')]);
    expect(stderr).toContain('--package');
    expect(mine.read('gateway.yaml')).toBe(CONFIG);
  });

  test('pins of a former target of the name are not taken for those of the new one', async () => {
    const hash = `sha256:${'0'.repeat(64)}`;
    await using mine = await project({
      'tools.lock.yaml': { targets: { weather: { test_simple_text: { hash } } } },
    });
    const { code, stderr } = await mine.add(['weather', ...from]);
    expect([code, stderr]).toEqual([1, expect.stringContaining('has pins of a former target `weather`')]);
    expect(stderr).toContain('delete `weather` below `targets`');
    expect(mine.has('words')).toBe(false);
  });

  const withToken = { mcpServers: { a: { command: 'npx', env: { A_TOKEN: SECRET } } } };

  test('a file of pins that cannot be written leaves the configuration and gateway.env as they were', async () => {
    const text = CONFIG.replace('enforce', '{ mode: enforce, file: nowhere/tools.yaml }');
    await using mine = await project({ 'gateway.yaml': text, 'mcp.json': withToken, 'gateway.env': 'A=1\n' });
    symlinkSync(join(mine.cwd, 'missing'), join(mine.cwd, 'nowhere'));
    const { code, stderr } = await mine.add(['weather', '--from', 'mcp.json']);
    expect([code, stderr]).toEqual([1, expect.stringContaining('nowhere/tools.yaml cannot be written')]);
    expect(mine.read('gateway.yaml')).toBe(text);
    expect(mine.read('gateway.env')).toBe('A=1\n');
  });

  test.each([
    ['an open quotation mark', (path: string) => writeFileSync(path, 'A=`b\n'), 'cannot be added to'],
    ['a folder', (path: string) => mkdirSync(path), 'is not a regular file'],
  ])('a gateway.env that is %s leaves the configuration as it was', async (_, make, message) => {
    await using mine = await project({ 'gateway.yaml': unpinned(), 'mcp.json': withToken });
    make(join(mine.cwd, 'gateway.env'));
    const { code, stderr } = await mine.add(['weather', '--from', 'mcp.json']);
    expect([code, stderr]).toEqual([1, expect.stringContaining(message)]);
    expect(mine.read('gateway.yaml')).toBe(unpinned());
    expect(readdirSync(mine.cwd).filter((name) => name.endsWith('.tmp'))).toEqual([]);
  });

  test.skipIf(process.getuid?.() === 0)('a folder without write permission is named', async () => {
    await using mine = await project({ 'gateway.yaml': unpinned() });
    chmodSync(mine.cwd, 0o555);
    const { code, stderr } = await mine.add(['weather', ...from]);
    chmodSync(mine.cwd, 0o755);
    expect([code, stderr]).toEqual([1, expect.stringContaining('cannot write ')]);
    expect(mine.read('gateway.yaml')).toBe(unpinned());
  });
});

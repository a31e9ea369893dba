import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { LIMITS } from '../../src/core/limits.ts';
import { cli } from '../kit/cli.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { npmPackage, serverJson } from '../kit/server-json.ts';

/** What `agctl init` makes of a file with servers of a registry. Its result must be valid. */
async function imported(file: object, env: Record<string, string> = {}) {
  await using folder = await temporaryFolder();
  const cwd = folder.path;
  writeFileSync(join(cwd, 'server.json'), JSON.stringify(file));
  const options = { cwd, env: { HOME: cwd, ...env } };
  const made = await cli(['init', '--yes', '--from', 'server.json'], options);
  expect([made.code, made.stderr]).toEqual([0, '']);
  const validated = await cli(['config', 'validate', '-f', 'gateway.yaml'], options);
  expect([validated.code, validated.stdout + validated.stderr]).toEqual([
    0,
    expect.not.stringContaining('error['),
  ]);
  const variables = join(cwd, 'gateway.env');
  return {
    targets: parse(readFileSync(join(cwd, 'gateway.yaml'), 'utf8')).mcp.targets,
    variables: existsSync(variables) ? readFileSync(variables, 'utf8').split('\n').slice(3).join('\n') : '',
    printed: made.stdout,
  };
}

/** Why `agctl init` refuses a file. */
async function refused(file: object | string): Promise<string> {
  await using folder = await temporaryFolder();
  const cwd = folder.path;
  writeFileSync(join(cwd, 'server.json'), typeof file === 'string' ? file : JSON.stringify(file));
  const made = await cli(['init', '--yes', '--from', 'server.json'], { cwd, env: { HOME: cwd } });
  expect(made.code).not.toBe(0);
  expect(existsSync(join(cwd, 'gateway.yaml'))).toBe(false);
  return made.stderr;
}

const inPackage = (more: object) => serverJson({ packages: [npmPackage(more)] });
const inRemote = (more: object) =>
  serverJson({ remotes: [{ type: 'streamable-http', url: 'https://weather.example.com/mcp', ...more }] });
const stdio = async (more: object) => (await imported(inPackage(more))).targets[0].stdio;

describe('packages', () => {
  test.each([
    ['npm', {}, 'npx', ['-y', '@example/weather-mcp@1.2.3']],
    ['pypi', { identifier: 'weather-mcp' }, 'uvx', ['weather-mcp@1.2.3']],
    [
      'nuget',
      { identifier: 'Example.Weather', version: '0.4.0-beta' },
      'dnx',
      ['Example.Weather@0.4.0-beta', '--yes'],
    ],
    [
      'oci',
      { identifier: 'ghcr.io/example/weather:1.2.3', version: undefined },
      'docker',
      ['run', '-i', '--rm', 'ghcr.io/example/weather:1.2.3'],
    ],
    [
      'oci',
      { identifier: 'example/weather', runtimeHint: 'podman' },
      'podman',
      ['run', '-i', '--rm', 'example/weather:1.2.3'],
    ],
    // agentic-research/mache#499: tags that begin with a letter.
    [
      'oci',
      { identifier: 'example/weather', version: 'v1.2.3' },
      'docker',
      ['run', '-i', '--rm', 'example/weather:v1.2.3'],
    ],
  ])('a package of %s %j is started with %s, in its version', async (registryType, more, cmd, args) => {
    const { targets, printed } = await imported(inPackage({ registryType, ...more }));
    expect(targets).toEqual([{ name: 'weather', stdio: { cmd, args, warm: 1 } }]);
    expect(printed).toContain('was chosen');
    expect(printed).not.toContain('no version');
  });

  test.each([
    ['npm', { version: 'latest' }, '@example/weather-mcp'],
    ['npm', { version: undefined }, '@example/weather-mcp'],
    ['oci', { identifier: 'example/weather:latest', version: undefined }, 'example/weather:latest'],
  ])('a package of %s with %j is not pinned, and init says so', async (registryType, more, last) => {
    const { targets, printed } = await imported(inPackage({ registryType, ...more }));
    expect(targets[0].stdio.args.at(-1)).toBe(last);
    expect(printed).toContain('the file names no version: each start may run another one');
  });

  test('arguments: positional, named, constant, with a default, true or false, and those that are left out', async () => {
    const given = await stdio({
      packageArguments: [
        { type: 'positional', value: 'server' },
        { type: 'positional', valueHint: 'dir', default: '/data $HOME', isRequired: true },
        { type: 'positional', valueHint: 'more' },
        { type: 'named', name: '--mode', value: 'local' },
        { type: 'named', name: '--level', default: 3 },
        { type: 'named', name: '--unit=', value: 'metric' },
        { type: 'named', name: '--stdio' },
        { type: 'named', name: '--write', format: 'boolean', description: 'Allow changes' },
        { type: 'named', name: '--read', format: 'boolean', value: 'true' },
        { type: 'named', name: '--cold', format: 'boolean', default: 'false' },
        { type: 'named', name: '--region', description: 'Region', choices: ['eu', 'us'] },
        // neon-solutions/add-mcp#28: an empty text is a value.
        { type: 'positional', value: '' },
        { value: '{untouched}' },
      ],
    });
    expect(given.args.slice(2)).toEqual([
      ...[
        'server',
        '/data $$HOME',
        '--mode',
        'local',
        '--level',
        '3',
        '--unit=metric',
        '--stdio',
        '--read',
        '',
        '{untouched}',
      ],
    ]);
  });

  test('what the user has to provide becomes references, described in gateway.env', async () => {
    const { targets, variables, printed } = await imported(
      inPackage({
        packageArguments: [
          { type: 'positional', valueHint: 'root_dir', description: 'Where\nfiles are', isRequired: true },
          {
            type: 'named',
            name: '--mount',
            value: 'src={source},dst={target}',
            variables: { source: { isRequired: true, format: 'filepath' }, target: { default: '/project' } },
          },
        ],
        environmentVariables: [
          { name: 'API_KEY', description: 'Key', isRequired: true, isSecret: true },
          { name: 'UNITS', isRequired: true, choices: ['metric', 'imperial'] },
          { name: 'LOG', default: 'info' },
          { name: 'HOST' },
          { name: 'SESSION_SECRET', isSecret: true, isRequired: false },
        ],
      }),
    );
    expect(targets[0].stdio).toMatchObject({
      args: [
        '-y',
        '@example/weather-mcp@1.2.3',
        `\${WEATHER_ROOT_DIR}`,
        '--mount',
        `src=\${WEATHER_SOURCE},dst=/project`,
      ],
      env: {
        API_KEY: `\${WEATHER_API_KEY}`,
        UNITS: `\${WEATHER_UNITS}`,
        LOG: 'info',
        SESSION_SECRET: `\${WEATHER_SESSION_SECRET:-}`,
      },
    });
    expect(targets[0].stdio.env).not.toHaveProperty('HOST');
    expect(variables).toBe(
      [
        '# `env` of weather in server.json: Key\nWEATHER_API_KEY=change-me\n',
        '# `env` of weather in server.json: one of metric, imperial\nWEATHER_UNITS=change-me\n',
        '# `env` of weather in server.json\nWEATHER_SESSION_SECRET=\n',
        '# `args` of weather in server.json: Where files are\nWEATHER_ROOT_DIR=change-me\n',
        '# `args` of weather in server.json\nWEATHER_SOURCE=change-me\n',
      ].join('\n'),
    );
    expect(printed).toContain('fill in: WEATHER_API_KEY, WEATHER_UNITS, WEATHER_ROOT_DIR, WEATHER_SOURCE\n');
    expect(printed).toContain('fill in if it is needed: WEATHER_SESSION_SECRET\n');
    expect(printed).toContain('optional, not set: HOST');
  });

  test('what a file leaves out or writes otherwise: types, booleans, null, long descriptions', async () => {
    const { targets, variables, printed } = await imported(
      inPackage({
        fileSha256: null,
        packageArguments: [
          { name: '--port', value: 3000 },
          { value: 'word', name: null },
          { type: 'named', name: '--fast', format: 'boolean', isRequired: true },
          { type: 'named', name: '--slow', format: 'boolean', default: 'sometimes' },
          { type: 'positional', valueHint: 'folder', isRequired: 'true' },
          { type: 'named', name: '--host', description: 'Host' },
        ],
        environmentVariables: [
          { name: 'A_TOKEN', description: 'x'.repeat(300) },
          { name: 'B_TOKEN', isSecret: false },
          { name: 'C', isSecret: true, default: 'of-all' },
        ],
      }),
    );
    expect(targets[0].stdio.args.slice(2)).toEqual([
      ...['--port', '3000', 'word', '--fast', '--slow', 'sometimes'],
    ]);
    expect(targets[0].stdio.env).toEqual({ A_TOKEN: `\${WEATHER_A_TOKEN:-}`, C: `\${WEATHER_C}` });
    expect(variables).toContain(`: ${'x'.repeat(200)}…\nWEATHER_A_TOKEN=\n`);
    expect(variables).toContain('\nWEATHER_C=of-all\n');
    expect(printed).toContain('optional, not set: B_TOKEN, folder, --host\n');
  });

  test.each([
    [
      'a registry of its own',
      { registryBaseUrl: 'https://images.example.com' },
      'images.example.com/example/weather:1.2.3',
    ],
    ['the usual registry', { registryBaseUrl: 'https://docker.io' }, 'example/weather:1.2.3'],
    [
      'a host in its name',
      { registryBaseUrl: 'https://images.example.com', identifier: 'ghcr.io/example/weather' },
      'ghcr.io/example/weather:1.2.3',
    ],
    [
      'a digest',
      { identifier: `example/weather@sha256:${'a'.repeat(64)}` },
      `example/weather@sha256:${'a'.repeat(64)}`,
    ],
    [
      'a port of its host',
      { identifier: 'localhost:5000/weather:2', version: undefined },
      'localhost:5000/weather:2',
    ],
  ])('an image with %s', async (_, more, image) => {
    const { targets, printed } = await imported(
      inPackage({ registryType: 'oci', identifier: 'example/weather', ...more }),
    );
    expect(targets[0].stdio.args.at(-1)).toBe(image);
    expect(printed).not.toContain('no version');
  });

  // sdebruyn/fabric-dw-mcp-cli#969: the command of a package of PyPI may have another name.
  test('with `--from`, uvx gets the name of a command without a version', async () => {
    const given = await stdio({
      ...{ registryType: 'pypi', identifier: 'weather-mcp' },
      runtimeArguments: [{ type: 'named', name: '--from', value: 'weather==1.2.3' }],
    });
    expect(given.args).toEqual(['--from', 'weather==1.2.3', 'weather-mcp']);
  });

  test('a server gets no variable that exists, whatever its file asks for', async () => {
    const env = [{ name: 'AWS_SECRET_ACCESS_KEY', isRequired: true, isSecret: true }];
    const { targets } = await imported(inPackage({ environmentVariables: env }), {
      AWS_SECRET_ACCESS_KEY: 'of-somebody-else',
    });
    expect(targets[0].stdio.env).toEqual({ AWS_SECRET_ACCESS_KEY: `\${WEATHER_AWS_SECRET_ACCESS_KEY}` });
  });

  test('a server of a registry does not get a variable of another file, in whatever order they are named', async () => {
    await using folder = await temporaryFolder();
    const cwd = folder.path;
    const names = ['A_TOKEN', 'B_TOKEN'];
    const environmentVariables = names.map((name) => ({ name, isRequired: true, isSecret: true }));
    writeFileSync(join(cwd, 'server.json'), JSON.stringify(inPackage({ environmentVariables })));
    const env = { A_TOKEN: 'ghp_0123456789abcdefghij', B_TOKEN: `\${env:B_TOKEN}` };
    writeFileSync(join(cwd, 'mcp.json'), JSON.stringify({ mcpServers: { mine: { command: 'x', env } } }));
    const args = ['init', '--yes', '--from', 'server.json', '--from', 'mcp.json'];
    expect(await cli(args, { cwd, env: { HOME: cwd } })).toMatchObject({ code: 0, stderr: '' });
    const { targets } = parse(readFileSync(join(cwd, 'gateway.yaml'), 'utf8')).mcp;
    expect(targets.map((target: { stdio: { env: unknown } }) => target.stdio.env)).toEqual([
      { A_TOKEN: `\${MINE_A_TOKEN}`, B_TOKEN: `\${B_TOKEN}` },
      { A_TOKEN: `\${WEATHER_A_TOKEN}`, B_TOKEN: `\${WEATHER_B_TOKEN}` },
    ]);
  });

  test('variables for the container do not reach docker itself, and an option without a value keeps no image', async () => {
    const asked = { variables: { it: { isRequired: true } } };
    const { targets } = await imported(
      inPackage({
        ...{ registryType: 'oci', identifier: 'example/weather:1.2.3', version: undefined },
        runtimeArguments: [
          { type: 'named', name: '-e', value: 'DOCKER_HOST=tcp://evil.example:2375' },
          { type: 'named', name: '-e', value: 'PATH={it}', ...asked },
          { type: 'named', name: '-e', value: 'UNITS=metric' },
          { type: 'named', name: '--privileged' },
          { type: 'positional', value: 'example/weather' },
        ],
        environmentVariables: [{ name: 'UNITS', default: 'other' }],
      }),
    );
    expect(targets[0].stdio.args.slice(3)).toEqual([
      ...['-e', 'DOCKER_HOST=tcp://evil.example:2375', '-e', `PATH=\${WEATHER_IT}`, '-e', 'UNITS=metric'],
      ...['--privileged', 'example/weather:1.2.3'],
    ]);
    expect(targets[0].stdio.env).toEqual({ UNITS: 'other' });
  });

  // tastytrade/tastytrade-mcp#6, Azure/aks-mcp#229: clients wrote `docker run -i --rm run -i --rm`.
  // github/github-mcp-server#1217: truth values, the image without its tag, a token in the command line.
  test('a whole docker command of its publisher is written once, and its secret is not in the command line', async () => {
    const { targets } = await imported(
      inPackage({
        ...{ registryType: 'oci', identifier: 'ghcr.io/example/weather:0.19.0', version: undefined },
        runtimeArguments: [
          { type: 'positional', value: 'run', isRequired: true },
          { type: 'named', name: '-i', value: 'true', format: 'boolean', isRequired: true },
          { type: 'named', name: '--rm', value: 'true' },
          { type: 'named', name: '--network', value: 'host' },
          {
            type: 'named',
            name: '-e',
            value: 'WEATHER_TOKEN={token}',
            variables: { token: { isRequired: true, isSecret: true } },
          },
          { type: 'positional', valueHint: 'image_name', value: 'ghcr.io/example/weather' },
        ],
        environmentVariables: [{ name: 'UNITS', default: 'metric' }],
      }),
    );
    expect(targets[0].stdio).toEqual({
      cmd: 'docker',
      args: [
        ...['run', '-i', '--rm', '-e', 'UNITS', '--network', 'host', '-e', 'WEATHER_TOKEN'],
        'ghcr.io/example/weather:0.19.0',
      ],
      env: { UNITS: 'metric', WEATHER_TOKEN: `\${WEATHER_TOKEN}` },
      warm: 1,
    });
  });

  // microsoft/apm#1391: a mount as two positional arguments, with a variable; the answer of a registry.
  test('the answer of a registry is read, with arguments in pairs', async () => {
    const server = inPackage({
      ...{
        registryType: 'oci',
        identifier: 'ghcr.io/example/browser:1.2.3',
        version: undefined,
        runtimeHint: 'docker',
      },
      runtimeArguments: [
        { type: 'positional', value: '-v' },
        { type: 'positional', value: '{folder}:/work:ro', variables: { folder: { isRequired: true } } },
      ],
    });
    const { targets } = await imported({
      server,
      _meta: { 'io.modelcontextprotocol.registry/official': { status: 'active', isLatest: true } },
    });
    expect(targets[0].stdio.args).toEqual([
      ...['run', '-i', '--rm', '-v', `\${WEATHER_FOLDER}:/work:ro`, 'ghcr.io/example/browser:1.2.3'],
    ]);
  });

  // modelcontextprotocol/registry#650: `-y` and the package among the arguments of npx.
  test('`-y` and the package are not repeated, and a package that is the value of an option is kept', async () => {
    const positional = (value: string) => ({
      type: 'positional',
      value,
      value_hint: value,
      is_required: true,
    });
    const given = await stdio({
      identifier: '@azure/mcp',
      runtimeArguments: [
        positional('-y'),
        positional('--package'),
        positional('@azure/mcp'),
        positional('@azure/mcp@latest'),
      ],
      packageArguments: [positional('server'), positional('start')],
    });
    expect(given.args).toEqual(['-y', '--package', '@azure/mcp', '@azure/mcp@1.2.3', 'server', 'start']);
  });

  test('arguments of dnx for the package stand behind `--`', async () => {
    const given = await stdio({
      ...{ registryType: 'nuget', identifier: 'Example.Weather' },
      packageArguments: [{ type: 'positional', value: 'mcp' }],
    });
    expect(given.args).toEqual(['Example.Weather@1.2.3', '--yes', '--', 'mcp']);
  });

  // Krv-Labs/topos#252: uvx cannot use https://pypi.org as an index, so publishers name one themselves.
  test('the usual registries are not passed on, and others only to npx', async () => {
    const usual = { registryType: 'pypi', identifier: 'weather', registryBaseUrl: 'https://pypi.org' };
    const runtimeArguments = [{ type: 'named', name: '--index-url', value: 'https://pypi.org/simple' }];
    expect((await stdio({ ...usual, runtimeArguments })).args).toEqual([
      ...['--index-url', 'https://pypi.org/simple', 'weather@1.2.3'],
    ]);
    // microsoft/vscode#290552
    const own = 'https://pkgs.example.com/npm/registry/';
    expect((await stdio({ registryBaseUrl: own })).args).toEqual([
      ...['-y', '--registry=https://pkgs.example.com/npm/registry', '@example/weather-mcp@1.2.3'],
    ]);
    expect(await refused(inPackage({ ...usual, registryBaseUrl: own }))).toContain('by hand');
  });

  test('names of before September 2025 are read', async () => {
    const { targets } = await imported({
      name: 'io.example/old',
      version_detail: { version: '1.0.2' },
      packages: [
        {
          ...{ registry_name: 'docker', name: 'example/old', version: '1.0.2' },
          runtime_hint: 'docker',
          environment_variables: [{ name: 'KEY', is_required: true, is_secret: true }],
          package_arguments: [{ type: 'positional', value_hint: 'dir', is_required: true }],
        },
      ],
    });
    expect(targets).toEqual([
      {
        name: 'old',
        stdio: {
          cmd: 'docker',
          args: ['run', '-i', '--rm', '-e', 'KEY', 'example/old:1.0.2', `\${OLD_DIR}`],
          env: { KEY: `\${OLD_KEY}` },
          warm: 1,
        },
      },
    ]);
  });

  test('a hash of the file is named as not checked, and an argument that may be repeated', async () => {
    const { printed } = await imported(
      inPackage({
        fileSha256: 'a'.repeat(64),
        packageArguments: [{ type: 'named', name: '--dir', value: '/a', isRepeated: true }],
      }),
    );
    expect(printed).toContain('weather: `fileSha256` is not checked: npx downloads the package itself');
    expect(printed).toContain('weather: `--dir` may be repeated: add more to `args`');
  });

  test.each([
    ['an option', { identifier: '--registry=https://evil.example' }],
    ['a path', { identifier: '../evil' }],
    ['a path in a scope', { identifier: '@a/../../evil' }],
    ['two dots', { identifier: 'evil..js' }],
    ['a URL', { identifier: 'https://evil.example/x.tgz' }],
    ['a package with a version', { identifier: 'weather@file:/tmp/evil' }],
    ['white space', { identifier: 'weather evil' }],
    ['no text', { identifier: { a: 1 } }],
    ['an escape', { identifier: 'weather\u001b[2J' }],
    ['a character that is not shown', { identifier: 'weather\u200b' }],
    ['an option of docker', { registryType: 'oci', identifier: '-v/:/host' }],
    ['a path of an image', { registryType: 'oci', identifier: 'a/../b' }],
    ['an option of uvx', { registryType: 'pypi', identifier: '--from' }],
    ['an option of dnx', { registryType: 'nuget', identifier: '-s' }],
    ['a version that is a URL', { version: 'https://evil.example/x.tgz' }],
    ['a range', { version: '^1.2.3' }],
    ['a range with x', { version: '1.x' }],
    ['a version that is an option', { version: '--call=evil' }],
    // affaan-m/agentshield#48
    ['a shell command', { runtimeArguments: [{ type: 'named', name: '-c', value: 'touch /tmp/x' }] }],
    ['a shell command in one word', { runtimeArguments: [{ value: '--call=touch /tmp/x' }] }],
    ['another command', { runtimeHint: 'bash', runtimeArguments: [{ value: '-c' }, { value: 'evil' }] }],
    // milady-ai/milady#63
    ['a library', { environmentVariables: [{ name: 'LD_PRELOAD', value: '/tmp/x.so' }] }],
    [
      'a registry as a variable',
      { environmentVariables: [{ name: 'npm_config_registry', default: 'https://evil.example' }] },
    ],
    ['a home folder', { environmentVariables: [{ name: 'HOME', value: '/tmp' }] }],
    ['a name that is none', { environmentVariables: [{ name: 'A=B', value: 'x' }] }],
    ['a null byte', { packageArguments: [{ value: 'a\u0000b' }] }],
    ['a line break', { environmentVariables: [{ name: 'A', value: 'a\nB=c' }] }],
    ['a long argument', { packageArguments: [{ value: 'a'.repeat(LIMITS.serverJsonText + 1) }] }],
    [
      'many arguments',
      { packageArguments: Array.from({ length: LIMITS.serverJsonItems + 1 }, () => ({ value: 'a' })) },
    ],
    // jongalloway/dotnet-mcp#104
    ['an object as a value', { packageArguments: [{ value: {} }] }],
    ['texts as arguments', { packageArguments: ['--yes'] }],
    ['an object as arguments', { packageArguments: {} }],
    // modelcontextprotocol/registry#123
    ['an unknown registry', { registryType: 'unknown' }],
    ['a member of every object', { registryType: 'constructor' }],
    ['a bundle', { registryType: 'mcpb', identifier: 'https://github.com/a/b/releases/download/v1/x.mcpb' }],
    // pvliesdonk/markdown-vault-mcp#132
    ['HTTP', { transport: { type: 'streamable-http', url: 'http://localhost:{--port}/mcp' } }],
  ])('a package with %s is refused, with the reason', async (_, more) => {
    const reason = await refused(inPackage(more));
    expect(reason).toMatch(
      /^error: nothing could be imported: weather in server\.json: package 1 \(.*\): .+$/m,
    );
    // biome-ignore lint/suspicious/noControlCharactersInRegex: none may reach the terminal
    expect(reason).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u200b]/);
  });

  test('another hint than the usual command is named, and has no effect', async () => {
    const { targets, printed } = await imported(inPackage({ runtimeHint: 'node' }));
    expect(targets[0].stdio.cmd).toBe('npx');
    expect(printed).toContain('weather: started with npx instead of `node`');
  });
});

describe('remotes', () => {
  test.each([
    [{ type: 'streamable-http' }, 'mcp'],
    [{ type: 'sse' }, 'sse'],
    [{ type: undefined, transport_type: 'streamable' }, 'mcp'],
  ])('a remote with %j is a target of kind %s', async (more, kind) => {
    const { targets } = await imported(inRemote(more));
    expect(targets).toEqual([{ name: 'weather', [kind]: { host: 'https://weather.example.com/mcp' } }]);
  });

  // vastsa/PI-Desktop#646: `{name}` was sent as it is; servers declare `variables`, or do not.
  test.each([
    [
      { value: 'Bearer {api_key}', isRequired: true, variables: { api_key: { isSecret: true } } },
      'WEATHER_API_KEY',
    ],
    [{ value: 'Bearer {api_key}', isSecret: true }, 'WEATHER_API_KEY'],
    [{ value: `Bearer \${API_KEY}`, isRequired: true }, 'WEATHER_API_KEY'],
    [{ description: 'Bearer <token>', isSecret: true }, 'WEATHER_TOKEN'],
    [{ description: 'Your key', is_required: true }, 'WEATHER_TOKEN'],
  ])('the key of the header %j is a variable', async (header, name) => {
    const { targets, variables } = await imported(
      inRemote({ headers: [{ name: 'Authorization', ...header }] }),
    );
    expect(targets[0].policies).toEqual({ backendAuth: { key: `\${${name}}` } });
    expect(variables).toContain(`${name}=change-me`);
  });

  test('a header that need not be sent is named', async () => {
    const headers = [{ name: 'X-Org' }, { name: 'Authorization', isSecret: true, isRequired: false }];
    const { targets, printed } = await imported(inRemote({ headers }));
    expect(targets[0]).not.toHaveProperty('policies');
    expect(printed).toContain('weather: optional, not set: X-Org, Authorization');
  });

  test('headers of the server’s own are sent: constants as they are, the rest as credentials', async () => {
    const { targets, variables } = await imported(
      inRemote({
        headers: [
          { name: 'Authorization', value: 'Basic {login}' },
          { name: 'X-API-Key', isRequired: true, isSecret: true, description: 'Your key' },
          { name: 'X-Auth', value: 'Token {token}', variables: { token: { isSecret: true } } },
          { name: 'X-Source', value: 'registry/$1' },
          { name: 'X-Region', default: 'eu' },
          { name: 'Accept', value: 'text/plain' },
        ],
      }),
    );
    const credential = (key: string, name: string) => ({ key, location: { header: { name } } });
    expect(targets[0].policies).toEqual({
      backendAuth: {
        credentials: [
          credential(`Basic \${WEATHER_LOGIN}`, 'Authorization'),
          credential(`\${WEATHER_X_API_KEY}`, 'X-API-Key'),
          credential(`Token \${WEATHER_TOKEN}`, 'X-Auth'),
        ],
      },
      requestHeaderModifier: { set: { 'X-Source': 'registry/$$1', 'X-Region': 'eu' } },
    });
    expect(variables).toContain(
      '# `headers` of weather in server.json: Your key\nWEATHER_X_API_KEY=change-me',
    );
  });

  // microsoft/vscode#336624, coder/coder#26755: variables of the URL, and one that is the whole server.
  test.each([
    [
      'https://{tenant}.example.com/mcp',
      `https://\${WEATHER_TENANT}.example.com/mcp`,
      'WEATHER_TENANT=change-me',
    ],
    ['{baseUrl}/mcp', `\${WEATHER_BASE_URL}/mcp`, 'WEATHER_BASE_URL=https://change-me.invalid'],
    ['http://localhost:{port}/mcp', `http://localhost:\${WEATHER_PORT}/mcp`, 'WEATHER_PORT=443'],
    ['https://example.com/{region}/mcp?{region}=$1', 'https://example.com/eu/mcp?eu=$$1', ''],
  ])('variables of the URL %s', async (url, host, variable) => {
    const { targets, variables } = await imported(
      inRemote({ url, variables: { tenant: { isRequired: true }, region: { default: 'eu' } } }),
    );
    expect(targets[0].mcp).toEqual({ host });
    expect(variables).toContain(variable);
  });

  test.each([
    ['a file', { url: 'file:///etc/passwd' }],
    ['a socket', { url: 'unix:/run/docker.sock' }],
    ['a password', { url: 'https://a:b@example.com' }],
    ['white space', { url: 'https://example.com/ x' }],
    ['a line break', { url: 'https://example.com/\nx' }],
    ['no URL', { url: 7 }],
    ['an unknown transport', { type: 'websocket' }],
    ['a name of a header that is none', { headers: [{ name: 'A: b\r\nC', value: 'x' }] }],
  ])('a remote with %s is refused, with the reason', async (_, more) => {
    expect(await refused(inRemote(more))).toMatch(
      /nothing could be imported: weather in server\.json: remote 1 \(/,
    );
  });
});

describe('ways to get a server', () => {
  const remotes = [
    { type: 'sse', url: 'https://weather.example.com/sse' },
    { type: 'streamable-http', url: 'https://weather.example.com/mcp' },
  ];
  const bundle = { registryType: 'mcpb', identifier: 'https://example.com/x.mcpb' };

  test('the first package that can be started is used before a remote, and the others are named', async () => {
    const { targets, printed } = await imported(serverJson({ packages: [bundle, npmPackage()], remotes }));
    expect(targets).toMatchObject([{ stdio: { cmd: 'npx' } }]);
    expect(printed).toContain(
      'weather: npm @example/weather-mcp 1.2.3 was chosen; also there: remote 2 (https://weather.example.com/mcp), remote 1 (https://weather.example.com/sse); cannot be used: package 1 (mcpb https://example.com/x.mcpb): an MCP bundle is',
    );
  });

  test('a remote is used if no package can be started: Streamable HTTP before HTTP+SSE', async () => {
    const { targets } = await imported(serverJson({ packages: [bundle], remotes }));
    expect(targets).toEqual([{ name: 'weather', mcp: { host: 'https://weather.example.com/mcp' } }]);
  });

  test('several ways with the same reason are one', async () => {
    const bundles = ['linux', 'darwin', 'win32'].map((system) => ({
      ...bundle,
      identifier: `https://example.com/${system}`,
    }));
    expect(await refused(serverJson({ packages: [...bundles, npmPackage({ version: '1.x' })] }))).toMatch(
      /: package 1 \(mcpb https:\/\/example\.com\/linux\) and 2 more: an MCP bundle .*; package 4 \(npm @example\/weather-mcp 1\.x\): `1\.x` is not one version/,
    );
  });

  test('a way that cannot be used leaves no variables behind', async () => {
    const needy = npmPackage({
      environmentVariables: [{ name: 'API_KEY', isRequired: true }],
      packageArguments: ['broken'],
    });
    const { variables } = await imported(serverJson({ packages: [needy], remotes }));
    expect(variables).toBe('');
  });

  test('a list of a registry gives every server, and what the registry has deleted is left out', async () => {
    const entry = (name: string, status: string) => ({
      server: { ...serverJson(), name, packages: [npmPackage({ identifier: name.replace(/.*\//, '') })] },
      _meta: { 'io.modelcontextprotocol.registry/official': { status } },
    });
    const { targets, printed } = await imported({
      servers: [
        ...[entry('io.github.a/one', 'active'), entry('io.github.a/two', 'deprecated')],
        ...[entry('io.github.a/three', 'deleted'), entry('com.example.stripe/mcp', 'active')],
      ],
    });
    expect(targets.map(({ name }: { name: string }) => name)).toEqual(['one', 'two', 'stripe']);
    expect(printed).toContain('two: its publisher has deprecated it');
    expect(printed).toContain('three in server.json: the registry has deleted it');
  });

  test.each([
    ['neither packages nor remotes', serverJson({}), 'it has neither packages nor remotes'],
    ['no objects in a list', serverJson({ packages: ['npm'] }), '`packages[0]` is not an object'],
    ['a name without letters', { ...serverJson({}), name: { toString: 1 } }, 'server in server.json'],
    ['nothing of the kind', { name: 'x', version: '1' }, 'nothing to import in server.json'],
    [
      'more than a few servers',
      serverJson({ description: 'x'.repeat(LIMITS.serverJsonLength) }),
      'is longer than',
    ],
    ['deep nesting', `{"$schema":"","packages":${'['.repeat(100_000)}${']'.repeat(100_000)}}`, 'server.json'],
  ])('a file with %s is refused', async (_, file, reason) => {
    expect(await refused(file)).toContain(reason);
  });
});

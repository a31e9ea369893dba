import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parse as parseToml } from 'smol-toml';
import { expect, test } from 'vitest';
import { parseSettings } from '../../src/cli/clients/settings-file.ts';
import { endpointsOfDump } from '../../src/cli/connect/endpoint.ts';
import { mcpClients } from '../../src/core/clients/mcp-clients.ts';
import { cli } from '../kit/cli.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { serve } from '../kit/process.ts';

const CONFIG = `
gateways: { default: { port: 3100, address: 127.0.0.1 } }
mcp: { targets: [{ name: a, stdio: { cmd: node } }] }
`;
const WITH_KEY = `${CONFIG.replace('mcp: {', 'mcp: { policies: { apiKey: { mode: strict, keys: [{ key: $CLIENT_KEY }] } },')}`;
const SECRET = 'ghp_0123456789abcdefghij';

async function laptop(config: string, settings: Readonly<Record<string, string>> = {}) {
  const folder = await temporaryFolder();
  const cwd = join(folder.path, 'project');
  mkdirSync(cwd);
  writeFileSync(join(cwd, 'gateway.yaml'), config);
  for (const [name, text] of Object.entries(settings)) {
    mkdirSync(dirname(join(folder.path, name)), { recursive: true });
    writeFileSync(join(folder.path, name), text);
  }
  return {
    cwd,
    connect: (...args: readonly string[]) =>
      cli(['connect', ...args], { cwd, env: { HOME: folder.path, CLIENT_KEY: 'the-key' } }),
    read: (name: string) => readFileSync(join(folder.path, name), 'utf8'),
    exists: (name: string) => existsSync(join(folder.path, name)),
    path: folder.path,
    [Symbol.asyncDispose]: folder[Symbol.asyncDispose],
  };
}

const URL_ = 'http://127.0.0.1:3100/mcp';

test.each([
  [
    'claude',
    {
      mcpServers: { agctl: { type: 'http', url: URL_, headers: { Authorization: `Bearer \${CLIENT_KEY}` } } },
    },
  ],
  [
    'claude-desktop',
    {
      mcpServers: {
        agctl: {
          command: 'npx',
          args: ['-y', 'mcp-remote', URL_, '--header', `Authorization:\${AUTHORIZATION}`],
          env: { AUTHORIZATION: 'Bearer <CLIENT_KEY>' },
        },
      },
    },
  ],
  [
    'cursor',
    { mcpServers: { agctl: { url: URL_, headers: { Authorization: `Bearer \${env:CLIENT_KEY}` } } } },
  ],
  [
    'vscode',
    {
      inputs: [{ id: 'agctl-key', type: 'promptString', description: 'Key of the gateway', password: true }],
      servers: {
        agctl: { type: 'http', url: URL_, headers: { Authorization: `Bearer \${input:agctl-key}` } },
      },
    },
  ],
  ['codex', { mcp_servers: { agctl: { url: URL_, bearer_token_env_var: 'CLIENT_KEY' } } }],
  [
    'gemini',
    { mcpServers: { agctl: { httpUrl: URL_, headers: { Authorization: `Bearer \${CLIENT_KEY}` } } } },
  ],
  [
    'windsurf',
    { mcpServers: { agctl: { serverUrl: URL_, headers: { Authorization: `Bearer \${env:CLIENT_KEY}` } } } },
  ],
  ['zed', { context_servers: { agctl: { url: URL_, headers: { Authorization: 'Bearer <CLIENT_KEY>' } } } }],
  [
    'cline',
    {
      mcpServers: {
        agctl: { type: 'streamableHttp', url: URL_, headers: { Authorization: 'Bearer <CLIENT_KEY>' } },
      },
    },
  ],
  ['lmstudio', { mcpServers: { agctl: { url: URL_, headers: { Authorization: 'Bearer <CLIENT_KEY>' } } } }],
])('connect %s prints and writes the setting, with the key as a reference', async (client, expected) => {
  await using mine = await laptop(WITH_KEY);
  const printed = await mine.connect(client);
  const parsed = client === 'codex' ? parseToml(printed.stdout) : JSON.parse(printed.stdout);
  expect([printed.code, JSON.parse(JSON.stringify(parsed))]).toEqual([0, expected]);
  expect(printed.stderr).toMatch(/CLIENT_KEY|asks for the key/);
  const { code, stdout, stderr } = await mine.connect(client, '--write', '--settings', 'settings');
  expect([code, stdout, stderr]).toEqual([
    0,
    expect.stringContaining('--- settings'),
    expect.stringContaining('written: settings'),
  ]);
  const written = parseSettings(mine.read('project/settings'), client === 'codex' ? 'toml' : 'json');
  expect(JSON.parse(JSON.stringify(written))).toEqual(expected);
  expect(`${printed.stdout}${stdout}`).not.toContain('the-key');
});

test('every client of the list has its place tested by its own name', () => {
  expect(mcpClients.map(({ key }) => key).sort()).toEqual(
    [
      'claude',
      'claude-desktop',
      'cline',
      'codex',
      'cursor',
      'gemini',
      'lmstudio',
      'vscode',
      'windsurf',
      'zed',
    ].sort(),
  );
});

test('without a policy that asks for a key, the setting is the URL alone', async () => {
  await using mine = await laptop(CONFIG);
  const { stdout } = await mine.connect('cursor');
  expect(JSON.parse(stdout)).toEqual({ mcpServers: { agctl: { url: URL_ } } });
});

test('writing keeps the rest of a JSON file, its comments and mode, and makes a copy first', async () => {
  const before = `{\n    // my servers\n    "mcpServers": {\n        "other": { "command": "x", "env": { "TOKEN": "${SECRET}" } }, // keep\n    },\n    "theme": "dark"\n}\n`;
  await using mine = await laptop(CONFIG, { '.cursor/mcp.json': before });
  const { code, stdout, stderr } = await mine.connect('cursor', '--write');
  expect([code, stderr]).toEqual([0, 'written: ~/.cursor/mcp.json; the former file is mcp.json.bak\n']);
  const after = mine.read('.cursor/mcp.json');
  expect(after).toContain('// my servers');
  expect(after).toContain('// keep');
  expect(parseSettings(after, 'json')).toEqual({
    mcpServers: { other: { command: 'x', env: { TOKEN: SECRET } }, agctl: { url: URL_ } },
    theme: 'dark',
  });
  expect(stdout).toMatch(/^\+ +"agctl": \{$/m);
  expect(stdout).not.toContain(SECRET);
  expect(mine.read('.cursor/mcp.json.bak')).toBe(before);
  expect((await mine.connect('cursor', '--write')).stderr).toBe('~/.cursor/mcp.json: nothing to change\n');
  const removed = await mine.connect('cursor', '--remove');
  expect([removed.code, removed.stderr]).toEqual([0, 'not written: add --write\n']);
  expect(mine.read('.cursor/mcp.json')).toBe(after);
  await mine.connect('cursor', '--remove', '--write');
  expect(parseSettings(mine.read('.cursor/mcp.json'), 'json')).toEqual(parseSettings(before, 'json'));
  expect(mine.exists('.cursor/mcp.json.bak2')).toBe(true);
});

test('writing keeps the rest of a TOML file and its comments', async () => {
  const before = `# mine\nmodel = "gpt-5"\n\n[mcp_servers.agctl]\nurl = "http://old"\n[mcp_servers.agctl.env]\nA = "b"\n\n# other\n[mcp_servers.other]\ncommand = "x"\nenv = { KEY = "${SECRET}" }\n`;
  await using mine = await laptop(WITH_KEY, { '.codex/config.toml': before });
  expect((await mine.connect('codex', '--write')).code).toBe(0);
  const after = mine.read('.codex/config.toml');
  expect(after).toContain('# mine');
  expect(after).toContain('# other');
  expect(JSON.parse(JSON.stringify(parseToml(after)))).toEqual({
    model: 'gpt-5',
    mcp_servers: {
      other: { command: 'x', env: { KEY: SECRET } },
      agctl: { url: URL_, bearer_token_env_var: 'CLIENT_KEY' },
    },
  });
  expect((await mine.connect('codex', '--remove', '--write')).code).toBe(0);
  expect(JSON.parse(JSON.stringify(parseToml(mine.read('.codex/config.toml'))))).toEqual({
    model: 'gpt-5',
    mcp_servers: { other: { command: 'x', env: { KEY: SECRET } } },
  });
});

test('VS Code gets its input once, and loses it with the server', async () => {
  await using mine = await laptop(WITH_KEY, {
    '.config/Code/User/mcp.json': '{"inputs": [{"id": "other"}], "servers": {}}',
  });
  await mine.connect('vscode', '--write');
  await mine.connect('vscode', '--write', '--name', 'second');
  const { inputs, servers } = parseSettings(mine.read('.config/Code/User/mcp.json'), 'json') as Record<
    string,
    object[]
  >;
  expect(inputs?.length).toBe(2);
  expect(Object.keys(servers ?? {})).toEqual(['agctl', 'second']);
  await mine.connect('vscode', '--remove', '--write');
  expect(parseSettings(mine.read('.config/Code/User/mcp.json'), 'json')).toMatchObject({
    inputs: [{ id: 'other' }],
  });
});

const MODELS = `
gateways: { default: { port: 3100, address: 127.0.0.1 } }
llm: { policies: { apiKey: { keys: [{ key: $CLIENT_KEY }] } }, models: [{ name: "*", provider: echo }, { name: small, provider: echo }] }
`;
const BASE = 'http://127.0.0.1:3100';

test.each([
  [
    'claude',
    '.claude/settings.json',
    '{"permissions": {"allow": ["Bash"]}}',
    `"ANTHROPIC_BASE_URL": "${BASE}",\n    "ANTHROPIC_AUTH_TOKEN": "<CLIENT_KEY>",\n    "ANTHROPIC_MODEL": "small"`,
  ],
  [
    'codex',
    '.codex/config.toml',
    '# mine\napproval_policy = "never"\nmodel = "gpt-5"\n\n[mcp_servers.other]\ncommand = "x"\n',
    `[model_providers.agctl]\nname = "agctl"\nbase_url = "${BASE}/v1"\nwire_api = "responses"\nenv_key = "CLIENT_KEY"`,
  ],
  [
    'gemini',
    '.gemini/.env',
    'OTHER=1\nGEMINI_API_KEY=hunter2hunter2\n',
    `GOOGLE_GEMINI_BASE_URL=${BASE}\nGEMINI_API_KEY=<CLIENT_KEY>\nGEMINI_MODEL=small`,
  ],
])(
  'connect %s --llm prints, writes to ~/%s and removes the address of the models',
  async (client, path, before, expected) => {
    await using mine = await laptop(MODELS, { [path]: before });
    const printed = await mine.connect(client, '--llm');
    expect([printed.code, printed.stdout]).toEqual([0, expect.stringContaining(expected)]);
    expect(printed.stderr).toContain('CLIENT_KEY');
    const written = await mine.connect(client, '--llm', '--write');
    expect([written.code, written.stdout]).toEqual([0, expect.not.stringContaining('hunter2')]);
    for (const line of expected.split('\n')) expect(mine.read(path)).toContain(line);
    if (client === 'codex')
      expect(JSON.parse(JSON.stringify(parseToml(mine.read(path))))).toMatchObject({
        approval_policy: 'never',
        model: 'small',
        model_provider: 'agctl',
        mcp_servers: { other: { command: 'x' } },
      });
    expect((await mine.connect(client, '--llm', '--write')).stderr).toContain('nothing to change');
    expect((await mine.connect(client, '--llm', '--remove', '--write')).code).toBe(0);
    expect(mine.read(path)).not.toMatch(/127\.0\.0\.1|agctl|small/);
    expect(mine.read(path)).toMatch(/Bash|# mine|OTHER=1/);
  },
);

test.each([
  ['claude', ['gpt-4o-mini', 'anthropic/claude-sonnet-5'], 'anthropic/claude-sonnet-5', true],
  ['codex', ['small', 'gpt-5'], 'gpt-5', true],
  ['gemini', ['small', 'large'], 'small', true],
  ['claude', ['small'], 'small', false],
  // Its own names are served.
  ['claude', ['gpt-4o-mini', 'claude-*'], undefined, false],
])('connect %s --llm chooses among %j the model %s', async (client, names, model, isTold) => {
  const models = names.map((name) => ({ name, provider: 'echo' }));
  await using mine = await laptop(JSON.stringify({ llm: { port: 3000, models } }));
  const { stdout, stderr } = await mine.connect(client, '--llm');
  expect(names.filter((name) => stdout.includes(name))).toEqual(model === undefined ? [] : [model]);
  expect(stderr.includes(`# model ${model}; for another one use --model`)).toBe(isTold);
});

test('connect does not mention variables that are not set if they make no difference', async () => {
  await using mine = await laptop(WITH_KEY.replaceAll('CLIENT_KEY', 'OTHER_KEY'), {
    'project/gateway.env': 'OTHER_KEY=a',
  });
  const { code, stdout, stderr } = await mine.connect('cursor');
  expect([code, JSON.parse(stdout).mcpServers.agctl]).toEqual([
    0,
    { url: URL_, headers: { Authorization: `Bearer \${env:OTHER_KEY}` } },
  ]);
  expect(stderr).not.toContain('not set');
});

test('connect takes variables of the address from gateway.env, and says which ones are not defined', async () => {
  const config = `gateways: { default: { port: 3000 } }\nroutes: [{ hostnames: ["\${GATE_HOST}"], backends: [{ mcp: { targets: [{ name: a, mcp: { host: "http://127.0.0.1:1/mcp" } }] } }] }]\n`;
  await using mine = await laptop(config, { 'project/gateway.env': 'GATE_HOST=gate.test' });
  expect((await mine.connect('cursor')).stdout).toContain('http://gate.test:3000');
  await using without = await laptop(config);
  expect((await without.connect('cursor')).stderr).toContain('variables that are not set here: GATE_HOST\n');
});

test('secrets on changed lines are masked', async () => {
  await using mine = await laptop(CONFIG, {
    '.cursor/mcp.json': `{"mcpServers": {"o": {"env": {"TOKEN": "hunter2"}, "args": ["${SECRET}"]}}}`,
  });
  const { stdout } = await mine.connect('cursor', '--write');
  expect(stdout).toContain('agctl');
  expect(stdout).not.toMatch(/hunter2|ghp_/);
  expect(mine.read('.cursor/mcp.json')).toContain('hunter2');
});

test('the file keeps its mode', async () => {
  await using mine = await laptop(CONFIG);
  const path = join(mine.path, 'private.json');
  writeFileSync(path, '{}', { mode: 0o600 });
  await mine.connect('cursor', '--write', '--settings', path);
  for (const name of ['private.json', 'private.json.bak'])
    expect(statSync(join(mine.path, name)).mode & 0o777).toBe(0o600);
});

test.each([
  ['{"mcpServers": [', 'json', 'cursor', 'line 1 is not valid JSON'],
  ['{"mcpServers": 7}', 'json', 'cursor', '`mcpServers` is not an object'],
  [
    'mcp_servers = { agctl = { url = "x" } }',
    'toml',
    'codex',
    'written in a form that cannot be edited here',
  ],
  ['a = = b', 'toml', 'codex', 'line 1 is not valid TOML'],
])('the settings %j are not changed', async (text, extension, client, message) => {
  await using mine = await laptop(CONFIG, { [`s.${extension}`]: text });
  const { code, stderr } = await mine.connect(
    client,
    '--write',
    '--settings',
    join(mine.path, `s.${extension}`),
  );
  expect([code, stderr]).toEqual([1, expect.stringContaining(message)]);
  expect(mine.read(`s.${extension}`)).toBe(text);
  expect(mine.exists(`s.${extension}.bak`)).toBe(false);
});

test.each([
  [
    `gateways: { default: { port: 80, routes: [{ hostnames: [mcp.example.com], backends: [{ mcp: { targets: [{ name: a, stdio: { cmd: x } }] } }] }] } }`,
    'http://mcp.example.com/mcp',
  ],
  [
    `gateways: { default: { port: 3000, routes: [{ matches: [{ path: { exact: /tools } }], backends: [{ mcp: { targets: [{ name: a, stdio: { cmd: x } }] } }] }] } }`,
    'http://127.0.0.1:3000/tools',
  ],
  [`mcp: { port: 3001, targets: [{ name: a, stdio: { cmd: x } }] }`, 'http://127.0.0.1:3001/mcp'],
])('the endpoint of %s is %s', async (config, url) => {
  await using mine = await laptop(config);
  expect(JSON.parse((await mine.connect('cursor')).stdout).mcpServers.agctl.url).toBe(url);
});

const BUNDLES = WITH_KEY.replace(
  'mcp: {',
  'mcp: { bundles: [{ name: reviews, tools: ["*"] }, { name: files, targets: [a] }],',
);

test('connect --bundle takes the path of a bundle of the configuration, and its name', async () => {
  await using mine = await laptop(BUNDLES);
  const { stdout } = await mine.connect('cursor', '--bundle', 'files');
  const headers = { Authorization: `Bearer \${env:CLIENT_KEY}` };
  expect(JSON.parse(stdout).mcpServers).toEqual({ files: { url: `${URL_}/files`, headers } });
  const named = await mine.connect('cursor', '--bundle', 'files', '--name', 'mine');
  expect(Object.keys(JSON.parse(named.stdout).mcpServers)).toEqual(['mine']);
  await mine.connect('cursor', '--bundle', 'files', '--write');
  await mine.connect('cursor', '--bundle', 'reviews', '--write');
  await mine.connect('cursor', '--bundle', 'files', '--remove', '--write');
  expect(Object.keys(JSON.parse(mine.read('.cursor/mcp.json')).mcpServers)).toEqual(['reviews']);
});

test.each([
  [['--bundle', 'fils'], 'unknown bundle `fils`\n  = help: bundles: reviews, files'],
  [['--bundle', 'files', '--url', URL_], '--bundle names a bundle of the configuration'],
  [['--bundle', 'files', '--local'], '--bundle names a bundle of the configuration'],
])('connect cursor %j is a usage error', async (args, message) => {
  await using mine = await laptop(BUNDLES);
  const { code, stdout, stderr } = await mine.connect('cursor', ...args);
  expect([code, stdout, stderr]).toEqual([2, '', expect.stringContaining(message)]);
});

test('connect --admin takes the endpoint of a running gateway', async () => {
  const socket = await temporaryFolder();
  await using _socket = socket;
  const admin = `unix:${join(socket.path, 'admin.sock')}`;
  await using gateway = await serve(
    `config: { adminAddr: "${admin}" }\nmcp: { port: 0, policies: { apiKey: { keys: [{ key: k }] } }, targets: [{ name: a, stdio: { cmd: x } }] }`,
    { env: { ADMIN_ADDR: undefined } },
  );
  const { code, stdout } = await cli(['connect', 'cursor', '--admin', admin]);
  expect([code, JSON.parse(stdout).mcpServers.agctl]).toEqual([
    0,
    { url: `${gateway.url}/mcp`, headers: { Authorization: `Bearer \${env:AGCTL_KEY}` } },
  ]);
});

test('an endpoint of a running gateway with TLS has its scheme and host name', () => {
  const route = { matches: [{ path: { pathPrefix: '/mcp' } }], backends: [{ backend: '/tools' }] };
  const listener = { protocol: 'HTTPS', hostname: 'api.example', routes: { a: route } };
  const dump = {
    binds: [{ address: '[::]:8443', listeners: { a: listener } }],
    backends: [{ backend: { mcp: { namespace: '', name: 'tools' } } }],
  };
  expect(endpointsOfDump(dump, 'mcp').map(({ url }) => url)).toEqual(['https://api.example:8443/mcp']);
});

test('an address that is that of the configuration gets its key, and another one none', async () => {
  await using mine = await laptop(WITH_KEY);
  const headersOf = async (...args: string[]) =>
    JSON.parse((await mine.connect('cursor', ...args)).stdout).mcpServers.agctl.headers;
  const header = { Authorization: `Bearer \${env:CLIENT_KEY}` };
  for (const url of [URL_, `${URL_}/`, 'http://localhost:3100/mcp'])
    expect(await headersOf('--url', url)).toEqual(header);
  for (const url of ['http://127.0.0.1:3101/mcp', 'http://127.0.0.1:3100/mcpx', 'https://127.0.0.1:3100/mcp'])
    expect(await headersOf('--url', url)).toBeUndefined();
  writeFileSync(join(mine.cwd, 'gateway.yaml'), 'not: valid\n');
  expect(await headersOf('--url', URL_)).toBeUndefined();
});

test.each([
  [[], 'which client?\n  = help: clients: claude, '],
  [['cursr'], 'unknown client `cursr`, did you mean cursor?'],
  [['code'], 'unknown client `code`, did you mean vscode or codex?'],
  [['cursor', 'zed'], 'too many arguments'],
  [['cursor', '--name', 'a b'], '--name: expected letters'],
  [['cursor', '--llm'], '--llm: cursor has no documented setting'],
  [['cursor', '--model', 'small'], '--model goes with --llm'],
  [['cursor', '--url', 'ftp://x'], '--url: expected an http or https URL'],
  [['cursor', '-f', 'gateway.yaml', '--local'], 'name two different gateways'],
  [['cursor', '-f', 'no.yaml'], 'no such file'],
])('connect %j is a usage error', async (args, message) => {
  await using mine = await laptop(CONFIG);
  const { code, stdout, stderr } = await mine.connect(...args);
  expect([code, stdout, stderr]).toEqual([2, '', expect.stringContaining(message)]);
});

test.each([
  ['llm: { models: [{ name: "*", provider: echo }] }', 'the gateway has no MCP endpoint'],
  ['mcp: {', 'is not a valid configuration'],
])('connect with the configuration %j says what is missing', async (config, message) => {
  await using mine = await laptop(config);
  expect(await mine.connect('cursor')).toMatchObject({ code: 1, stderr: expect.stringContaining(message) });
});

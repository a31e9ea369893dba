import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseEnv } from 'node:util';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { cli, type Ran } from '../kit/cli.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { openSession, toolCall } from '../kit/mcp.ts';
import { service } from '../kit/process.ts';
import { hasTerminal, terminal } from '../kit/terminal.ts';
import { until } from '../kit/until.ts';

const EVERYTHING = join(import.meta.dirname, '../kit/everything-server.ts');
const SECRET = 'ghp_0123456789abcdefghij';

/** A home folder and a project folder, with files; `~/` in their names is the home folder. */
async function laptop(files: Readonly<Record<string, unknown>> = {}) {
  const folder = await temporaryFolder();
  const home = join(folder.path, 'home');
  const cwd = join(home, 'project');
  mkdirSync(cwd, { recursive: true });
  for (const [name, content] of Object.entries(files)) {
    const path = name.startsWith('~/') ? join(home, name.slice(2)) : join(cwd, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
  }
  const init = (args: readonly string[] = [], env: Record<string, string> = {}): Promise<Ran> =>
    cli(['init', '--yes', ...args], { cwd, env: { HOME: home, ...env } });
  return {
    home,
    cwd,
    init,
    config: (name = '.') => parse(readFileSync(join(cwd, name, 'gateway.yaml'), 'utf8')),
    secrets: () => parseEnv(readFileSync(join(cwd, 'gateway.env'), 'utf8')),
    /** Validates the result with its own variables; `warnings` are allowed. */
    validate: (env: Record<string, string> = {}) =>
      cli(['config', 'validate', '-f', 'gateway.yaml'], { cwd, env: { HOME: home, ...env } }),
    [Symbol.asyncDispose]: folder[Symbol.asyncDispose],
  };
}

const server = (...args: readonly string[]) => ({ command: process.execPath, args: [EVERYTHING, ...args] });

test('init imports the servers of a client, and the result serves their tools', async () => {
  const servers = { one: server(), two: server('--eras', 'legacy'), three: server('--eras', 'modern') };
  await using mine = await laptop({ '~/.cursor/mcp.json': { mcpServers: servers } });
  const { code, stdout, stderr } = await mine.init();
  expect([code, stderr]).toEqual([0, '']);
  expect(stdout).toContain('3 MCP servers: one, two, three');
  await using gateway = await service(['serve'], { cwd: mine.cwd, env: { HOME: mine.home } });
  const session = await openSession(`${gateway.url}/mcp`);
  const reply = await session.send(toolCall(1, 'two_test_simple_text'));
  expect(JSON.stringify(reply)).toContain('plain text from the fixture');
});

test.each([
  ['~/.claude.json', { mcpServers: { a: server() } }],
  ['.mcp.json', { mcpServers: { a: { type: 'stdio', ...server() } } }],
  ['~/.config/Claude/claude_desktop_config.json', { mcpServers: { a: server() } }],
  ['~/.cursor/mcp.json', { mcpServers: { a: server() } }],
  ['.vscode/mcp.json', `{ // mine\n "servers": { "a": ${JSON.stringify(server())}, }, }`],
  ['~/.config/Code/User/mcp.json', { servers: { a: server() } }],
  ['~/.codeium/windsurf/mcp_config.json', { mcpServers: { a: server() } }],
  ['~/.config/zed/settings.json', { context_servers: { a: { source: 'custom', ...server() } } }],
  ['~/.gemini/settings.json', { mcpServers: { a: server() } }],
  [
    '~/.codex/config.toml',
    `[mcp_servers.a]\ncommand = ${JSON.stringify(process.execPath)}\nargs = [${JSON.stringify(EVERYTHING)}]\n`,
  ],
  ['~/.lmstudio/mcp.json', { mcpServers: { a: server() } }],
])('init finds the servers in %s', async (file, content) => {
  await using mine = await laptop({ [file]: content });
  expect(await mine.init()).toMatchObject({ code: 0, stderr: '' });
  const target = { name: 'a', stdio: { cmd: process.execPath, args: [EVERYTHING] } };
  expect(mine.config().mcp.targets).toEqual([target]);
  expect((await mine.validate()).code).toBe(0);
});

test('a server that several clients have is imported once, and another one of the same name gets a number', async () => {
  await using mine = await laptop({
    '~/.cursor/mcp.json': { mcpServers: { files: server(), 'My.Server': server('--eras', 'modern') } },
    '.vscode/mcp.json': { servers: { files: server(), 'my server': server('--eras', 'legacy') } },
  });
  await mine.init();
  const names = mine.config().mcp.targets.map(({ name }: { name: string }) => name);
  expect(names).toEqual(['files', 'my-server', 'my-server-2']);
});

test('the configuration is formatted, and servers that npx installs start in advance', async () => {
  const github = { command: 'npx', args: ['-y', 'server-github'], env: { GITHUB_TOKEN: SECRET } };
  await using mine = await laptop({
    '~/.cursor/mcp.json': { mcpServers: { github, plain: server('--a', 'b') } },
  });
  const { stdout } = await mine.init();
  expect(mine.config().mcp.targets).toMatchObject([
    { stdio: { warm: 1 } },
    { stdio: { cmd: process.execPath } },
  ]);
  expect(mine.config().mcp.targets[1].stdio).not.toHaveProperty('warm');
  expect(await cli(['config', 'fmt', '--check', 'gateway.yaml'], { cwd: mine.cwd })).toMatchObject({
    code: 0,
  });
  expect(stdout).toContain('  agctl serve\n  agctl connect claude');
});

test.each([
  ['mcp', ['agctl connect claude  ']],
  ['llm', ['agctl connect claude --llm  ']],
  ['mcp,llm', ['agctl connect claude  ', 'agctl connect claude --llm  ']],
])(
  'after init --with %s, the commands to connect are those for what is offered',
  async (features, commands) => {
    await using mine = await laptop();
    const { stdout } = await mine.init(['--with', features]);
    expect(stdout.match(/agctl connect claude.*? {2}/g)).toEqual(commands);
  },
);

test('the database for usage, keys and Conversations is in the file as a comment, and works without the #', async () => {
  await using mine = await laptop();
  expect((await mine.init()).stdout).toContain('usage, keys and Conversations need a database');
  const file = join(mine.cwd, 'gateway.yaml');
  const text = readFileSync(file, 'utf8');
  expect(mine.config().config).not.toHaveProperty('database');
  writeFileSync(file, text.replace('# database:', 'database:'));
  expect(mine.config()).toMatchObject({ config: { database: { url: 'sqlite://./agctl.db' } } });
  expect((await mine.validate()).code).toBe(0);
});

test('secrets become references, whose values only the owner of gateway.env can read', async () => {
  await using mine = await laptop({
    '~/.cursor/mcp.json': {
      mcpServers: {
        github: {
          command: 'docker',
          args: [
            'run',
            '--token',
            SECRET,
            `--api-key=${SECRET}x`,
            'https://u:p4ssw0rd@host/',
            '-y',
            'some-package',
          ],
          env: {
            GITHUB_TOKEN: SECRET,
            LOG_LEVEL: 'debug',
            PORT: '8080',
            ROOT: '/srv/data',
            PIN: "it's $5",
            ODD: 'Zx9',
          },
        },
        other: { command: 'x', env: { GITHUB_TOKEN: 'another-token' } },
        remote: {
          url: `https://mcp.example.com/mcp?api_key=${SECRET}q&team=7`,
          headers: { Authorization: `Bearer ${SECRET}h` },
        },
      },
    },
  });
  const { stdout, stderr } = await mine.init();
  const text = readFileSync(join(mine.cwd, 'gateway.yaml'), 'utf8');
  for (const shown of [text, stdout, stderr])
    expect(shown).not.toMatch(/ghp_|p4ssw0rd|another-token|it's|Zx9/);
  const [github, other, remote] = mine.config().mcp.targets;
  expect(github.stdio.env).toEqual({
    GITHUB_TOKEN: `\${GITHUB_TOKEN}`,
    ...{ LOG_LEVEL: 'debug', PORT: '8080', ROOT: '/srv/data', PIN: `\${GITHUB_PIN}`, ODD: `\${GITHUB_ODD}` },
  });
  expect(github.stdio.args).toEqual([
    'run',
    '--token',
    `\${GITHUB_TOKEN}`,
    `--api-key=\${GITHUB_API_KEY}`,
    `\${GITHUB_ARGUMENT}`,
    '-y',
    'some-package',
  ]);
  expect(other.stdio.env).toEqual({ GITHUB_TOKEN: `\${OTHER_GITHUB_TOKEN}` });
  expect(remote).toMatchObject({
    mcp: { host: `https://mcp.example.com/mcp?api_key=\${REMOTE_API_KEY}&team=7` },
    policies: { backendAuth: { key: `\${REMOTE_TOKEN}` } },
  });
  expect(mine.secrets()).toEqual({
    ...{ GITHUB_TOKEN: SECRET, GITHUB_PIN: "it's $5", GITHUB_ODD: 'Zx9', GITHUB_API_KEY: `${SECRET}x` },
    ...{ GITHUB_ARGUMENT: 'https://u:p4ssw0rd@host/', OTHER_GITHUB_TOKEN: 'another-token' },
    ...{ REMOTE_API_KEY: `${SECRET}q`, REMOTE_TOKEN: `${SECRET}h` },
  });
  expect(statSync(join(mine.cwd, 'gateway.env')).mode & 0o777).toBe(0o600);
  expect((await mine.validate()).stderr).toContain('valid (1 port, variables of gateway.env)');
});

test('with --no-secrets, gateway.env has the names of secrets and no values', async () => {
  await using mine = await laptop({
    '~/.cursor/mcp.json': { mcpServers: { a: { ...server(), env: { KEY: SECRET } } } },
  });
  const { stdout } = await mine.init(['--no-secrets']);
  expect(stdout).toContain('fill in: A_KEY');
  expect(mine.secrets()).toEqual({ A_KEY: 'change-me' });
  expect((await mine.validate()).code).toBe(0);
});

test('a secret that the environment has already is not written to a file', async () => {
  await using mine = await laptop({
    '~/.cursor/mcp.json': { mcpServers: { a: { ...server(), env: { KEY: SECRET } } } },
  });
  await mine.init([], { A_KEY: SECRET });
  expect(mine.config().mcp.targets[0].stdio.env).toEqual({ KEY: `\${A_KEY}` });
  expect(existsSync(join(mine.cwd, 'gateway.env'))).toBe(false);
  expect((await mine.validate({ A_KEY: SECRET })).code).toBe(0);
});

test('placeholders of editors become references and folders', async () => {
  await using mine = await laptop({
    '.vscode/mcp.json': {
      inputs: [{ type: 'promptString', id: 'github-token', password: true }],
      servers: {
        a: {
          command: `\${workspaceFolder}/server`,
          args: [`\${userHome}`, `\${env:NAME}`, 'costs $5', '$HOME'],
          env: { TOKEN: `\${input:github-token}` },
        },
        b: { command: 'x', args: [`\${command:pick}`] },
      },
    },
    '~/.gemini/settings.json': {
      mcpServers: { c: { command: 'x', args: ['$NAME'], includeTools: ['one', 'two(x)'] } },
    },
    '~/.codex/config.toml':
      '[mcp_servers.d]\nurl = "https://mcp.example.com/mcp"\nbearer_token_env_var = "D_TOKEN"\n',
  });
  const { stdout } = await mine.init([], { NAME: 'n' });
  const targets = mine.config().mcp.targets;
  expect(targets).toEqual([
    {
      name: 'a',
      stdio: {
        cmd: `${mine.cwd}/server`,
        args: [mine.home, `\${NAME}`, 'costs $$5', '$$HOME'],
        env: { TOKEN: `\${GITHUB_TOKEN}` },
      },
    },
    expect.objectContaining({ name: 'd', policies: { backendAuth: { key: `\${D_TOKEN}` } } }),
    { name: 'c', stdio: { cmd: 'x', args: ['$NAME'] }, tools: { include: ['one', 'two'] } },
  ]);
  expect(stdout).toContain(`b in .vscode/mcp.json: \${command:pick} has no counterpart`);
  expect(stdout).toContain('fill in: GITHUB_TOKEN, D_TOKEN');
  expect((await mine.validate({ NAME: 'n' })).code).toBe(0);
});

test('headers for a remote server are sent, and their secrets are in gateway.env', async () => {
  const remote = (headers: object) => ({ url: 'https://a.example/mcp', headers });
  await using mine = await laptop({
    '~/.cursor/mcp.json': {
      mcpServers: {
        bearer: remote({ Authorization: `Bearer ${SECRET}`, Accept: 'text/event-stream' }),
        key: remote({ 'X-API-Key': SECRET, 'X-Version': '2$' }),
        basic: remote({ authorization: 'Basic abc', 'X-Org': `\${env:ORG}` }),
      },
    },
    '~/.codex/config.toml':
      '[mcp_servers.codex]\nurl = "https://b.example/mcp"\nenv_http_headers = { X-Org = "ORG" }\nhttp_headers = { X-Plain = "yes" }\n',
  });
  await mine.init();
  const header = (name: string) => ({ header: { name } });
  const policies = mine.config().mcp.targets.map((target: { policies: unknown }) => target.policies);
  expect(policies).toEqual([
    { backendAuth: { key: `\${BEARER_TOKEN}` } },
    {
      backendAuth: { credentials: [{ key: `\${KEY_X_API_KEY}`, location: header('X-API-Key') }] },
      requestHeaderModifier: { set: { 'X-Version': '2$$' } },
    },
    {
      backendAuth: {
        credentials: [
          { key: `Basic \${BASIC_TOKEN}`, location: header('authorization') },
          { key: `\${ORG}`, location: header('X-Org') },
        ],
      },
    },
    {
      backendAuth: { credentials: [{ key: `\${ORG}`, location: header('X-Org') }] },
      requestHeaderModifier: { set: { 'X-Plain': 'yes' } },
    },
  ]);
  expect(mine.secrets()).toMatchObject({ BEARER_TOKEN: SECRET, KEY_X_API_KEY: SECRET, BASIC_TOKEN: 'abc' });
  expect((await mine.validate()).code).toBe(0);
});

test('what cannot be imported is listed with a reason, and the rest is', async () => {
  await using mine = await laptop({
    '~/.cursor/mcp.json': {
      mcpServers: {
        off: { command: 'x', disabled: true },
        header: { url: 'https://a.example/mcp', headers: { 'X-Api-Key': {} } },
        password: { url: 'https://u:p@a.example/mcp' },
        scheme: { url: 'ftp://a.example/mcp' },
        neither: {},
        text: 'x',
        list: { command: 'x', args: 'y' },
        self: { url: 'http://127.0.0.1:3999/mcp' },
        file: { ...server(), envFile: '.env', alwaysAllow: ['a'], trust: true, timeout: 5, odd: 1 },
      },
      globalShortcut: '',
      inputs: [],
    },
    '~/.config/zed/settings.json': { context_servers: { extension: { settings: {} } } },
  });
  const { code, stdout } = await mine.init(['--port', '3999']);
  expect(code).toBe(0);
  expect(mine.config().mcp.targets.map(({ name }: { name: string }) => name)).toEqual(['file']);
  const at = 'in ~/.cursor/mcp.json:';
  for (const line of [
    `off ${at} disabled there`,
    `header ${at} a value of \`env\` or \`headers\` is not a text`,
    `password ${at} its URL has a user and a password`,
    `scheme ${at} invalid scheme: \`ftp\``,
    `neither ${at} it has neither a command nor a URL`,
    `text ${at} not an object`,
    `list ${at} \`args\` is not a list of texts`,
    `self ${at} it is this gateway`,
    `\`envFile\`, \`odd\` of file ${at} no counterpart`,
    `\`alwaysAllow\`, \`trust\` of file ${at} the client decides which calls it asks its user about`,
    `\`timeout\` of file ${at} a timeout for calls of all servers is \`mcp.policies.timeout\``,
    `\`globalShortcut\`, \`inputs\` ${at} settings of the client; an input that a server uses`,
    'extension in ~/.config/zed/settings.json: an extension of the editor starts it',
  ])
    expect(stdout).toContain(line);
});

test('LiteLLM: models, keys, shared names, fallbacks and MCP servers are imported', async () => {
  await using mine = await laptop({
    'litellm.yaml': `
model_list:
  - model_name: gpt-4o
    litellm_params: { model: openai/gpt-4o, api_key: os.environ/OPENAI_API_KEY, rpm: 10, temperature: 0.2, weight: 1 }
  - model_name: gpt-4o
    litellm_params: { model: azure/eu-4o, api_base: "https://eu.openai.azure.com/", api_version: "2024-10-21", api_key: az-key-1, weight: 3 }
  - model_name: claude
    litellm_params: { model: anthropic/claude-sonnet-4-5, api_base: os.environ/CLAUDE_URL }
    model_info: { input_cost_per_token: 3.0e-6 }
  - model_name: local
    litellm_params: { model: ollama/llama3, api_base: "http://localhost:11434" }
  - model_name: "openai/*"
    litellm_params: { model: "openai/*", api_key: os.environ/OPENAI_API_KEY }
  - model_name: odd
    litellm_params: { model: replicate/thing }
litellm_settings: { request_timeout: 30, max_budget: 5, budget_duration: 1d, drop_params: true, fallbacks: [{ claude: [gpt-4o, nope] }], callbacks: [langfuse] }
general_settings: { master_key: sk-master-1234, database_url: "postgresql://x" }
mcp_servers:
  zapier: { url: "https://z.example/mcp", auth_type: bearer_token, auth_value: os.environ/ZAPIER }
`,
  });
  const { code, stdout, stderr } = await mine.init(['--from', 'litellm.yaml']);
  expect([code, stderr]).toEqual([0, '']);
  const { llm, mcp, config } = mine.config();
  expect(llm.policies).toEqual({
    apiKey: { mode: 'strict', keys: [{ key: `\${LITELLM_MASTER_KEY}` }], virtualKeys: {} },
    timeout: { backendRequestTimeout: '30s' },
    retry: { attempts: 2, backoff: '500ms', codes: [408, 409, 429, 500, 502, 503, 504, 529] },
    budgets: [{ name: 'litellm', limit: '5USD/day' }],
  });
  expect(config).toMatchObject({
    database: { url: 'sqlite://./agctl.db' },
    modelCatalog: [
      {
        inline: { providers: { anthropic: { models: { 'claude-sonnet-4-5': { rates: { input: '3' } } } } } },
      },
    ],
  });
  expect(readFileSync(join(mine.cwd, 'gateway.yaml'), 'utf8')).not.toMatch(/[&*]a1/);
  expect(stdout).toMatch(/not imported\n {2}warning: /);
  const health = {
    unhealthyExpression: 'response.code >= 500 || response.code in [401, 402, 404, 408, 429]',
  };
  expect(llm.models).toEqual([
    {
      ...{
        name: 'gpt-4o#1',
        visibility: 'internal',
        provider: 'oaiCompat',
        defaults: { temperature: 0.2 },
        health,
      },
      params: { model: 'gpt-4o', apiKey: `\${OPENAI_API_KEY}` },
    },
    {
      ...{ name: 'gpt-4o#2', visibility: 'internal', provider: 'azure', health },
      params: {
        model: 'eu-4o',
        apiKey: `\${GPT_4O_API_KEY}`,
        azureResourceName: 'eu',
        azureApiVersion: '2024-10-21',
      },
    },
    {
      ...{ name: 'claude#1', visibility: 'internal', provider: 'anthropic', health },
      params: {
        model: 'claude-sonnet-4-5',
        apiKey: `\${ANTHROPIC_API_KEY}`,
        baseUrl: `\${CLAUDE_URL}/v1`,
      },
    },
    {
      ...{ name: 'local', provider: 'ollama' },
      params: { model: 'llama3', apiKey: 'none', baseUrl: 'http://localhost:11434/v1' },
    },
    { name: 'openai/*', provider: 'oaiCompat', params: { model: '*', apiKey: `\${OPENAI_API_KEY}` } },
  ]);
  expect(llm.virtualModels).toEqual([
    {
      name: 'gpt-4o',
      routing: {
        failover: {
          targets: [
            { model: 'gpt-4o#1', priority: 0, weight: 1 },
            { model: 'gpt-4o#2', priority: 0, weight: 3 },
          ],
        },
      },
    },
    {
      name: 'claude',
      routing: {
        failover: {
          targets: [
            { model: 'claude#1', priority: 0 },
            { model: 'gpt-4o#1', priority: 1, weight: 1 },
            { model: 'gpt-4o#2', priority: 1, weight: 3 },
          ],
        },
      },
    },
  ]);
  expect(mcp.policies).toMatchObject({ apiKey: llm.policies.apiKey });
  expect(mcp.targets).toEqual([
    {
      name: 'zapier',
      mcp: { host: 'https://z.example/mcp' },
      policies: { backendAuth: { key: `\${ZAPIER}` } },
    },
  ]);
  for (const line of [
    'odd in litellm.yaml: the provider `replicate` has no counterpart',
    'warning: `rpm` of gpt-4o in litellm.yaml: a deployment has no limit of its own',
    'warning: `fallbacks.claude` in litellm.yaml: not imported as a model: nope',
    '`general_settings.database_url` in litellm.yaml',
    '`litellm_settings.callbacks` in litellm.yaml',
    '`litellm_settings.drop_params` in litellm.yaml: a parameter that a provider does not know is an error (400)',
  ])
    expect(stdout).toContain(line);
  expect(mine.secrets()).toMatchObject({ LITELLM_MASTER_KEY: 'sk-master-1234', GPT_4O_API_KEY: 'az-key-1' });
  expect(await mine.validate()).toMatchObject({ code: 0 });
});

test('a configuration in former forms becomes the whole file, in the current form', async () => {
  await using mine = await laptop({
    'old.yaml':
      'binds:\n  - port: 3000 # mine\n    listeners:\n      - routes:\n          - backends: [{ host: "127.0.0.1:80" }]\n',
  });
  expect((await mine.init(['--from', 'old.yaml'])).code).toBe(0);
  const text = readFileSync(join(mine.cwd, 'gateway.yaml'), 'utf8');
  expect(text).toContain('# mine');
  expect(mine.config().gateways.default.port).toBe(3000);
  expect((await mine.validate()).code).toBe(0);
});

test.each([
  [[], {}, ['everything'], undefined],
  [['--with', 'llm'], {}, undefined, ['echo']],
  [
    ['--with', 'mcp,llm,memory'],
    { OPENAI_API_KEY: 'sk-x', GEMINI_API_KEY: 'g' },
    ['everything', 'memory'],
    ['oaiCompat', 'gemini'],
  ],
] as const)(
  'init --yes %j without anything to import starts with something that works',
  async (args, env, targets, providers) => {
    await using mine = await laptop();
    const { code, stdout } = await mine.init(args, env);
    expect(code).toBe(0);
    // A new user must not take it for a server of his own.
    expect(stdout.includes('everything is a sample server')).toBe(targets !== undefined);
    const { mcp, llm, gateways } = mine.config();
    expect(gateways.default.address).toBe('127.0.0.1');
    expect(mcp?.targets.map(({ name }: { name: string }) => name)).toEqual(targets);
    expect(llm?.models.map(({ provider }: { provider: string }) => provider)).toEqual(providers);
    expect(await mine.validate(env)).toMatchObject({ code: 0 });
  },
);

test('the memory of a configuration that npx created answers calls without the PATH of npx', async () => {
  const bin = '.npm/_npx/1/node_modules/.bin';
  await using mine = await laptop({ [`${bin}/agctl`]: '' });
  await mine.init(['--with', 'memory'], { PATH: join(mine.cwd, bin), npm_command: 'exec' });
  await using gateway = await service(['serve'], { cwd: mine.cwd, env: { HOME: mine.home } });
  const session = await openSession(`${gateway.url}/mcp`);
  // A server that takes longer to start joins later.
  await until(async () => {
    const { result } = await session.request('tools/list');
    return JSON.stringify(result).includes('search_knowledge');
  }, 30_000);
});

test('nothing is overwritten', async () => {
  await using mine = await laptop({ 'gateway.yaml': 'mine', 'other/gateway.env': 'mine' });
  for (const [args, file] of [
    [[], 'gateway.yaml'],
    [['other'], 'other/gateway.env'],
  ] as const) {
    const { code, stderr } = await mine.init(args);
    expect([code, stderr]).toEqual([1, expect.stringContaining(`${file} exists already`)]);
  }
  expect(readFileSync(join(mine.cwd, 'gateway.yaml'), 'utf8')).toBe('mine');
  expect(existsSync(join(mine.cwd, 'other/gateway.yaml'))).toBe(false);
});

test.each([
  [['--from', 'nope.json'], 'no such file'],
  [['--from', 'cursor'], 'no MCP servers of Cursor found\n  = help: looked in ~/.cursor/mcp.json'],
  [['--from', 'broken.json'], 'cannot import broken.json: line 2 is not valid JSON'],
  [['--from', 'broken.toml'], 'cannot import broken.toml: line 1 is not valid TOML'],
  [['--from', 'broken.yaml'], 'cannot import broken.yaml: not valid YAML, line 1'],
  [['--from', 'round.yaml'], 'cannot import round.yaml: an alias of YAML contains itself'],
  [['--from', 'empty.json'], 'nothing to import in empty.json\n  = help: expected `mcpServers`'],
  [['--with', 'nope'], '--with: unknown feature `nope`\n  = help: features: mcp, llm, memory'],
  [['--port', '0'], '--port must be a number from 1 to 65535'],
])('init %j is a usage error that writes nothing', async (args, message) => {
  await using mine = await laptop({
    ...{
      'broken.json': '{\n"mcpServers": secret',
      'broken.toml': 'a = = secret',
      'broken.yaml': 'a: [secret',
      'round.yaml': 'model_list: [&a { secret: *a }]',
      'empty.json': {},
    },
  });
  const { code, stdout, stderr } = await mine.init(args);
  expect([code, stdout]).toEqual([2, '']);
  expect(stderr).toContain(message);
  expect(stderr).not.toContain('secret');
  expect(existsSync(join(mine.cwd, 'gateway.yaml'))).toBe(false);
});

test('without a terminal, init asks for --yes', async () => {
  const { code, stderr } = await cli(['init']);
  expect([code, stderr]).toEqual([2, expect.stringContaining('agctl init --yes --with mcp,llm,memory')]);
});

test.runIf(hasTerminal)(
  'at a terminal, init asks what to offer, what to import, and whether to copy secrets',
  async () => {
    await using mine = await laptop({
      '~/.cursor/mcp.json': { mcpServers: { a: { ...server(), env: { KEY: SECRET } } } },
      '.mcp.json': { mcpServers: { b: server('--eras', 'modern') } },
    });
    await using screen = await terminal({ columns: 100, rows: 40 });
    await screen.agctl(['init', 'new'], `cd ${mine.cwd}; HOME=${mine.home}`);
    await screen.shows('What should this gateway offer?');
    await screen.press('Enter');
    expect(await screen.shows('Import the MCP servers')).toMatch(/Claude Code[\s\S]*Cursor/);
    await screen.press('Space', 'Enter');
    await screen.shows('Copy the values of A_KEY to gateway.env');
    await screen.press('n');
    await screen.shows('code 0');
    expect(mine.config('new').mcp.targets.map(({ name }: { name: string }) => name)).toEqual(['a']);
    expect(readFileSync(join(mine.cwd, 'new/gateway.env'), 'utf8')).toContain('KEY=change-me');
  },
);

test.runIf(hasTerminal)('Ctrl-C at a question of init writes nothing and exits with 130', async () => {
  await using mine = await laptop();
  await using screen = await terminal();
  await screen.agctl(['init'], `cd ${mine.cwd}; HOME=${mine.home}`);
  await screen.shows('What should this gateway offer?');
  await screen.press('C-c');
  await screen.shows('code 130');
  expect(existsSync(join(mine.cwd, 'gateway.yaml'))).toBe(false);
});

// Files of other programs have members of any type; `String` fails for an object with a member `toString`.
test.each(['null', '1', 'true', '[]', '[null]', '{}', '{"toString":1,"valueOf":1}'])(
  'init imports the servers and models of files that also have %s as members, and says what it leaves out',
  async (odd) => {
    const good = JSON.stringify(server());
    const servers = [
      `"good":${good}`,
      `"odd":${odd}`,
      `"command":{"command":${odd}}`,
      `"env":{"command":"x","args":${odd},"env":{"A":${odd}},"cwd":${odd},"includeTools":${odd}}`,
      `"envs":{"command":"x","env":${odd},"disabled":${odd},"type":${odd}}`,
      `"headers":{"url":"http://127.0.0.1:9/mcp","headers":{"Authorization":${odd}}}`,
    ];
    await using mine = await laptop({
      '~/.cursor/mcp.json': `{"mcpServers":{${servers.join(',')}},"projects":${odd}}`,
      'litellm.yaml': `{"model_list":[{"model_name":"a","litellm_params":{"model":"ollama/a"}},${odd},
        {"model_name":${odd},"litellm_params":{"model":${odd},"api_key":${odd}}},
        {"model_name":"b","litellm_params":{"model":"constructor/b"}}],
        "litellm_settings":{"fallbacks":[${odd},{"a":${odd}},{"a":[${odd}]}]},"router_settings":${odd},
        "general_settings":{"master_key":${odd}},"mcp_servers":{"x":${odd}}}`,
    });
    const clients = await mine.init(['clients']);
    expect(clients.stderr).toBe('');
    expect([clients.code, clients.stdout]).toEqual([0, expect.stringMatching(/MCP servers?: good/)]);
    const models = await mine.init(['models', '--from', 'litellm.yaml']);
    expect(models.stderr).toBe('');
    expect([models.code, models.stdout]).toEqual([0, expect.stringContaining('1 model')]);
    expect(models.stdout).toContain('b in litellm.yaml: the provider `constructor` has no counterpart');
  },
);

test('a file of which nothing can be imported is an error, and nothing is written', async () => {
  const unknown = 'model_list: [{ model_name: a, litellm_params: { model: petals/x } }]\n';
  await using mine = await laptop({ 'config.yaml': unknown });
  const { code, stderr } = await cli(['init', '--yes', '--from', 'config.yaml'], {
    cwd: mine.cwd,
    env: { HOME: mine.cwd },
  });
  expect(code).toBe(1);
  expect(stderr).toContain(
    'nothing could be imported: a in config.yaml: the provider `petals` has no counterpart',
  );
  expect(existsSync(join(mine.cwd, 'gateway.yaml'))).toBe(false);
});

test('a LiteLLM file without models says where they are', async () => {
  await using mine = await laptop({ 'config.yaml': 'model_list: []\ngeneral_settings: { x: 1 }\n' });
  const { code, stderr } = await mine.init(['--from', 'config.yaml']);
  expect([code, stderr]).toEqual([
    1,
    expect.stringContaining('`model_list` in config.yaml: it has none: models that were'),
  ]);
});

test('config validate warns of secrets that still have the placeholder of init', async () => {
  const known =
    'model_list: [{ model_name: a, litellm_params: { model: openai/x } }]\ngeneral_settings: { master_key: os.environ/MASTER }\n';
  await using mine = await laptop({ 'config.yaml': known });
  const options = { cwd: mine.cwd, env: { HOME: mine.cwd } };
  await cli(['init', '--yes', '--from', 'config.yaml'], options);
  const found = await cli(['config', 'validate', '-f', 'gateway.yaml'], options);
  expect(found.code).toBe(0);
  expect(
    (found.stdout + found.stderr).match(/warning\[AGW0317\]: (?:OPENAI_API_KEY|MASTER) still/g),
  ).toHaveLength(2);
  const filled = {
    ...options,
    env: { ...options.env, OPENAI_API_KEY: 'sk-1234567890', MASTER: 'sk-0987654321' },
  };
  const { stdout, stderr } = await cli(['config', 'validate', '-f', 'gateway.yaml'], filled);
  expect(stdout + stderr).not.toContain('AGW0317');
});

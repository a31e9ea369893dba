import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { cli } from '../kit/cli.ts';
import { temporaryFolder } from '../kit/folder.ts';

async function validate(policies: string, files: Readonly<Record<string, string>> = {}) {
  await using folder = await temporaryFolder();
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder.path, name), text);
  const file = join(folder.path, 'gateway.yaml');
  writeFileSync(
    file,
    `gateways: { default: { port: 3000, routes: [{ policies: ${policies}, backends: [{ host: "127.0.0.1:80" }] }] } }\n`,
  );
  return await cli(['config', 'validate', '-o', 'json', file]);
}

const helps = (stdout: string): string[] =>
  JSON.parse(stdout).diagnostics.map(
    ({ message, help }: { message: string; help?: string }) => `${message} / ${help}`,
  );

test.each([
  [
    '{ basicAuthentication: {} }',
    'unknown field `basicAuthentication` / a field with a similar name exists: `basicAuth`',
  ],
  ['{ jwt: {} }', 'unknown field `jwt` / a field with a similar name exists: `jwtAuth`'],
  [
    '{ requestMirror: { backend: { host: "a:1" }, percent: 1 } }',
    'unknown field `percent` / a field with a similar name exists: `percentage`',
  ],
  ['{ ratelimit: [] }', 'unknown field `ratelimit` / a field with a similar name exists: `localRateLimit`'],
  ['{ timeouts: {} }', 'unknown field `timeouts` / a field with a similar name exists: `timeout`'],
  [
    '{ mcpAuthentcation: {} }',
    'unknown field `mcpAuthentcation` / a field with a similar name exists: `mcpAuthentication`',
  ],
])('the unknown keys of %s are corrected', async (policies, expected) => {
  expect(helps((await validate(policies)).stdout)).toContain(expected);
});

test('the address of a backend without scheme and port is corrected', async () => {
  const hosts = ['api.example.com', 'api.example.com/v1', '127.0.0.1', 'backend', 'a b:80'];
  const mirrors = hosts.map((host) => `{ requestMirror: { percentage: 1, backend: { host: "${host}" } } }`);
  const found = await Promise.all(mirrors.map(async (policies) => helps((await validate(policies)).stdout)));
  expect(found.map((lines) => lines.map((line) => line.split(' / ')[1]))).toEqual([
    ['write `https://api.example.com`, or `host:port` for plain HTTP'],
    ['write `https://api.example.com`, or `host:port` for plain HTTP'],
    ['write `http://127.0.0.1`, or `host:port` for plain HTTP'],
    ['add its port: `backend:80`'],
    ['write `host:port`, `https://host` or `unix:/path`'],
  ]);
});

test('an empty variable and a placeholder are named', async () => {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'gateway.yaml');
  const aws = '{ aws: { accessKeyId: $AWS_ID, secretAccessKey: $AWS_SECRET } }';
  writeFileSync(
    file,
    `llm: { port: 0, policies: { apiKey: { keys: [{ key: $EMPTY }, { key: "\${X:-}" }] } }, models: [{ name: a, provider: echo }] }\n`,
  );
  const empty = await cli(['config', 'validate', '-o', 'json', file], { env: { EMPTY: '' } });
  expect(helps(empty.stdout).map((line) => line.split(' / ')[0])).toEqual([
    'the value is missing: `EMPTY` is empty or not set',
    'the value is missing: `X` is empty or not set',
  ]);
  writeFileSync(
    file,
    `llm: { port: 0, models: [{ name: a, provider: bedrock, params: { awsRegion: us-east-1 }, auth: ${aws} }] }\n`,
  );
  const env = { AWS_ID: 'change-me', AWS_SECRET: 'change-me' };
  const placeholder = await cli(['config', 'validate', '-o', 'json', file], { env });
  for (const name of ['AWS_ID', 'AWS_SECRET'])
    expect(placeholder.stdout).toContain(`${name} still has the placeholder`);
});

test('a shortened member of a variable is an error that names the whole one', async () => {
  const basicAuth = 'basicAuth: { mode: strict, htpasswd: "a:{SHA}qUqP5cyxm6YcTAhz05Hph5gvu9M=" }';
  const { code, stdout } = await validate(
    `{ ${basicAuth}, authorization: { rules: ['basicAuth.user == "a"'] } }`,
  );
  expect([code, helps(stdout)]).toEqual([
    1,
    ['`basicAuth` has no member `user` / a member with a similar name exists: `basicAuth.username`'],
  ]);
});

test.each([
  ['{"foo":"some-secret"}', 'keys.json has no `keys` list'],
  ['[]', 'keys.json has no `keys` list'],
  ['some-secret', 'keys.json'],
])('the file of a key set with %j is an error that does not quote it', async (content, message) => {
  for (const policy of ['jwtAuth', 'mcpAuthentication']) {
    const { code, stdout } = await validate(
      `{ ${policy}: { mode: strict, issuer: "https://a.example", audiences: [x], jwks: { file: keys.json } } }`,
      { 'keys.json': content },
    );
    expect([code, stdout]).toEqual([1, expect.stringContaining(message)]);
    expect(stdout).toContain('no token could be validated');
    expect(stdout).not.toContain('some-secret');
  }
});

test('a key set in the configuration without `keys` is an error', async () => {
  const { code, stdout } = await validate(
    `{ jwtAuth: { mode: strict, issuer: "https://a.example", audiences: [x], jwks: '{}' } }`,
  );
  expect([code, helps(stdout)]).toEqual([1, [expect.stringContaining('the key set has no `keys` list')]]);
});

test('a mapping with the keys of an entry is where a list is expected', async () => {
  const found = helps((await validate('{ localRateLimit: { maxTokens: 10, fillInterval: 1m } }')).stdout);
  expect(found).toEqual([expect.stringMatching(/^expected a list, found a mapping \/ write a list: /)]);
});

test('a missing file of users is named as it is written, and inline users are masked', async () => {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'gateway.yaml');
  const of = async (htpasswd: string, cwd?: string) => {
    writeFileSync(
      file,
      `routes: [{ policies: { basicAuth: { mode: strict, htpasswd: ${htpasswd} }, directResponse: {} } }]\n`,
    );
    return (await cli(['config', 'validate', file], cwd === undefined ? {} : { cwd })).stderr;
  };
  const missing = await of('{ file: no-users }');
  expect(missing).toContain(`file not found: ${join(folder.path, 'no-users')}`);
  expect(await of('{ file: no-users }', folder.path)).toContain('file not found: no-users');
  const elsewhere = `/mnt${folder.path}/no-users`;
  expect(await of(`{ file: ${elsewhere} }`, folder.path)).toContain(`file not found: ${elsewhere}`);
  expect(missing).toContain('htpasswd: { file: no-users }');
  expect(await of('"ann:plain-password"')).not.toContain('plain-password');
});

test('a configuration with another name is found', async () => {
  await using folder = await temporaryFolder();
  writeFileSync(join(folder.path, 'gateway.yaml'), 'routes: []\n');
  const { code, stderr } = await cli(['config', 'validate', 'gatway.yaml'], { cwd: folder.path });
  expect([code, stderr]).toEqual([
    2,
    expect.stringContaining(
      'no such file: gatway.yaml\n  ┌─ gatway.yaml:1:1\n  = help: did you mean gateway.yaml?',
    ),
  ]);
});

/** What the program prints for a file: each problem with its code, what it points to, and its help. */
async function printed(text: string): Promise<{ code: unknown; problems: string[]; pointed: string[] }> {
  await using folder = await temporaryFolder();
  writeFileSync(join(folder.path, 'gateway.yaml'), text);
  const { code, stdout } = await cli(['config', 'validate', '-o', 'json'], { cwd: folder.path });
  interface Shown {
    readonly code: string;
    readonly severity: string;
    readonly message: string;
    readonly label?: string;
    readonly help?: string;
    readonly range: {
      readonly start: { readonly offset: number };
      readonly end: { readonly offset: number };
    };
  }
  const errors = (JSON.parse(stdout) as { diagnostics: Shown[] }).diagnostics.filter(
    ({ severity }) => severity === 'error',
  );
  return {
    code,
    problems: errors.map(({ code: name, message, label, help }) =>
      [name, message, label, help].filter((part) => part !== undefined).join(' / '),
    ),
    pointed: errors.map(({ range: { start, end } }) => text.slice(start.offset, end.offset)),
  };
}

const ROUTE = 'gateways: { default: { port: 3000, address: 127.0.0.1 } }\n';
const target = (stdio: string): string => `${ROUTE}mcp: { targets: [{ name: a, stdio: ${stdio} }] }\n`;
const K8S = 'apiVersion: v1\nkind: Gateway\nmetadata: { name: a }\nspec: {}\n';
const ofAnother = (what: string): RegExp =>
  new RegExp(`^AGW0006 / this is ${what}, not a configuration of agctl / `);

test.each([
  ['LiteLLM', 'model_list: []\ngeneral_settings: {}\n', 'model_list', /`agctl init --from FILE`/],
  ['LiteLLM', '{"litellm_settings": {}}', 'litellm_settings', /LiteLLM.*`agctl init --from FILE`/],
  ['Portkey', '{"strategy": {"mode": "loadbalance"}, "targets": []}', 'strategy', /`agctl init --from FILE`/],
  [
    'Portkey',
    '{"virtual_key": "openai-x", "cache": {"mode": "simple"}}',
    'virtual_key',
    /`agctl init --from FILE`/,
  ],
  ['Kubernetes', K8S, 'kind', /a resource of Kubernetes, `Gateway`.*`gateways`/],
  ['Kubernetes, several', `${K8S}---\n${K8S}`, 'kind', /a resource of Kubernetes, `Gateway`.*`gateways`/],
  ['Helm', `${K8S}{{- if .Values.x }}\nx: {{ .Values.y }}\n`, 'kind', /a resource of Kubernetes, `Gateway`/],
  [
    'ConfigMap',
    'apiVersion: v1\nkind: ConfigMap\ndata: { a: "mcp: {}" }\n',
    'kind',
    /`data`.*file of its own/,
  ],
  ['OpenAPI', 'openapi: 3.1.0\ninfo: { title: x, version: "1" }\npaths: {}\n', 'openapi', /openapi: \{ host/],
  ['chart', 'image: { tag: x }\nconfig: { gateways: {} }\n', 'image', /below `config`/],
  ['Envoy', 'static_resources: { listeners: [] }\n', 'static_resources', /`gateways`/],
])('a file of %s is one problem, which says what it is and what to do', async (_name, text, at, message) => {
  const { code, problems, pointed } = await printed(text);
  expect([code, problems, pointed]).toEqual([
    1,
    [expect.stringMatching(message)],
    [expect.stringContaining(at)],
  ]);
  expect(problems[0]).toMatch(ofAnother('.+'));
});

test('a file with keys of this program is not taken for one of another program', async () => {
  const { problems } = await printed(`${ROUTE}model_list: []\n`);
  expect(problems).toEqual([expect.stringMatching(/^AGW0101 \/ unknown field `model_list`/)]);
});

test.each([
  ['tool.name == "a"', 'did you mean `mcp.tool`, as in `mcp.tool.name`?'],
  ['tools.name == "a"', 'did you mean `mcp.tool`, as in `mcp.tool.name`?'],
  ['methodName == "a"', 'did you mean `mcp.methodName`?'],
  ['headers["x"] == "a"', 'did you mean `request.headers`?'],
  ['mcp.tool.nme == "a"', 'a member with a similar name exists: `mcp.tool.name`'],
  ['echo == "a"', 'to write a string, quote it: "echo"; available here: '],
])('an MCP rule with %s is an error that names the variable', async (rule, help) => {
  const rules = `policies: { mcpAuthorization: { rules: ['${rule}'] } }`;
  const { problems } = await printed(
    `${ROUTE}mcp: { targets: [{ name: a, stdio: { cmd: x } }], ${rules} }\n`,
  );
  expect(problems).toEqual([expect.stringContaining(help)]);
  expect(problems[0]).toMatch(/^AGW0202 /);
});

test.each([
  ['gpt-4', 'did you mean `gpt-4o`? entries of models: `gpt-4o`, `claude`'],
  [
    'other',
    'AGW0107 / virtual model target `other` does not match any entry of `models` / entries of models: `gpt-4o`, `claude`',
  ],
])('a failover to the unknown model %s is an error that names the known ones', async (model, help) => {
  const { problems, pointed } = await printed(
    `${ROUTE}llm: { gateways: default, models: [{ name: gpt-4o, provider: echo }, { name: claude, provider: echo }], virtualModels: [{ name: v, routing: { failover: { targets: [{ model: ${model} }] } } }] }\n`,
  );
  expect([problems, pointed]).toEqual([[expect.stringContaining(help)], [model]]);
});

test.each(['', '# nothing yet\n', '---\n', 'null\n'])(
  'the empty file %j is an error that names init',
  async (text) => {
    const { problems } = await printed(text);
    expect(problems).toEqual(['AGW0102 / the file is empty / `agctl init` creates a configuration']);
  },
);

test.each([
  [
    `${ROUTE}mcp:\n  targets:\n    - name: "a\n      stdio: { cmd: "x" }\n`,
    '"',
    'this `"` is not closed / put another `"` at the end of the text',
  ],
  [
    `gateways:\n  default:\n    address: 'a\n    port: 1\n`,
    "'",
    "this `'` is not closed / put another `'` at the end of the text",
  ],
  [
    target('{ cmd: x, args: ["a, "b"] }'),
    '"a, "',
    'text follows the end of this string / close it with `"` where it should end, or put a comma after it',
  ],
  [target('{ cmd: x, args: [a, b }'), '[', 'this `[` is not closed / put a `]` after its last entry'],
])('a quote or bracket that is not closed is shown where it was opened: %j', async (text, at, message) => {
  const { problems, pointed } = await printed(text);
  expect([problems, pointed]).toEqual([[`AGW0001 / ${message}`], [at]]);
});

test.each([
  ['config: { workers: two }', 'AGW0104 / expected a whole number from 1 to 256 without quotes, or `auto`'],
  ['config: { workers: "2" }', 'AGW0104 / expected a whole number from 1 to 256 without quotes, or `auto`'],
  [
    'gateways: { default: { port: "abc" } }',
    'AGW0102 / expected a whole number, found a string / write a number, such as `port: 3000`',
  ],
  [
    'gateways: { default: { port: "127.0.0.1:3000" } }',
    'AGW0102 / expected a whole number, found a string / write a number, such as `port: 3000`, and the address as `address`',
  ],
  [
    'config: { mcp: { maxSessions: many } }',
    'AGW0102 / expected a whole number, found a string / write a number, without quotes',
  ],
  [
    target('{ cmd: x, env: [A=1] }'),
    'AGW0102 / expected a mapping, found a list / write a mapping, such as `env: { NAME: value }`, instead of `NAME=value`',
  ],
  [
    target('{ cmd: x, env: A=1 }'),
    'AGW0102 / expected a mapping, found a string / write a mapping, such as `env: { NAME: value }`, instead of `NAME=value`',
  ],
  [
    'gateways: [{ port: 3000 }]',
    'AGW0102 / expected a mapping, found a list / write a mapping, such as `gateways: { NAME: value }`',
  ],
])('%s is one error with what to write', async (text, message) => {
  expect((await printed(`${text}\n`)).problems).toEqual([message]);
});

test('a command with its arguments in one string is an error, unless there is a file of this name', async () => {
  const message =
    'AGW0104 / `cmd` contains spaces but is run as one executable name (no shell) / move what follows `npx` to `args`, each word as an entry, as in `{ cmd: npx, args: [-y, some-server] }`';
  expect((await printed(target('{ cmd: "npx -y @example/server" }'))).problems).toEqual([message]);
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'my -server');
  writeFileSync(file, '');
  expect((await printed(target(`{ cmd: "${file}" }`))).problems).toEqual([]);
});

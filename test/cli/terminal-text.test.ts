import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import type { Command } from 'commander';
import { afterAll, describe, expect, test } from 'vitest';
import { createProgram } from '../../src/cli/program.ts';
import { cli } from '../kit/cli.ts';
import { fakeAdmin, says } from '../kit/fake-admin.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { service } from '../kit/process.ts';

// Names and texts of other people reach a terminal through many messages. None of them may control it.

const EVIL = 'n\u001b]0;pwned\u0007\u001b[2J\u001b[31m\u009b2J\u202e\u2028\r';
// biome-ignore lint/suspicious/noControlCharactersInRegex: what must not be printed.
const RAW = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/;

const { path: cwd, remove } = await temporaryFolder();
afterAll(remove);

const printed = async (args: readonly string[], env: Record<string, string> = {}): Promise<string> => {
  const { stdout, stderr } = await cli(args, { cwd, env: { HOME: cwd, ...env } });
  // A line may end as on Windows.
  return (stdout + stderr).replaceAll('\r\n', '\n');
};

function leaves(command: Command, path: readonly string[] = []): (readonly [string, Command])[] {
  if (command.commands.length === 0) return [[path.join(' '), command]];
  return command.commands.flatMap((each) => leaves(each, [...path, each.name()]));
}

const nowhere = new Writable();
const COMMANDS = leaves(
  createProgram({ stdout: nowhere, stderr: nowhere, env: {}, cwd: '/' }, () => undefined),
);
/** What would serve until a signal, whatever its arguments are. */
const ENDLESS = new Set([
  'gateway worker',
  'memory-adapter stdio',
  'memory stdio',
  'memory-backend serve',
  'memory serve',
]);

describe('no control character of an argument is printed', () => {
  test.each(COMMANDS)('by agctl %s', async (path, command) => {
    const words = path.split(' ');
    expect(await printed([...words, EVIL])).not.toMatch(RAW);
    expect(await printed([...words, `--${EVIL}`])).not.toMatch(RAW);
    if (ENDLESS.has(path)) return;
    const values = command.options.filter(({ required, argChoices }) => required && argChoices === undefined);
    for (const { long } of values)
      if (long) expect(await printed([...words, long, EVIL]), long).not.toMatch(RAW);
  });
});

const HEAD = {
  cassette: 1,
  agctl: '0.2.0',
  time: '2026-01-01T00:00:00.000Z',
  gateways: [{ name: 'default', port: 0 }],
};
const EXCHANGE = {
  at: 1,
  gateway: 'default',
  request: { method: 'POST', target: '/', headers: {}, body: { json: { a: 1 } } },
  response: { ms: 1, status: 200, headers: {}, body: { json: {} } },
};
const lines = (...values: readonly unknown[]): string =>
  values.map((value) => `${JSON.stringify(value)}\n`).join('');
const base64url = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');

/** Files of somebody else, and the commands that read them. */
const FILES: readonly (readonly [name: string, content: unknown, ...commands: (readonly string[])[]])[] = [
  ...[
    lines(HEAD, { ...EXCHANGE, gateway: EVIL }),
    lines(HEAD, { ...EXCHANGE, [EVIL]: 1 }),
    lines(HEAD, { ...EXCHANGE, response: { ...EXCHANGE.response, headers: { [EVIL]: 'y' } } }),
    lines(HEAD, { ...EXCHANGE, request: { ...EXCHANGE.request, target: EVIL } }),
    lines({ ...HEAD, cassette: EVIL }),
    lines({ ...HEAD, gateways: [{ name: EVIL, port: EVIL }] }),
  ].map((text, index) => [`${index}.jsonl`, text, ['replay'], ['verify', '-f', 'none.yaml']] as const),
  [
    'costs.json',
    { [EVIL]: { [EVIL]: 1 }, m: { models: { [EVIL]: { cost: EVIL } } } },
    ['costs', 'import', '-f'],
  ],
  [
    'mcp.json',
    { mcpServers: { [EVIL]: { command: EVIL, args: [EVIL] }, ok: { command: 'x', type: EVIL, [EVIL]: 1 } } },
    ['init', '--yes', '--with', 'mcp', '--from'],
    ['add', 'srv', '--from'],
  ],
  [
    'server.json',
    { name: EVIL, description: EVIL, packages: [{ registryType: EVIL, identifier: EVIL }] },
    ['init', '--yes', '--from'],
  ],
  [
    'litellm.yaml',
    { model_list: [{ model_name: EVIL, litellm_params: { model: `${EVIL}/x`, [EVIL]: 1 } }], [EVIL]: 1 },
    ['init', '--yes', '--with', 'llm', '--from'],
  ],
  [
    'portkey.json',
    { strategy: { mode: EVIL }, targets: [{ provider: EVIL, [EVIL]: 1 }] },
    ['init', '--yes', '--from'],
  ],
  [
    'gateway.yaml',
    {
      [EVIL]: 1,
      gateways: { [EVIL]: { port: 1 } },
      llm: { models: [{ name: EVIL, provider: EVIL }] },
      mcp: { targets: [{ name: EVIL, stdio: { cmd: EVIL } }] },
    },
    ['config', 'validate'],
    ['config', 'validate', '-o', 'github'],
    ['config', 'validate', '-o', 'json'],
    ['config', 'fmt', '--check'],
    ['config', 'diff', 'gateway.yaml'],
    ['check', '--offline', '-f'],
    ['serve', '-f'],
    ['connect', 'cursor', '-f'],
    ['database', 'backup', '-f'],
  ],
  [
    'trace.jsonl',
    lines({ message: { type: EVIL, [EVIL]: EVIL }, requestId: EVIL }),
    ['proxy', 'trace', '--file'],
    ['proxy', 'trace', '--plain', '--file'],
  ],
  [
    'token',
    `${base64url({ alg: EVIL, kid: EVIL })}.${base64url({ iss: EVIL, sub: EVIL, [EVIL]: EVIL })}.c2ln`,
    ['auth', 'explain', '-f', 'gateway.yaml', '--token-file'],
  ],
  ['gw.env', `${EVIL}=1\nA=${EVIL}\n`, ['config', 'validate', 'gateway.yaml', '--env-from']],
];

describe('no control character of a file is printed', () => {
  for (const [name, content] of FILES)
    writeFileSync(join(cwd, name), typeof content === 'string' ? content : JSON.stringify(content));

  test.each(FILES.flatMap(([name, , ...commands]) => commands.map((words) => [...words, name].join(' '))))(
    'by agctl %s',
    async (line) => {
      const said = await printed(line.split(' '));
      expect(said).not.toBe('');
      expect(said).not.toMatch(RAW);
    },
  );

  test('but YAML that a program reads stays as it is', async () => {
    const text = 'a: 1 # \u202e\n';
    const fmt = (isTTY: boolean) => cli(['config', 'fmt', '-'], { input: text, isTTY });
    expect((await fmt(false)).stdout).toBe(text);
    expect((await fmt(true)).stdout).toBe('a: 1 # \\u202e\n');
  });

  test('by the banner of a replay', async () => {
    const file = join(cwd, 'banner.jsonl');
    writeFileSync(file, lines({ ...HEAD, gateways: [{ name: EVIL, port: 0 }] }));
    await using replay = await service(['replay', file]);
    expect(replay.stderr).toContain('pwned');
    expect(replay.stderr).not.toMatch(RAW);
  });
});

test('no control character of a variable is printed', async () => {
  writeFileSync(
    join(cwd, 'variables.yaml'),
    'gateways: { default: { port: $PORT } }\nllm: { models: [{ name: $PORT, provider: $PORT }] }\n',
  );
  for (const words of [
    ['config', 'validate', 'variables.yaml'],
    ['check', '--offline', '-f', 'variables.yaml'],
    ['logs'],
  ])
    expect(await printed(words, { PORT: EVIL, ADMIN_ADDR: EVIL })).not.toMatch(RAW);
});

describe('no control character of an admin server is printed', () => {
  const JSON_TEXT = JSON.stringify({
    [EVIL]: EVIL,
    by: [EVIL],
    rows: [{ group: { [EVIL]: EVIL } }],
    total: {},
    error: EVIL,
    message: EVIL,
    keys: [{ id: EVIL, name: EVIL }],
    users: [{ name: EVIL }],
    events: [{ kind: EVIL }],
    requests: [{ [EVIL]: EVIL }],
    config: EVIL,
    version: EVIL,
  });
  const remote = COMMANDS.filter(([, { options }]) => options.some(({ long }) => long === '--admin'));

  test.each(remote)('by agctl %s', async (path, { registeredArguments, options }) => {
    const given = [
      ...registeredArguments.filter(({ required }) => required).map(() => 'x'),
      ...options.flatMap(({ mandatory, long }) => (mandatory && long ? [long, 'x'] : [])),
    ];
    for (const [body, type, status] of [
      [JSON_TEXT, 'application/json', 200],
      [EVIL, 'text/plain', 200],
      [EVIL, 'text/plain', 400],
      [JSON_TEXT, 'application/json', 403],
    ] as const) {
      const script = new Proxy({}, { get: () => says(body, type, status) });
      await using admin = await fakeAdmin(script);
      expect(await printed([...path.split(' '), ...given, '--admin', admin.address])).not.toMatch(RAW);
    }
  });
});

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { cli } from '../kit/cli.ts';
import { chaos, mcpConfig } from '../kit/config.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { gateway } from '../kit/gateway.ts';
import { type Json, openSession } from '../kit/mcp.ts';
import { type McpUpstream, mcpUpstream, reply } from '../kit/mcp-upstream.ts';
import { refusingPort } from '../kit/upstream.ts';
import { protectedServer, signInConfig } from '../kit/user-sign-in.ts';

const { path: folder, remove } = await temporaryFolder();
afterAll(remove);
let files = 0;

interface Finding {
  readonly group: string;
  readonly status: string;
  readonly message: string;
  readonly fix?: string;
  readonly figures?: Json;
}

/** Runs `agctl check` on a configuration. */
async function check(config: string, ...args: string[]) {
  files += 1;
  const file = join(folder, `config-${files}.yaml`);
  writeFileSync(file, config);
  const { code, stdout, stderr } = await cli(['check', '-f', file, '-o', 'json', ...args]);
  const { checks = [] } = (stdout === '' ? {} : JSON.parse(stdout)) as { checks?: Finding[] };
  return { code, checks, stderr, file };
}

/** A chaos target whose tools have these definitions. */
function defined(name: string, definitions: Record<string, object>, more: object = {}): object {
  files += 1;
  const file = join(folder, `tools-${files}.json`);
  writeFileSync(file, JSON.stringify(definitions));
  const target = chaos(name, `--tools=${Object.keys(definitions).join(',')}`, `--definitions=${file}`);
  return { ...target, ...more };
}

/** A server over HTTP that lists these tools. */
const listing = (tools: readonly unknown[]): Promise<McpUpstream> =>
  mcpUpstream({
    script: ({ message }, response) => {
      if (message?.method !== 'tools/list') return false;
      reply(response, message, { tools });
      return true;
    },
  });

const words = (count: number): string => 'word '.repeat(count).trim();

describe('check --tools', () => {
  test('check --tools counts the tokens of the lists that clients get, of all kinds of targets', async () => {
    await using up = await listing([{ name: 'über', description: 'Größe', inputSchema: { type: 'object' } }]);
    const own = {
      tools: { exclude: ['hidden'], rename: { echo: 'say' }, descriptions: { echo: 'Says it.' } },
    };
    const definitions = { echo: { description: words(500) }, hidden: {}, add: { title: 'Adds' } };
    const config = mcpConfig([defined('one', definitions, own), { name: 'two', mcp: { host: up.url } }]);
    const { code, checks } = await check(config, '--tools');
    expect(code).toBe(0);
    const [one, two, total, ...longest] = checks;
    expect(checks.every(({ group, status }) => group === 'tools' && status === 'ok')).toBe(true);

    await using gate = await gateway(config);
    const { result } = await (await openSession(`${gate.url}/mcp`)).request('tools/list');
    const tokens = (tools: Json): number => Math.ceil(Buffer.byteLength(JSON.stringify(tools)) / 4);
    const of = (prefix: string): Json[] => result.tools.filter(({ name }: Json) => name.startsWith(prefix));
    expect(one?.figures).toEqual({ target: 'one', tools: 2, tokens: tokens(of('one_')) });
    expect(two?.figures).toEqual({ target: 'two', tools: 1, tokens: tokens(of('two_')) });
    expect(total?.figures).toEqual({ tools: 3, tokens: tokens(result.tools) });
    expect(one?.message).toBe(`one   2 tools, ${one?.figures.tokens} tokens`);
    expect(two?.message).toMatch(/^two {3}1 tool, \d+ tokens$/);
    expect(longest.map(({ figures }) => figures.tool).toSorted()).toEqual(['one_add', 'one_say', 'two_über']);
  });

  test('check --tools shows the ten longest definitions of all targets, and the longest part of each', async () => {
    const many = Object.fromEntries(
      Array.from({ length: 12 }, (_, index) => [`t${index}`, { description: words(20 + index) }]),
    );
    const schema = { inputSchema: { type: 'object', properties: { a: { description: words(2000) } } } };
    const config = mcpConfig([defined('one', many), defined('two', { big: schema })]);
    const { checks } = await check(config, '--tools');
    const longest = checks.slice(3);
    expect(longest).toHaveLength(10);
    expect(longest[0]).toMatchObject({
      message: expect.stringMatching(/^1\. longest: two_big {3}2,5\d\d tokens, 2,5\d\d of them inputSchema$/),
      figures: { tool: 'two_big', longestPart: 'inputSchema' },
    });
    expect(longest.slice(1).map(({ figures }) => [figures.tool, figures.longestPart])).toEqual(
      [11, 10, 9, 8, 7, 6, 5, 4, 3].map((index) => [`one_t${index}`, 'description']),
    );
  });

  test('a total over 20,000 tokens is a warning that names toolSearch, unless the backend has it', async () => {
    const targets = [defined('one', { long: { description: words(16_100) } })];
    const without = await check(mcpConfig(targets), '--tools');
    expect(without.code).toBe(0);
    expect(without.checks[1]).toMatchObject({
      status: 'warn',
      message: expect.stringMatching(/^total {3}1 tool, 20,1\d\d tokens: more than 20,000$/),
      fix: expect.stringContaining('`toolSearch` (docs/guides/many-tools.md)'),
    });
    const searched = await check(mcpConfig(targets, { backend: { toolSearch: {} } }), '--tools');
    expect(searched.checks[1]).toMatchObject({
      status: 'ok',
      message: expect.stringContaining('clients list search_tools, call_tool and pinned tools only'),
    });
  });

  test('a target that does not answer is a failure, and the total says that it is missing', async () => {
    const gone = { name: 'gone', mcp: { host: `http://127.0.0.1:${await refusingPort()}/mcp` } };
    const { code, checks } = await check(
      mcpConfig([chaos('one'), gone, chaos('dies', '--exit=3'), chaos('empty', '--tools=')]),
      '--tools',
    );
    expect(code).toBe(1);
    expect(checks.map(({ status }) => status)).toEqual(['ok', 'fail', 'fail', 'ok', 'ok', 'ok']);
    expect(checks[2]?.message).toContain('exited with code 3');
    expect(checks[3]?.message).toBe('empty   no tools');
    expect(checks[4]?.message).toMatch(/^total {3}1 tool, \d+ tokens, without gone, dies$/);
  });

  test('backends have a total each, and a backend of two routes is listed once', async () => {
    const named = [{ name: 'shared', mcp: { targets: [chaos('one')] } }];
    const shared = [{ backend: 'shared' }];
    const other = [{ mcp: { targets: [chaos('two')] } }];
    const match = (path: string) => [{ path: { pathPrefix: path } }];
    const routes = [
      { matches: match('/a'), backends: shared },
      { matches: match('/b'), backends: shared },
      { matches: match('/c'), backends: other },
    ];
    const config = JSON.stringify({ gateways: { default: { port: 0, routes } }, backends: named });
    const { checks } = await check(config, '--tools');
    expect(checks.map(({ message }) => message.split('   ')[0])).toEqual([
      'one',
      'two',
      'total of backends[0].mcp',
      'total of gateways.default.routes[2].backends[0].mcp',
      '1. longest: echo',
      '2. longest: echo',
    ]);
  });

  test('names of servers are shown without control characters and not in full, and odd tools are left out', async () => {
    const tools = [
      { name: `evil\u001b[2J\u0007${'x'.repeat(10_000)}`, ['m'.repeat(500)]: 'y'.repeat(2_000) },
      null,
      7,
      'text',
      ['list'],
      { name: 'n', inputSchema: { type: 'object' } },
    ];
    await using up = await listing(tools);
    const config = mcpConfig([{ name: 'up', mcp: { host: up.url } }]);
    const { file, checks } = await check(config, '--tools');
    expect(checks[0]?.figures.tools).toBe(2);
    const { stdout } = await cli(['check', '-f', file, '--tools', '--color', 'never']);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: that is what it is about
    expect(stdout).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f]/);
    expect(stdout).toContain('evil');
    expect(Math.max(...stdout.split('\n').map(({ length }) => length))).toBeLessThan(500);
  });

  test('a list without end is reported as far as the gateway reads it', async () => {
    const { code, checks } = await check(mcpConfig([chaos('one', '--endless')]), '--tools');
    expect([code, checks[0]?.figures.tools]).toEqual([0, 64]);
    expect(checks).toHaveLength(12);
  });

  test('a configuration without targets, or with mistakes, has no lists', async () => {
    const none = await check('llm: { port: 0, models: [{ name: a, provider: echo }] }', '--tools');
    expect(none.checks).toEqual([{ group: 'tools', status: 'skip', message: 'no targets are configured' }]);
    const wrong = await check('mcp: { prot: 3000 }', '--tools');
    expect(wrong.code).toBe(1);
    expect(wrong.checks[0]).toMatchObject({ group: 'tools', status: 'skip' });
  });

  test('only --tools, or --only tools with --start, lists tools', async () => {
    const config = mcpConfig([chaos('one')]);
    const groups = async (...args: string[]): Promise<string[]> => [
      ...new Set((await check(config, ...args)).checks.map(({ group }) => group)),
    ];
    expect(await groups('--tools', '--only', 'targets')).toEqual(['targets', 'tools']);
    expect(await groups('--only', 'tools', '--start')).toEqual(['tools']);
    expect(await groups('--only', 'targets', '--start')).toEqual(['targets']);
    expect(await groups('--offline')).toEqual(['environment', 'config', 'ports', 'targets', 'llm', 'idp']);
    expect((await check(config, '--only', 'tools')).checks).toEqual([
      {
        group: 'tools',
        status: 'skip',
        message: 'not listed, because that starts the targets (--start)',
      },
    ]);
    const { code, stderr } = await check(config, '--tools', '--offline');
    expect([code, stderr]).toEqual([
      2,
      expect.stringContaining('--tools and --offline are mutually exclusive'),
    ]);
  });

  test('check --tools says that users sign in at a server, and that is no failure', async () => {
    await using server = await protectedServer('https://id.example.com');
    await using open = await listing([{ name: 'echo' }]);
    const config = (servers: Record<string, { url: string }>) =>
      JSON.stringify(
        signInConfig(3000, servers, { config: { database: { url: `sqlite://${folder}/check.db` } } }).config,
      );
    const { code, checks } = await check(
      config({ github: server, open }),
      '--tools',
      '--only',
      'tools,targets',
    );
    const of = (group: string) => checks.filter((each) => each.group === group);
    expect(code).toBe(0);
    expect(of('targets').map(({ status, message }) => [status, message])).toEqual([
      ['ok', expect.stringMatching(/^github .* accepts connections; users sign in there$/)],
      ['ok', expect.stringMatching(/^open .* accepts connections; users sign in there, 1 tool: open_echo$/)],
    ]);
    expect(of('tools').slice(0, 3)).toMatchObject([
      { status: 'skip', message: expect.stringMatching(/^github .*users sign in.*no token of a user/) },
      // It lists its tools for everybody.
      { status: 'ok', figures: { tools: 1 } },
      { status: 'ok', message: expect.stringContaining(', without github') },
    ]);
    const down = { url: `http://127.0.0.1:${await refusingPort()}/mcp` };
    const failed = await check(config({ github: down }), '--tools');
    expect([failed.code, failed.checks[0]]).toEqual([
      1,
      expect.objectContaining({ status: 'fail', fix: expect.stringContaining('start the server') }),
    ]);
  });
});

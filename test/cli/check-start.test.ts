import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { cli, inheritedEnv } from '../kit/cli.ts';
import { chaos } from '../kit/config.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { isAlive } from '../kit/is-alive.ts';
import { mcpUpstream } from '../kit/mcp-upstream.ts';
import { AGCTL } from '../kit/process.ts';
import { until } from '../kit/until.ts';

const { path: folder, remove } = await temporaryFolder();
afterAll(remove);
let files = 0;

interface Finding {
  readonly status: string;
  readonly message: string;
  readonly fix?: string;
}

/** Runs `agctl check --only targets` with these arguments on a configuration with these targets. */
const check = (targets: readonly object[], ...args: string[]) =>
  checkRoutes([{ backends: [{ mcp: { targets } }] }], ...args);

async function checkRoutes(routes: readonly object[], ...args: string[]) {
  files += 1;
  const file = join(folder, `config-${files}.yaml`);
  writeFileSync(file, JSON.stringify({ gateways: { default: { port: 0 } }, routes }));
  const { code, stdout, stderr } = await cli(
    ['check', '-f', file, '--only', 'targets', '-o', 'json', ...args],
    { env: { ...inheritedEnv(), HTTPS_PROXY: 'http://me:canary-password@proxy.example.com' } },
  );
  const checks = (stdout === '' ? [] : JSON.parse(stdout).checks) as Finding[];
  return { code, checks, stdout, stderr };
}

describe('check --start', () => {
  test('check --start starts every stdio target, lists its tools and stops it', async () => {
    const mark = join(folder, 'pids');
    const { code, checks } = await check(
      [chaos('one', '--tools=echo,add', '--pages=2', `--mark=${mark}`, '--linger'), chaos('two', '--tools=')],
      '--start',
    );
    expect(checks).toEqual([
      {
        group: 'targets',
        status: 'ok',
        message: expect.stringMatching(
          /^one {3}started in .*, 4 tools: one_echo, one_add, one_echo-2, one_add-2$/,
        ),
      },
      { group: 'targets', status: 'ok', message: expect.stringMatching(/^two {3}started in .*, no tools$/) },
    ]);
    expect(code).toBe(0);
    const pids = readFileSync(mark, 'utf8').trim().split('\n').map(Number);
    expect(pids).toHaveLength(1);
    expect(pids.filter(isAlive)).toEqual([]);
  });

  test('check --start shows the names that clients see, and warns about names in tools that no tool has', async () => {
    const tools = {
      exclude: ['drop_*', 'dorp_all'],
      rename: { echo: 'say' },
      descriptions: { eco: 'Says it.' },
    };
    const { code, checks } = await check(
      [
        { ...chaos('one', '--tools=echo,drop_all'), tools },
        { ...chaos('two'), tools: { rename: { echo: 'x' } } },
      ],
      '--start',
    );
    expect(checks).toEqual([
      {
        group: 'targets',
        status: 'warn',
        message: expect.stringMatching(
          /^one {3}started in .*, 1 tool: one_say \(1 left out\); no tool matches exclude: dorp_all, descriptions: eco$/,
        ),
        fix: expect.stringContaining('it lists echo, drop_all'),
      },
      { group: 'targets', status: 'ok', message: expect.stringMatching(/, 1 tool: two_x$/) },
    ]);
    expect(code).toBe(0);
  });

  test('check --start lists the tools of HTTP targets, and says which list none without a credential', async () => {
    await using server = await mcpUpstream();
    await using closed = await mcpUpstream({
      script(_request, response) {
        response.writeHead(401).end();
        return true;
      },
    });
    const at = ({ url }: { url: string }) => ({ mcp: { host: url } });
    const targets = [
      { name: 'one', ...at(server) },
      { name: 'two', ...at(closed) },
    ];
    const { code, checks } = await check(targets, '--start');
    expect(checks).toEqual([
      expect.objectContaining({
        status: 'ok',
        message: `one   127.0.0.1:${server.port} accepts connections, 1 tool: one_say`,
      }),
      expect.objectContaining({
        status: 'warn',
        message: expect.stringMatching(
          `^two   127.0.0.1:${closed.port} accepts connections, but did not list its tools: .*401`,
        ),
        fix: expect.stringContaining('needs the credential of a client'),
      }),
    ]);
    expect(code).toBe(0);
    const { checks: unlisted } = await check(targets);
    expect(unlisted.map(({ message }) => message)).toEqual([
      `one   127.0.0.1:${server.port} accepts connections`,
      `two   127.0.0.1:${closed.port} accepts connections`,
    ]);
  });

  test('check --start reports names in rules, toolSearch and bundles that no tool has', async () => {
    const mcp = {
      targets: [{ ...chaos('one', '--tools=echo,add'), tools: { rename: { add: 'sum' } } }, chaos('two')],
      toolSearch: { pinned: ['one_ecoh', 'two_*', 'one_add', 'one_sum'] },
      bundles: [
        { name: 'b', tools: ['one_*', 'two_add'], descriptions: { one_echo: 'x', two_ehco: 'x' } },
        { name: 'c', targets: ['two'], tools: ['one_echo', 'two_echo'] },
      ],
    };
    const other = { targets: [chaos('three', '--tools=other')] };
    const names = (...rules: unknown[]) => ({ mcpAuthorization: { rules } });
    const { code, checks } = await checkRoutes(
      [
        {
          policies: names(
            { deny: 'mcp.tool.name in ["ehco", "add"]' },
            'mcp.tool.name == "other"',
            'mcp.tool.name.startsWith("ec") || mcp.tool.name.startsWith("one_")',
            'mcp.prompt.name == "any"',
          ),
          backends: [{ mcp }, { mcp: other, policies: names('mcp.tool.name == "echo"') }],
        },
      ],
      '--start',
    );
    const rules = 'routes[0].policies.mcpAuthorization.rules';
    expect(checks.filter(({ status }) => status !== 'ok').map(({ message }) => message)).toEqual([
      'toolSearch.pinned: one_ecoh   matches no tool',
      'toolSearch.pinned: one_add   matches no tool',
      'tools of bundle b: two_add   matches no tool',
      'descriptions of bundle b: two_ehco   matches no tool',
      'tools of bundle c: one_echo   matches no tool',
      `"ehco" in ${rules}[0]   matches no tool, so it denies nothing`,
      `"one_" in ${rules}[2]   matches no tool`,
      '"echo" in routes[0].backends[1].policies.mcpAuthorization.rules[0]   matches no tool',
    ]);
    const fixes = checks.map(({ fix }) => fix).filter((fix) => fix !== undefined);
    expect(fixes[0]).toBe('correct or remove it; the names are one_echo, one_sum, two_echo');
    expect(fixes[5]).toBe('correct or remove it; the names are echo, add, other');
    expect(code).toBe(0);
  });

  test('check --start compares no names with the tools of a target that did not list them', async () => {
    const mcp = { targets: [chaos('one'), chaos('two', '--exit=3')], toolSearch: { pinned: ['two_x'] } };
    const { checks } = await checkRoutes([{ backends: [{ mcp }] }], '--start');
    expect(checks.slice(2)).toEqual([
      {
        group: 'targets',
        status: 'skip',
        message:
          'names of tools in rules and settings   not compared, because these did not list theirs: two',
      },
    ]);
  });

  test('check --start reports why a target does not start, with its last stderr lines and without secrets', async () => {
    const script = 'const p = process.env; console.error(`cannot use $${p.HTTPS_PROXY}`); process.exit(3)';
    const { code, checks, stdout } = await check(
      [
        {
          name: 'dies',
          stdio: { cmd: process.execPath, args: ['-e', script, '--', '--token', 'hunter2-hunter2'] },
        },
        { name: 'gone', stdio: { cmd: 'no-such-command' } },
        chaos('fine'),
      ],
      '--start',
    );
    expect(code).toBe(1);
    expect(checks.map(({ status }) => status)).toEqual(['fail', 'fail', 'ok']);
    expect(checks[0]?.message).toContain('exited with code 3');
    expect(checks[0]?.message).toContain('last on stderr: cannot use http://me:<redacted>@proxy.example.com');
    expect(checks[0]?.fix).toContain('stdio.env');
    expect(checks[1]).toMatchObject({
      message: 'gone   command not found: no-such-command',
      fix: 'install it, or set stdio.cmd to its full path',
    });
    expect(stdout).not.toMatch(/canary-password|hunter2/);
  });

  test('check without --start starts nothing, and looks up commands in the PATH of their target', async () => {
    const mark = join(folder, 'unmarked');
    const { checks } = await check([
      chaos('one', `--mark=${mark}`),
      { name: 'own-path', stdio: { cmd: 'node', env: { PATH: '/nowhere' } } },
    ]);
    expect(checks.map(({ status, message }) => [status, message])).toEqual([
      ['ok', `one   ${process.execPath} is ${process.execPath}`],
      ['fail', 'own-path   command not found: node'],
    ]);
    expect(() => readFileSync(mark)).toThrow('ENOENT');
  });

  test('check --start ends on Ctrl-C and leaves no process behind', async () => {
    const mark = join(folder, 'interrupted');
    const file = join(folder, 'interrupted.yaml');
    const mcp = { targets: [chaos('one', '--silent', '--linger', '--ignore-term', `--mark=${mark}`)] };
    writeFileSync(
      file,
      JSON.stringify({ gateways: { default: { port: 0 } }, routes: [{ backends: [{ mcp }] }] }),
    );
    const args = [AGCTL, 'check', '-f', file, '--only', 'targets', '--start'];
    const running = spawn(process.execPath, args, { stdio: 'ignore' });
    const ended = once(running, 'exit');
    await until(() => existsSync(mark));
    running.kill('SIGINT');
    expect((await ended)[0]).toBe(130);
    const pid = Number(readFileSync(mark, 'utf8'));
    await until(() => !isAlive(pid), 2_000);
  });

  test('check --start is rejected together with --offline, because started servers may use the network', async () => {
    const { code, stderr } = await check([chaos('one')], '--start', '--offline');
    expect([code, stderr]).toEqual([
      2,
      expect.stringContaining('--start and --offline are mutually exclusive'),
    ]);
  });
});

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, describe, expect, test } from 'vitest';
import { cli } from '../../kit/cli.ts';
import { fakeAdmin, says } from '../../kit/fake-admin.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { until } from '../../kit/until.ts';
import { covers } from '../../kit/verifies.ts';

const folder = await temporaryFolder();
afterAll(() => folder.remove());

covers('gateway.agctl');

describe('`proxy log`', () => {
  const admin = () =>
    fakeAdmin({ '/logging': says('current log level is proxy::x=trace,info\n', 'text/plain') });

  test.each([
    [[], '/logging'],
    [['--level', 'DEBUG'], '/logging?reset=true&level=debug'],
    [
      ['--set', 'proxy::x=trace', '--set', 'request=Off,mcp=info'],
      '/logging?level=proxy%3A%3Ax%3Dtrace%2Crequest%3Doff%2Cmcp%3Dinfo',
    ],
    [['--reset'], '/logging?reset=true'],
    [['--reset', '--set', 'a=warn'], '/logging?reset=true&level=a%3Dwarn'],
  ])('`proxy log` %j requests %s with POST as upstream does', async (args, url) => {
    await using server = await admin();
    const { code, stdout } = await cli(['proxy', 'log', '--admin', server.address, ...args]);
    expect([code, stdout]).toEqual([0, 'current log level is proxy::x=trace,info\n']);
    expect(server.asked).toEqual([{ method: 'POST', url, host: server.address }]);
  });

  test.each(['-p', '--proxy-admin-port'])(
    "`proxy log` %s selects the admin port on this machine, as in upstream's command",
    async (option) => {
      await using server = await admin();
      const { code, stdout } = await cli(['proxy', 'log', option, String(server.port), '--set', 'mcp=info,']);
      expect([code, stdout]).toEqual([0, 'current log level is proxy::x=trace,info\n']);
      expect(server.asked).toEqual([
        { method: 'POST', url: '/logging?level=mcp%3Dinfo', host: server.address },
      ]);
    },
  );

  test('at a terminal, a command without an address says once which gateway answers', async () => {
    await using server = await fakeAdmin({
      '/logging': says('current log level is info\n', 'text/plain'),
      '/api/overview': says('{"config":"a/gateway.yaml\\u001b[2J","pid":4711}', 'application/json'),
    });
    const args = ['proxy', 'log', '-p', String(server.port)];
    const { stdout, stderr } = await cli(args, { isTTY: true });
    expect([stdout, stderr]).toEqual([
      'current log level is info\n',
      `# ${server.address} is the gateway of a/gateway.yaml\\u{1b}[2J (pid 4711)\n`,
    ]);
    const redirected = await cli(args);
    expect([redirected.stderr, server.asked.length]).toEqual(['', 3]);
    expect((await cli(['proxy', 'log', '--admin', server.address], { isTTY: true })).stderr).toBe('');
  });

  test('`proxy log -o json` prints the levels as data', async () => {
    await using server = await admin();
    const { stdout } = await cli(['proxy', 'log', '--admin', server.address, '-o', 'json']);
    expect(JSON.parse(stdout)).toEqual({ default: 'info', modules: { 'proxy::x': 'trace' } });
  });

  test.each([
    [
      ['--level', 'debg'],
      '--level: unknown level "debg"; did you mean debug?\n  = help: levels: error, warn, info, debug, trace, off',
    ],
    [['--set', 'm'], 'invalid --set value "m": expected module=level'],
    [['--set', 'debug'], '"debug": expected module=level\n  = help: for all modules: --level debug'],
    [['--set', 'm=x\u001b]0;t\u0007'], '--set m: unknown level "x\\u{1b}]0;t\\u{7}"'],
    [['--set', 'a=info', '--level', 'info'], '--level and --set are mutually exclusive'],
    [['--for', '10m'], '--for requires a change that it can revert'],
    [['--level', 'info', '--for', 'soon'], '--for soon is not a duration\n  = help: for example 300ms'],
  ])('`proxy log` with %j is exit code 2', async (args, message) => {
    const { code, stderr } = await cli(['proxy', 'log', '--local', ...args]);
    expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
  });

  test('`proxy log` sets the level of an unknown module with a warning that lists the known ones', async () => {
    await using server = await admin();
    const set = async (target: string) =>
      (await cli(['proxy', 'log', '--set', `${target}=debug`, '--admin', server.address])).stderr;
    expect(await set('mcp::sesion')).toMatch(
      /^warning: agctl has no module mcp::sesion, .*did you mean mcp::session\?\n {2}= help: modules: .*proxy::policy/,
    );
    for (const target of ['mcp', 'proxy', 'agentgateway::proxy::httpproxy', 'agctl::reload', 'request'])
      expect(await set(target)).toBe('');
  });

  test('`proxy log --for` prints until when the gateway keeps the level, or that the gateway does not support it', async () => {
    const until = 'current log level is mcp=debug,info (until 2026-01-05T10:00:00.000Z)\n';
    await using knows = await fakeAdmin({ '/logging': says(until, 'text/plain') });
    await using older = await admin();
    const args = ['proxy', 'log', '--set', 'mcp=debug', '--for', '10m', '-o', 'json', '--admin'];
    const known = await cli([...args, knows.address]);
    expect([JSON.parse(known.stdout), known.stderr]).toEqual([
      { default: 'info', modules: { mcp: 'debug' } },
      '',
    ]);
    expect(knows.asked[0]?.url).toBe('/logging?level=mcp%3Ddebug&for=10m');
    expect((await cli([...args, older.address])).stderr).toContain(
      'did not confirm that it will revert this',
    );
  });

  test("`proxy log` prints the gateway's error, and reports a server that is not a gateway", async () => {
    await using refuses = await fakeAdmin({
      '/logging': says('Invalid level provided: a=b\nusage: …', 'text/plain', 400),
    });
    await using other = await fakeAdmin({ '/logging': says('hello', 'text/plain') });
    expect(await cli(['proxy', 'log', '--admin', refuses.address])).toMatchObject({
      code: 2,
      stderr: 'error: Invalid level provided: a=b\n',
    });
    expect(await cli(['proxy', 'log', '--admin', other.address])).toMatchObject({
      code: 3,
      stderr: expect.stringContaining('is not an admin server'),
    });
  });
});

describe('`proxy profile`', () => {
  test('`proxy profile` writes the file, also under the former command names', async () => {
    await using server = await fakeAdmin({
      '/debug/pprof/profile': says(Buffer.from([0x0a, 1, 2])),
      '/debug/pprof/heap': says(gzipSync('x')),
    });
    const cpu = await cli(
      ['proxy', 'profile', 'cpu', '--seconds', '1', '--admin', server.address, '-o', 'a.pb.gz'],
      { cwd: folder.path },
    );
    expect([cpu.code, cpu.stdout]).toEqual([0, 'Wrote cpu profile to a.pb.gz\n']);
    expect([...(await readFile(join(folder.path, 'a.pb.gz')))]).toEqual([0x0a, 1, 2]);
    await cli(['proxy', 'profile', 'cpu', '--admin', server.address], { cwd: folder.path });
    const heap = await cli(['profile', 'heap', '-p', String(server.port)], { cwd: folder.path });
    const [, name] = /^Wrote heap profile to (agctl-heap-\d{8}-\d{6}\.pb\.gz)\n$/.exec(heap.stdout) ?? [];
    expect((await readFile(join(folder.path, name as string)))[0]).toBe(0x1f);
    expect(server.asked.map(({ url }) => url)).toEqual([
      '/debug/pprof/profile?seconds=1',
      // The endpoint's own default, and so this command's.
      '/debug/pprof/profile?seconds=10',
      '/debug/pprof/heap?seconds=10',
    ]);
  });

  test('`proxy profile` shows a countdown only on a terminal', async () => {
    let finish: (() => void) | undefined;
    await using server = await fakeAdmin({
      '/debug/pprof/profile': (response, request) => {
        finish = () => says(gzipSync('x'))(response, request);
      },
    });
    const args = ['profile', 'cpu', '--seconds', '5', '--admin', server.address, '-o', 'b.pb.gz'];
    const live = { stdout: '', stderr: '' };
    const profile = cli(args, { cwd: folder.path, live, isTTY: true });
    await until(() => live.stderr.includes(`profiling ${server.address}: 4 s left`));
    finish?.();
    await profile;
    expect(live.stderr.endsWith('\r\u001b[K')).toBe(true);
    const piped = cli(args, { cwd: folder.path });
    await until(() => server.asked.length === 2);
    finish?.();
    expect((await piped).stderr).toBe(`profiling ${server.address} for 5 s\n`);
  });

  test.each([
    [['heap', '--seconds', '0'], 2, 'invalid --seconds 0; must be between 1 and 300'],
    [['cpu', '--seconds', '301'], 2, 'invalid --seconds 301; must be between 1 and 300'],
    [['cpu', '--seconds', '1', '-o', '/no/such/folder/x'], 2, 'cannot write /no/such/folder/x'],
    [['heap'], 3, 'is not an admin server: its response is not a heap profile'],
  ] as const)('`proxy profile` fails with an explanation: %j', async (args, expected, message) => {
    await using server = await fakeAdmin({
      '/debug/pprof/profile': says(gzipSync('x')),
      '/debug/pprof/heap': says('<html>'),
    });
    const { code, stderr } = await cli(['proxy', 'profile', ...args, '--admin', server.address]);
    expect([code, stderr]).toEqual([expected, expect.stringContaining(message)]);
  });

  test('`proxy profile` reports a system without CPU profiles and a profile already in progress', async () => {
    await using none = await fakeAdmin({});
    await using busy = await fakeAdmin({
      '/debug/pprof/heap': says('a profile is running', 'text/plain', 409),
    });
    expect(await cli(['proxy', 'profile', 'cpu', '--admin', none.address])).toMatchObject({
      code: 3,
      stderr: expect.stringContaining('404 Not Found'),
    });
    expect(await cli(['proxy', 'profile', 'heap', '--admin', busy.address])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('a profile is running'),
    });
  });
});

describe('runtime state', () => {
  const memory = {
    captured_at_unix_ms: 1,
    smaps: { rss: 104857600 },
    pprof: { live_stacks: 123456 },
    cgroup: null,
    'x\u001b[2J': 1,
  };

  test('`proxy memory` prints the memory figures with escaped names', async () => {
    await using server = await fakeAdmin({ '/memory': says(JSON.stringify(memory)) });
    const { stdout } = await cli(['proxy', 'memory', '--admin', server.address]);
    expect(stdout).toBe(
      'captured_at_unix_ms  1\nsmaps.rss            100.0 MiB\npprof.live_stacks    123456\nx\\u{1b}[2J           1\n',
    );
    expect(
      JSON.parse((await cli(['proxy', 'memory', '--admin', server.address, '-o', 'json'])).stdout),
    ).toEqual(memory);
  });

  test('`proxy memory` prints bytes in one unit and the bounded buffers as a table', async () => {
    const shown = {
      allocator: { comparable: { retained_bytes: 4362842752, metadata_bytes: 2048 }, number_of_contexts: 3 },
      bounds: [
        { name: 'connections', at: 'default', used: 2, max: 10000 },
        { name: 'log.queueBytes', at: 'stdout', max: 1048576, dropped: 7 },
      ],
    };
    await using server = await fakeAdmin({ '/memory': says(JSON.stringify(shown)) });
    const { stdout } = await cli(['proxy', 'memory', '--admin', server.address]);
    expect(stdout).toBe(
      [
        'allocator.comparable.retained_bytes  4160.7 MiB',
        'allocator.comparable.metadata_bytes  0.002 MiB',
        'allocator.number_of_contexts         3',
        '',
        'BOUND                    USE  CAP',
        'connections (default)    2    10000',
        'log.queueBytes (stdout)  -    1.0 MiB  7 dropped',
        '',
      ].join('\n'),
    );
  });

  test('`proxy tasks` prints the tasks as a tree', async () => {
    await using server = await fakeAdmin({
      '/debug/tasks': says('{"admin":["serve\\n  accept"],"workload":[]}'),
    });
    const { stdout } = await cli(['proxy', 'tasks', '--admin', server.address]);
    expect(stdout).toBe('admin:\n  serve\n    accept\nworkload: none\n');
  });

  test('`proxy shutdown` sends a POST', async () => {
    await using server = await fakeAdmin({
      '/quitquitquit': says('shutdown now\n', 'text/plain'),
      '/api/overview': says('{"config":"gateway.yaml","pid":4711}'),
    });
    expect(await cli(['proxy', 'shutdown', '--admin', server.address])).toEqual({
      code: 0,
      stdout: 'shutdown now\n',
      stderr: `${server.address} stops after open requests\n`,
    });
    expect(server.asked.at(-1)).toMatchObject({ method: 'POST', url: '/quitquitquit' });
    const none = await cli(['proxy', 'shutdown', '--admin', '127.0.0.1:1']);
    expect([none.code, none.stderr]).toEqual([
      3,
      expect.stringMatching(/^error: no gateway at 127\.0\.0\.1:1/),
    ]);
  });
});

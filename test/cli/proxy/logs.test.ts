import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { cli } from '../../kit/cli.ts';
import { chaos, mcpConfig } from '../../kit/config.ts';
import { fakeAdmin, says } from '../../kit/fake-admin.ts';
import { gateway, type TestGateway } from '../../kit/gateway.ts';
import { openSession } from '../../kit/mcp.ts';
import { freePort } from '../../kit/ports.ts';
import { send } from '../../kit/send.ts';
import { hasTerminal, terminal } from '../../kit/terminal.ts';

const FIXED = JSON.stringify({
  config: { adminAddr: 'off', connectionTerminationDeadline: '100ms' },
  gateways: { a: { port: 0, routes: [{ name: 'fixed', policies: { directResponse: { body: 'ok' } } }] } },
});

/** A request as the admin server lists it. */
const entry = (id: number, fields: object, at = Date.now()) => ({
  id,
  time: new Date(at).toISOString(),
  fields: { 'http.method': 'GET', 'http.path': `/${id}`, 'http.status': 200, duration: '5ms', ...fields },
});
const listing = (...entries: object[]) =>
  fakeAdmin({ '/api/requests': says(JSON.stringify({ requests: entries })) });
const subjects = (text: string): string[] =>
  [...text.matchAll(/GET (\/\S+)/g)].map(([, path]) => path as string);

describe('agctl logs with a running gateway', () => {
  let gate: TestGateway;
  beforeAll(async () => {
    gate = await gateway(mcpConfig([chaos('files'), chaos('other')]), { admin: true });
    const session = await openSession(`${gate.url}/mcp`);
    await session.request('tools/call', { name: 'files_echo', arguments: { text: 'x' } });
    await session.request('tools/call', { name: 'other_fail', arguments: {} });
    await send(`${gate.url}/none`);
    await gate.accessLine(5);
  });
  afterAll(() => gate.close());
  const logs = (...args: string[]) => cli(['logs', '--admin', gate.admin, ...args], { isTTY: false });

  test('logs lists the last requests, one line each', async () => {
    const { code, stdout, stderr } = await logs();
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(/^\d\d:\d\d:\d\d ✓ 200 +\S+s {2}initialize · /m);
    expect(stdout).toMatch(/^\d\d:\d\d:\d\d ✓ 200 +\S+s {2}tools\/call echo on files · /m);
    expect(stdout).toMatch(/^\d\d:\d\d:\d\d ! 406 +\S+s {2}GET \/none · Not Acceptable/m);
    expect(stdout).not.toContain('\u001b');
  });

  test.each([
    ['--tool', 'echo', /tools\/call echo on files/],
    ['--target', 'oth*', /on other/],
    ['--status', '406', /GET \/none/],
    ['--status', '4xx,500', /GET \/none/],
  ])('logs %s %s lists only what matches', async (option, value, pattern) => {
    const { stdout } = await logs(option, value);
    expect(stdout).toMatch(pattern);
    expect(stdout.trim().split('\n')).toHaveLength(1);
  });

  test('logs -o json prints each request with all fields, and proxy logs is the same command', async () => {
    const { stdout } = await cli(['proxy', 'logs', '--admin', gate.admin, '-o', 'json', '--tool', 'echo']);
    expect(JSON.parse(stdout)).toMatchObject({
      id: expect.any(Number),
      time: expect.stringMatching(/Z$/),
      fields: { 'gen_ai.tool.name': 'echo', 'mcp.target': 'files', 'http.status': 200 },
    });
  });

  test('logs says if no request matches', async () => {
    expect(await logs('--user', 'nobody')).toMatchObject({
      code: 0,
      stdout: '',
      stderr: expect.stringMatching(/^none of the last \d requests match\n$/),
    });
  });
});

describe('agctl logs', () => {
  test('logs --tail and --since limit the requests', async () => {
    const now = Date.now();
    await using admin = await listing(
      entry(1, {}, now - 3_600_000),
      entry(2, {}, now - 600_000),
      entry(3, {}, now - 1_000),
    );
    const shown = async (...args: string[]) =>
      subjects((await cli(['logs', '--admin', admin.address, ...args])).stdout);
    expect(await shown()).toEqual(['/1', '/2', '/3']);
    expect(await shown('--tail', '2')).toEqual(['/2', '/3']);
    expect(await shown('--tail', '0')).toEqual([]);
    expect(await shown('--since', '20m')).toEqual(['/2', '/3']);
    expect(await shown('--since', new Date(now - 60_000).toISOString())).toEqual(['/3']);
  });

  test('logs --status error finds failures with status 200, and --route the last part of a name', async () => {
    await using admin = await listing(
      entry(1, { route: 'default/tools', 'error.type': 'tool_error' }),
      entry(2, { route: 'default/llm', 'http.status': 502 }),
      entry(3, { route: 'default/llm', 'http.status': 403 }),
    );
    const shown = async (...args: string[]) =>
      subjects((await cli(['logs', '--admin', admin.address, ...args])).stdout);
    expect(await shown('--status', 'error')).toEqual(['/1', '/2']);
    expect(await shown('--route', 'LLM')).toEqual(['/2', '/3']);
    expect(await shown('--route', 'default/*', '--status', '403,error')).toEqual(['/1', '/2', '/3']);
  });

  test('logs escapes control characters of clients', async () => {
    await using admin = await listing(entry(1, { 'http.path': '/\u001b]0;x\u0007' }));
    expect((await cli(['logs', '--admin', admin.address])).stdout).toContain('GET /\\u{1b}]0;x\\u{7}');
    const json = await cli(['logs', '--admin', admin.address, '-o', 'json'], { isTTY: true });
    expect(json.stdout).toContain('\\u001b]0;x\\u0007');
  });

  test('logs of a gateway without requests says so', async () => {
    await using admin = await listing();
    expect(await cli(['logs', '--admin', admin.address])).toMatchObject({
      code: 0,
      stderr: 'no requests yet\n',
    });
  });

  test.each([
    [['--status', '6xx'], 2, /invalid --status: "6xx" is not a status\n.*classes such as 5xx/],
    [['--since', 'soon'], 2, /--since soon is not a duration/],
    [['--since', '2026-13-01'], 2, /--since 2026-13-01 is not a time/],
    [['--tail', '-1'], 2, /invalid --tail/],
    [['-o', 'yaml'], 2, /Allowed choices are text, json/],
  ])('logs %j is refused', async (args, code, pattern) => {
    await using admin = await listing();
    const ran = await cli(['logs', '--admin', admin.address, ...args]);
    expect([ran.code, ran.stderr]).toEqual([code, expect.stringMatching(pattern)]);
  });

  test('logs without a gateway reports the one on this machine, or that of AGCTL_ADMIN', async () => {
    await using admin = await fakeAdmin({ '/api/requests': says('<html>', 'text/html') });
    expect(await cli(['logs'], { env: { AGCTL_ADMIN: admin.address } })).toMatchObject({
      code: 3,
      stderr: expect.stringContaining(`${admin.address} is not an admin server`),
    });
    expect(await cli(['logs', '--proxy-admin-port', '1'])).toMatchObject({
      code: 3,
      stderr: expect.stringContaining('no gateway at 127.0.0.1:1'),
    });
  });
});

describe.skipIf(!hasTerminal)('agctl logs --follow', { timeout: 60_000 }, () => {
  test('logs --follow prints further requests in colour, waits for a gateway that restarts, and ends with Ctrl-C', async () => {
    const adminPort = await freePort();
    await using term = await terminal({ columns: 100 });
    {
      await using first = await gateway(FIXED, { admin: true, adminPort });
      for (let sent = 1; sent <= 12; sent += 1) await send(`${first.url}/${sent}`);
      await first.accessLine(12);
      await term.agctl(['logs', '-f', '--admin', `127.0.0.1:${adminPort}`]);
      const begun = await term.shows('GET /12');
      expect(subjects(begun)).toEqual(Array.from({ length: 10 }, (_, index) => `/${index + 3}`));
      await send(`${first.url}/live`);
      await term.shows('GET /live · default/fixed');
      expect(await term.styled()).toContain('\u001b[32m✓ 200');
    }
    await term.shows(/closed the connection.*; waiting until it is back/);
    await using second = await gateway(FIXED, { admin: true, adminPort });
    await send(`${second.url}/again`);
    const screen = await term.shows('GET /again');
    expect(screen).toContain(`127.0.0.1:${adminPort} is back`);
    expect(screen.match(/GET \/live/g)).toHaveLength(1);
    await term.press('C-c');
    await term.shows('code 130');
  });
});

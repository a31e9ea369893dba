import { describe, expect, test } from 'vitest';
import { cli } from '../../kit/cli.ts';
import { chaos, mcpConfig } from '../../kit/config.ts';
import { gateway } from '../../kit/gateway.ts';
import { openSession } from '../../kit/mcp.ts';
import { freePort } from '../../kit/ports.ts';
import { send } from '../../kit/send.ts';
import { hasTerminal, type Terminal, terminal } from '../../kit/terminal.ts';
import { httpUpstream } from '../../kit/upstream.ts';
import { workerGateway } from '../../kit/workers.ts';

const at = (pathPrefix: string): object[] => [{ path: { pathPrefix } }];
const FIXED = {
  config: { adminAddr: 'off', connectionTerminationDeadline: '100ms' },
  gateways: {
    a: {
      port: 0,
      routes: [
        { name: 'good', matches: at('/good'), policies: { directResponse: { body: 'ok' } } },
        { name: 'bad', matches: at('/bad'), backends: [{ host: '127.0.0.1:1' }] },
      ],
    },
  },
};

const top = (term: Terminal, admin: string, environment = ''): Promise<void> =>
  term.agctl(['top', '--admin', admin], environment);
const widest = (screen: string): number => Math.max(...screen.split('\n').map((line) => line.length));

describe.skipIf(!hasTerminal)('the screen of agctl top', { timeout: 90_000 }, () => {
  test('top lists requests in flight and finished ones with figures, groups, details and filters', async () => {
    await using gate = await gateway(mcpConfig([chaos('files'), chaos('tickets')]), { admin: true });
    const session = await openSession(`${gate.url}/mcp`);
    for (let count = 0; count < 3; count += 1)
      await session.request('tools/call', { name: 'files_echo', arguments: { text: 'x' } });
    await session.request('tools/call', { name: 'tickets_fail', arguments: {} });
    await gate.accessLine(6);
    await using term = await terminal();
    await top(term, gate.admin);
    const screen = await term.shows('● live');
    expect(screen).toMatch(/^ agctl top {2}http:\/\/127\.0\.0\.1:\d+ +● live {2}up /m);
    expect(screen).toMatch(
      /^ last 5 min {2}\S+\/s {2}6 requests {2}1 failed \(16\.7 %\) {2}p50 \S+ {2}p99 \S+/m,
    );
    expect(screen).toMatch(/^ \d in flight {2}1 session/m);
    expect(screen).toContain('── [Requests] Routes Targets Tools Models Users Sessions ─');
    expect(screen).toMatch(/^▸ \d\d:\d\d:\d\d ✗ 200 +<?\d+ms tools\/call fail on tickets/m);
    expect(widest(screen)).toBeLessThanOrEqual(80);

    const leave = new AbortController();
    const slow = fetch(`${gate.url}/mcp`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'mcp-session-id': session.id,
      },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 77,
        method: 'tools/call',
        params: { name: 'files_progress', arguments: { steps: 10_000, ms: 20 } },
      }),
      signal: leave.signal,
    }).catch(() => undefined);
    await term.shows(/^▸ \S+ … .*tools\/call progress on files/m);
    await term.press('l');
    await term.shows(/\[Requests in flight\] .* 1\/1 ──/);
    leave.abort();
    await slow;
    await term.shows('no request is in flight');
    await term.press('l', 'l');
    await term.shows('[Requests] Routes');

    await term.press('Tab', 'Tab', 'Tab');
    const tools = await term.shows('[Tools]');
    expect(tools).toMatch(/^ {2}TOOL +REQS▾ +\/S +FAILED +P50 +P99/m);
    expect(tools).toMatch(/^▸ echo on files +3 /m);
    expect(tools).toMatch(/^ {2}fail on tickets +1 +\S+ +1 /m);
    await term.press('o', 'o');
    await term.shows(/FAILED▾[\s\S]*▸ fail on tickets/);
    await term.press('Enter');
    await term.shows(/── Requests of tool fail on tickets ─+ 1\/1 ──/);
    await term.press('Enter');
    const details = await term.shows('── Request ─');
    expect(details).toMatch(/^ ✗ tools\/call fail on tickets\n {3}the tool reported an error \(isError\)$/m);
    expect(details).toMatch(/^ mcp\.target +tickets$/m);
    await term.press('Escape');
    await term.shows('Requests of tool');
    await term.press('Escape');
    await term.shows('[Tools]');
    await term.press('/', 'status:error', 'Enter');
    expect(await term.shows('with "status:error"')).not.toContain('echo on files');
    await term.press('?');
    await term.shows('any key closes');
    await term.press('q');
    await term.shows('code 0');
  });

  test('top fits 160×40, 120×40, 40×10 and 80×24, and follows a change of size', async () => {
    await using gate = await gateway(JSON.stringify(FIXED), { admin: true });
    for (let sent = 1; sent <= 40; sent += 1) await send(`${gate.url}/good/${sent}`);
    await gate.accessLine(40);
    await using term = await terminal({ columns: 160, rows: 40 });
    await top(term, gate.admin);
    const large = await term.shows('● live');
    expect(large).toMatch(/── \[Requests\].*──│── Request ─/);
    expect(large).toMatch(/│ http\.path +\/good\/40$/m);
    await term.resize(120, 40);
    const narrower = await term.shows(/^── Request ─[\s\S]*^ http\.path +\/good\/40$/m);
    expect(widest(narrower)).toBeLessThanOrEqual(120);
    await term.resize(40, 10);
    const small = await term.shows(/^▸ .*GET \/good\/40(?!.*│)/m);
    expect(widest(small)).toBeLessThanOrEqual(40);
    await term.press('G');
    await term.shows(/^▸ .*GET \/good\/1 *$/m);
    await term.resize(80, 24);
    const usual = await term.shows(/GET \/good\/17[\s\S]*q quit/);
    expect(widest(usual)).toBeLessThanOrEqual(80);
    expect(usual).toMatch(/^▸ .*GET \/good\/1 *$/m);
    await term.press('q');
    await term.shows('code 0');
  });

  test('top records traces and shows that of a request, or traces the next one like it', async () => {
    await using gate = await gateway(JSON.stringify(FIXED), { admin: true });
    await send(`${gate.url}/bad/1?page=1`);
    await gate.accessLine(1);
    await using term = await terminal({ columns: 100 });
    await top(term, gate.admin);
    await term.shows('GET /bad/1');
    await term.press('t');
    await term.shows('request.method == "GET" && request.path == "/bad/1"');
    await send(`${gate.url}/good`);
    await send(`${gate.url}/bad/1`);
    await term.shows(/● done[\s\S]*GET \/bad\/1 +503/);
    await term.press('q');
    await term.shows('● live');
    await term.press('r');
    await term.shows('◉ traces  ● live');
    await send(`${gate.url}/good/recorded`);
    await send(`${gate.url}/good/other`);
    await term.shows('GET /good/other');
    await term.press('j', 'Enter');
    await term.shows('t shows the recorded trace of this request');
    await term.press('t');
    const trace = await term.shows('● saved trace');
    expect(trace).toMatch(/GET \/good\/recorded {3}200, answered by directResponse/);
    await term.press('Escape');
    await term.shows('t shows the recorded trace of this request');
    await term.press('r');
    await term.shows('recording has stopped');
    await term.press('q');
    await term.shows('code 0');
  });

  test('top stops for p, reports a gateway that is gone, and goes on when it is back', async () => {
    const adminPort = await freePort();
    await using term = await terminal();
    {
      await using first = await gateway(JSON.stringify(FIXED), { admin: true, adminPort });
      await send(`${first.url}/good/1`);
      await first.accessLine(1);
      await top(term, `127.0.0.1:${adminPort}`);
      await term.shows('GET /good/1');
      await term.press('p');
      await term.shows('❚❚ paused');
      await send(`${first.url}/good/2`);
      await term.press('p');
      await term.shows(/● live[\s\S]*GET \/good\/2/);
    }
    expect(await term.shows('✗ gone, trying again')).toContain('GET /good/2');
    await using second = await gateway(JSON.stringify(FIXED), { admin: true, adminPort });
    await send(`${second.url}/good/3`);
    const back = await term.shows(/● live[\s\S]*GET \/good\/3/);
    expect(back.match(/GET \/good/g)).toHaveLength(3);
    await term.press('q');
    await term.shows('code 0');
  });

  test('top shows requests in flight and finished ones of all workers', async () => {
    await using slow = await httpUpstream((_, response) => void response.writeHead(200).write('begun'));
    await using gate = await workerGateway({
      config: { connectionTerminationDeadline: '100ms' },
      gateways: {
        default: {
          port: 0,
          routes: [
            { name: 'slow', matches: at('/slow'), backends: [{ host: slow.address }] },
            { name: 'good', policies: { directResponse: { body: 'ok' } } },
          ],
        },
      },
    });
    const leave = new AbortController();
    const connection = { connection: 'close' };
    // A response that nobody holds is cancelled.
    const responses: Response[] = [];
    for (let sent = 1; sent <= 4; sent += 1) {
      responses.push(await fetch(`${gate.url}/slow/${sent}`, { signal: leave.signal, headers: connection }));
      await send(`${gate.url}/fast/${sent}`, { headers: connection });
    }
    await using term = await terminal();
    await top(term, gate.admin);
    await term.shows(/^ 4 in flight/m);
    const screen = await term.shows('GET /fast/4');
    for (let sent = 1; sent <= 4; sent += 1) {
      expect(screen).toMatch(new RegExp(`… 200 .*GET /slow/${sent}`));
      expect(screen).toMatch(new RegExp(`✓ 200 .*GET /fast/${sent}`));
    }
    expect(responses).toHaveLength(4);
    leave.abort();
    await term.shows(/^ 0 in flight/m);
    await term.press('q');
    await term.shows('code 0');
  });

  test('top uses no color with NO_COLOR, and restores the terminal on Ctrl-C', async () => {
    await using gate = await gateway(JSON.stringify(FIXED), { admin: true });
    await using term = await terminal();
    for (const [environment, hasColor] of [
      ['NO_COLOR=1', false],
      ['NO_COLOR=', true],
    ] as const) {
      await top(term, gate.admin, environment);
      await term.shows(/● live[\s\S]*no requests yet/);
      expect((await term.styled()).includes('\u001b[')).toBe(hasColor);
      await term.press('C-c');
      await term.shows('code 130');
      expect([await term.state('alternate_on'), await term.state('cursor_flag')]).toEqual(['0', '1']);
    }
  });

  test('top escapes hostile text of clients', async () => {
    await using gate = await gateway(JSON.stringify(FIXED), { admin: true });
    await send(gate.url, { target: '/good/%1b]0;title%07', headers: { 'user-agent': '\u009b31m' } }).catch(
      () => undefined,
    );
    await send(gate.url, { target: '/good/\u202e%0d%0a' }).catch(() => undefined);
    await using term = await terminal();
    await top(term, gate.admin);
    await term.shows('● live');
    expect(await term.state('pane_title')).not.toContain('title');
    await term.press('q');
    await term.shows('code 0');
  });

  test('top without a gateway ends with a line', async () => {
    await using term = await terminal();
    await top(term, '127.0.0.1:1');
    await term.shows(/error: no gateway at 127\.0\.0\.1:1: nothing listens there[\s\S]*code 3/);
  });
});

test('top in a pipe names the command for lines', async () => {
  expect(await cli(['top', '--admin', '127.0.0.1:1'])).toMatchObject({
    code: 2,
    stderr: 'error: top needs a terminal\n  = help: agctl logs -f prints requests as lines\n',
  });
});

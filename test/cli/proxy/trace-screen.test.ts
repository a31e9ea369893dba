import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { DENIED, fakeAdmin, frames, type Script, streams } from '../../kit/fake-admin.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { hasTerminal, terminal } from '../../kit/terminal.ts';
import { covers } from '../../kit/verifies.ts';

covers('gateway.agctl.trace', 'gateway.agctl.trace.parts');

const folder = await temporaryFolder();
afterAll(() => folder.remove());
const waits: Script = (response) =>
  void response.writeHead(200, { 'content-type': 'text/event-stream' }).write(': ready\n\n');

/** Every exit must leave the normal screen, a cursor and a shell that echoes. */
async function isRestored(term: Awaited<ReturnType<typeof terminal>>): Promise<void> {
  expect([await term.state('alternate_on'), await term.state('cursor_flag')]).toEqual(['0', '1']);
  await term.press('e', 'c', 'h', 'o', ' ', 's', 'a', 'n', 'e', 'Enter');
  await term.shows(/^sane$/m);
}

describe.skipIf(!hasTerminal)('the trace screen', { timeout: 60_000 }, () => {
  test('the trace screen shows the deciding policy, the steps and the reason, switches views by keys and leaves one line', async () => {
    await using admin = await fakeAdmin({ '/debug/trace': streams(frames(DENIED)) });
    await using term = await terminal();
    await term.agctl(['proxy', 'trace', '--admin', admin.address]);
    const screen = await term.shows('● done');
    const lines = screen.split('\n');
    expect(lines[0]).toContain(`agctl trace  ${admin.address}`);
    expect(lines[1]).toMatch(/^ POST \/mcp {2}tools\/call echo {3}403, denied by authorization/);
    expect(lines[2]).toContain('✓ route tools › – cors › ✗ authorization › ○ backend  gateway.yaml:23:17');
    expect(screen).toMatch(/^▸ ✗ +0\.32 {2}authz +denied by rules\[0\]/m);
    expect(screen).toContain('rules[0] require: "admin" in jwt.roles => false   decided, gateway.yaml:23:17');
    await term.press('k');
    await term.shows('jwt.roles = ["user"]');
    await term.press('s');
    await term.shows(/State: cel YAML[\s\S]*roles:\n {3}- user/);
    await term.press('f');
    await term.shows(/State: cel JSON[\s\S]*"sub": "ann"/);
    await term.press('t');
    await term.shows(/▏ +█+ +▕ +0\.06ms/);
    await term.press('/', 'r', 'o', 'u', 't', 'e', 'Enter');
    expect(await term.shows('Steps with "route"')).not.toContain('requestStarted');
    await term.press('?');
    await term.shows('first, last');
    await term.press('q');
    await term.shows(
      /^POST \/mcp {2}tools\/call echo {2}route tools {2}403, denied by authorization[\s\S]*code 0$/m,
    );
    await isRestored(term);
  });

  test('the trace screen fits 80×24, 140×40 and 40×10 and follows a change of size', async () => {
    await using admin = await fakeAdmin({ '/debug/trace': streams(frames(DENIED)) });
    await using term = await terminal();
    await term.agctl(['proxy', 'trace', '--admin', admin.address]);
    await term.shows('● done');
    await term.resize(140, 40);
    const wide = await term.shows(/Steps ─.*──│── Explained/);
    // Texts that do not fit continue on the empty rows below.
    expect(wide).toMatch(/route +selected gateway\/edge\/default\/tools \(2 +│.*\n +evaluated\) +│/);
    expect(wide.split('\n').filter((line) => /^.{2,66}….*│/.test(line))).toEqual([]);
    await term.resize(40, 10);
    const small = await term.shows(/^── Steps ─+ 6\/7 ──\n(?!.*│)/m);
    expect(Math.max(...small.split('\n').map((line) => line.length))).toBeLessThanOrEqual(40);
    await term.resize(80, 24);
    await term.shows(/── Explained: authz/);
    await term.press('q');
    await term.shows('code 0');
  });

  test('the trace screen waits, traces again with one key, reports a lost gateway and can save the received steps', async () => {
    let round = 0;
    let answer = (): void => undefined;
    await using admin = await fakeAdmin({
      '/debug/trace': (response, request) => {
        round += 1;
        if (round === 1) waits(response, request);
        else streams(frames(DENIED.slice(0, 3)))(response, request);
        if (round === 1) answer = () => void response.end(frames(DENIED));
      },
    });
    await using term = await terminal();
    await term.agctl(['proxy', 'trace', '--admin', admin.address, '--match', 'true']);
    const waiting = await term.shows('◌ waiting');
    expect(waiting).toContain('The next request for which this is true: true');
    expect(waiting).toContain('"method":"initialize"');
    expect(waiting).toContain(`agctl proxy trace --admin ${admin.address} -- <url>`);
    answer();
    await term.shows('● done');
    await term.press('n');
    const lost = await term.shows('✗ disconnected');
    expect(lost).toContain('ended the trace after 3 events, before the request was complete');
    await term.press('w');
    await term.shows(/saved to trace-\d{14}\.jsonl/);
    await term.press('q');
    await term.shows('code 0');
  });

  test('the trace screen with --count 2 shows the previous request while it waits for the next', async () => {
    let round = 0;
    await using admin = await fakeAdmin({
      '/debug/trace': (response, request) => {
        round += 1;
        (round === 1 ? streams(frames(DENIED)) : waits)(response, request);
      },
    });
    await using term = await terminal();
    await term.agctl(['proxy', 'trace', '--admin', admin.address, '--count', '2', '--fail-on', 'deny']);
    await term.shows('Request 2 of 2: the next request is traced');
    await term.press('[');
    await term.shows('403, denied by authorization');
    await term.press(']');
    await term.shows('Request 2 of 2');
    await term.press('q');
    await term.shows('code 1');
  });

  test.each([
    ['C-c', 130],
    ['SIGTERM', 143],
  ])('the trace screen on %s restores the terminal and exits with %i', async (how, code) => {
    await using admin = await fakeAdmin({ '/debug/trace': waits });
    await using term = await terminal();
    await term.agctl(['proxy', 'trace', '--admin', admin.address]);
    await term.shows('◌ waiting');
    expect(await term.state('alternate_on')).toBe('1');
    if (how === 'C-c') await term.press('C-c');
    else process.kill(await term.foreground(), how);
    await term.shows(new RegExp(`^code ${code}$`, 'm'));
    await isRestored(term);
  });

  test.each(['Ctrl-Z', 'SIGTSTP'])(
    'the trace screen on %s restores the terminal, and fg redraws it',
    async (how) => {
      await using admin = await fakeAdmin({ '/debug/trace': streams(frames(DENIED)) });
      await using term = await terminal();
      await term.agctl(['proxy', 'trace', '--admin', admin.address]);
      await term.shows('● done');
      if (how === 'Ctrl-Z') await term.press('C-z');
      else process.kill(await term.foreground(), 'SIGTSTP');
      await term.shows(/^code 148\n[\s\S]*Stopped/m);
      await isRestored(term);
      await term.press('f', 'g', 'Enter');
      const screen = await term.shows('● done');
      expect(await term.state('alternate_on')).toBe('1');
      expect(screen.split('\n')[1]).toMatch(
        /^ POST \/mcp {2}tools\/call echo {3}403, denied by authorization/,
      );
      // Keys are read again, one by one.
      await term.press('k');
      await term.shows('jwt.roles = ["user"]');
      await term.press('q');
      await term.shows(/^POST \/mcp {2}tools\/call echo {2}route tools {2}403/m);
      await isRestored(term);
    },
  );

  test('the trace screen escapes hostile text of a saved trace', async () => {
    const file = join(folder.path, 'hostile.jsonl');
    const event = {
      eventEnd: 1,
      severity: 'error',
      message: {
        type: 'policy',
        kind: 'a\u001b[2Jb',
        result: { type: 'apply', details: '\u009b31m\u001b]0;title\u0007\r\n\u202e' },
      },
    };
    await writeFile(file, `${JSON.stringify(event)}\n`);
    await using term = await terminal();
    await term.agctl(['proxy', 'trace', '--file', file]);
    const screen = await term.shows('● saved trace');
    expect(screen).toContain('a\\u{1b}[2Jb');
    expect(await term.state('pane_title')).not.toContain('title');
    await term.press('e');
    await term.shows('\\u001b[2J');
    await term.press('q');
    await term.shows('code 0');
  });

  test('the trace screen is not used without a gateway or with --plain', async () => {
    await using admin = await fakeAdmin({ '/debug/trace': streams(frames(DENIED)) });
    await using term = await terminal();
    await term.agctl(['proxy', 'trace', '--admin', '127.0.0.1:1']);
    await term.shows(/error: no gateway at 127\.0\.0\.1:1: nothing listens there[\s\S]*code 3/);
    await term.agctl(['proxy', 'trace', '--admin', admin.address, '--plain']);
    await term.shows(/authorization +DENIED[\s\S]*code 0/);
  });

  test('the trace screen uses no color with NO_COLOR', async () => {
    await using admin = await fakeAdmin({ '/debug/trace': streams(frames(DENIED)) });
    await using term = await terminal();
    for (const [environment, hasColor] of [
      ['NO_COLOR=1', false],
      ['NO_COLOR=', true],
    ] as const) {
      await term.agctl(['proxy', 'trace', '--admin', admin.address], environment);
      await term.shows('● done');
      expect((await term.styled()).includes('\u001b[')).toBe(hasColor);
      await term.press('q');
      await term.shows('code 0');
    }
  });
});

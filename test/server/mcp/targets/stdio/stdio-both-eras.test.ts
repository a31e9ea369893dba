import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { AT_ONCE } from '../../../../kit/at-once.ts';
import { ERAS } from '../../../../kit/both-eras.ts';
import { boundsInUse } from '../../../../kit/bounds-in-use.ts';
import { chaos, mcpConfig } from '../../../../kit/config.ts';
import { temporaryFolder } from '../../../../kit/folder.ts';
import { gateway, type TestGateway } from '../../../../kit/gateway.ts';
import { isAlive } from '../../../../kit/is-alive.ts';
import { INITIALIZE, type McpReply, post } from '../../../../kit/mcp.ts';
import { MODERN } from '../../../../kit/modern.ts';
import { until } from '../../../../kit/until.ts';

// Faults of child processes, seen by callers of every revision: in a session, and without one (2026-07-28).

const base64 = (text: string): string => Buffer.from(text, 'latin1').toString('base64');

const pids = ({ log }: TestGateway): number[] =>
  log.flatMap((line) => {
    const [, pid] = /target started.*pid=(\d+)/.exec(line) ?? [];
    return pid === undefined ? [] : [Number(pid)];
  });

describe.each(ERAS)('a caller of revision %s', (revision, connect) => {
  /** The first request to the target: `initialize`, or a call. */
  const begin = async (url: string, init: RequestInit = {}): Promise<McpReply> => {
    if (revision !== MODERN) return post(url, INITIALIZE, {}, init);
    const { message, headers } = (await connect(url)).request('tools/call', { name: 'echo', arguments: {} });
    return post(url, message, headers, init);
  };

  test.each([
    ['is missing', { cmd: 'no-such-command' }, /command not found/],
    [
      'cannot be started',
      { cmd: process.execPath, args: ['-e', `/*${'x'.repeat(3_000_000)}*/`] },
      /too large/,
    ],
    ['exits at once', chaos('a', '--exit=7').stdio, /exited with code 7/],
  ])('gets the reason at once if the command %s, and no session is left', async (_what, stdio, reason) => {
    await using gate = await gateway(mcpConfig([{ name: 'a', stdio }]), { admin: true });
    const started = performance.now();
    const { status, error } = await begin(`${gate.url}/mcp`);
    expect(performance.now() - started).toBeLessThan(AT_ONCE);
    expect([status, error.code]).toEqual([500, -32603]);
    expect(error.message).toMatch(reason);
    await until(async () => (await boundsInUse(gate))['mcp.sessions'] === 0);
    expect((await boundsInUse(gate))['mcp.children']).toBe(0);
  });

  test.each([
    ['exits', 'die', {}, /exited with code 3/],
    ['is killed', 'kill-self', {}, /SIGKILL/],
    ['closes its stdout', 'close-stdout', {}, /closed its output/],
    ['writes a line over 8 MiB', 'big', { bytes: 9_000_000 }, /8 ?MiB|8388608|too (?:large|long)|longer/i],
  ])(
    'whose child process %s during a call gets the reason at once, and the next call another process',
    async (_what, tool, args, reason) => {
      await using gate = await gateway(mcpConfig([chaos('a')]));
      const caller = await connect(`${gate.url}/mcp`);
      await caller.call('echo');
      const started = performance.now();
      const { error } = await caller.call(tool, args);
      expect(performance.now() - started).toBeLessThan(AT_ONCE);
      expect(error.message).toMatch(reason);
      await until(async () => (await caller.call('echo')).error === undefined);
      await until(() => pids(gate).filter(isAlive).length === 1);
    },
  );

  test('whose child process exits repeatedly causes few restarts, with increasing delays', async () => {
    await using folder = await temporaryFolder();
    const mark = join(folder.path, 'starts');
    await using gate = await gateway(mcpConfig([chaos('a', `--mark=${mark}`, '--exit=1'), chaos('b')]));
    const caller = await connect(`${gate.url}/mcp`);
    const began = performance.now();
    await until(async () => {
      await caller.call('a_echo');
      return performance.now() - began > 700;
    });
    const starts = readFileSync(mark, 'utf8').split('\n').length - 1;
    // Starts at 0, 100, 300 and 700 ms; without delays each of the dozens of calls would start one.
    expect(starts).toBeGreaterThan(1);
    expect(starts).toBeLessThanOrEqual(4);
  });

  test('whose child process does not read its input gets an error once 4 MiB wait for it, and the next call another process', async () => {
    await using gate = await gateway(mcpConfig([chaos('a')]));
    const url = `${gate.url}/mcp`;
    const caller = await connect(url);
    await caller.call('echo');
    const [pid = 0] = pids(gate).filter(isAlive);
    process.kill(pid, 'SIGSTOP');
    const leave = new AbortController();
    const calls = Array.from({ length: 5 }, (_, id) => {
      const text = 'x'.repeat(1_900_000);
      const { message, headers } = caller.request('tools/call', { name: 'echo', arguments: { text } }, id);
      return post(url, message, headers, { signal: leave.signal });
    });
    const { error } = await Promise.any(calls);
    expect(error.message).toBe('target "a" is not available: the server does not read its input');
    for (const call of calls) call.catch(() => undefined);
    leave.abort();
    process.kill(pid, 'SIGKILL');
    await until(async () => (await caller.call('echo')).error === undefined);
  });

  test('gets its own response after lines that are no message, and responses to other, equal and unknown ids', async () => {
    await using gate = await gateway(mcpConfig([chaos('a')]));
    const caller = await connect(`${gate.url}/mcp`);
    const forged = (id: string): string =>
      `{"jsonrpc":"2.0","id":${id},"result":{"content":[],"forged":true}}\n`;
    const lines = [
      '\xff\xfe\n',
      'noise\n',
      '{}\n',
      forged('999999'),
      forged('"x2"'),
      forged('null'),
      forged('-1'),
    ];
    const [emitted, other] = await Promise.all([
      caller.ask('tools/call', { name: 'emit', arguments: { pieces: lines.map(base64) } }, 1),
      caller.ask('tools/call', { name: 'later', arguments: { ms: 50, message: 'mine' } }, 2),
    ]);
    expect(emitted.result.content[0].text).toBe('emitted');
    expect(other.result.content[0].text).toBe('mine');
    expect((await caller.call('echo', { message: 'next' })).result.content[0].text).toBe('next');
  });

  test('is answered during a flood of thirty thousand notifications, and so are others', async () => {
    await using gate = await gateway(mcpConfig([chaos('a')]), { admin: true });
    const url = `${gate.url}/mcp`;
    const [caller, other] = [await connect(url), await connect(url, 'b')];
    await other.call('echo');
    const params = { method: 'notifications/message', params: { level: 'debug', data: 'x' }, times: 30_000 };
    const [flooded, calm] = await Promise.all([caller.call('notify', params), other.call('echo')]);
    expect(flooded.result.content[0].text).toBe('notified');
    expect(calm.result.content[0].text).toBe('echo');
    expect((await boundsInUse(gate))['mcp.session.queuedMessages']).toBeLessThanOrEqual(64);
  });

  test('gives a child process no variables of the gateway, and none of its own credentials', async () => {
    await using gate = await gateway(mcpConfig([chaos('a')]), {
      env: { AGCTL_TEST_SECRET: 'gateway-secret' },
    });
    const caller = await connect(`${gate.url}/mcp`, 'client-secret');
    const { text } = (await caller.call('env')).result.content[0];
    expect(text).not.toMatch(/gateway-secret|client-secret/);
    expect(JSON.parse(text).PATH).toBeDefined();
  });

  test('is refused with 503 while all child processes are in use, and the others are served', async () => {
    await using gate = await gateway(mcpConfig([chaos('a')], { config: { mcp: { maxChildren: 1 } } }), {
      limits: { childSlotTimeout: 200 },
    });
    const url = `${gate.url}/mcp`;
    const caller = await connect(url);
    const leave = new AbortController();
    const { message, headers } = caller.request('tools/call', { name: 'hang', arguments: {} }, 'hang');
    void post(url, message, headers, { signal: leave.signal }).catch(() => undefined);
    await caller.call('echo');
    const {
      status,
      headers: sent,
      error,
    } = revision === MODERN ? await (await connect(url, 'b')).call('echo') : await begin(url);
    expect([status, sent.get('retry-after')]).toEqual([503, expect.stringMatching(/^\d+$/)]);
    expect(error.message).toMatch(/already runs 1 child process/);
    expect((await caller.call('echo')).result.content[0].text).toBe('echo');
    leave.abort();
  });

  test('that leaves while the child process does not answer initialize leaves no process behind', async () => {
    await using gate = await gateway(mcpConfig([chaos('a', '--silent')]), {
      admin: true,
      limits: { initializeTimeout: 1_500, discoverTimeout: 200, keptStartTime: 100 },
    });
    const leave = new AbortController();
    const reply = begin(`${gate.url}/mcp`, { signal: leave.signal }).catch(() => undefined);
    await until(() => pids(gate).length === 1);
    leave.abort();
    await reply;
    await until(() => !pids(gate).some(isAlive));
    await until(async () => (await boundsInUse(gate))['mcp.sessions'] === 0);
  });
});

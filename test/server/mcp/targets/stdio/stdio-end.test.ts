import { describe, expect, test } from 'vitest';
import { chaos, mcpConfig } from '../../../../kit/config.ts';
import { gateway } from '../../../../kit/gateway.ts';
import { isAlive } from '../../../../kit/is-alive.ts';
import { INITIALIZE, MCP_HEADERS, type McpSession, openSession } from '../../../../kit/mcp.ts';
import { serve } from '../../../../kit/process.ts';
import { until } from '../../../../kit/until.ts';

const STUBBORN = chaos('a', '--ignore-term', '--linger');

const numberFrom = async (session: McpSession, tool: string): Promise<number> =>
  Number((await session.request('tools/call', { name: tool })).result.content[0].text);

/** A session whose child, and a child of that one, ignore SIGTERM. */
async function stubbornSession(url: string): Promise<{ session: McpSession; pids: number[] }> {
  const session = await openSession(`${url}/mcp`);
  const pids = [await numberFrom(session, 'pid'), await numberFrom(session, 'grandchild')];
  expect(pids.map(isAlive)).toEqual([true, true]);
  return { session, pids };
}

const allGone = (pids: readonly number[]) => until(() => !pids.some(isAlive));

describe('the end of a stdio session', () => {
  test('ending a session kills a child process that ignores SIGTERM and its descendants', async () => {
    await using gate = await gateway(mcpConfig([STUBBORN]));
    const { session, pids } = await stubbornSession(gate.url);
    await session.end();
    // 0.5 s to end by itself, 2 s after SIGTERM.
    await allGone(pids);
  });

  test('ending a session lets a child process exit by itself without waiting for a grandchild that holds its stdout', async () => {
    await using gate = await gateway(mcpConfig([chaos('a')]));
    const { session, pids } = await stubbornSession(gate.url);
    const started = performance.now();
    await session.end();
    await allGone(pids);
    expect(performance.now() - started).toBeLessThan(2_000);
  });
});

/** Cleans up after a failing test. */
function killIfAlive(pid: number): void {
  if (isAlive(pid)) process.kill(pid, 'SIGKILL');
}

describe('an abandoned initialize', () => {
  test('an abandoned initialize ends the child process that has not answered, unless the client tries again', async () => {
    await using gate = await gateway(mcpConfig([chaos('a', '--silent')]), { limits: { keptStartTime: 100 } });
    const leave = new AbortController();
    const opening = fetch(`${gate.url}/mcp`, {
      method: 'POST',
      headers: MCP_HEADERS,
      body: JSON.stringify(INITIALIZE),
      signal: leave.signal,
    });
    opening.catch(() => undefined);
    const pidOf = (line: string | undefined): number => Number(/pid=(\d+)/.exec(line ?? '')?.[1]);
    await until(() => gate.log.some((line) => line.includes('target started')));
    const pid = pidOf(gate.log.find((line) => line.includes('target started')));
    leave.abort();
    try {
      await until(() => !isAlive(pid), 1_500);
    } finally {
      killIfAlive(pid);
    }
  });
});

describe('the end of the gateway', () => {
  test.each([
    ['SIGTERM', STUBBORN],
    ['SIGINT', chaos('a')],
  ] as const)('a gateway that ends by %s leaves no process behind', async (signal, target) => {
    await using running = await serve(mcpConfig([target, chaos('b')]));
    const session = await openSession(`${running.url}/mcp`);
    const pids = [
      await numberFrom(session, 'a_pid'),
      await numberFrom(session, 'a_grandchild'),
      await numberFrom(session, 'b_pid'),
    ];
    running.kill(signal);
    const { code } = await running.finished;
    expect(code).toBe(0);
    await allGone(pids);
  });

  test('a gateway that ends by a second signal leaves no process behind', async () => {
    await using running = await serve(
      mcpConfig([STUBBORN], { config: { connectionTerminationDeadline: '60s' } }),
    );
    const { session, pids } = await stubbornSession(running.url);
    const call = session.send({ id: 9, method: 'tools/call', params: { name: 'hang' } });
    call.catch(() => undefined);
    await session.request('ping');
    running.kill('SIGTERM');
    await until(() => running.stderr.includes('finishing open requests'));
    expect(pids.map(isAlive)).toEqual([true, true]);
    running.kill('SIGTERM');
    const { code } = await running.finished;
    expect(code).toBe(1);
    await allGone(pids);
  });

  test('killing the gateway with SIGKILL closes stdin of its child processes, which then exit by themselves', async () => {
    await using running = await serve(mcpConfig([chaos('a')]));
    const session = await openSession(`${running.url}/mcp`);
    const pid = await numberFrom(session, 'pid');
    running.kill('SIGKILL');
    await allGone([pid]);
  });

  test('killing the gateway with SIGKILL ends a child process that ignores closed stdin and SIGTERM, and its descendants', async () => {
    await using running = await serve(mcpConfig([STUBBORN, chaos('b')]));
    const session = await openSession(`${running.url}/mcp`);
    const pids = [await numberFrom(session, 'a_pid'), await numberFrom(session, 'a_grandchild')];
    // A child that has already exited: its process group no longer exists.
    const other = await openSession(`${running.url}/mcp`);
    await other.end();
    running.kill('SIGKILL');
    try {
      await allGone(pids);
    } finally {
      pids.forEach(killIfAlive);
    }
  });

  test('the gateway can be stopped while a session is starting', async () => {
    const config = { logging: { level: 'debug' } };
    await using running = await serve(mcpConfig([chaos('a', '--silent', '--linger')], { config }));
    const body = JSON.stringify(INITIALIZE);
    fetch(`${running.url}/mcp`, { method: 'POST', headers: MCP_HEADERS, body }).catch(() => undefined);
    await until(() => /pid=\d+/.test(running.stderr));
    const pid = Number(/pid=(\d+)/.exec(running.stderr)?.[1]);
    running.kill('SIGTERM');
    try {
      await until(() => !isAlive(running.pid), 2_000);
    } finally {
      killIfAlive(pid);
    }
  });
});

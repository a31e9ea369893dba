import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { LIMITS } from '../../../src/core/limits.ts';
import { chaos, mcpConfig } from '../../kit/config.ts';
import { openEvents } from '../../kit/event-stream.ts';
import { gateway, type TestGateway } from '../../kit/gateway.ts';
import { isAlive } from '../../kit/is-alive.ts';
import { MCP_HEADERS, type McpSession, openSession } from '../../kit/mcp.ts';
import { modernEvents } from '../../kit/modern.ts';
import { until } from '../../kit/until.ts';

// Only the repeating timers are faked: the session sweep and the stream heartbeat.
beforeAll(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] }));
afterAll(() => void vi.useRealTimers());

const pidOf = async (session: McpSession): Promise<number> =>
  Number((await session.request('tools/call', { name: 'pid' })).result.content[0].text);

const start = (): Promise<TestGateway> =>
  gateway(mcpConfig([chaos('a')], { config: { mcp: { sessionTtl: '1ms' } } }));

describe('the idle sweep', () => {
  test('the idle sweep ends an unused session and its child process', async () => {
    await using gate = await start();
    const session = await openSession(`${gate.url}/mcp`);
    const pid = await pidOf(session);
    vi.advanceTimersByTime(LIMITS.sessionSweep - 1);
    expect((await session.request('ping')).status).toBe(200);
    // More than a millisecond has passed since the ping by the time its response has been read.
    await until(() => {
      vi.advanceTimersByTime(LIMITS.sessionSweep);
      return !isAlive(pid);
    });
    expect((await session.request('ping')).status).toBe(404);
    const { 'mcp.session.id': id } = await gate.accessLine(1);
    expect(gate.log.join('')).toContain(`session was idle for too long\tmcp.session.id="${id}"`);
  });

  test('the idle sweep spares sessions with an open stream or a call in flight', async () => {
    await using gate = await start();
    const [listening, calling, idle] = [
      await openSession(`${gate.url}/mcp`),
      await openSession(`${gate.url}/mcp`),
      await openSession(`${gate.url}/mcp`),
    ];
    const pids = [await pidOf(listening), await pidOf(calling), await pidOf(idle)] as const;
    await using _stream = await openEvents(listening.url, { session: listening.id });
    const leave = new AbortController();
    const call = calling.send(
      { id: 9, method: 'tools/call', params: { name: 'hang' } },
      { signal: leave.signal },
    );
    call.catch(() => undefined);
    await calling.request('ping');
    await until(() => {
      vi.advanceTimersByTime(LIMITS.sessionSweep);
      return !isAlive(pids[2]);
    });
    expect((await listening.request('ping')).status).toBe(200);
    expect((await calling.request('ping')).status).toBe(200);
    leave.abort();
    await until(() => {
      vi.advanceTimersByTime(LIMITS.sessionSweep);
      return !isAlive(pids[1]);
    });
    expect(isAlive(pids[0])).toBe(true);
  });
});

describe('the heartbeat', () => {
  test('the heartbeat is an SSE comment on every silent stream, which clients do not read as a message', async () => {
    await using gate = await start();
    const session = await openSession(`${gate.url}/mcp`);
    const leave = new AbortController();
    const headers = { ...MCP_HEADERS, 'mcp-session-id': session.id };
    const response = await fetch(session.url, { headers, signal: leave.signal });
    const reader = response.body?.getReader();
    vi.advanceTimersByTime(LIMITS.heartbeat);
    const { value } = (await reader?.read()) ?? {};
    expect(Buffer.from(value ?? []).toString()).toBe(': keep-alive\n\n');
    leave.abort();
  });

  test('the heartbeat is sent on a silent subscriptions/listen stream', async () => {
    await using gate = await start();
    const listen = { notifications: { toolsListChanged: true } };
    await using stream = await modernEvents(`${gate.url}/mcp`, 'subscriptions/listen', listen);
    await stream.next(() => true);
    vi.advanceTimersByTime(LIMITS.heartbeat);
    await until(() => stream.text.includes(': keep-alive\n\n'));
    expect(stream.messages).toHaveLength(1);
  });

  test('the heartbeat is sent on a silent stream of the HTTP+SSE transport', async () => {
    await using gate = await start();
    const leave = new AbortController();
    const response = await fetch(`${gate.url}/sse`, {
      headers: { accept: 'text/event-stream' },
      signal: leave.signal,
    });
    const reader = response.body?.getReader();
    const read = async () => Buffer.from((await reader?.read())?.value ?? []).toString();
    expect(await read()).toContain('event: endpoint');
    vi.advanceTimersByTime(LIMITS.heartbeat);
    expect(await read()).toBe(': keep-alive\n\n');
    leave.abort();
  });
});

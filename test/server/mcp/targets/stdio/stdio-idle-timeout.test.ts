import { describe, expect, test } from 'vitest';
import { chaos, mcpConfig } from '../../../../kit/config.ts';
import { openEvents } from '../../../../kit/event-stream.ts';
import { gateway } from '../../../../kit/gateway.ts';
import { isAlive } from '../../../../kit/is-alive.ts';
import { INITIALIZE, type Json, type McpSession, openSession } from '../../../../kit/mcp.ts';
import { until } from '../../../../kit/until.ts';

const idle = (name: string, stdio: object, ...flags: string[]) => ({
  name,
  stdio: { ...chaos(name, ...flags).stdio, ...stdio },
});
/** Checked often, so that no test waits. */
const limits = { sessionSweep: 10 };

const textOf = async (session: McpSession, name: string): Promise<string> =>
  (await session.request('tools/call', { name })).result.content[0].text;
/** What the process has read, parsed. */
const receivedBy = async (session: McpSession, prefix = ''): Promise<Json[]> =>
  JSON.parse(await textOf(session, `${prefix}received`)).map((line: string) => JSON.parse(line));
const pidOf = async (session: McpSession): Promise<number> => Number(await textOf(session, 'pid'));

describe('stdio.idleTimeout', () => {
  test('the unused process of a session is stopped, and the next request starts another with the same client, log level and subscriptions', async () => {
    const target = idle('a', { idleTimeout: '50ms' }, '--resources=file:///1,file:///2');
    await using gate = await gateway(mcpConfig([target]), { limits });
    const session = await openSession(`${gate.url}/mcp`);
    await session.request('logging/setLevel', { level: 'error' });
    await session.request('resources/subscribe', { uri: 'file:///2' });
    const before = await pidOf(session);
    await until(() => !isAlive(before));
    expect(await pidOf(session)).not.toBe(before);
    let received: Json[] = [];
    // What the client had set is sent again while its next request runs.
    await until(async () => {
      received = await receivedBy(session);
      return received.some(({ method }) => method === 'resources/subscribe');
    });
    expect(received.slice(0, 2).map(({ method }) => method)).toEqual([
      'initialize',
      'notifications/initialized',
    ]);
    expect(received[0].params).toEqual(INITIALIZE.params);
    const replayed = received
      .filter(({ method }) => method === 'logging/setLevel' || method === 'resources/subscribe')
      .map(({ params }) => params);
    expect(replayed).toEqual([{ level: 'error' }, { uri: 'file:///2' }]);
    expect(gate.log.join('')).toContain('idle process of a session was stopped (stdio.idleTimeout)');
  });

  test('a process that is started again after it was idle does not make the client list again', async () => {
    await using gate = await gateway(mcpConfig([idle('a', { idleTimeout: '50ms' })]), { limits });
    const session = await openSession(`${gate.url}/mcp`);
    await using own = await openEvents(session.url, { session: session.id });
    const before = await pidOf(session);
    await until(() => !isAlive(before));
    const after = await pidOf(session);
    expect(after).not.toBe(before);
    await session.request('ping');
    expect(own.messages.filter(({ method }) => method.endsWith('list_changed'))).toEqual([]);
  });

  test('the process of a session with a request in flight is not stopped', async () => {
    await using gate = await gateway(mcpConfig([idle('a', { idleTimeout: '1ms' })]), { limits });
    const session = await openSession(`${gate.url}/mcp`);
    const busy = session.send({ id: 'busy', method: 'tools/call', params: { name: 'hang' } });
    await until(async () => (await receivedBy(session)).some(({ params }) => params?.name === 'hang'));
    const inUse = await pidOf(session);
    // Once the process of the idle session has been stopped, both were checked.
    const other = await openSession(`${gate.url}/mcp`);
    const unused = await pidOf(other);
    await until(() => !isAlive(unused));
    expect(isAlive(inUse)).toBe(true);
    await session.send({ method: 'notifications/cancelled', params: { requestId: 'busy' } });
    await busy;
    await until(() => !isAlive(inUse));
  });

  test('a session ends as before while its process is stopped', async () => {
    await using gate = await gateway(mcpConfig([idle('a', { idleTimeout: '1ms' })]), { limits });
    const session = await openSession(`${gate.url}/mcp`);
    const pid = await pidOf(session);
    await until(() => !isAlive(pid));
    expect((await session.end()).status).toBe(204);
    expect((await session.request('ping')).status).toBe(404);
  });

  test('a shared process is kept for the idle timeout after its last session', async () => {
    const kept = idle('kept', { idleTimeout: '1h', shared: true });
    const stopped = idle('stopped', { idleTimeout: '1ms', shared: true });
    await using gate = await gateway(mcpConfig([kept, stopped]), { limits });
    const pids = async (session: McpSession): Promise<number[]> =>
      Promise.all(['kept_pid', 'stopped_pid'].map(async (name) => Number(await textOf(session, name))));
    const one = await openSession(`${gate.url}/mcp`);
    const [keptPid, stoppedPid] = (await pids(one)) as [number, number];
    await one.end();
    await until(() => !isAlive(stoppedPid));
    const two = await openSession(`${gate.url}/mcp`);
    const after = await pids(two);
    expect(after[0]).toBe(keptPid);
    expect(after[1]).not.toBe(stoppedPid);
    await gate.close();
    expect(isAlive(keptPid)).toBe(false);
  });
});

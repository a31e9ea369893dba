import { describe, expect, test } from 'vitest';
import type { Limits } from '../../../src/core/limits.ts';
import { chaos, mcpConfig } from '../../kit/config.ts';
import { openEvents } from '../../kit/event-stream.ts';
import { gateway, type TestGateway } from '../../kit/gateway.ts';
import { isAlive } from '../../kit/is-alive.ts';
import { INITIALIZE, type McpSession, openSession, post } from '../../kit/mcp.ts';
import { until } from '../../kit/until.ts';

const limited = (
  max: number,
  targets = [chaos('a')],
  backend = {},
  limits: Partial<Limits> = {},
): Promise<TestGateway> =>
  gateway(mcpConfig(targets, { config: { mcp: { maxChildren: max } }, backend }), { limits });

const pidOf = async (session: McpSession): Promise<number> =>
  Number((await session.request('tools/call', { name: 'pid' })).result.content[0].text);

/** A call that runs until the client leaves. */
async function busy(session: McpSession): Promise<AbortController> {
  const leave = new AbortController();
  session
    .send({ id: 99, method: 'tools/call', params: { name: 'hang' } }, { signal: leave.signal })
    .catch(() => undefined);
  // Arrives after the call, because both use the same pipe.
  await session.request('ping');
  return leave;
}

describe('the limit of child processes', () => {
  test('at the limit of child processes a new session evicts the longest idle session', async () => {
    await using gate = await limited(2);
    const [one, two] = [await openSession(`${gate.url}/mcp`), await openSession(`${gate.url}/mcp`)];
    const pids = [await pidOf(two), await pidOf(one)];
    const three = await openSession(`${gate.url}/mcp`);
    expect((await three.request('ping')).status).toBe(200);
    expect((await one.request('ping')).status).toBe(200);
    expect((await two.request('ping')).status).toBe(404);
    expect(pids.map(isAlive)).toEqual([false, true]);
    expect(
      gate.log.some((line) => /\tinfo\t.*idle session was evicted.*config\.mcp\.maxChildren/.test(line)),
    ).toBe(true);
  });

  test('at the limit of child processes a new session is rejected instead of evicting a session with a call in flight', async () => {
    await using gate = await limited(1);
    const one = await openSession(`${gate.url}/mcp`);
    const leave = await busy(one);
    const refused = await post(`${gate.url}/mcp`, INITIALIZE);
    expect(refused.status).toBe(503);
    expect(refused.headers.get('retry-after')).toBe('5');
    expect(refused.error.message).toBe(
      'the gateway already runs 1 child process (config.mcp.maxChildren), and no session is idle',
    );
    leave.abort();
    await until(async () => (await post(`${gate.url}/mcp`, INITIALIZE)).status === 200);
  });

  test('a session with an open GET stream counts as used for some minutes', async () => {
    await using gate = await limited(1);
    const one = await openSession(`${gate.url}/mcp`);
    await using _stream = await openEvents(one.url, { session: one.id });
    expect((await post(`${gate.url}/mcp`, INITIALIZE)).status).toBe(503);
  });

  test('a session with an open GET stream that has not been used for some minutes is evicted', async () => {
    await using gate = await limited(1, undefined, undefined, { evictionListening: 1 });
    const one = await openSession(`${gate.url}/mcp`);
    await using stream = await openEvents(one.url, { session: one.id });
    expect((await post(`${gate.url}/mcp`, INITIALIZE)).status).toBe(200);
    await stream.untilEnd();
    expect((await one.request('ping')).status).toBe(404);
  });

  test('at the limit of child processes a new session waits for a recently used session instead of evicting it immediately', async () => {
    await using gate = await limited(1, undefined, undefined, { evictionIdle: 400 });
    const one = await openSession(`${gate.url}/mcp`);
    await one.request('ping');
    const since = performance.now();
    await openSession(`${gate.url}/mcp`);
    expect(performance.now() - since).toBeGreaterThan(300);
  });

  test('the idle time of a session starts at the end of its last call, not at its beginning', async () => {
    await using gate = await limited(2);
    const [one, two] = [await openSession(`${gate.url}/mcp`), await openSession(`${gate.url}/mcp`)];
    const call = one.request('tools/call', { name: 'later', arguments: { ms: 600, message: 'x' } });
    await two.request('ping');
    await call;
    await openSession(`${gate.url}/mcp`);
    expect((await one.request('ping')).status).toBe(200);
    expect((await two.request('ping')).status).toBe(404);
  });

  test('evicting one idle session makes room for a new session with several targets', async () => {
    await using gate = await limited(4, [chaos('a'), chaos('b')], { failureMode: 'failClosed' });
    const [one, two] = [await openSession(`${gate.url}/mcp`), await openSession(`${gate.url}/mcp`)];
    await openSession(`${gate.url}/mcp`);
    expect((await one.request('ping')).status).toBe(404);
    expect((await two.request('ping')).status).toBe(200);
  });

  test('idle sessions of other backends are evicted to make room for a new session', async () => {
    const route = (name: string) => ({
      name,
      matches: [{ path: { exact: `/${name}` } }],
      backends: [{ mcp: { targets: [chaos('a')] } }],
    });
    await using gate = await gateway(
      JSON.stringify({
        config: { mcp: { maxChildren: 1 } },
        gateways: { default: { port: 0, routes: [route('one'), route('two')] } },
      }),
    );
    const one = await openSession(`${gate.url}/one`);
    await openSession(`${gate.url}/two`);
    expect((await one.request('ping')).status).toBe(404);
  });

  test('many sessions that begin simultaneously are all answered without exceeding the limit of child processes', async () => {
    await using gate = await limited(2, undefined, undefined, { evictionIdle: 50 });
    const replies = await Promise.all(Array.from({ length: 8 }, () => post(`${gate.url}/mcp`, INITIALIZE)));
    for (const { status } of replies) expect([200, 503]).toContain(status);
    expect(replies.filter(({ status }) => status === 200).length).toBeGreaterThanOrEqual(2);
    let running = 0;
    const counts = gate.log.map((line) => {
      if (line.includes('target started')) running += 1;
      if (line.includes('target ended')) running -= 1;
      return running;
    });
    expect(Math.max(...counts)).toBe(2);
  });
});

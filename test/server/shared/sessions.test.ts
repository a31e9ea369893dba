import { describe, expect, test } from 'vitest';
import type { Limits } from '../../../src/core/limits.ts';
import { openSession as openId, sealSession } from '../../../src/server/mcp/session/session-id.ts';
import { gateway, type TestGateway } from '../../kit/gateway.ts';
import { INITIALIZE, type McpSession, openSession, post } from '../../kit/mcp.ts';
import { type McpUpstream, mcpUpstream } from '../../kit/mcp-upstream.ts';
import { REDIS_SERVER, type RedisServer, redisServer } from '../../kit/redis.ts';
import { until } from '../../kit/until.ts';

const KEY = '5e'.repeat(32);
/** Every request looks at the record. */
const LIMITS: Partial<Limits> = { sessionCheckInterval: 0, storeRetryInterval: 20 };

interface Options {
  readonly shared?: object;
  readonly limits?: Partial<Limits>;
  readonly ttl?: string;
  readonly targets?: readonly object[];
}

function replica(redis: RedisServer, server: McpUpstream, options: Options = {}): Promise<TestGateway> {
  const {
    shared = {},
    limits = {},
    ttl = '30m',
    targets = [{ name: 'up', mcp: { host: server.url } }],
  } = options;
  const config = {
    session: { key: KEY },
    mcp: { sessionTtl: ttl },
    shared: { redis: redis.url, ...shared },
  };
  return gateway(JSON.stringify({ config, gateways: { default: { port: 0 } }, mcp: { targets } }), {
    limits: { ...LIMITS, ...limits },
  });
}

/** A request of the session at another gateway. */
const at = (gate: TestGateway, { id }: McpSession, method = 'tools/list') =>
  post(`${gate.url}/mcp`, { jsonrpc: '2.0', id: 1, method }, { 'mcp-session-id': id });

const records = async (redis: RedisServer): Promise<string[]> =>
  (await redis.client.keys('agctl:v1:session:*')).sort();

const isAvailable = async (gate: TestGateway): Promise<boolean> =>
  /^gw_shared_store_available 1$/m.test(await gate.running.metrics.render());

describe.skipIf(REDIS_SERVER === undefined)('MCP sessions of several gateways in a real Redis', () => {
  test('a session goes on at another gateway with the same session at the server, and back', async () => {
    await using redis = await redisServer();
    await using server = await mcpUpstream();
    await using one = await replica(redis, server);
    await using two = await replica(redis, server);
    const session = await openSession(`${one.url}/mcp`);
    for (const gate of [two, one, two])
      expect((await at(gate, session)).result).toEqual({ tools: [expect.objectContaining({ name: 'say' })] });
    expect(server.of('initialize')).toHaveLength(1);
    expect(new Set(server.of('tools/list').map(({ headers }) => headers['mcp-session-id'])).size).toBe(1);
  });

  test('a session that one gateway has ended is refused by one that has it open, and by one that has not', async () => {
    await using redis = await redisServer();
    await using server = await mcpUpstream();
    await using one = await replica(redis, server);
    await using two = await replica(redis, server);
    await using three = await replica(redis, server);
    const session = await openSession(`${one.url}/mcp`);
    expect((await at(two, session)).status).toBe(200);
    expect((await session.end()).status).toBe(204);
    expect((await at(two, session)).status).toBe(404);
    expect((await at(three, session)).status).toBe(404);
    expect(server.received.filter(({ verb }) => verb === 'DELETE')).toHaveLength(1);
  });

  test('a session at the server that a gateway begins before it knows that another one has ended the session is ended as well', async () => {
    await using redis = await redisServer();
    await using server = await mcpUpstream();
    await using one = await replica(redis, server, { limits: { sessionCheckInterval: 1_000 } });
    await using two = await replica(redis, server);
    const session = await openSession(`${one.url}/mcp`);
    expect((await at(two, session)).status).toBe(200);
    await fetch(`${two.url}/mcp`, { method: 'DELETE', headers: { 'mcp-session-id': session.id } });
    // The server does not know the session any more, so the gateway begins another one.
    expect((await at(one, session)).status).toBe(200);
    expect(server.of('initialize')).toHaveLength(2);
    await until(async () => (await at(one, session)).status === 404);
    await until(() => server.sessions.size === 0);
  });

  test('a gateway looks at the record of a session no more often than sessionCheckInterval', async () => {
    await using redis = await redisServer();
    await using server = await mcpUpstream();
    await using one = await replica(redis, server, { limits: { sessionCheckInterval: 3_600_000 } });
    const session = await openSession(`${one.url}/mcp`);
    await redis.client.config('RESETSTAT');
    for (let i = 0; i < 20; i += 1) expect((await at(one, session)).status).toBe(200);
    expect(await redis.client.info('commandstats')).not.toContain('cmdstat_evalsha');
  });

  test('records contain no session id of a server and no part of an id of a client, and expire', async () => {
    await using redis = await redisServer();
    await using server = await mcpUpstream({ name: 'secret-upstream-session' });
    await using one = await replica(redis, server);
    const session = await openSession(`${one.url}/mcp`);
    const [key] = (await records(redis)) as [string];
    const value = String(await redis.client.get(key));
    expect(Buffer.from(value, 'base64url').toString('latin1') + value + key).not.toContain('secret-upstream');
    expect(session.id).not.toContain(key.slice(-22));
    // Whoever can read Redis has no session.
    expect((await at(one, { ...session, id: value })).status).toBe(404);
    const left = await redis.client.pttl(key);
    expect(left).toBeGreaterThan(30 * 60_000);
    expect(left).toBeLessThanOrEqual(31 * 60_000);
  });

  test('a gateway uses the session at the server that another one has begun after a restart of the server', async () => {
    await using redis = await redisServer();
    await using server = await mcpUpstream();
    await using one = await replica(redis, server);
    const session = await openSession(`${one.url}/mcp`);
    server.sessions.clear();
    expect((await at(one, session)).status).toBe(200);
    expect(server.of('initialize')).toHaveLength(2);
    // The next request saves it.
    expect((await at(one, session)).status).toBe(200);
    await using two = await replica(redis, server);
    expect((await at(two, session)).status).toBe(200);
    expect(server.of('initialize')).toHaveLength(2);
    expect(server.of('tools/list').at(-1)?.headers['mcp-session-id']).toBe('up-2');
  });

  test('a session that is idle at one gateway and used at another is not ended at the server', async () => {
    await using redis = await redisServer();
    await using server = await mcpUpstream();
    const limits = { sessionSweep: 50 };
    await using one = await replica(redis, server, { ttl: '400ms', limits });
    await using two = await replica(redis, server, { ttl: '10m', limits });
    const session = await openSession(`${one.url}/mcp`);
    expect((await at(two, session)).status).toBe(200);
    await until(() => one.log.join('').includes('session was idle for too long'));
    expect((await at(two, session)).status).toBe(200);
    expect(server.received.some(({ verb }) => verb === 'DELETE')).toBe(false);
    expect((await at(one, session)).status).toBe(200);
  });

  test('a session that is idle at all gateways is ended at the server and refused by all', async () => {
    await using redis = await redisServer();
    await using server = await mcpUpstream();
    const options = { ttl: '200ms', limits: { sessionSweep: 50 } };
    await using one = await replica(redis, server, options);
    await using two = await replica(redis, server, options);
    const session = await openSession(`${one.url}/mcp`);
    await until(() => server.received.some(({ verb }) => verb === 'DELETE'));
    for (const gate of [one, two]) expect((await at(gate, session)).status).toBe(404);
  });

  test('a session whose stream has kept its record is ended at the server when it is idle', async () => {
    await using redis = await redisServer();
    await using server = await mcpUpstream();
    await using one = await replica(redis, server, { ttl: '900ms', limits: { sessionSweep: 50 } });
    const session = await openSession(`${one.url}/mcp`);
    const [key] = (await records(redis)) as [string];
    const stream = new AbortController();
    const headers = { 'mcp-session-id': session.id, accept: 'text/event-stream' };
    await fetch(`${one.url}/mcp`, { headers, signal: stream.signal });
    // Longer than the interval of sweeps, and shorter than a new lifetime: a sweep has renewed the record.
    await redis.client.pexpire(key, 500);
    await until(async () => (await redis.client.pttl(key)) > 600);
    stream.abort();
    await until(() => server.received.some(({ verb }) => verb === 'DELETE'));
    expect((await at(one, session)).status).toBe(404);
  });

  test('a session with a stdio target is answered with 404 at another gateway, so that its client begins anew', async () => {
    await using redis = await redisServer();
    await using server = await mcpUpstream();
    const targets = [
      { name: 'up', mcp: { host: server.url } },
      { name: 'own', stdio: { cmd: process.execPath, args: ['-e', 'process.stdin.resume()'] } },
    ];
    const limits = { slowTargetStartWait: 50 };
    await using one = await replica(redis, server, { targets, limits });
    await using two = await replica(redis, server, { targets, limits });
    const session = await openSession(`${one.url}/mcp`);
    expect((await at(two, session)).status).toBe(404);
    const anew = await openSession(`${two.url}/mcp`);
    expect(anew.id).not.toBe(session.id);
    expect(await records(redis)).toEqual([]);
  });
});

/** A session id that an earlier build created with `KEY` and Redis, at a target with the session `up-1`. */
const EARLIER_ID =
  'IMD7_AZ6fmSTLOjCU3i12S4EbQuP1djQ58F_3KJjSHRdowaM5KFgYxyuTePCSDNYIxWVgZUpuH8Bo9poRWtBeT3aNgDXlyZTBctXoniKthN9xpBC1RSGVRnT6tiYJElUyaY4110RN8fOmaQQdZbFKQCtQyduB0Murw3Jq2TmscJpkMIHdFuBbah2XYryhRS9AYPjCmgZqu4xN9MRjvkA9f6mi6Dk2i7g8vHxsH8epe-3s0T9zYLyW2BlGHAdOZsRTNjtSUE9G-qX1gyu8Sku6rq1pLH5qWm6Dy6M08k4i5CuscCUBaO4qyuElsr0tXBCQqA8XGaT-6tiw2EHFJrQPPI';
/** Its record in Redis. */
const EARLIER_KEY = 'agctl:v1:session:RbEdvwODjOB_Opk9IZkDHQ';
const EARLIER_RECORD =
  'v4N-5BbljOi1d_ulwR-0BUEcA1aX7Q2-oeNxcr8llZxxHD28364Mbu1DpV-Nre6xUvVv36_ygnAxLi8DVoe6WeaClNz7GIp1QwaNfyubDT4sR6O0qe9kJj3EQpGtcaw50jqtTVirbouqT21E95sQdH0jkqnX-rstcFBXqcydkAJVdTkNXky3F7aBzT8KLgqEmNyXadp-ym-v6XccIMCgNqW8-z3Qwpy3svElwI8WF2aZ9LNN4faDxgRJz_EEm9AXhNDp8tqdlSdSdQ_lHthEPkInJ9bTurGtziBktwFA5-WfUDRyVUyv8eqNA5WaaLrlI37lkAPur3To60E';

describe.skipIf(REDIS_SERVER === undefined)('rolling upgrades of gateways that share sessions', () => {
  test('a gateway continues a session whose id and record an earlier build created, and refuses it once that build has ended it', async () => {
    await using redis = await redisServer();
    await using server = await mcpUpstream();
    server.sessions.add('up-1');
    const session = { id: EARLIER_ID } as McpSession;
    await redis.client.set(EARLIER_KEY, EARLIER_RECORD, 'PX', 60_000);
    await using one = await replica(redis, server);
    expect((await at(one, session)).status).toBe(200);
    expect(server.of('initialize')).toHaveLength(0);
    expect(server.of('tools/list').at(-1)?.headers['mcp-session-id']).toBe('up-1');
    await redis.client.set(EARLIER_KEY, 'ended', 'PX', 60_000);
    await using two = await replica(redis, server);
    for (const gate of [one, two]) expect((await at(gate, session)).status).toBe(404);
  });

  test('a session whose id an earlier build created has expired if its record is gone', async () => {
    await using redis = await redisServer();
    await using server = await mcpUpstream();
    server.sessions.add('up-1');
    await using one = await replica(redis, server);
    expect((await at(one, { id: EARLIER_ID } as McpSession)).status).toBe(404);
  });

  test('a gateway continues a session whose id an earlier version created, and records it', async () => {
    await using redis = await redisServer();
    await using server = await mcpUpstream();
    await using one = await replica(redis, server);
    server.sessions.add('old-1');
    const state = { r: 'A'.repeat(22), b: 'mcp', v: '2025-06-18', s: [['up', 'old-1']] as const };
    const known = await openSession(`${one.url}/mcp`);
    const id = sealSession(Buffer.from(KEY, 'hex'), { ...state, b: backendOf(known) });
    expect((await at(one, { ...known, id })).status).toBe(200);
    expect(await records(redis)).toContain(`agctl:v1:session:${state.r}`);
    expect((await post(`${one.url}/mcp`, '', { 'mcp-session-id': id }, { method: 'DELETE' })).status).toBe(
      204,
    );
    await using two = await replica(redis, server);
    expect((await at(two, { ...known, id })).status).toBe(404);
  });

  test('a gateway without Redis, as in an earlier version, continues a session of a gateway with Redis', async () => {
    await using redis = await redisServer();
    await using server = await mcpUpstream();
    await using one = await replica(redis, server);
    const session = await openSession(`${one.url}/mcp`);
    await using old = await gateway(
      JSON.stringify({
        config: { session: { key: KEY } },
        gateways: { default: { port: 0 } },
        mcp: { targets: [{ name: 'up', mcp: { host: server.url } }] },
      }),
    );
    expect((await at(old, session)).status).toBe(200);
  });
});

describe.skipIf(REDIS_SERVER === undefined)('faults of the Redis that sessions are in', () => {
  test('while Redis is gone, sessions begin and go on at both gateways, by their ids', async () => {
    await using redis = await redisServer();
    await using server = await mcpUpstream();
    await using one = await replica(redis, server);
    await using two = await replica(redis, server);
    const before = await openSession(`${one.url}/mcp`);
    await redis.kill();
    const meanwhile = await openSession(`${one.url}/mcp`);
    for (const session of [before, meanwhile])
      for (const gate of [one, two]) expect((await at(gate, session)).status).toBe(200);
    await redis.restart();
    await until(async () => (await isAvailable(one)) && (await isAvailable(two)));
    // Also of the empty server: the gateway that has a session open saves it again.
    for (const session of [before, meanwhile])
      for (const gate of [one, two]) expect((await at(gate, session)).status).toBe(200);
  });

  test('after Redis has restarted empty, a gateway that does not have a session open refuses it until it is saved again', async () => {
    await using redis = await redisServer();
    await using server = await mcpUpstream();
    await using one = await replica(redis, server);
    await using two = await replica(redis, server);
    const session = await openSession(`${one.url}/mcp`);
    await redis.client.flushall();
    expect((await at(two, session)).status).toBe(404);
    expect((await at(one, session)).status).toBe(200);
    expect((await at(two, session)).status).toBe(200);
  });

  test.each([
    ['hangs', (redis: RedisServer) => redis.hang(), (redis: RedisServer) => redis.resume()],
    [
      'is full',
      (redis: RedisServer) => redis.client.config('SET', 'maxmemory', '1'),
      (redis: RedisServer) => redis.client.config('SET', 'maxmemory', '0'),
    ],
  ])('while Redis %s, sessions begin and go on by their ids', async (_, spoil, repair) => {
    await using redis = await redisServer('--maxmemory-policy', 'noeviction');
    await using server = await mcpUpstream();
    const shared = { timeout: '200ms' };
    await using one = await replica(redis, server, { shared });
    await using two = await replica(redis, server, { shared });
    const before = await openSession(`${one.url}/mcp`);
    await spoil(redis);
    const meanwhile = await openSession(`${one.url}/mcp`);
    for (const session of [before, meanwhile])
      for (const gate of [one, two]) expect((await at(gate, session)).status).toBe(200);
    await repair(redis);
    await until(async () => (await isAvailable(one)) && (await isAvailable(two)));
    for (const session of [before, meanwhile]) expect((await at(one, session)).status).toBe(200);
  });

  test('with failClosed, requests of sessions get 503 and Retry-After while Redis is gone, and go on afterwards', async () => {
    await using redis = await redisServer();
    await using server = await mcpUpstream();
    await using one = await replica(redis, server, { shared: { failureMode: { sessions: 'failClosed' } } });
    const session = await openSession(`${one.url}/mcp`);
    await redis.kill();
    await until(async () => !(await isAvailable(one)));
    const reply = await at(one, session);
    expect([reply.status, reply.headers.get('retry-after')]).toEqual([503, '1']);
    expect((await post(`${one.url}/mcp`, INITIALIZE)).status).toBe(503);
    await redis.restart();
    await until(async () => (await at(one, session)).status === 200);
  });
});

/** The name of the only backend, which a session id contains. */
const backendOf = ({ id }: McpSession): string => openId(Buffer.from(KEY, 'hex'), id)?.b ?? '';

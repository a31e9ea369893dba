import { describe, expect, test } from 'vitest';
import type { Limits } from '../../../src/core/limits.ts';
import { sharedStore } from '../../../src/server/kernel/shared-store.ts';
import type { TestGateway } from '../../kit/gateway.ts';
import { networkPath } from '../../kit/network-path.ts';
import { REDIS_SERVER, redisServer } from '../../kit/redis.ts';
import { answeringGateway } from '../../kit/routes.ts';
import { type SendOptions, send } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';

/** A gateway that is one of several replicas: the same limits, and the same server. */
function replica(
  redis: string,
  localRateLimit: object,
  shared: object = {},
  limits: Partial<Limits> = {},
): Promise<TestGateway> {
  return answeringGateway(
    { localRateLimit },
    { config: { shared: { redis, ...shared } } },
    { limits: { storeRetryInterval: 20, ...limits } },
  );
}

/** Requests in turn to the gateways, 500 at a time: more connections at once than a port queues would be reset. */
async function statuses(
  gates: readonly TestGateway[],
  count: number,
  options: SendOptions = {},
): Promise<number[]> {
  const all: number[] = [];
  while (all.length < count) {
    const batch = Array.from({ length: Math.min(500, count - all.length) }, (_, i) =>
      send((gates[i % gates.length] as TestGateway).url, options),
    );
    all.push(...(await Promise.all(batch)).map(({ status }) => status));
  }
  return all;
}

const admitted = (all: readonly number[]): number => all.filter((status) => status === 200).length;

const isAvailable = async (gate: TestGateway): Promise<boolean> =>
  /^gw_shared_store_available 1$/m.test(await gate.running.metrics.render());

describe.skipIf(REDIS_SERVER === undefined)('limits of several gateways in a real Redis', () => {
  test('two gateways admit exactly 1,000 of 3,000 requests per minute under parallel load', async () => {
    await using redis = await redisServer();
    const limit = [{ maxTokens: 1000, tokensPerFill: 1000, fillInterval: '1h' }];
    // A busy machine must not look like a server that hangs.
    await using one = await replica(redis.url, limit, { timeout: '10s' });
    await using two = await replica(redis.url, limit, { timeout: '10s' });
    const all = await statuses([one, two], 3000);
    expect(admitted(all)).toBe(1000);
    expect(all.filter((status) => status === 429)).toHaveLength(2000);
  });

  test('a request that one of two limits rejects takes nothing of the other, in all gateways', async () => {
    await using redis = await redisServer();
    const limit = [
      { maxTokens: 100, fillInterval: '1h' },
      { maxTokens: 10, fillInterval: '1h', key: 'request.headers["x-user"]' },
    ];
    await using one = await replica(redis.url, limit);
    await using two = await replica(redis.url, limit);
    for (const user of ['ann', 'bob'])
      expect(admitted(await statuses([one, two], 60, { headers: { 'x-user': user } }))).toBe(10);
    const last = await send(one.url, { headers: { 'x-user': 'cem' } });
    expect([last.headers['x-ratelimit-limit'], last.headers['x-ratelimit-remaining']]).toEqual(['10', '9']);
    // 21 of the 100 are gone: 10, 10 and 1.
    for (let user = 0; user < 7; user += 1)
      expect(admitted(await statuses([two], 10, { headers: { 'x-user': `u${user}` } }))).toBe(10);
    expect(admitted(await statuses([one, two], 20, { headers: { 'x-user': 'dan' } }))).toBe(9);
  });

  test('a shared limit refills after fillInterval, by the clock of the server', async () => {
    await using redis = await redisServer();
    const limit = [{ maxTokens: 2, tokensPerFill: 1, fillInterval: '300ms' }];
    await using one = await replica(redis.url, limit);
    await using two = await replica(redis.url, limit);
    const startedAt = performance.now();
    expect(admitted(await statuses([one, two], 2))).toBe(2);
    await until(async () => (await send(two.url)).status === 200);
    expect(performance.now() - startedAt).toBeGreaterThan(290);
  });

  test('keys of the store have a prefix and a version, expire, and contain no value of a request', async () => {
    await using redis = await redisServer();
    const limit = [{ maxTokens: 5, fillInterval: '10s', key: 'request.headers["x-user"]' }];
    await using gate = await replica(redis.url, limit, { prefix: 'team-a' });
    await send(gate.url, { headers: { 'x-user': 'ann@example.com' } });
    const keys = (await redis.client.keys('*')).filter((key) => !key.endsWith(':probe'));
    expect(keys).toEqual([expect.stringMatching(/^team-a:v1:limit:\{[\w-]{22}\}:[\w-]{22}:[\w-]{22}$/)]);
    const left = await redis.client.pttl(keys[0] as string);
    expect(left).toBeGreaterThan(0);
    expect(left).toBeLessThanOrEqual(10_000);
  });

  test('gateways with different prefixes do not share limits', async () => {
    await using redis = await redisServer();
    const limit = [{ maxTokens: 3, fillInterval: '1h' }];
    await using one = await replica(redis.url, limit, { prefix: 'a' });
    await using two = await replica(redis.url, limit, { prefix: 'b' });
    expect(admitted(await statuses([one, two], 20))).toBe(6);
  });

  test('a gateway that is killed takes no more than the requests that it has admitted', async () => {
    await using redis = await redisServer();
    const limit = [{ maxTokens: 50, fillInterval: '1h' }];
    let total = 0;
    for (let round = 0; round < 5; round += 1) {
      await using gate = await replica(redis.url, limit);
      total += admitted(await statuses([gate], 8));
    }
    await using last = await replica(redis.url, limit);
    expect(total + admitted(await statuses([last], 40))).toBe(50);
  });
});

describe.skipIf(REDIS_SERVER === undefined)('faults of the Redis that limits are in', () => {
  const LIMIT = [{ maxTokens: 5, fillInterval: '1h' }];

  test('while Redis is gone, requests are counted by each gateway, and together again when it is back', async () => {
    await using redis = await redisServer();
    await using one = await replica(redis.url, LIMIT);
    await using two = await replica(redis.url, LIMIT);
    expect(admitted(await statuses([one, two], 20))).toBe(5);
    await redis.kill();
    await until(async () => !(await isAvailable(one)) && !(await isAvailable(two)));
    expect(admitted(await statuses([one, two], 40))).toBe(10);
    await redis.restart();
    await until(async () => (await isAvailable(one)) && (await isAvailable(two)));
    // The server is empty: the limit starts again.
    expect(admitted(await statuses([one, two], 20))).toBe(5);
    // One line for each change of state, although connections fail for other reasons than the first one.
    const said = one.log.filter((line) => line.includes('the shared store is'));
    expect(said.map((line) => line.split('\t')[1])).toEqual(['info', 'warn', 'info']);
    const lines = one.log.join('');
    expect(lines).toMatch(/the shared store is not available.*rateLimits="counted by this gateway only"/);
    expect(lines).toMatch(/the shared store is available.*unavailable\.ms=/);
    expect(await one.running.metrics.render()).toMatch(
      /gw_shared_store_misses_total\{use="rateLimits",outcome="continued"\} \d/,
    );
  });

  test('an outage for which the server then gives a reason of its own is logged again', async () => {
    await using redis = await redisServer();
    await using gate = await replica(redis.url, LIMIT);
    await redis.kill();
    await until(async () => !(await isAvailable(gate)));
    await redis.restart('--requirepass', 'changed');
    await until(() => gate.log.join('').includes('NOAUTH'));
    const said = gate.log.filter((line) => line.includes('the shared store is not available'));
    expect(said.map((line) => line.includes('NOAUTH'))).toEqual([false, true]);
    const store = sharedStore.get(gate.live.served.runtime.settings);
    expect(store?.outage?.problem).toContain('NOAUTH');
  });

  test('a Redis that hangs delays the requests in flight by the timeout, and no later one', async () => {
    await using redis = await redisServer();
    await using gate = await replica(redis.url, LIMIT, { timeout: '300ms' }, { storeConnectTimeout: 100 });
    expect((await send(gate.url)).status).toBe(200);
    redis.hang();
    const startedAt = performance.now();
    expect((await send(gate.url)).status).toBe(200);
    expect(performance.now() - startedAt).toBeGreaterThan(290);
    // Waiting for each would take 9 s.
    const before = performance.now();
    for (let i = 0; i < 30; i += 1) await send(gate.url);
    expect(performance.now() - before).toBeLessThan(5_000);
    redis.resume();
    await until(() => isAvailable(gate));
  });

  test.each([
    ['wrong password', ['--requirepass', 'correct'], 'wrong', 'WRONGPASS'],
    ['missing password', ['--requirepass', 'correct'], '', 'NOAUTH'],
    ['full memory', ['--maxmemory', '1', '--maxmemory-policy', 'noeviction'], '', 'OOM'],
    ['replica that refuses writes', ['--replicaof', '127.0.0.1', '1'], '', 'READONLY'],
  ])(
    'with a %s, the log says what Redis says, and failClosed answers 503',
    async (_, args, password, problem) => {
      await using redis = await redisServer(...args);
      const url = `redis://${password === '' ? '' : `:${password}@`}127.0.0.1:${redis.port}`;
      await using gate = await replica(url, LIMIT, { failureMode: { rateLimits: 'failClosed' } });
      const reply = await send(gate.url);
      expect(reply).toMatchObject({ status: 503, text: 'the rate limit service is not available' });
      expect(reply.headers['retry-after']).toBe('1');
      expect(gate.log.join('')).toContain(problem);
      expect(gate.log.join('')).not.toContain('wrong@');
      expect((await gate.accessLine(1))['error.detail']).toContain(problem);
    },
  );

  test('a gateway that starts before Redis counts alone, and uses Redis once it is there', async () => {
    await using redis = await redisServer();
    await redis.kill();
    await using one = await replica(redis.url, LIMIT);
    await using two = await replica(redis.url, LIMIT);
    expect(admitted(await statuses([one, two], 30))).toBe(10);
    await redis.restart();
    await until(async () => (await isAvailable(one)) && (await isAvailable(two)));
    expect(admitted(await statuses([one, two], 30))).toBe(5);
  });

  test('a Redis that is slow, but not slower than the timeout, counts exactly', async () => {
    await using redis = await redisServer();
    await using path = await networkPath(redis.port);
    await using one = await replica(`redis://127.0.0.1:${path.port}`, LIMIT, { timeout: '10s' });
    await using two = await replica(redis.url, LIMIT, { timeout: '10s' });
    path.delay(100);
    expect(admitted(await statuses([one, two], 20))).toBe(5);
    expect(await isAvailable(one)).toBe(true);
  });

  test('a Redis that is slower than the timeout is given up, until it is as fast again', async () => {
    await using redis = await redisServer();
    await using path = await networkPath(redis.port);
    const shared = { timeout: '200ms', failureMode: { rateLimits: 'failClosed' } };
    await using gate = await replica(`redis://127.0.0.1:${path.port}`, LIMIT, shared);
    expect((await send(gate.url)).status).toBe(200);
    path.delay(2_000);
    expect((await send(gate.url)).status).toBe(503);
    expect(gate.log.join('')).toContain('no answer within 200 ms');
    path.delay(0);
    await until(async () => (await send(gate.url)).status === 200);
  });

  test('a Redis that becomes full is given up until it has memory again', async () => {
    await using redis = await redisServer('--maxmemory-policy', 'noeviction');
    await using gate = await replica(redis.url, LIMIT, { failureMode: { rateLimits: 'failClosed' } });
    expect((await send(gate.url)).status).toBe(200);
    await redis.client.config('SET', 'maxmemory', '1');
    expect((await send(gate.url)).status).toBe(503);
    expect(gate.log.join('')).toContain('OOM');
    await redis.client.config('SET', 'maxmemory', '0');
    await until(async () => (await send(gate.url)).status === 200);
  });

  test('a failover without Sentinel, to an address that moves, is followed although connections to the old server stay', async () => {
    await using primary = await redisServer();
    await using secondary = await redisServer('--replicaof', '127.0.0.1', String(primary.port));
    await using path = await networkPath(primary.port);
    const shared = { failureMode: { rateLimits: 'failClosed' } };
    await using gate = await replica(`redis://127.0.0.1:${path.port}`, LIMIT, shared);
    expect((await send(gate.url)).status).toBe(200);
    await until(async () => (await secondary.client.keys('*:limit:*')).length === 1);
    path.pointTo(secondary.port);
    await secondary.client.replicaof('NO', 'ONE');
    await primary.client.replicaof('127.0.0.1', String(secondary.port));
    await until(async () => (await send(gate.url)).status === 200);
    expect(admitted(await statuses([gate], 10))).toBe(3);
  });

  test('a Redis that becomes read-only, as after a failover, is given up until it takes writes again', async () => {
    await using redis = await redisServer();
    await using gate = await replica(redis.url, LIMIT, { failureMode: { rateLimits: 'failClosed' } });
    expect((await send(gate.url)).status).toBe(200);
    await redis.client.replicaof('127.0.0.1', '1');
    expect((await send(gate.url)).status).toBe(503);
    await redis.client.replicaof('NO', 'ONE');
    await until(async () => (await send(gate.url)).status === 200);
  });

  test('a clock of the server that is set forward fills a bucket once, not above its size', async () => {
    await using redis = await redisServer();
    await using gate = await replica(redis.url, [{ maxTokens: 3, fillInterval: '1h' }]);
    expect(admitted(await statuses([gate], 5))).toBe(3);
    const [key] = (await redis.client.keys('*:limit:*')) as [string];
    // The bucket was used up a day ago.
    await redis.client.set(key, `0 ${Date.now() - 24 * 3_600_000}.000`, 'KEEPTTL');
    expect(admitted(await statuses([gate], 8))).toBe(3);
  });

  test('a clock of the server that goes back gives no more tokens, and the limit recovers', async () => {
    await using redis = await redisServer();
    await using gate = await replica(redis.url, [{ maxTokens: 2, fillInterval: '200ms' }]);
    expect((await send(gate.url)).status).toBe(200);
    const [key] = (await redis.client.keys('*:limit:*')) as [string];
    // The bucket was filled an hour from now: by a server whose clock was ahead.
    await redis.client.set(key, `0 ${Date.now() + 3_600_000}.000`, 'KEEPTTL');
    expect((await send(gate.url)).status).toBe(429);
    await until(async () => (await send(gate.url)).status === 200);
  });
});

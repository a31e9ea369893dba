import { connect } from 'node:net';
import { describe, expect, test } from 'vitest';
import { LIMITS } from '../../../src/core/limits.ts';
import { gateway } from '../../kit/gateway.ts';
import { answeringGateway, proxyGateway, routesConfig } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';
import { httpUpstream } from '../../kit/upstream.ts';

const HOUR = { fillInterval: '1h' };
const limited = (...limits: object[]) => answeringGateway({ localRateLimit: limits });

/** Number of 200 and 429 among these statuses. */
function tally(statuses: readonly number[]): Record<number, number> {
  const counts: Record<number, number> = {};
  for (const status of statuses) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

describe('localRateLimit with one bucket', () => {
  test('localRateLimit passes exactly maxTokens requests under parallel load', async () => {
    await using backend = await httpUpstream();
    await using gate = await proxyGateway(backend.address, { localRateLimit: [{ maxTokens: 40, ...HOUR }] });
    const replies = await Promise.all(Array.from({ length: 120 }, () => send(gate.url)));
    expect(tally(replies.map(({ status }) => status))).toEqual({ 200: 40, 429: 80 });
    expect(backend.received).toHaveLength(40);
  });

  test('localRateLimit reports limit, remaining, reset and Retry-After', async () => {
    await using gate = await limited({ maxTokens: 3, tokensPerFill: 2, fillInterval: '40s' });
    const seen = [];
    for (let i = 0; i < 4; i += 1) {
      const { status, headers } = await send(gate.url);
      const of = (name: string) => Number(headers[`x-ratelimit-${name}`]);
      expect(of('limit')).toBe(3);
      seen.push([status, of('remaining'), Math.ceil(of('reset') / 40), headers['retry-after']]);
    }
    expect(seen).toEqual([
      [200, 2, 1, undefined],
      [200, 1, 1, undefined],
      [200, 0, 1, undefined],
      [429, 0, 1, expect.stringMatching(/^(?:39|40)$/)],
    ]);
  });

  test('localRateLimit logs the specified rejection text, and tells clients which limit it is', async () => {
    const other = { maxTokens: 5, tokensPerFill: 5, fillInterval: '2m' };
    await using gate = await limited(other, { maxTokens: 1, ...HOUR, key: '"secret" + source.address' });
    await send(gate.url);
    const reply = await send(gate.url);
    expect(reply).toMatchObject({ status: 429 });
    expect(reply.text).toMatch(
      /^rate limit exceeded: at most 1 request, and 1 more every 1h, for requests with your key; try again in (?:3600|3599) s$/,
    );
    expect(await gate.accessLine(2)).toMatchObject({
      'http.status': '429',
      error: 'rate limit exceeded',
      reason: 'RateLimit',
    });
  });

  test('localRateLimit refills after fillInterval and not earlier', async () => {
    await using gate = await limited({ maxTokens: 2, tokensPerFill: 1, fillInterval: '300ms' });
    const started = performance.now();
    expect([(await send(gate.url)).status, (await send(gate.url)).status]).toEqual([200, 200]);
    await until(async () => (await send(gate.url)).status === 200);
    const took = performance.now() - started;
    expect(took).toBeGreaterThan(290);
    // One token was added, so the next request finds none unless another interval has passed.
    if (performance.now() - started < 590) expect((await send(gate.url)).status).toBe(429);
  });

  test('localRateLimit shares a bucket between all clients of one route only', async () => {
    const route = (path: string) => ({
      name: path.slice(1),
      matches: [{ path: { exact: path } }],
      policies: { localRateLimit: [{ maxTokens: 1, ...HOUR }], directResponse: {} },
    });
    await using gate = await gateway(routesConfig([route('/a'), route('/b')]));
    const status = async (path: string, from: string) => (await send(`${gate.url}${path}`, { from })).status;
    expect(await status('/a', '127.0.0.2')).toBe(200);
    expect(await status('/a', '127.0.0.3')).toBe(429);
    expect(await status('/b', '127.0.0.3')).toBe(200);
  });

  test('localRateLimit does not count requests that authorization rejects', async () => {
    await using gate = await answeringGateway({
      authorization: { rules: ['request.path == "/good"'] },
      localRateLimit: [{ maxTokens: 1, ...HOUR }],
    });
    for (let i = 0; i < 5; i += 1) expect((await send(`${gate.url}/bad`)).status).toBe(403);
    expect((await send(`${gate.url}/good`)).status).toBe(200);
    expect((await send(`${gate.url}/good`)).status).toBe(429);
  });
});

describe('localRateLimit with several buckets', () => {
  test('localRateLimit requires room in every bucket, takes none on rejection and reports the tightest', async () => {
    await using gate = await limited(
      { maxTokens: 5, ...HOUR },
      { maxTokens: 2, ...HOUR, key: 'request.headers["x-user"]' },
    );
    const seen = [];
    for (const user of ['a', 'a', 'a', 'a', 'b', 'b', 'b', 'c', 'c']) {
      const { status, headers } = await send(gate.url, { headers: { 'x-user': user } });
      seen.push(`${user} ${status} ${headers['x-ratelimit-remaining']}/${headers['x-ratelimit-limit']}`);
    }
    expect(seen).toEqual([
      'a 200 1/2',
      'a 200 0/2',
      'a 429 0/2',
      'a 429 0/2',
      'b 200 1/2',
      'b 200 0/2',
      'b 429 0/2',
      'c 200 0/5',
      'c 429 0/5',
    ]);
  });

  test('localRateLimit keeps the rate limit headers of an upstream', async () => {
    await using backend = await httpUpstream((_, response) =>
      response.writeHead(200, { 'X-RateLimit-Limit': '7', 'X-RateLimit-Remaining': '6' }).end(),
    );
    await using gate = await proxyGateway(backend.address, { localRateLimit: [{ maxTokens: 9, ...HOUR }] });
    const { headers } = await send(gate.url);
    expect(headers).toMatchObject({ 'x-ratelimit-limit': '7', 'x-ratelimit-remaining': '6' });
    expect(headers).not.toHaveProperty('x-ratelimit-reset');
  });
});

describe('localRateLimit keys', () => {
  test('localRateLimit.key gives each client its own bucket', async () => {
    await using gate = await limited({ maxTokens: 1, ...HOUR, key: 'source.address' });
    const status = async (from: string) => (await send(gate.url, { from })).status;
    expect(await status('127.0.0.2')).toBe(200);
    expect(await status('127.0.0.3')).toBe(200);
    expect(await status('127.0.0.2')).toBe(429);
    const forged = await send(gate.url, { from: '127.0.0.2', headers: { 'x-forwarded-for': '127.0.0.99' } });
    expect(forged.status).toBe(429);
  });

  test('localRateLimit.key distinguishes long values by their ends', async () => {
    await using gate = await limited({ maxTokens: 1, ...HOUR, key: 'request.headers["x-user"]' });
    const status = async (user: string) => (await send(gate.url, { headers: { 'x-user': user } })).status;
    const long = 'x'.repeat(500);
    for (const user of [`${long}1`, `${long}2`]) {
      expect(await status(user)).toBe(200);
      expect(await status(user)).toBe(429);
    }
  });

  test('localRateLimit.key distinguishes values of different types', async () => {
    await using gate = await limited({ maxTokens: 1, ...HOUR, key: 'json(request.headers["x-json"])' });
    const status = async (json: string) => (await send(gate.url, { headers: { 'x-json': json } })).status;
    for (const json of ['1', '"1"', 'true', 'null', '[1]', '{"a":1}', '""']) {
      expect(await status(json), json).toBe(200);
      expect(await status(json), json).toBe(429);
    }
  });

  test('localRateLimit.key puts requests whose expression fails into one shared bucket', async () => {
    await using gate = await limited({ maxTokens: 2, ...HOUR, key: 'json(request.headers["x-json"]).id' });
    const statuses = [];
    for (const broken of ['{', 'x', '[]', '{}'])
      statuses.push((await send(gate.url, { headers: { 'x-json': broken } })).status);
    statuses.push((await send(gate.url)).status);
    expect(statuses).toEqual([200, 200, 429, 429, 429]);
  });

  test('localRateLimit.key that fails is logged once, with its place and the reason', async () => {
    const key = 'request.headers["x-user"]';
    await using gate = await limited({ maxTokens: 9, ...HOUR }, { maxTokens: 2, ...HOUR, key });
    const warnings = () => gate.log.filter((line) => line.includes('the key of a rate limit fails'));
    await send(gate.url, { headers: { 'x-user': 'a' } });
    expect(warnings()).toEqual([]);
    const statuses = [];
    for (let i = 0; i < 3; i += 1) statuses.push((await send(gate.url)).status);
    expect(statuses).toEqual([200, 200, 429]);
    expect(warnings()).toEqual([expect.stringContaining('localRateLimit.1.key')]);
    expect(warnings()[0]).toContain('x-user');
    expect(warnings()[0]).toContain('\twarn\t');
  });

  test('localRateLimit.key evicts the least recently used key at the limit of keys', async () => {
    await using gate = await limited({ maxTokens: 1, ...HOUR, key: 'request.headers["x-k"]' });
    const rest = Array.from({ length: LIMITS.rateLimitKeys - 1 }, (_, index) => `k${index}`);
    const keys = ['kept', 'oldest', 'oldest', 'kept', ...rest, 'kept', 'oldest'];
    const statuses = await pipelined(gate.port, keys);
    expect(statuses.slice(0, 4)).toEqual([200, 200, 429, 429]);
    expect(tally(statuses.slice(4, -2))).toEqual({ 200: rest.length });
    expect(statuses.slice(-2)).toEqual([429, 200]);
  });
});

/** One request per key on one connection, without waiting for responses: ten thousand in about a second. */
function pipelined(port: number, keys: readonly string[]): Promise<number[]> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1');
    const statuses: number[] = [];
    let rest = '';
    socket.on('data', (chunk) => {
      const lines = (rest + chunk.toString('latin1')).split('\r\n');
      rest = lines.pop() ?? '';
      for (const line of lines) {
        const status = /HTTP\/1\.1 (\d{3}) /.exec(line)?.[1];
        if (status !== undefined) statuses.push(Number(status));
      }
      if (statuses.length === keys.length) socket.destroy();
    });
    socket.on('close', () => resolve(statuses)).on('error', reject);
    socket.write(keys.map((key) => `GET / HTTP/1.1\r\nHost: a\r\nX-K: ${key}\r\n\r\n`).join(''));
  });
}

test.each([
  [{ maxTokens: 0, fillInterval: '1s' }, 'maxTokens'],
  [{ maxTokens: 1 }, 'fillInterval'],
  [{ maxTokens: 1, fillInterval: '0s' }, 'fillInterval'],
  [{ maxTokens: 1, fillInterval: 'soon' }, 'fillInterval'],
  [{ maxTokens: 1, fillInterval: '1s', type: 'bytes' }, 'type'],
])('localRateLimit rejects the configuration %j', async (limit, field) => {
  await expect(limited(limit)).rejects.toThrow(new RegExp(`localRateLimit\\.0(?:\\.${field}|.*${field})`));
});

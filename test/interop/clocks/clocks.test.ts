import pg from 'pg';
import { beforeAll, describe, expect, test } from 'vitest';
import { LIMITS } from '../../../src/core/limits.ts';
import { budgetsSchema } from '../../../src/server/budgets/schema.ts';
import { DatabaseSpending } from '../../../src/server/budgets/spending-store.ts';
import { openPostgres } from '../../../src/server/database/postgres.ts';
import type { Database } from '../../../src/server/kernel/database.ts';
import { USED, usedProvider } from '../../kit/budget-load.ts';
import { CHAT, chat } from '../../kit/llm-provider.ts';
import { openSession, post } from '../../kit/mcp.ts';
import { mcpUpstream } from '../../kit/mcp-upstream.ts';
import { type ServeProcess, serve } from '../../kit/process.ts';
import { redisServer } from '../../kit/redis.ts';
import { limitedConfig, load, sharedConfig } from '../../kit/replicas.ts';
import { send } from '../../kit/send.ts';
import { seconds, signingKey, token } from '../../kit/tokens.ts';
import { until } from '../../kit/until.ts';
import { httpUpstream } from '../../kit/upstream.ts';
import { freshDatabase } from '../postgres/fresh-database.ts';

const LIBRARY = process.env['FAKETIME_LIBRARY'];
const HOUR = 3_600_000;
const DAY = 24 * HOUR;

/** A replica whose clock is this many seconds ahead; its timers run as usual. */
const ahead = (offset: number, config: string): Promise<ServeProcess> =>
  serve(config, {
    env: {
      LD_PRELOAD: LIBRARY,
      FAKETIME: `${offset < 0 ? '' : '+'}${offset}s`,
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
    },
  });

/** The clock of a replica, from the access log: the time at which it wrote its last line. */
const clockOf = ({ stdout }: ServeProcess): number =>
  Date.parse(/^\S+/.exec(stdout.trimEnd().split('\n').at(-1) ?? '')?.[0] ?? '');

const budgetConfig = (url: string, provider: string, budget: object): string =>
  JSON.stringify({
    config: { adminAddr: 'off', database: { url } },
    llm: {
      port: 0,
      models: [{ name: '*', provider: 'openai', params: { baseUrl: `http://${provider}/v1`, apiKey: 'k' } }],
      policies: { budgets: [budget] },
    },
  });

describe.skipIf(LIBRARY === undefined)('replicas whose clocks differ', () => {
  describe('in one Redis', () => {
    test('three replicas with clocks an hour apart admit exactly as many requests as the limit, and name the same time of the next fill', async () => {
      await using redis = await redisServer();
      await using backend = await httpUpstream();
      const config = limitedConfig(redis, backend.address, { maxTokens: 60, fillInterval: '30m' });
      await using early = await ahead(3_600, config);
      await using late = await ahead(-3_600, config);
      await using right = await serve(config);
      const gates = [early, late, right];
      const replies = await load(
        gates.map((gate) => () => gate.url),
        180,
      );
      const counts = Object.groupBy(replies, (reply) => String(reply?.status));
      expect([counts['200']?.length, counts['429']?.length]).toEqual([60, 120]);
      expect(backend.received).toHaveLength(60);
      const resets = await Promise.all(
        gates.map(async ({ url }) => Number((await send(url)).headers['x-ratelimit-reset'])),
      );
      expect(Math.max(...resets) - Math.min(...resets)).toBeLessThanOrEqual(5);
      expect(Math.max(...resets)).toBeLessThanOrEqual(1_800);
      // The clocks do differ.
      expect(Math.round((clockOf(early) - clockOf(late)) / HOUR)).toBe(2);
    });

    test('a session goes on at replicas whose clocks are further apart than it may be idle', async () => {
      await using redis = await redisServer();
      await using server = await mcpUpstream();
      const config = JSON.stringify({
        config: { ...sharedConfig(redis), mcp: { sessionTtl: '1m' } },
        gateways: { default: { port: 0 } },
        mcp: { targets: [{ name: 'up', mcp: { host: server.url } }] },
      });
      await using early = await ahead(7_200, config);
      await using late = await ahead(-7_200, config);
      for (const [first, second] of [
        [early, late],
        [late, early],
      ] as const) {
        const { id } = await openSession(`${first.url}/mcp`);
        const message = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
        const statusAt = async ({ url }: ServeProcess): Promise<number> =>
          (await post(`${url}/mcp`, message, { 'mcp-session-id': id })).status;
        for (const gate of [second, first, second]) expect(await statusAt(gate)).toBe(200);
        for (const key of await redis.client.keys('agctl:v1:session:*'))
          expect(await redis.client.pttl(key)).toBeGreaterThan(60_000);
        await fetch(`${second.url}/mcp`, { method: 'DELETE', headers: { 'mcp-session-id': id } });
        await until(async () => (await statusAt(first)) === 404);
        await until(() => server.sessions.size === 0);
      }
    });
  });

  describe('in one PostgreSQL', () => {
    let url = '';
    beforeAll(async () => {
      const database = await freshDatabase();
      url = database.url;
      return () => database.remove();
    });

    const run = async (statement: string): Promise<Record<string, unknown>[]> => {
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      const { rows } = await client.query(statement);
      await client.end();
      return rows;
    };

    test('calls count in the windows of the clock of their replica, each once, in a budget without windows together, and the refusal names the end of that window', async () => {
      await using provider = await usedProvider();
      const config = (budget: object): string => budgetConfig(url, provider.address, budget);
      const call = (gate: ServeProcess) => chat({ url: gate.url }, { ...CHAT, max_tokens: 20 });
      const perDay = config({ name: 'day', limit: `${5 * USED}tokens/day` });
      await using here = await serve(perDay);
      await using tomorrow = await ahead(86_400, perDay);
      // Each has a window to itself.
      for (const gate of [here, tomorrow]) {
        const statuses = [];
        for (let index = 0; index < 6; index += 1) statuses.push((await call(gate)).status);
        expect(statuses.filter((status) => status === 200).length).toBeGreaterThanOrEqual(3);
        const refused = await call(gate);
        expect(refused.status).toBe(429);
        expect(Number(refused.headers['retry-after'])).toBeLessThanOrEqual(86_400);
      }
      const rows = await run(
        "SELECT start::float8, spent::int FROM agctl_spending WHERE counter LIKE '%day%' ORDER BY start",
      );
      expect(rows).toHaveLength(2);
      expect(Number(rows[1]?.['start']) - Number(rows[0]?.['start'])).toBe(24 * HOUR);
      expect(rows.reduce((sum, { spent }) => sum + Number(spent), 0)).toBe(provider.received.length * USED);

      const before = provider.received.length;
      const whole = config({ name: 'whole', limit: `${4 * USED}tokens/total` });
      await using one = await serve(whole);
      await using two = await ahead(-40 * 86_400, whole);
      for (let index = 0; index < 4; index += 1) for (const gate of [one, two]) await call(gate);
      for (const gate of [one, two]) expect((await call(gate)).status).toBe(429);
      const [total] = await run("SELECT spent::int FROM agctl_spending WHERE counter LIKE '%whole%'");
      expect(total?.['spent']).toBe((provider.received.length - before) * USED);
    });

    // Called here: a replica does this after an hour for the first time.
    test('a replica whose clock is 100 days ahead removes old counters by the clock of PostgreSQL', async () => {
      await using provider = await usedProvider();
      const config = budgetConfig(url, provider.address, { name: 'month', limit: '100000tokens/month' });
      await using here = await serve(config);
      await using far = await ahead((100 * DAY) / 1_000, config);
      for (const gate of [here, far]) expect((await chat({ url: gate.url }, CHAT)).status).toBe(200);
      const starts = [61, 63].map((days) => Date.now() - days * DAY);
      await run(`INSERT INTO agctl_spending VALUES ${starts.map((start) => `('old', ${start}, 1)`).join()}`);
      const driver = await openPostgres({
        url,
        connections: 1,
        schemas: [budgetsSchema],
        limits: LIMITS,
        onLost: () => undefined,
      });
      const database: Database = {
        kind: 'postgres',
        query: (sql, values) => driver.query(sql, values),
        transaction: (statements) => driver.transaction(statements),
      };
      try {
        await new DatabaseSpending(database).prune(62 * DAY, Date.now() + 100 * DAY);
      } finally {
        await driver.close();
      }
      const left = await run("SELECT start::float8 FROM agctl_spending WHERE counter = 'old'");
      expect(left).toEqual([{ start: starts[0] }]);
      expect(await run("SELECT 1 FROM agctl_spending WHERE counter LIKE '%month%'")).toHaveLength(2);
    });
  });

  test('replicas whose clocks are 50 s apart from that of the identity provider accept its tokens', async () => {
    const key = signingKey('k');
    const route = {
      policies: {
        jwtAuth: {
          issuer: 'https://idp.example',
          audiences: ['gate'],
          jwks: JSON.stringify({ keys: [key.jwk] }),
        },
        directResponse: { status: 200, body: 'in' },
      },
    };
    const config = JSON.stringify({
      config: { adminAddr: 'off' },
      gateways: { default: { port: 0, routes: [route] } },
    });
    const statusAt = async ({ url }: ServeProcess, issued: number, lifetime: number): Promise<number> => {
      const claims = { iss: 'https://idp.example', aud: 'gate', sub: 'ann' };
      const bearer = token(key, {
        ...claims,
        iat: seconds(issued),
        nbf: seconds(issued),
        exp: seconds(issued + lifetime),
      });
      return (await send(url, { headers: { authorization: `Bearer ${bearer}` } })).status;
    };
    await using late = await ahead(-50, config);
    await using early = await ahead(50, config);
    await using farLate = await ahead(-120, config);
    await using farEarly = await ahead(120, config);
    // Issued now, or expired now.
    expect(await statusAt(late, 0, 300)).toBe(200);
    expect(await statusAt(early, -300, 301)).toBe(200);
    expect(await statusAt(farLate, 0, 300)).toBe(401);
    expect(await statusAt(farEarly, -300, 301)).toBe(401);
  });
});

import { describe, expect, test } from 'vitest';
import type { Limits } from '../../../src/core/limits.ts';
import { usedProvider } from '../../kit/budget-load.ts';
import type { TestGateway } from '../../kit/gateway.ts';
import { CHAT, chat, modelsGateway } from '../../kit/llm-provider.ts';
import { type NetworkPath, networkPath } from '../../kit/network-path.ts';
import { answeringGateway } from '../../kit/routes.ts';
import { until } from '../../kit/until.ts';
import { type OwnServer, ownServer, POSTGRES_PROGRAMS } from './own-server.ts';

/** What one call uses. */
const USED = 19;

const QUICK: Partial<Limits> = {
  // A busy machine takes seconds to accept a connection.
  databaseConnect: 4_000,
  databaseStatement: 1_500,
  budgetWait: 1_500,
  databaseRetry: 20,
  databaseMaxRetry: 40,
  recordDelay: 5,
  recordRetry: 20,
  recordMaxRetry: 40,
  recordFlush: 500,
};

/** A replica with a budget and the record of requests in this database. */
function replica(url: string, provider: string, budget: object = {}): Promise<TestGateway> {
  return modelsGateway(
    [{ name: '*', provider: 'openai', params: { baseUrl: `http://${provider}/v1`, apiKey: 'k' } }],
    { policies: { budgets: [{ name: 'all', limit: '100000tokens/total', ...budget }] } },
    {
      config: { database: { url } },
      frontendPolicies: { accessLog: { database: {} } },
    },
    { limits: QUICK },
  );
}

/** Two replicas with one database: `one` connects through `path`, which a test can disturb, `two` directly. */
async function scene() {
  const stack = new AsyncDisposableStack();
  const server = stack.use(await ownServer());
  const path: NetworkPath = stack.use(await networkPath(server.port));
  const provider = stack.use(await usedProvider());
  const one = stack.use(await replica(server.url(path.port), provider.address));
  const two = stack.use(await replica(server.url(), provider.address));
  return { server, path, provider, one, two, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

const call = (gate: TestGateway) => chat(gate, { ...CHAT, max_tokens: 20 });

const spent = async (server: OwnServer): Promise<number> => {
  const [row] = await server.run('SELECT sum(spent)::int AS spent FROM agctl_spending');
  return Number(row?.['spent']);
};

const recorded = async (server: OwnServer, status: number): Promise<number> => {
  const [row] = await server.run(`SELECT count(*)::int AS count FROM agctl_records WHERE status = ${status}`);
  return Number(row?.['count']);
};

/** Calls that every replica answers again end with exact charges and records of all that had an answer. */
async function expectComplete(server: OwnServer, answered: number): Promise<void> {
  await until(async () => (await recorded(server, 200)) === answered);
  expect(await spent(server)).toBe(answered * USED);
}

describe.skipIf(POSTGRES_PROGRAMS === undefined)(
  'faults of the PostgreSQL that budgets and records are in',
  () => {
    test('a gateway opens as many connections as maxConnections for requests at once, and no more', async () => {
      await using server = await ownServer();
      await using path = await networkPath(server.port);
      for (const maxConnections of [2, 5]) {
        const before = path.connections;
        const database = { url: server.url(path.port), maxConnections };
        await using gate = await answeringGateway(
          {},
          { config: { database }, frontendPolicies: { accessLog: { database: {} } } },
          { admin: true },
        );
        path.hang();
        const pages = Array.from({ length: 12 }, (_, index) =>
          fetch(`${gate.admin}/api/records?limit=${index + 1}`),
        );
        await until(() => path.connections - before === maxConnections);
        path.resume();
        for (const page of await Promise.all(pages)) expect(page.status).toBe(200);
        expect(path.connections - before).toBe(maxConnections);
      }
    });

    test('a PostgreSQL that is slow delays calls, and nothing else', async () => {
      await using at = await scene();
      at.path.delay(30);
      for (let i = 0; i < 3; i += 1)
        for (const gate of [at.one, at.two]) expect((await call(gate)).status).toBe(200);
      await expectComplete(at.server, 6);
    });

    test('a PostgreSQL that hangs delays calls by a bounded time, they get 503, and nothing is charged twice afterwards', async () => {
      await using at = await scene();
      expect((await call(at.one)).status).toBe(200);
      at.path.hang();
      const startedAt = performance.now();
      const refused = await call(at.one);
      expect(refused).toMatchObject({ status: 503, headers: { 'retry-after': '1' } });
      expect(performance.now() - startedAt).toBeLessThan(5_000);
      // The other replica has a way to the server.
      expect((await call(at.two)).status).toBe(200);
      at.path.resume();
      await until(async () => (await call(at.one)).status === 200);
      await expectComplete(at.server, 3);
      expect(at.one.log.join('')).toContain('the database of budgets can be used again');
    });

    test('an answer whose charge hangs reaches its client, and is charged later', async () => {
      await using at = await scene();
      expect((await call(at.one)).status).toBe(200);
      const reply = call(at.one);
      await until(() => at.provider.received.length === 2);
      at.path.hang();
      expect((await reply).status).toBe(200);
      at.path.resume();
      await until(async () => (await spent(at.server)) === 2 * USED);
      await expectComplete(at.server, 2);
    });

    test('a gateway whose PostgreSQL hangs ends within its deadlines', async () => {
      const at = await scene();
      expect((await call(at.one)).status).toBe(200);
      at.path.hang();
      expect((await call(at.one)).status).toBe(503);
      const startedAt = performance.now();
      await at.one.close();
      expect(performance.now() - startedAt).toBeLessThan(15_000);
      await at[Symbol.asyncDispose]();
    });

    test('a PostgreSQL that crashes and starts again is used again, with what was charged', async () => {
      await using at = await scene();
      for (const gate of [at.one, at.two]) expect((await call(gate)).status).toBe(200);
      at.server.kill();
      for (const gate of [at.one, at.two]) expect((await call(gate)).status).toBe(503);
      at.server.start();
      for (const gate of [at.one, at.two]) await until(async () => (await call(gate)).status === 200);
      await expectComplete(at.server, 4);
    });

    test('after a failover the promoted server is used, also by connections to the old one that is read-only now', async () => {
      await using server = await ownServer();
      await using path = await networkPath(server.port);
      await using provider = await usedProvider();
      await using gate = await replica(server.url(path.port), provider.address);
      expect((await call(gate)).status).toBe(200);
      await using standby = server.standby();
      await until(async () => (await spent(standby)) === USED);
      // The old primary is demoted but goes on, and connections to it stay.
      await server.run('ALTER SYSTEM SET default_transaction_read_only = on');
      await server.run('SELECT pg_reload_conf()');
      await until(async () => (await call(gate)).status === 503);
      await until(() => gate.log.join('').includes('the database is read-only'));
      path.pointTo(standby.port);
      await new Promise((resolve) => setTimeout(resolve, 50));
      expect((await call(gate)).status).toBe(503);
      standby.promote();
      await until(async () => (await call(gate)).status === 200);
      const charged = await spent(standby);
      expect(charged % USED).toBe(0);
      expect(charged).toBeGreaterThanOrEqual(2 * USED);
    });

    test.each([
      ['a full disk', '53100', 'the disk is full'],
      ['no memory left', '53200', 'PostgreSQL error 53200'],
    ])(
      'a PostgreSQL with %s is said to have it, and calls get 503 until it has room',
      async (_, state, problem) => {
        await using at = await scene();
        expect((await call(at.one)).status).toBe(200);
        await at.server.run(`CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '${state}'; END $$`);
        for (const table of ['agctl_spending', 'agctl_records'])
          await at.server.run(`CREATE TRIGGER fail BEFORE INSERT ON ${table} EXECUTE FUNCTION fail()`);
        // Reads work: the first answer cannot be charged, and later ones are refused.
        expect((await call(at.one)).status).toBe(200);
        expect((await call(at.one)).status).toBe(503);
        expect(at.one.log.join('')).toMatch(
          new RegExp(`the database of budgets cannot be used\\s+problem="${problem}"`),
        );
        await until(() => at.one.log.join('').includes('requests cannot be recorded; they wait'));
        await at.server.run('DROP FUNCTION fail CASCADE');
        await until(async () => (await call(at.one)).status === 200);
        await expectComplete(at.server, 3);
      },
    );

    test('a password that is changed while gateways run is named by its problem, and without it', async () => {
      await using at = await scene();
      expect((await call(at.one)).status).toBe(200);
      await at.server.run("ALTER ROLE postgres PASSWORD 'other'");
      at.path.cut();
      await until(async () => {
        expect((await call(at.one)).status).toBe(503);
        return at.one.log.join('').includes('PostgreSQL rejects the password');
      });
      expect(at.one.log.join('')).not.toContain('correct');
      await at.server.run("ALTER ROLE postgres PASSWORD 'correct'", 'other');
      await until(async () => (await call(at.one)).status === 200);
    });

    test('a gateway does not start with a wrong password', async () => {
      await using server = await ownServer();
      const url = server.url().replace('correct', 'hunter2');
      const error = await replica(url, '127.0.0.1:1').catch((reason: unknown) => reason);
      expect(String(error)).toContain('rejects the password');
      expect(String(error)).not.toContain('hunter2');
    });

    test('a PostgreSQL that was emptied gets its tables again, and budgets begin again', async () => {
      await using at = await scene();
      for (const gate of [at.one, at.two]) expect((await call(gate)).status).toBe(200);
      await at.server.run('DROP SCHEMA public CASCADE');
      await at.server.run('CREATE SCHEMA public');
      for (const gate of [at.one, at.two]) await until(async () => (await call(gate)).status === 200);
      expect(await spent(at.server)).toBe(2 * USED);
      expect(at.one.log.join('') + at.two.log.join('')).toContain(
        'the tables of the database are gone: they are created again',
      );
    });
  },
);

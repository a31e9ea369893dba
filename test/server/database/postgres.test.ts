import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { LIMITS } from '../../../src/core/limits.ts';
import { createLog } from '../../../src/core/log.ts';
import { ClockWatch, clockDifference } from '../../../src/server/database/clock.ts';
import { openPostgresOn } from '../../../src/server/database/postgres.ts';
import { UnknownCommit } from '../../../src/server/kernel/database.ts';
import { LosingPool } from '../../kit/lost-commit.ts';
import { pgliteServer } from '../../kit/pglite-pool.ts';
import { COUNTERS, databaseContract } from './database-contract.ts';

// One server for all: to compile PostgreSQL takes a second of CPU time.
let server: Awaited<ReturnType<typeof pgliteServer>>;
beforeAll(async () => {
  server = await pgliteServer();
}, 120_000);
afterAll(() => server.close());

databaseContract('PostgreSQL in process', () => ({
  open: (schemas) => openPostgresOn(server.pool(), 'PGlite', schemas, LIMITS),
  empty: () => server.empty(),
}));

test.each([
  ['SELECT missing FROM agctl_counters', 'PostgreSQL error 42703: column "missing" does not exist'],
  ["SELECT CAST('hunter22' AS BIGINT)", 'PostgreSQL error 22P02'],
])('an error of the server is told with its message, unless that quotes values: %s', async (sql, detail) => {
  await server.empty();
  const driver = await openPostgresOn(server.pool(), 'PGlite', [COUNTERS], LIMITS);
  await expect(driver.query(sql)).rejects.toMatchObject({ detail });
});

test('a clock that differs from that of the database is told once, and when it does no more', async () => {
  const driver = await openPostgresOn(server.pool(), 'PGlite', [COUNTERS], LIMITS);
  expect(Math.abs((await clockDifference((sql) => driver.query(sql))) ?? Number.NaN)).toBeLessThan(10_000);
  const lines: string[] = [];
  let ahead = 86_400_000;
  const query = () => Promise.resolve([{ now: Date.now() - ahead }]);
  const watch = new ClockWatch({
    query,
    log: createLog(
      { write: (line) => void lines.push(line), dropped: 0, flush: () => Promise.resolve() },
      'info',
      'text',
    ),
    limits: LIMITS,
  });
  await watch.compare();
  await watch.compare();
  ahead = -20_000;
  await watch.compare();
  watch.close();
  expect(lines.map((line) => line.split('\t').slice(1, 4))).toEqual([
    ['warn', 'agctl::database', 'the clock of this machine is 1d ahead of that of the database'],
    ['info', 'agctl::database', 'the clock of this machine is that of the database again'],
  ]);
});

describe('a connection that is cut during a commit', () => {
  const ADD = { sql: "INSERT INTO agctl_counters (name, value) VALUES ('a', 1) RETURNING value" };
  const open = async () => {
    await server.empty();
    const losing = new LosingPool(server.pool());
    const driver = await openPostgresOn(losing.pool, 'PGlite', [COUNTERS], LIMITS);
    const rows = async (): Promise<number> => (await driver.query('SELECT value FROM agctl_counters')).length;
    return { losing, driver, rows };
  };

  test('is no failure if the server has executed it', async () => {
    const { losing, driver, rows } = await open();
    losing.next = 'executed, answer lost';
    expect(await driver.transaction([ADD])).toEqual([{ rows: [{ value: 1 }], changes: 1 }]);
    expect(await rows()).toBe(1);
  });

  test('is a failure if it has not', async () => {
    const { losing, driver, rows } = await open();
    losing.next = 'not executed';
    const failed = await driver.transaction([ADD]).catch((error: unknown) => error);
    expect(failed).toMatchObject({ code: 'database_unavailable' });
    expect(failed).not.toBeInstanceOf(UnknownCommit);
    expect(await rows()).toBe(0);
  });

  test.each(['executed, answer lost', 'not executed'] as const)(
    'is unknown until the server can be asked (%s)',
    async (what) => {
      const { losing, driver } = await open();
      losing.next = what;
      losing.isDownAfterLoss = true;
      const failed = await driver.transaction([ADD]).catch((error: unknown) => error);
      if (!(failed instanceof UnknownCommit)) throw failed;
      expect(failed.detail).toContain('whether the change was made is not known');
      await expect(failed.isStored()).rejects.toThrow('terminated');
      losing.isDown = false;
      expect(await failed.isStored()).toBe(what === 'executed, answer lost');
    },
  );
});

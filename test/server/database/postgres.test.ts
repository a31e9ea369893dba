import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { LIMITS } from '../../../src/core/limits.ts';
import { createLog } from '../../../src/core/log.ts';
import { keyText } from '../../../src/core/postgres-keys.ts';
import { ClockWatch, clockDifference } from '../../../src/server/database/clock.ts';
import { openPostgresOn } from '../../../src/server/database/postgres.ts';
import { columnsOf, keysOf } from '../../../src/server/database/postgres-tables.ts';
import { databaseSchemas } from '../../../src/server/features.ts';
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

describe('tables that a restored dump has left behind', () => {
  /** Of each feature: a row, and what reads it. */
  const ROWS: Readonly<Record<string, readonly [insert: string, read: string]>> = {
    record: [
      "INSERT INTO agctl_record_payloads (id, request) VALUES (1, 'kept')",
      'SELECT request AS kept FROM agctl_record_payloads',
    ],
    budgets: [
      "INSERT INTO agctl_keys (id, name, hash, hint, settings, created_at) VALUES ('i', 'kept', 'h', 'h', '{}', 1)",
      'SELECT name AS kept FROM agctl_keys',
    ],
    userTokens: [
      "INSERT INTO agctl_oauth_clients (issuer, redirect_uri, sealed, created_at) VALUES ('kept', 'r', 's', 1)",
      'SELECT issuer AS kept FROM agctl_oauth_clients',
    ],
    audit: [
      "INSERT INTO agctl_audit (time, action, outcome, actor_kind) VALUES (1, 'kept', 'done', 'system')",
      'SELECT action AS kept FROM agctl_audit',
    ],
  };
  const KEY_OF_USAGE = '(caller, hour, model, protocol, provider, target, tool, user_group, user_name)';
  const query = async (sql: string) => {
    const client = await server.pool().connect();
    return client.query(sql).finally(() => client.release());
  };
  const changes: unknown[] = [];
  const open = (schemas = databaseSchemas) =>
    openPostgresOn(server.pool(), 'PGlite', schemas, LIMITS, {
      onMigrated: (change) => void changes.push(change),
    });

  test('keep their rows when a feature is migrated again from any version', async () => {
    await server.empty();
    const driver = await open();
    const reads = databaseSchemas.map(({ feature }) => ROWS[feature]?.[1] ?? `no row of ${feature}`);
    await driver.transaction(databaseSchemas.map(({ feature }) => ({ sql: ROWS[feature]?.[0] ?? '' })));
    expect(changes).toEqual([]);
    for (const { feature, migrations } of databaseSchemas)
      for (const from of migrations.keys()) {
        const setBack =
          from === 0
            ? { sql: 'DELETE FROM agctl_schema WHERE feature = ?', values: [feature] }
            : { sql: 'UPDATE agctl_schema SET version = ? WHERE feature = ?', values: [from, feature] };
        await driver.transaction([setBack]);
        await open();
        expect(changes.splice(0)).toEqual([{ feature, from, to: migrations.length }]);
        for (const read of reads) expect(await driver.query(read)).toEqual([{ kept: 'kept' }]);
      }
  });

  test.each([
    [
      'agctl_audit (time TEXT)',
      'are not those of version 2 (the table agctl_audit has no column id with the type bigint)',
    ],
    [
      'agctl_user_tokens (owner TEXT, server TEXT, who TEXT, scope TEXT, generation TEXT, sealed TEXT, created_at BIGINT, expires_at TEXT)',
      'are not those of version 1 (the table agctl_user_tokens has no column expires_at with the type bigint)',
    ],
    [
      'agctl_oauth_clients (issuer TEXT, redirect_uri TEXT, sealed TEXT, created_at BIGINT, UNIQUE (issuer, created_at))',
      'are not those of version 1 (the table agctl_oauth_clients has no unique key (issuer, redirect_uri))',
    ],
    ['agctl_keys (id TEXT)', 'cannot be migrated to version 1 (column "revoked_at" does not exist)'],
  ])('are named when they are of another program, and nothing is changed: %s', async (table, why) => {
    await server.empty();
    await query(`CREATE TABLE ${table}`);
    const columns = async () =>
      (
        await query(
          "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public'",
        )
      ).rows;
    const before = await columns();
    await expect(open()).rejects.toMatchObject({
      message: expect.stringContaining(why),
      help: expect.stringContaining('nothing has changed'),
    });
    expect(await columns()).toEqual(before);
  });

  // Each upsert would fail, at the first write after the start.
  test.each([
    [
      'ALTER TABLE agctl_spending DROP CONSTRAINT agctl_spending_pkey',
      'budgets',
      2,
      'agctl_spending',
      '(counter, start)',
    ],
    ['DROP INDEX agctl_keys_name', 'budgets', 2, 'agctl_keys', '(name) WHERE (revoked_at IS NULL)'],
    ['ALTER TABLE agctl_usage DROP CONSTRAINT agctl_usage_pkey', 'record', 4, 'agctl_usage', KEY_OF_USAGE],
  ])(
    'refuse the start if a restore has not created a key: %s',
    async (lost, feature, version, table, key) => {
      await server.empty();
      const driver = await open();
      await driver.transaction([{ sql: lost }]);
      await expect(open()).rejects.toThrow(
        `PGlite: the tables of \`${feature}\` are not those of version ${version} (the table ${table} has no unique key ${key})`,
      );
    },
  );

  test('are compared with every column and unique key of a new database', async () => {
    await server.empty();
    const driver = await open();
    const columns = await driver.query(
      "SELECT table_name, column_name, data_type FROM information_schema.columns WHERE table_schema = 'public' AND table_name <> 'agctl_schema'",
    );
    const keys = await driver.query(
      "SELECT tablename, indexdef FROM pg_indexes WHERE schemaname = 'public' AND tablename <> 'agctl_schema' AND indexdef LIKE 'CREATE UNIQUE%'",
    );
    const compared = databaseSchemas.flatMap((schema) => [
      ...[...columnsOf(schema)].flatMap(([table, types]) =>
        [...types].map(([name, type]) => `${table} ${name} ${type}`),
      ),
      ...[...keysOf(schema)].flatMap(([table, keys]) => [...keys].map((key) => `${table} ${key}`)),
    ]);
    const present = [
      ...columns.map((row) => `${row['table_name']} ${row['column_name']} ${row['data_type']}`),
      ...keys.map(({ tablename, indexdef }) => {
        const [, list = '', condition = ''] = /\(([^)]+)\)(?: WHERE (.+))?$/.exec(String(indexdef)) ?? [];
        return `${tablename} ${keyText(list, condition)}`;
      }),
    ];
    expect(compared.toSorted()).toEqual(present.toSorted());
  });
});

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

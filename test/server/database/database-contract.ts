import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Driver } from '../../../src/server/database/driver.ts';
import type { DatabaseSchema } from '../../../src/server/kernel/database.ts';

/** A schema of tests, whose second version adds a column. */
export const COUNTERS: DatabaseSchema = {
  feature: 'counters',
  migrations: [
    {
      sqlite: 'CREATE TABLE agctl_counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;',
      postgres: 'CREATE TABLE agctl_counters (name TEXT PRIMARY KEY, value BIGINT NOT NULL);\n',
    },
    {
      sqlite: `ALTER TABLE agctl_counters ADD COLUMN note TEXT;
        CREATE INDEX agctl_counters_value ON agctl_counters (value);`,
      postgres: `ALTER TABLE agctl_counters ADD COLUMN note TEXT;
        CREATE INDEX agctl_counters_value ON agctl_counters (value);\n`,
    },
  ],
};

const INSERT = 'INSERT INTO agctl_counters (name, value) VALUES (?, ?)';
/** What a budget does: takes an amount if it is there. */
const TAKE = 'UPDATE agctl_counters SET value = value - ? WHERE name = ? AND value >= ? RETURNING value';

export interface TestServer {
  open(schemas: readonly DatabaseSchema[]): Promise<Driver>;
  /** Removes all tables. */
  empty(): Promise<void>;
}

/** What every kind of database does. */
export function databaseContract(kind: string, server: () => TestServer): void {
  describe(`the database of a gateway (${kind})`, () => {
    let driver: Driver;
    beforeEach(async () => {
      await server().empty();
      driver = await server().open([COUNTERS]);
    });
    afterEach(() => driver.close());

    test('a transaction that resolved is seen by the next query', async () => {
      await driver.transaction([{ sql: INSERT, values: ['a', 1] }]);
      expect(await driver.query('SELECT name, value, note FROM agctl_counters')).toEqual([
        { name: 'a', value: 1, note: null },
      ]);
    });

    test('a statement with many lists of values counts the changes of all', async () => {
      const rows = Array.from({ length: 300 }, (_, index) => [`n${index}`, index]);
      const results = await driver.transaction([{ sql: INSERT, many: rows }]);
      expect(results).toEqual([{ rows: [], changes: 300 }]);
      expect(await driver.query('SELECT CAST(sum(value) AS TEXT) AS sum FROM agctl_counters')).toEqual([
        { sum: '44850' },
      ]);
    });

    test('a statement that fails rolls back those before it', async () => {
      await driver.transaction([{ sql: INSERT, values: ['a', 1] }]);
      const failed = driver.transaction([
        { sql: INSERT, values: ['b', 1] },
        { sql: INSERT, values: ['a', 2] },
      ]);
      await expect(failed).rejects.toMatchObject({ code: 'database_unavailable' });
      expect(await driver.query('SELECT name FROM agctl_counters')).toEqual([{ name: 'a' }]);
    });

    test('a required statement that changes no row rolls back the transaction', async () => {
      await driver.transaction([
        {
          sql: INSERT,
          many: [
            ['key', 5],
            ['team', 1],
          ],
        },
      ]);
      const take = (amount: number) =>
        driver.transaction(
          ['key', 'team'].map((name) => ({
            sql: TAKE,
            values: [amount, name, amount],
            required: true as const,
          })),
        );
      expect(await take(1)).toEqual([
        { rows: [{ value: 4 }], changes: 1 },
        { rows: [{ value: 0 }], changes: 1 },
      ]);
      expect(await take(1)).toBeUndefined();
      expect(await driver.query('SELECT value FROM agctl_counters WHERE name = ?', ['key'])).toEqual([
        { value: 4 },
      ]);
    });

    test('a time in ms and a large integer are read as numbers', async () => {
      await driver.transaction([
        { sql: INSERT, values: ['now', 1_790_000_000_123] },
        { sql: INSERT, values: ['max', Number.MAX_SAFE_INTEGER] },
      ]);
      expect(await driver.query('SELECT value FROM agctl_counters ORDER BY value')).toEqual([
        { value: 1_790_000_000_123 },
        { value: Number.MAX_SAFE_INTEGER },
      ]);
    });

    test('two gateways that start at once create the tables once', async () => {
      await driver.close();
      await server().empty();
      const [one, two] = await Promise.all([server().open([COUNTERS]), server().open([COUNTERS])]);
      await one.transaction([{ sql: INSERT, values: ['a', 1] }]);
      expect(await two.query('SELECT name FROM agctl_counters')).toHaveLength(1);
      await Promise.all([one.close(), two.close()]);
      driver = await server().open([COUNTERS]);
      expect(await driver.query('SELECT name FROM agctl_counters')).toHaveLength(1);
    });

    test('two gateways take from one counter without losing an update', async () => {
      const other = await server().open([COUNTERS]);
      await driver.transaction([{ sql: INSERT, values: ['shared', 100] }]);
      const takes = Array.from({ length: 120 }, (_, index) =>
        (index % 2 === 0 ? driver : other).transaction([
          { sql: TAKE, values: [1, 'shared', 1], required: true },
        ]),
      );
      const taken = (await Promise.all(takes)).filter((each) => each !== undefined);
      expect(taken).toHaveLength(100);
      await other.close();
    });

    test('an older version is migrated, and a newer one is refused with what to do', async () => {
      await driver.close();
      await server().empty();
      const [first] = COUNTERS.migrations;
      const old = await server().open([{ ...COUNTERS, migrations: [first as never] }]);
      await old.transaction([{ sql: INSERT, values: ['kept', 7] }]);
      await old.close();
      driver = await server().open([COUNTERS]);
      expect(await driver.query('SELECT name, note FROM agctl_counters')).toEqual([
        { name: 'kept', note: null },
      ]);
      await expect(server().open([{ ...COUNTERS, migrations: [first as never] }])).rejects.toMatchObject({
        message: expect.stringContaining('was written by a newer agctl (`counters` has version 2'),
        help: 'install that version again, or name another database',
        isTransient: false,
      });
    });

    test('a call after close is rejected', async () => {
      const other = await server().open([COUNTERS]);
      await other.close();
      await expect(other.query('SELECT 1 AS one')).rejects.toThrow();
    });
  });
}

import { hash } from 'node:crypto';
import { afterEach, describe, expect, test } from 'vitest';
import { type Connection, createPool, type Pool } from '../../../src/core/postgres-pool.ts';

const url = process.env['MEMORY_DATABASE_URL'];
const PREPARED = 'SELECT count(*)::int AS count FROM pg_prepared_statements';

describe.skipIf(url === undefined)('prepared statements on a PostgreSQL server', () => {
  let pool: Pool | undefined;
  afterEach(() => pool?.end());

  /** One connection, so that every statement meets the same session. */
  function open(preparedStatements: number): { pool: Pool; prepared: Connection } {
    const opened = createPool({
      url: url as string,
      connections: 1,
      connectTimeout: 5_000,
      statementTimeout: 5_000,
      name: 'agctl-test',
      setup: [],
      preparedStatements,
      onError: () => undefined,
    });
    pool = opened;
    return { pool: opened, prepared: opened.prepared as Connection };
  }

  test('a connection keeps statements prepared, and is closed when it has too many', async () => {
    const { pool, prepared } = open(2);
    const session = async (): Promise<unknown> =>
      (await pool.query('SELECT pg_backend_pid() AS pid')).rows[0];
    const first = await session();
    for (const value of [1, 2])
      expect((await prepared.query('SELECT $1::int AS value', [value])).rows).toEqual([{ value }]);
    await prepared.query('SELECT 2');
    expect((await pool.query(PREPARED)).rows).toEqual([{ count: 2 }]);
    expect(await session()).toEqual(first);
    await prepared.query('SELECT 3');
    expect(await session()).not.toEqual(first);
  });

  test('a statement that a pooler has lost is repeated, and later ones are not prepared', async () => {
    const { pool, prepared } = open(9);
    await prepared.query('SELECT $1::int AS value', [1]);
    await pool.query('DEALLOCATE ALL');
    expect((await prepared.query('SELECT $1::int AS value', [2])).rows).toEqual([{ value: 2 }]);
    expect((await prepared.query(PREPARED)).rows).toEqual([{ count: 0 }]);
  });

  test('a statement that another client of a pooler has prepared in the session is repeated', async () => {
    const { pool, prepared } = open(9);
    await pool.query(`PREPARE "${hash('sha256', 'SELECT 7 AS value', 'base64url')}" AS SELECT 7 AS value`);
    expect((await prepared.query('SELECT 7 AS value')).rows).toEqual([{ value: 7 }]);
    expect((await prepared.query(PREPARED)).rows).toEqual([{ count: 0 }]);
  });

  test('a statement whose columns a migration has changed is repeated, and statements stay prepared', async () => {
    const { pool, prepared } = open(9);
    const table = 'agctl_test_columns';
    await pool.query(`DROP TABLE IF EXISTS ${table}`);
    await pool.query(`CREATE TABLE ${table} AS SELECT 1 AS a`);
    try {
      await prepared.query(`SELECT * FROM ${table}`);
      await pool.query(`ALTER TABLE ${table} ADD COLUMN b int DEFAULT 2`);
      expect((await prepared.query(`SELECT * FROM ${table}`)).rows).toEqual([{ a: 1, b: 2 }]);
      expect((await prepared.query(PREPARED)).rows).toEqual([{ count: 1 }]);
    } finally {
      await pool.query(`DROP TABLE ${table}`);
    }
  });

  test('an error of a prepared statement reaches the caller', async () => {
    const { prepared } = open(9);
    await expect(prepared.query('SELECT missing')).rejects.toMatchObject({ code: '42703' });
    expect((await prepared.query('SELECT 1 AS value')).rows).toEqual([{ value: 1 }]);
  });
});

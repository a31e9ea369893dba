import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { LIMITS } from '../../../src/core/limits.ts';
import { createLog } from '../../../src/core/log.ts';
import { KeyTable } from '../../../src/server/budgets/key-table.ts';
import { budgetsSchema } from '../../../src/server/budgets/schema.ts';
import { DatabaseSpending } from '../../../src/server/budgets/spending-store.ts';
import type { Driver } from '../../../src/server/database/driver.ts';
import { openPostgresOn } from '../../../src/server/database/postgres.ts';
import { openSqlite } from '../../../src/server/database/sqlite.ts';
import type { Database } from '../../../src/server/kernel/database.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { pgliteServer } from '../../kit/pglite-pool.ts';

// One server for all: to compile PostgreSQL takes a second of CPU time.
let server: Awaited<ReturnType<typeof pgliteServer>>;
beforeAll(async () => {
  server = await pgliteServer();
}, 120_000);
afterAll(() => server.close());

const log = createLog({ write: () => undefined, dropped: 0, flush: () => Promise.resolve() }, 'off', 'text');
const schemas = [budgetsSchema];

async function sqlite(): Promise<Database & AsyncDisposable> {
  const folder = await temporaryFolder();
  const path = join(folder.path, 'agctl.db');
  const driver = await openSqlite({ path, mustExist: false, schemas, log, limits: LIMITS });
  return database('sqlite', driver, () => folder.remove());
}

async function postgres(): Promise<Database & AsyncDisposable> {
  const driver = await openPostgresOn(server.pool(), 'PGlite', schemas, LIMITS);
  return database('postgres', driver, () => server.empty());
}

const database = (
  kind: Database['kind'],
  driver: Driver,
  removed: () => Promise<void>,
): Database & AsyncDisposable => ({
  kind,
  query: (sql, values) => driver.query(sql, values),
  transaction: (statements) => driver.transaction(statements),
  [Symbol.asyncDispose]: async () => {
    await driver.close();
    await removed();
  },
});

const HOUR = 3_600_000;

const KEY = {
  id: 'a1',
  name: 'ann',
  hash: 'f'.repeat(64),
  hint: 'wxyz',
  createdAt: 1_800_000_000_000,
  metadata: { team: 'red' },
  budgets: ['10USD/day'],
  allowedModels: ['gpt-*'],
};

describe.each([
  ['SQLite', sqlite],
  ['PostgreSQL', postgres],
])('%s', (_name, open) => {
  test('keeps charges of many counters, and returns their totals', async () => {
    await using opened = await open();
    const store = new DatabaseSpending(opened);
    const [a, b, c] = [
      { counter: '["a"]', start: 0 },
      { counter: '["b ? \' {}"]', start: Date.now() - 2 * HOUR },
      { counter: '["c"]', start: Date.now() },
    ];
    const first = await store.exchange(
      [
        { ...a, amount: 5 },
        { ...b, amount: 7_000_000_000_000 },
      ],
      [],
    );
    expect(first.totals).toEqual([5, 7_000_000_000_000]);
    const second = await store.exchange([{ ...a, amount: -2 }], [b, { counter: 'unknown', start: 0 }]);
    expect(second.totals).toEqual([3, 7_000_000_000_000, 0]);
    expect(await store.spent([0], 10)).toEqual([{ ...a, spent: 3 }]);
    expect(await store.spent([], 10)).toEqual([]);
    await store.exchange([{ ...c, amount: 1 }], []);
    await store.prune(HOUR, Date.now());
    expect(await store.spent([0, b.start, c.start], 10)).toEqual([
      { ...a, spent: 3 },
      { ...c, spent: 1 },
    ]);
  });

  test('keeps keys, counts their changes, and has a name once until it is revoked', async () => {
    await using opened = await open();
    const table = new KeyTable(opened);
    expect(await table.all()).toEqual({ keys: [], unreadable: [], version: 0 });
    expect(await table.add(KEY)).toBe(1);
    expect(await table.add({ ...KEY, id: 'a2', hash: 'e'.repeat(64) })).toBeUndefined();
    expect(await table.all()).toEqual({ keys: [KEY], unreadable: [], version: 1 });
    expect(await table.revoke('a1', 1_800_000_000_001)).toBe(2);
    expect(await table.revoke('a1', 1_800_000_000_002)).toBeUndefined();
    expect(await table.add({ ...KEY, id: 'a2', hash: 'e'.repeat(64) })).toBe(3);
    expect((await table.all()).keys.find(({ id }) => id === 'a1')?.revokedAt).toBe(1_800_000_000_001);
    expect(await table.version()).toBe(3);
  });
});

test('totals in SQLite include what another process has charged since', async () => {
  await using opened = await sqlite();
  const [one, two] = [new DatabaseSpending(opened), new DatabaseSpending(opened)];
  const totalOf = async (store: DatabaseSpending, known?: number): Promise<number | undefined> =>
    (await store.exchange([{ counter: 'a', start: 0, amount: 1, known }], [])).totals[0];
  expect([await totalOf(one), await totalOf(one, 1), await totalOf(one, 2)]).toEqual([1, 2, 3]);
  expect([await totalOf(two), await totalOf(one, 3), await totalOf(one, 5)]).toEqual([4, 5, 6]);
});

test('SQLite tells whether another process has charged in the meantime', async () => {
  await using opened = await sqlite();
  const [one, two] = [new DatabaseSpending(opened), new DatabaseSpending(opened)];
  const charge = [{ counter: 'a', start: 0, amount: 1 }];
  const isAlone = async (store: DatabaseSpending): Promise<boolean> =>
    (await store.exchange(charge, [])).isAlone;
  expect([await isAlone(one), await isAlone(one)]).toEqual([true, true]);
  expect([await isAlone(two), await isAlone(one), await isAlone(one)]).toEqual([true, false, true]);
});

test('charges in the journal of SQLite count for other processes, and move to the counters when it is long', async () => {
  await using opened = await sqlite();
  const [one, two] = [new DatabaseSpending(opened), new DatabaseSpending(opened)];
  const rowsOf = async (table: string): Promise<number> =>
    Number((await opened.query(`SELECT count(*) AS count FROM ${table}`))[0]?.['count']);
  const a = { counter: 'a', start: 0 };
  await one.exchange([{ ...a, amount: 1 }], []);
  expect((await one.exchange([{ ...a, amount: 2, known: 1 }], [])).totals).toEqual([3]);
  expect(await rowsOf('agctl_spending_journal')).toBe(1);
  expect(await one.spent([0], 10)).toEqual([{ ...a, spent: 3 }]);
  expect((await two.exchange([], [a])).totals).toEqual([3]);
  expect(await rowsOf('agctl_spending_journal')).toBe(0);

  await one.exchange([], [a]);
  const many = Array.from({ length: 3_000 }, (_, index) => ({
    counter: `${index}${'x'.repeat(100)}`,
    start: 0,
    amount: 1,
    known: 0,
  }));
  await one.exchange(many, []);
  expect([await rowsOf('agctl_spending_journal'), await rowsOf('agctl_spending')]).toEqual([1, 1]);
  await one.exchange([{ ...a, amount: 4, known: 3 }], []);
  expect([await rowsOf('agctl_spending_journal'), await rowsOf('agctl_spending')]).toEqual([0, 3_001]);
  expect(await two.totals([a, ...many.slice(0, 1)])).toEqual([7, 1]);
});

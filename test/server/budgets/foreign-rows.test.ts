import { afterAll, beforeAll, expect, test } from 'vitest';
import { LIMITS } from '../../../src/core/limits.ts';
import { createLog } from '../../../src/core/log.ts';
import { KeyList } from '../../../src/server/budgets/key-list.ts';
import { KeyTable } from '../../../src/server/budgets/key-table.ts';
import { Ledger } from '../../../src/server/budgets/ledger.ts';
import { budgetsSchema } from '../../../src/server/budgets/schema.ts';
import { DatabaseSpending } from '../../../src/server/budgets/spending-store.ts';
import { openPostgresOn } from '../../../src/server/database/postgres.ts';
import type { Database } from '../../../src/server/kernel/database.ts';
import { alteredPool, SHAPES, withColumn } from '../../kit/altered-pool.ts';
import { pgliteServer } from '../../kit/pglite-pool.ts';

// One server for all: to compile PostgreSQL takes a second of CPU time.
let server: Awaited<ReturnType<typeof pgliteServer>>;
beforeAll(async () => {
  server = await pgliteServer();
}, 120_000);
afterAll(() => server.close());

async function opened() {
  await server.empty();
  const altered = alteredPool(server.pool());
  const driver = await openPostgresOn(altered.pool, 'PGlite', [budgetsSchema], LIMITS);
  const database: Database = {
    kind: 'postgres',
    query: (sql, values) => driver.query(sql, values),
    transaction: (statements) => driver.transaction(statements),
  };
  return { altered, database, [Symbol.asyncDispose]: () => driver.close() };
}

/** A boolean is stored as 0 or 1. */
const NO_NUMBERS = SHAPES.filter((each) => each !== true && each !== -1 && each !== 1e300);

function logOf() {
  const lines: string[] = [];
  const sink = { write: (line: string) => void lines.push(line), dropped: 0, flush: () => Promise.resolve() };
  return { lines, log: createLog(sink, 'warn', 'text') };
}

// A spend of NULL that passes every comparison with a budget: BerriAI/litellm#26672.
test('a budget whose use the database returns as no number refuses calls instead of having no end', async () => {
  await using use = await opened();
  const { log } = logOf();
  const store = new DatabaseSpending(use.database);
  const counter = '["b","tokens","total",""]';
  await store.exchange([{ counter, start: 0, amount: 90, known: undefined }], []);
  for (const shape of NO_NUMBERS) {
    use.altered.alter = (row) => withColumn(row, 'spent', shape);
    const ledger = new Ledger({
      store,
      log,
      maxCounters: 9,
      freshness: 0,
      wait: 5_000,
      presence: 0,
      failed: () => undefined,
    });
    const claim = { counter, unit: 'tokens', window: 'total', limit: 100 } as const;
    expect(await ledger.reserve(0, [claim], { tokens: 50, usd: 0 }), JSON.stringify(shape)).toEqual({
      unavailable: expect.stringMatching(/^column spent of the database /),
    });
  }
});

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

test('a virtual key whose row is not as agctl writes it is refused, and the other keys stay valid', async () => {
  await using use = await opened();
  const { lines, log } = logOf();
  const table = new KeyTable(use.database);
  await table.add(KEY);
  await table.add({ ...KEY, id: 'b2', name: 'bob', hash: 'e'.repeat(64) });
  for (const settings of [
    'null',
    '[]',
    '5',
    'no JSON',
    '{}',
    '{"metadata":{},"budgets":"10USD/day"}',
    '{"metadata":{},"budgets":[5]}',
    '{"metadata":{},"budgets":["much"]}',
    '{"metadata":[],"budgets":[]}',
    '{"metadata":{},"budgets":[],"allowedModels":"gpt-4"}',
    '{"metadata":{},"budgets":[],"allowedModels":[null]}',
    '{"metadata":{},"budgets":[],"expiresAt":"2030-01-01"}',
  ]) {
    await use.database.transaction([
      { sql: `UPDATE agctl_keys SET settings = ? WHERE id = 'a1'`, values: [settings] },
    ]);
    const keys = new KeyList(table, log, 60_000);
    expect(
      (await keys.list()).map(({ name }) => name),
      settings,
    ).toEqual(['bob']);
    expect(await keys.find(KEY.hash)).toBeUndefined();
    keys.close();
  }
  expect(lines[0]).toContain('virtual keys are not as agctl writes them: they are refused');
  expect(lines[0]).toContain('a1: column settings of the database contains no JSON object of settings');
});

test('columns of virtual keys of any other type are refused, and no call of the table hangs or returns them', async () => {
  await using use = await opened();
  const table = new KeyTable(use.database);
  await table.add(KEY);
  for (const column of ['id', 'name', 'hash', 'hint', 'settings', 'created_at', 'revoked_at'])
    for (const shape of [undefined, {}, [], Number.NaN]) {
      use.altered.alter = (row) => withColumn(row, column, shape);
      const read = await table.all().catch((error: { code: string }) => error.code);
      if (read !== 'database_unavailable')
        expect(read, `${column} = ${JSON.stringify(shape)}`).toMatchObject({ keys: [] });
    }
  for (const shape of NO_NUMBERS) {
    use.altered.alter = (row) => withColumn(row, 'count', shape);
    await expect(table.version(), JSON.stringify(shape)).rejects.toMatchObject({
      code: 'database_unavailable',
    });
  }
});

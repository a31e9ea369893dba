import { afterAll, beforeAll, expect, test } from 'vitest';
import { openStoreOn } from '../../../../src/adapter/memory/postgres/open.ts';
import { MIGRATIONS } from '../../../../src/adapter/memory/postgres/schema.ts';
import type { NamespacedStore } from '../../../../src/adapter/memory/store.ts';
import { AppError } from '../../../../src/core/errors.ts';
import { keysCreatedBy } from '../../../../src/core/postgres-keys.ts';
import { alteredPool, SHAPES, withColumn } from '../../../kit/altered-pool.ts';
import { pgliteServer } from '../../../kit/pglite-pool.ts';
import { repeats } from '../../../kit/thorough.ts';
import { recordingLog } from '../recording-log.ts';
import { documentOf, EMBEDDER, turn, vector } from '../records.ts';

// One server for all: to compile PostgreSQL takes a second of CPU time.
let server: Awaited<ReturnType<typeof pgliteServer>>;
beforeAll(async () => {
  server = await pgliteServer();
}, 120_000);
afterAll(() => server.close());

const READS: Readonly<Record<string, (store: NamespacedStore) => Promise<unknown>>> = {
  sessions: (store) => store.sessions({ limit: 9 }),
  turns: (store) => store.turns('s', { after: 0, limit: 9 }),
  searchTurns: (store) => store.searchTurns({ query: 'lemur', limit: 9, order: 'newest' }),
  agentGraph: (store) => store.agentGraph({}),
  agentRelations: (store) => store.agentRelations({ limit: 9 }),
  documents: (store) => store.documents('docs_dir'),
  nearest: (store) => store.nearest(vector(0), EMBEDDER, { limit: 9 }),
  lexical: (store) => store.lexical(['lemur'], { limit: 9 }, { vector: vector(0), embedder: EMBEDDER }),
  unembedded: (store) => store.unembedded('other', { after: 0, limit: 9 }),
  unembeddedCount: (store) => store.unembeddedCount('other'),
  byName: (store) => store.byName('ann', 9),
  similarNames: (store) => store.similarNames('anna', 9),
  edges: (store) => store.edges(['file:a.md'], 'both', 9),
  searchEntities: (store) => store.searchEntities({ limit: 9 }),
  topology: (store) => store.topology({ limit: 9 }),
  stats: (store) => store.stats(),
  note: (store) => store.note('graph-lock'),
  namespaces: (store) => store.namespaces({ limit: 9 }),
  'turn of an unknown namespace': (store) => store.namespace('bob').appendTurn(turn('s', 'by bob')),
  'turns of a namespace': (store) => store.namespace('ann').turns('s', { after: 0, limit: 9 }),
  appendTurn: (store) => store.appendTurn(turn('s', 'another lemur')),
  putDocument: (store) => store.putDocument(documentOf('b.md', ['a second lemur'])),
  changeGraph: (store) =>
    store.changeGraph({ addObservations: [{ entityName: 'ann', contents: ['likes lemurs'] }] }),
  'erase (preview)': (store) => store.erase({ about: 'lemur' }, { preview: true }),
};

const numbersIn = (value: unknown): number[] => {
  if (typeof value === 'number') return [value];
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return [];
  return (value instanceof Map ? [...value.values()] : Object.values(value)).flatMap(numbersIn);
};

/** What a call did that no caller of a store expects; undefined if it returned its values or was refused. */
async function surpriseOf(call: Promise<unknown>): Promise<string | undefined> {
  try {
    return numbersIn(await call).every(Number.isFinite) ? undefined : 'returned a number that is none';
  } catch (error) {
    return error instanceof AppError && error.code.startsWith('memory_')
      ? undefined
      : `threw ${String(error)}`;
  }
}

// Numbers that arrive as text, NaN or null: brianc/node-postgres#1300, #1943, #26.
test('a row of PostgreSQL with a column of any other type fails the call that reads it, and no later one', async () => {
  await server.empty();
  const altered = alteredPool(server.pool());
  const store = await openStoreOn(altered.pool, 'PGlite', recordingLog());
  await store.putDocument(documentOf('a.md', ['a lemur']));
  await store.changeGraph({
    createEntities: [{ name: 'ann', entityType: 'person', observations: ['has a lemur'] }],
    createRelations: [{ from: 'ann', to: 'ann', relationType: 'knows' }],
  });
  await store.appendTurn(turn('s', 'hello lemur'));
  await store.namespace('ann').appendTurn(turn('s', 'hello'));
  const surprises: string[] = [];
  // Each run tries another part of the shapes.
  const part = repeats(3, 1);
  const drawn = SHAPES.slice(Math.floor(Math.random() * part)).filter((_, at) => at % part === 0);
  for (const [name, call] of Object.entries(READS)) {
    const columns = new Set<string>();
    altered.alter = (row) => {
      for (const column of Object.keys(row)) columns.add(column);
      return row;
    };
    await call(store);
    expect(columns.size, name).toBeGreaterThan(0);
    for (const column of columns)
      for (const shape of drawn) {
        altered.alter = (row) => withColumn(row, column, shape);
        const surprise = await surpriseOf(call(store));
        if (surprise !== undefined)
          surprises.push(`${name}, ${column} = ${JSON.stringify(shape)}: ${surprise}`);
      }
    for (const row of [null, 'row', 5, []]) {
      altered.alter = () => row;
      const surprise = await surpriseOf(call(store));
      if (surprise !== undefined) surprises.push(`${name}, row ${JSON.stringify(row)}: ${surprise}`);
    }
    altered.alter = (row) => row;
    await call(store);
  }
  expect(surprises).toEqual([]);
  await store.close();
}, 120_000);

test.each([
  ['memory_sessions', 'memory_sessions_pkey', '(session_id)'],
  ['memory_documents', 'memory_documents_origin_key_key', '(key, origin)'],
  ['memory_namespaces', 'memory_namespaces_pkey', '(name)'],
])(
  'tables whose restore has not created the key of %s are refused with it',
  async (table, constraint, key) => {
    await server.empty();
    const pool = server.pool();
    await openStoreOn(pool, 'PGlite', recordingLog());
    await pool.query(`ALTER TABLE ${table} DROP CONSTRAINT ${constraint}`);
    await expect(openStoreOn(server.pool(), 'PGlite', recordingLog())).rejects.toThrow(
      `PGlite: the table ${table} has no unique key ${key}, as after a restore`,
    );
  },
);

test('the unique keys of the tables are those of a new database', async () => {
  await server.empty();
  const pool = server.pool();
  await openStoreOn(pool, 'PGlite', recordingLog());
  const { rows } = await pool.query(
    "SELECT tablename FROM pg_indexes WHERE schemaname = 'public' AND indexdef LIKE 'CREATE UNIQUE%'",
  );
  const compared = [...keysCreatedBy(MIGRATIONS.flat())].flatMap(([table, keys]) =>
    [...keys].map(() => table),
  );
  const present = rows.map((row) => (row as { tablename: string }).tablename);
  expect([...compared, 'memory_namespaces', 'memory_namespaces'].toSorted()).toEqual(present.toSorted());
});

test('the name of a schema in the table of namespaces is no SQL', async () => {
  await server.empty();
  const pool = server.pool();
  const store = await openStoreOn(pool, 'PGlite', recordingLog());
  await store.appendTurn(turn('s', 'stays'));
  await store.namespace('ann').appendTurn(turn('s', 'hello'));
  for (const name of [
    'public',
    'x; DROP TABLE memory_chat_history',
    '"',
    'agctl_memory_x CASCADE; SELECT 1 --',
  ]) {
    await pool.query('UPDATE memory_namespaces SET schema_name = $1', [name]);
    await expect(store.removeNamespace('ann'), name).rejects.toMatchObject({
      code: 'memory_unavailable',
      detail: 'column schema_name of the database contains no name that agctl gives',
    });
  }
  expect((await store.turns('s', { after: 0, limit: 9 }))?.turns).toHaveLength(1);
  await store.close();
});

test('a read that loses its connection speaks of no write, and a new namespace of the privilege that it needs', async () => {
  await server.empty();
  const altered = alteredPool(server.pool());
  const store = await openStoreOn(altered.pool, 'PGlite', recordingLog());
  await store.appendTurn(turn('s', 'x'));
  const failWith = (code: string): void => {
    altered.alter = () => {
      throw Object.assign(new Error('fails'), { code });
    };
  };
  failWith('ECONNRESET');
  await expect(store.sessions({ limit: 9 })).rejects.toMatchObject({
    message: 'the memory store cannot be reached: nothing was changed',
  });
  await expect(store.appendTurn(turn('s', 'y'))).rejects.toMatchObject({
    message: expect.stringContaining('unknown whether the write was stored'),
  });
  failWith('42501');
  await expect(store.namespace('ann').appendTurn(turn('s', 'z'))).rejects.toMatchObject({
    message: expect.stringContaining('CREATE on the database'),
  });
  await store.close();
});

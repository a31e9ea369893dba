import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openStoreOn } from '../../../../src/adapter/memory/postgres/open.ts';
import type { NamespacedStore } from '../../../../src/adapter/memory/store.ts';
import { MEMORY_STORE_LIMITS } from '../../../../src/core/memory-limits.ts';
import { pgliteServer } from '../../../kit/pglite-pool.ts';
import { namespacesContract } from '../namespaces-contract.ts';
import { recordingLog } from '../recording-log.ts';
import { documentOf, EMBEDDER, turn, vector } from '../records.ts';
import { storeContract } from '../store-contract.ts';
import { twoBackends } from '../two-backends.ts';

// One server for all: to compile PostgreSQL takes a second of CPU time.
let server: Awaited<ReturnType<typeof pgliteServer>>;
beforeAll(async () => {
  server = await pgliteServer();
  // Half a minute where others want the processor too.
}, 120_000);
afterAll(() => server.close());
const open = (): Promise<NamespacedStore> => openStoreOn(server.pool(), 'PGlite', recordingLog());

storeContract('postgres (in process)', async () => ({ open, remove: () => Promise.resolve() }));

// One session serves both here, so transactions never overlap: test/interop/postgres does this on a real server.
describe('two memory backends on one PostgreSQL database', () => {
  beforeAll(() => server.empty());
  twoBackends(open, 8);
});

namespacesContract('postgres (in process)', async () => {
  await server.empty();
  return { open, remove: () => Promise.resolve() };
});

describe('namespaces of two memory backends on one PostgreSQL database', () => {
  beforeAll(() => server.empty());

  test('a namespace that another backend has deleted reads as empty and is created by the next write', async () => {
    const [one, two] = [await open(), await open()];
    const alice = one.namespace('alice');
    await one.putDocument(documentOf('default.md', ['lemur of default']));
    await alice.putDocument(documentOf('alice.md', ['lemur of alice']));
    expect(await two.namespace('alice').documents('docs_dir')).toHaveLength(1);
    expect(await two.removeNamespace('alice')).toBe(true);
    // Its own tables are gone, and the tables of `default` must not take their place.
    expect(await alice.documents('docs_dir')).toEqual([]);
    expect(await alice.lexical(['lemur'], { limit: 9 })).toEqual([]);
    expect(await alice.nearest(vector(0), EMBEDDER, { limit: 9 })).toEqual([]);
    expect((await alice.stats()).documents).toBe(0);
    await two.namespace('alice').appendTurn(turn('s', 'by two'));
    await two.removeNamespace('alice');
    await alice.appendTurn(turn('s', 'by one'));
    const page = await two.namespace('alice').turns('s', { after: 0, limit: 9 });
    expect(page?.turns.map(({ content }) => content)).toEqual(['by one']);
    expect((await one.stats()).turns).toBe(0);
    await Promise.all([one.close(), two.close()]);
  });

  test('a namespace has an index of vectors and of words of its own, also after `default` has one', async () => {
    await server.empty();
    const store = await open();
    const alice = store.namespace('alice');
    for (const one of [store, alice]) await one.putDocument(documentOf('a.md', ['lemur']));
    const { rows } = await server.pool().query(
      `SELECT schemaname = 'public' AS home, indexdef LIKE '%USING hnsw%' AS vectors, count(*)::int AS count
       FROM pg_indexes WHERE indexdef ~ 'USING (hnsw|gin)' GROUP BY 1, 2`,
    );
    const counts = (isHome: boolean) =>
      (rows as { home: boolean; vectors: boolean; count: number }[])
        .filter(({ home }) => home === isHome)
        .map(({ vectors, count }) => `${vectors} ${count}`)
        .sort();
    expect(counts(true)).toContain('true 1');
    expect(counts(false)).toEqual(counts(true));
    await store.close();
  });

  test('the number of namespaces is bounded with an error that says what to do', async () => {
    const store = await open();
    const pool = server.pool();
    await pool.query(
      `INSERT INTO memory_namespaces (name, schema_name)
       SELECT 'n' || n, 'none_' || n FROM generate_series(1, ${MEMORY_STORE_LIMITS.namespaces}) AS n`,
    );
    await expect(store.namespace('more').appendTurn(turn('s', 'x'))).rejects.toMatchObject({
      code: 'memory_full',
      message: expect.stringContaining('the maximum'),
    });
    await store.close();
  });

  test('a backup is refused with the name of the tool to use', async () => {
    await server.empty();
    const store = await open();
    await expect(store.backup('default')).rejects.toMatchObject({
      code: 'memory_invalid',
      message: expect.stringContaining('pg_dump'),
    });
    await store.close();
  });
});

import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openPostgresStore } from '../../../src/adapter/memory/postgres/open.ts';
import type { Store } from '../../../src/adapter/memory/store.ts';
import { recordingLog } from '../../adapter/memory/recording-log.ts';
import { documentOf } from '../../adapter/memory/records.ts';
import { storeContract } from '../../adapter/memory/store-contract.ts';
import { twoBackends } from '../../adapter/memory/two-backends.ts';
import { freshDatabase } from './fresh-database.ts';

const hasServer = Boolean(process.env['MEMORY_DATABASE_URL']);

describe.skipIf(!hasServer)('a PostgreSQL server', () => {
  storeContract('contract', async () => {
    const database = await freshDatabase();
    return {
      open: () => openPostgresStore({ url: database.url, log: recordingLog() }),
      remove: () => database.remove(),
    };
  });

  describe('two memory backends on one PostgreSQL server', () => {
    let database: Awaited<ReturnType<typeof freshDatabase>>;
    const open = (): Promise<Store> => openPostgresStore({ url: database.url, log: recordingLog() });
    beforeAll(async () => {
      database = await freshDatabase();
    });
    afterAll(() => database.remove());
    twoBackends(open, 100);

    test('two memory backends that start simultaneously on an empty database both become ready', async () => {
      const empty = await freshDatabase();
      const stores = await Promise.all(
        Array.from({ length: 4 }, () => openPostgresStore({ url: empty.url, log: recordingLog() })),
      );
      expect((await stores[3]?.stats())?.turns).toBe(0);
      await Promise.all(stores.map((store) => store.close()));
      await empty.remove();
    });

    test('first writes of a namespace by several backends do not wait for each other forever', async () => {
      const fresh = await freshDatabase();
      const stores = await Promise.all(
        Array.from({ length: 4 }, () => openPostgresStore({ url: fresh.url, log: recordingLog() })),
      );
      const namespaces = stores.map((store) => store.namespace('alice'));
      await Promise.all(
        namespaces.flatMap((alice, backend) =>
          Array.from({ length: 5 }, (_, n) =>
            alice.putDocument(documentOf(`${backend} ${n}.md`, ['one', 'two'], { embedder: `model ${n}` })),
          ),
        ),
      );
      expect(await namespaces[0]?.documents('docs_dir')).toHaveLength(20);
      await Promise.all(stores.map((store) => store.close()));
      const client = new pg.Client({ connectionString: fresh.url });
      await client.connect();
      // A transaction that was ended because of a deadlock has been repeated, after a second.
      const { rows } = await client.query(
        'SELECT deadlocks::int AS deadlocks FROM pg_stat_database WHERE datname = current_database()',
      );
      await client.end();
      expect(rows).toEqual([{ deadlocks: 0 }]);
      await fresh.remove();
    });

    test('two memory backends run a named task once at a time, even after its owner has died', async () => {
      const [one, two] = [await open(), await open()];
      const entered = Promise.withResolvers<void>();
      const gate = Promise.withResolvers<string>();
      const first = one.exclusively('sync', () => {
        entered.resolve();
        return gate.promise;
      });
      await entered.promise;
      expect(await two.exclusively('sync', async () => 'second')).toBeUndefined();
      gate.resolve('first');
      expect(await first).toBe('first');
      expect(await two.exclusively('sync', async () => 'third')).toBe('third');
      await Promise.all([one.close(), two.close()]);
    });
  });

  test.each([
    ['a wrong port', (url: URL) => (url.port = '1'), 'refuses connections'],
    ['an unknown host', (url: URL) => (url.hostname = 'no-such-host.invalid'), /unknown host|host name/],
    ['an unknown database', (url: URL) => (url.pathname = '/no_such_database'), 'does not exist'],
  ])('the error for %s names the problem but not the password', async (_, spoil, problem) => {
    const url = new URL(process.env['MEMORY_DATABASE_URL'] ?? '');
    url.password = 'hunter2-secret';
    spoil(url);
    const error = await openPostgresStore({ url: url.href, log: recordingLog() }).catch((reason) => reason);
    expect(error).toMatchObject({ code: 'memory_not_opened', message: expect.stringMatching(problem) });
    expect(`${error.message} ${error.detail} ${error.stack}`).not.toContain('hunter2');
  });
});

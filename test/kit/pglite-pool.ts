import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { PGlite } from '@electric-sql/pglite';
import { vector } from '@electric-sql/pglite-pgvector';
import { type Client, type Pool, SETTINGS } from '../../src/adapter/memory/postgres/connection.ts';

/**
 * PostgreSQL with pgvector inside this process, as a pool. There is one session behind it: a transaction has it to
 * itself from BEGIN on, everyone else waits. The server outlives the pool, so a store can be opened again.
 */
export async function pgliteServer(): Promise<{
  pool(): Pool;
  /** Drops everything that stores have created. */
  empty(): Promise<void>;
  close(): Promise<void>;
}> {
  const server = await PGlite.create({ extensions: { vector }, loadDataDir: await newDatabase() });
  const empty = async (): Promise<void> =>
    void (await server.exec(`
      DO $$ DECLARE space text; BEGIN
        FOR space IN SELECT nspname FROM pg_namespace WHERE nspname LIKE 'agctl\\_memory\\_%' LOOP
          EXECUTE format('DROP SCHEMA %I CASCADE', space);
        END LOOP;
      END $$;
      DROP SCHEMA public CASCADE; CREATE SCHEMA public; CREATE EXTENSION vector`));
  for (const statement of SETTINGS) await server.exec(statement);
  let last: Promise<unknown> = Promise.resolve();
  /** Resolves, when it is our turn, to what ends it. */
  const takeTurn = (): Promise<() => void> => {
    const over = Promise.withResolvers<void>();
    const mine = last.then(() => () => over.resolve());
    last = mine.then(() => over.promise);
    return mine;
  };
  const run = async (text: string, values?: unknown[]) => {
    const { rows, affectedRows } = await server.query(text, values);
    return { rows, rowCount: affectedRows ?? 0 };
  };
  const client = (): Client => {
    let end: (() => void) | undefined;
    const query: Client['query'] = async (text, values) => {
      const inTransaction = end !== undefined;
      if (!inTransaction) end = await takeTurn();
      const last = text !== 'BEGIN' && (!inTransaction || /^(COMMIT|ROLLBACK)$/.test(text));
      try {
        return await run(text, values);
      } finally {
        if (last) {
          end?.();
          end = undefined;
        }
      }
    };
    return { query, release: () => end?.() };
  };
  const pool = (): Pool => {
    let ended = false;
    const connect = async (): Promise<Client> => {
      if (ended) throw new Error('the pool has ended');
      return client();
    };
    return {
      connect,
      query: async (text, values) => (await connect()).query(text, values),
      end: async () => {
        ended = true;
      },
    };
  };
  return { pool, empty, close: () => server.close() };
}

/**
 * The files of a new database with pgvector, as a tar archive. `initdb` takes four of the five seconds of CPU time of a
 * start, so what it made is kept, for each pair of versions.
 */
async function newDatabase(): Promise<Blob> {
  const kept = join(
    import.meta.dirname,
    '../../node_modules/.cache',
    `postgres-${VERSIONS.map(versionOf).join('-')}.tar`,
  );
  if (!existsSync(kept)) {
    const server = await PGlite.create({ extensions: { vector } });
    await server.exec('CREATE EXTENSION vector');
    const made = await server.dumpDataDir('none');
    await server.close();
    mkdirSync(dirname(kept), { recursive: true });
    // Workers may do this at the same time: each sees a whole file, or none.
    writeFileSync(`${kept}.${process.pid}`, await made.bytes());
    renameSync(`${kept}.${process.pid}`, kept);
  }
  return new Blob([readFileSync(kept)]);
}

const VERSIONS = ['@electric-sql/pglite', '@electric-sql/pglite-pgvector'];

function versionOf(name: string): string {
  const file = join(import.meta.dirname, '../../node_modules', name, 'package.json');
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}

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
  const server = await PGlite.create({ extensions: { vector } });
  await server.exec('CREATE EXTENSION IF NOT EXISTS vector');
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

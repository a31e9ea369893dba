import { AppError } from '../../../core/errors.ts';
import type { Log } from '../../../core/log.ts';
import { MEMORY_STORE_LIMITS } from '../../../core/memory-limits.ts';
import { repeated, serverName, transaction } from '../../../core/postgres-transaction.ts';
import { formProblem, parameterProblem } from '../../../core/postgres-url.ts';
import { RowError, rowsOf } from '../../../core/sql-row.ts';
import { DEFAULT_NAMESPACE } from '../../namespace.ts';
import { checkLimit } from '../check-input.ts';
import { exclusiveNames } from '../exclusive-names.ts';
import { EMPTY_ENGINE } from '../sql/empty-engine.ts';
import {
  OPERATIONS,
  type Operation,
  operationsOver,
  runOperation,
  vectorsStoredBy,
} from '../sql/operations.ts';
import type { NamespacedStore, Store } from '../store.ts';
import { type Client, type Connection, createPool, type Pool } from './connection.ts';
import { PostgresEngine } from './engine.ts';
import { callError, connectError, isConflict, isMissing, openError } from './errors.ts';
import { PostgresNamespaces, type Tables } from './namespaces.ts';
import { lockSchema, migrate } from './schema.ts';
import { inSchema } from './schema-connection.ts';
import { createIndexes, missingIndexes } from './vector-index.ts';

const SCOPE = 'memory::postgres';
/** Times that a write creates missing indexes before it fails. Each embedder needs one. */
const INDEX_ROUNDS = 3;
/** Connections for writes; the rest are for tasks that run under a lock. */
const WRITERS = Math.floor(MEMORY_STORE_LIMITS.connections * 0.5);
const READERS = Math.floor(MEMORY_STORE_LIMITS.connections * 0.3);

/**
 * Opens the store on a server with pgvector.
 *
 * @throws AppError `memory_not_opened`, whose message contains no secret
 */
export async function openPostgresStore({ url, log }: { url: string; log: Log }): Promise<NamespacedStore> {
  const problem = formProblem(url) ?? parameterProblem(url);
  if (problem !== undefined)
    throw new AppError('memory_not_opened', { message: `MEMORY_DATABASE_URL: ${problem}` });
  const server = serverName(url);
  let pool: Pool;
  try {
    pool = createPool(url, (error) =>
      log.warn(SCOPE, 'a connection was lost', { server, error: error.message }),
    );
  } catch (error) {
    throw openError(server, error);
  }
  return openStoreOn(pool, server, log);
}

/** The store on a pool, which it ends when it is closed or cannot be opened. `server` names it in messages. */
export async function openStoreOn(pool: Pool, server: string, log: Log): Promise<NamespacedStore> {
  try {
    const client = await pool.connect();
    try {
      await migrate(client, server, log);
    } finally {
      client.release();
    }
  } catch (error) {
    await pool.end().catch(() => undefined);
    throw openError(server, error);
  }
  const writing = limitConcurrency(WRITERS);
  const reading = limitConcurrency(READERS);
  const namespaces = new PostgresNamespaces(pool, server, (task) => transaction(pool, task, connect));
  const inProcess = exclusiveNames();
  const run = async (name: string, operation: Operation, args: readonly unknown[]): Promise<unknown> => {
    const { writes, creates } = OPERATIONS[operation];
    if (!writes)
      return reading(async () => {
        const tables = await namespaces.existing(name);
        return runOperation(tables?.engine ?? EMPTY_ENGINE, operation, args);
      });
    return writing(async () => {
      const known = await namespaces.existing(name);
      if (known === undefined && !creates) return runOperation(EMPTY_ENGINE, operation, args);
      const tables = known ?? (await repeated(() => namespaces.created(name), isConflict));
      return write(pool, tables, operation, args).finally(() => tables.engine.changed());
    });
  };
  const call = async (name: string, operation: Operation, args: readonly unknown[]): Promise<unknown> => {
    const { writes } = OPERATIONS[operation];
    try {
      return await run(name, operation, args);
    } catch (error) {
      if (name === DEFAULT_NAMESPACE || !isMissing(error)) throw callError(error, writes);
      // Another backend has deleted the namespace.
      namespaces.forget(name);
      return run(name, operation, args).catch((again: unknown) => {
        throw callError(again, writes);
      });
    }
  };
  const answered = <T>(task: () => Promise<T>): Promise<T> =>
    task().catch((error: unknown) => {
      throw callError(error);
    });
  const namespace = (name: string): Store => {
    const lockName = (task: string): string => (name === DEFAULT_NAMESPACE ? task : `${name} ${task}`);
    return {
      kind: 'postgres',
      ...operationsOver((operation, args) => call(name, operation, args)),
      exclusively: (task, perform) =>
        inProcess(lockName(task), () => underLock(pool, lockName(task), perform)),
      close: async () => undefined,
    };
  };
  let closing: Promise<void> | undefined;
  return {
    ...namespace(DEFAULT_NAMESPACE),
    namespace,
    async namespaces(page) {
      checkLimit(page.limit);
      return answered(() => reading(() => namespaces.list(page)));
    },
    removeNamespace: (name) =>
      answered(() => writing(() => repeated(() => namespaces.remove(name), isConflict))),
    backup: async () => {
      throw new AppError('memory_invalid', {
        message: 'the memory is in PostgreSQL: make a backup of the database with pg_dump instead',
      });
    },
    close: () => {
      closing ??= pool.end();
      return closing;
    },
  };
}

/** Runs one transaction on the tables of a namespace. */
async function write(
  pool: Pool,
  { schema }: Tables,
  name: Operation,
  args: readonly unknown[],
): Promise<unknown> {
  const inTransaction = <T>(task: (connection: Connection, client: Client) => Promise<T>): Promise<T> =>
    repeated(
      () => transaction(pool, (client) => task(inSchema(client, schema), client), connect),
      isConflict,
    );
  const stored = vectorsStoredBy(name, args);
  // Once more after each round that found indexes missing: a server that keeps saying so would keep the call busy.
  for (let round = 1; ; round++) {
    const done = await inTransaction(async (connection) => {
      const missing = await missingIndexes(connection, stored);
      if (missing.length > 0) return { missing };
      return { value: await runOperation(new PostgresEngine(connection), name, args) };
    });
    if ('value' in done) return done.value;
    if (round > INDEX_ROUNDS)
      throw new AppError('memory_unavailable', {
        message: 'the memory store failed: nothing was changed',
        detail: `the index ${done.missing.map(({ name }) => name).join(', ')} was created and is still missing`,
      });
    await inTransaction(async (connection, client) => {
      await lockSchema(client);
      await createIndexes(connection, done.missing);
    });
  }
}

async function connect(pool: Pool): Promise<Client> {
  try {
    return await pool.connect();
  } catch (error) {
    throw connectError(error);
  }
}

/** The lock belongs to a connection, so it is released when the backend dies. */
async function underLock<T>(pool: Pool, name: string, task: () => Promise<T>): Promise<T | undefined> {
  const key = `agctl-memory:${name}`;
  const client = await connect(pool);
  let whole = false;
  try {
    const result = await client
      .query('SELECT pg_try_advisory_lock(hashtextextended($1, 0)) AS locked', [key])
      .catch((error: unknown) => {
        throw callError(error);
      });
    const [{ locked } = {}] = rowsOf(result);
    if (typeof locked !== 'boolean')
      throw callError(new RowError('the database does not say whether a lock was granted'));
    whole = !locked;
    return locked ? await task() : undefined;
  } finally {
    if (!whole)
      whole = await client.query('SELECT pg_advisory_unlock(hashtextextended($1, 0))', [key]).then(
        () => true,
        () => false,
      );
    client.release(!whole);
  }
}

/**
 * Limits the number of concurrent tasks to `width`; up to `MEMORY_STORE_LIMITS.queue` others wait in order, further
 * ones fail with `memory_busy`. Used in front of the pool, whose own queue counts waiting as a connection failure.
 */
function limitConcurrency(width: number): <T>(task: () => Promise<T>) => Promise<T> {
  let running = 0;
  const waiting: (() => void)[] = [];
  return async (task) => {
    if (running >= width) {
      if (waiting.length >= MEMORY_STORE_LIMITS.queue) throw new AppError('memory_busy');
      // A finished task hands its slot to the next one, so `running` does not change.
      await new Promise<void>((resolve) => waiting.push(resolve));
    } else running++;
    try {
      return await task();
    } finally {
      const next = waiting.shift();
      if (next === undefined) running--;
      else next();
    }
  };
}

import type { Log } from '../../../core/log.ts';
import { MEMORY_STORE_LIMITS } from '../../../core/memory-limits.ts';
import { exclusiveNames } from '../exclusive-names.ts';
import { OPERATIONS, type Operation, operationsOver, runOperation } from '../sql/operations.ts';
import type { Store } from '../store.ts';
import { type Client, createPool, type Pool, serverName } from './connection.ts';
import { PostgresEngine } from './engine.ts';
import { callError, connectError, isConflict, openError } from './errors.ts';
import { gate } from './gate.ts';
import { migrate } from './schema.ts';

const SCOPE = 'memory::postgres';
/** Tries of a write that met another one; each waits a little longer, in ms. */
const TRIES = 5;
const WAIT = 5;
/** Of the connections; those left over are for tasks that run under a lock. */
const WRITERS = Math.floor(MEMORY_STORE_LIMITS.connections * 0.5);
const READERS = Math.floor(MEMORY_STORE_LIMITS.connections * 0.3);

/** Opens the store on a server with pgvector. Rejects with `memory_not_opened`; its message holds no secret. */
export async function openPostgresStore({ url, log }: { url: string; log: Log }): Promise<Store> {
  const server = serverName(url);
  let pool: Pool;
  try {
    pool = createPool(url, (error) =>
      log.warn(SCOPE, 'a connection broke', { server, error: error.message }),
    );
  } catch (error) {
    throw openError(server, error);
  }
  return openStoreOn(pool, server, log);
}

/** The store over a pool, which it ends when it is closed or cannot be opened. `server` names it in messages. */
export async function openStoreOn(pool: Pool, server: string, log: Log): Promise<Store> {
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
  const engine = new PostgresEngine(pool);
  const writing = gate(WRITERS);
  const reading = gate(READERS);
  const inProcess = exclusiveNames();
  let closing: Promise<void> | undefined;
  return {
    kind: 'postgres',
    ...operationsOver(async (name, args) => {
      try {
        if (OPERATIONS[name].writes)
          return await writing(() => write(pool, name, args)).finally(() => engine.changed());
        return await reading(() => runOperation(engine, name, args));
      } catch (error) {
        throw callError(error);
      }
    }),
    exclusively: (name, task) => inProcess(name, () => underLock(pool, name, task)),
    close: () => {
      closing ??= pool.end();
      return closing;
    },
  };
}

/** One transaction. What met a write of another backend left nothing behind, and is tried again. */
async function write(pool: Pool, name: Operation, args: readonly unknown[]): Promise<unknown> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await transaction(pool, name, args);
    } catch (error) {
      if (!isConflict(error) || attempt === TRIES) throw error;
      await new Promise((resolve) => setTimeout(resolve, WAIT * attempt * (1 + Math.random())));
    }
  }
}

async function transaction(pool: Pool, name: Operation, args: readonly unknown[]): Promise<unknown> {
  const client = await connect(pool);
  let whole = false;
  try {
    await client.query('BEGIN');
    const value = await runOperation(new PostgresEngine(client), name, args);
    await client.query('COMMIT');
    whole = true;
    return value;
  } catch (error) {
    whole = await client.query('ROLLBACK').then(
      () => true,
      () => false,
    );
    throw error;
  } finally {
    client.release(!whole);
  }
}

async function connect(pool: Pool): Promise<Client> {
  try {
    return await pool.connect();
  } catch (error) {
    throw connectError(error);
  }
}

/** The lock belongs to a connection: a backend that dies gives it back. */
async function underLock<T>(pool: Pool, name: string, task: () => Promise<T>): Promise<T | undefined> {
  const key = `agctl-memory:${name}`;
  const client = await connect(pool);
  let whole = false;
  try {
    const { rows } = await client
      .query('SELECT pg_try_advisory_lock(hashtextextended($1, 0)) AS locked', [key])
      .catch((error: unknown) => {
        throw callError(error);
      });
    const { locked } = rows[0] as { locked: boolean };
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

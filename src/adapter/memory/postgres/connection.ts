import { MEMORY_STORE_LIMITS } from '../../../core/memory-limits.ts';
import { createPool as createBoundedPool, type Pool } from '../../../core/postgres-pool.ts';
import { SYNCHRONOUS_COMMIT } from '../../../core/postgres-transaction.ts';

export type { Client, Connection, Pool } from '../../../core/postgres-pool.ts';

/**
 * Settings of every connection. The vector index is searched widely enough to miss almost nothing (recall 1.0 at 100, 0.985 at 40), and continues
 * until enough rows pass a filter. Pages are read when they are needed: a search reads about a hundred, mostly from the
 * cache of the operating system, and PostgreSQL 18 would pass each to another process, which takes twice to four times as
 * long (`bench memory-store -- --namespaces`).
 */
export const SETTINGS = [
  SYNCHRONOUS_COMMIT,
  'SET hnsw.ef_search = 100',
  `SET hnsw.iterative_scan = 'strict_order'`,
  'SET effective_io_concurrency = 0',
] as const;

/** A bounded pool; `onError` is called for connections that fail while idle. */
export function createPool(url: string, onError: (error: Error) => void): Pool {
  return createBoundedPool({
    url,
    connections: MEMORY_STORE_LIMITS.connections,
    connectTimeout: MEMORY_STORE_LIMITS.connect,
    statementTimeout: MEMORY_STORE_LIMITS.statement,
    name: 'agctl-memory',
    preparedStatements: MEMORY_STORE_LIMITS.preparedStatements,
    setup: SETTINGS,
    onError,
  });
}

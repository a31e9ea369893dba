import { MEMORY_STORE_LIMITS } from '../../../core/memory-limits.ts';
import { createPool as createBoundedPool, type Pool } from '../../../core/postgres-pool.ts';

export type { Client, Connection, Pool } from '../../../core/postgres-pool.ts';

/**
 * Settings of every connection. A commit is acknowledged after the flush, even if the server's default is not to wait.
 * The vector index is searched widely enough to miss almost nothing (recall 1.0 at 100, 0.985 at 40), and continues
 * until enough rows pass a filter.
 */
export const SETTINGS = [
  `SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'`,
  'SET hnsw.ef_search = 100',
  `SET hnsw.iterative_scan = 'strict_order'`,
] as const;

/** A bounded pool; `onError` is called for connections that fail while idle. */
export function createPool(url: string, onError: (error: Error) => void): Pool {
  return createBoundedPool({
    url,
    connections: MEMORY_STORE_LIMITS.connections,
    connectTimeout: MEMORY_STORE_LIMITS.connect,
    statementTimeout: MEMORY_STORE_LIMITS.statement,
    name: 'agctl-memory',
    setup: SETTINGS,
    onError,
  });
}

/** Host, port and database of a URL, for messages; never the user, the password or options. */
export function serverName(url: string): string {
  const parsed = URL.parse(url);
  if (parsed === null) return 'the PostgreSQL server of MEMORY_DATABASE_URL';
  return `PostgreSQL at ${parsed.host || 'a local socket'}${parsed.pathname}`;
}

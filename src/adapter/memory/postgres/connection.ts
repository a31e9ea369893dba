import pg from 'pg';
import { MEMORY_STORE_LIMITS } from '../../../core/memory-limits.ts';

/** The part of `pg` that the store uses, so that tests can substitute another server. */
export interface Connection {
  query(text: string, values?: unknown[]): Promise<{ rows: unknown[]; rowCount?: number | null }>;
}

export interface Client extends Connection {
  /** Returns the connection to the pool; `destroy` closes it, because its state is unknown. */
  release(destroy?: boolean): void;
}

export interface Pool extends Connection {
  connect(): Promise<Client>;
  end(): Promise<void>;
}

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
  const pool = new pg.Pool({
    connectionString: url,
    max: MEMORY_STORE_LIMITS.connections,
    connectionTimeoutMillis: MEMORY_STORE_LIMITS.connect,
    statement_timeout: MEMORY_STORE_LIMITS.statement,
    application_name: 'agctl-memory',
    keepAlive: true,
    onConnect: async (client) => {
      for (const statement of SETTINGS) await client.query(statement);
    },
  });
  pool.on('error', onError);
  return pool;
}

/** Host, port and database of a URL, for messages; never the user, the password or options. */
export function serverName(url: string): string {
  const parsed = URL.parse(url);
  if (parsed === null) return 'the PostgreSQL server of MEMORY_DATABASE_URL';
  return `PostgreSQL at ${parsed.host || 'a local socket'}${parsed.pathname}`;
}

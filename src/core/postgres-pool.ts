import pg from 'pg';
import { preparedOn } from './postgres-prepared.ts';
import { connectionSettings } from './postgres-url.ts';

/** The part of `pg` that stores use, so that tests can substitute another server. */
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
  /** For statements that read: connections keep them prepared. Undefined without `preparedStatements`. */
  readonly prepared?: Connection;
}

export interface PoolOptions {
  readonly url: string;
  /** Most connections at once. */
  readonly connections: number;
  /**
   * Timeouts of a connection, unless the URL has `connect_timeout`, and of one statement, in ms. The server ends a statement that takes too long; if it has not
   * answered for both times together, it hangs or cannot be reached, and the statement fails without an SQLSTATE.
   */
  readonly connectTimeout: number;
  readonly statementTimeout: number;
  /** Name of the connections in `pg_stat_activity`. */
  readonly name: string;
  /** Statements that each new connection begins with. */
  readonly setup: readonly string[];
  /** Most prepared statements of a connection. Default: statements are not prepared. */
  readonly preparedStatements?: number;
  /** Reads bigint as number instead of text: for values up to 2^53. */
  readonly readsBigintAsNumber?: boolean;
  /** Called for connections that fail while idle. */
  onError(error: Error): void;
}

/** Modes in which pg checks the server's certificate and name as with `verify-full`, after eight lines of warning on stderr. */
const CHECKED = /([?&]sslmode=)(?:prefer|require|verify-ca)(?=&|$)/g;

/** A bounded pool. */
export function createPool(options: PoolOptions): Pool {
  const { connectTimeout = options.connectTimeout, bindsChannel } = connectionSettings(options.url);
  const pool = new pg.Pool({
    connectionString: options.url.replace(CHECKED, '$1verify-full'),
    max: options.connections,
    connectionTimeoutMillis: connectTimeout,
    enableChannelBinding: bindsChannel,
    statement_timeout: options.statementTimeout,
    query_timeout: options.statementTimeout + connectTimeout,
    application_name: options.name,
    keepAlive: true,
    ...(options.readsBigintAsNumber && { types: { getTypeParser: parserOf } }),
    onConnect: async (client) => {
      for (const statement of options.setup) await client.query(statement);
    },
  });
  pool.on('error', options.onError);
  // Of a connection that is in use, the pool reports no failure: its next query does. Without a listener, the process ends.
  pool.on('connect', (client) => client.on('error', () => undefined));
  const { preparedStatements } = options;
  return preparedStatements === undefined
    ? pool
    : Object.assign(pool, { prepared: preparedOn(pool, preparedStatements) });
}

/** Type of a bigint (pg_type.h). */
const BIGINT = 20;

const parserOf: typeof pg.types.getTypeParser = (type: number, format?: 'text' | 'binary') => {
  if (format === 'binary') return pg.types.getTypeParser(type, format);
  return type === BIGINT ? Number : pg.types.getTypeParser(type, format);
};

import { hash } from 'node:crypto';
import type pg from 'pg';
import { sqlState } from './postgres-errors.ts';

/** `invalid_sql_statement_name`, `duplicate_prepared_statement`: a pooler has switched to another session of the server. */
const OTHER_SESSION = ['26000', '42P05'];
/** `feature_not_supported`: a migration has changed the columns of a prepared statement. */
const CHANGED_COLUMNS = '0A000';

/**
 * Runs single statements outside of transactions, on connections that keep them prepared, so that the server parses and
 * plans each only once (docs/decisions/0069). Statements must not write: those that fail because they are not prepared are
 * sent again.
 *
 * @param most statements that a connection keeps; it is closed after a further one, because only that frees all of them
 */
export function preparedOn(pool: pg.Pool, most: number) {
  const statements = new WeakMap<pg.PoolClient, Set<string>>();
  let isSupported = true;
  return {
    query: async (text: string, values?: unknown[]): Promise<pg.QueryResult> => {
      if (!isSupported) return pool.query(text, values);
      const client = await pool.connect();
      const kept = statements.get(client) ?? new Set();
      statements.set(client, kept);
      // The same text has the same name in all processes, so another session of the server cannot confuse statements.
      const name = hash('sha256', text, 'base64url');
      try {
        const result = await client.query({ name, text, ...(values && { values }) });
        client.release(kept.add(name).size > most);
        return result;
      } catch (error) {
        client.release(true);
        const state = sqlState(error);
        if (OTHER_SESSION.includes(state)) isSupported = false;
        else if (state !== CHANGED_COLUMNS) throw error;
        return pool.query(text, values);
      }
    },
  };
}

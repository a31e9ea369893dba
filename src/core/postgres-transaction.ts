import { isUnanswered, sqlState } from './postgres-errors.ts';
import type { Client, Pool } from './postgres-pool.ts';

/** Attempts for a transaction that conflicts with another one; the delay grows with each, in ms. */
const ATTEMPTS = 5;
const WAIT = 5;

/** A statement for every connection: a commit is acknowledged after the flush, even if the server's default is not to wait. */
export const SYNCHRONOUS_COMMIT = `SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'`;

/** Writes to a server that is read-only, as the former primary is after a failover. */
const READ_ONLY = '25006';

/**
 * Runs a task in a transaction. A connection that is not answered, or leads to a server that is read-only, is closed: the next
 * one may lead to the server that has taken over.
 *
 * @param connect where the connection comes from, for callers that convert its errors
 */
export async function transaction<T>(
  pool: Pool,
  task: (client: Client) => Promise<T>,
  connect: (pool: Pool) => Promise<Client> = (from) => from.connect(),
): Promise<T> {
  const client = await connect(pool);
  let isClean = false;
  try {
    await client.query('BEGIN');
    const value = await task(client);
    await client.query('COMMIT');
    isClean = true;
    return value;
  } catch (error) {
    isClean =
      !isUnanswered(error) &&
      sqlState(error) !== READ_ONLY &&
      (await client.query('ROLLBACK').then(
        () => true,
        () => false,
      ));
    throw error;
  } finally {
    client.release(!isClean);
  }
}

/** Repeats a transaction that was rolled back after a conflict with another one. */
export async function repeated<T>(
  task: () => Promise<T>,
  isConflict: (error: unknown) => boolean = isSerializationFailure,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await task();
    } catch (error) {
      if (!isConflict(error) || attempt === ATTEMPTS) throw error;
      await new Promise((resolve) => setTimeout(resolve, WAIT * attempt * (1 + Math.random())));
    }
  }
}

/** Serialization failure or deadlock. */
function isSerializationFailure(error: unknown): boolean {
  return ['40001', '40P01'].includes(sqlState(error));
}

/** Host, port and database of a URL, for messages; never the user, the password or options. */
export function serverName(url: string): string {
  const parsed = URL.parse(url);
  if (parsed === null) return 'PostgreSQL';
  return `PostgreSQL at ${parsed.host || 'a local socket'}${parsed.pathname}`;
}

import { number } from '../../core/sql-row.ts';
import type { Database } from './database.ts';

/** A double: the drivers return a bigint as text. */
const NOW = 'SELECT extract(epoch FROM clock_timestamp())::float8 * 1000 AS now';

/**
 * The earlier one of a Unix time in ms of this process and that of the PostgreSQL server, for deletions by age: a replica
 * whose clock is ahead must not delete what all others still need. Rejects as `Database.query`.
 */
export async function earlierTime(database: Database, own: number): Promise<number> {
  if (database.kind === 'sqlite') return own;
  const [row] = await database.query(NOW);
  return Math.min(own, Math.floor(number(row ?? {}, 'now')));
}

import { setTimeout } from 'node:timers/promises';
import { detailOf } from '../../core/errors.ts';
import { sqlState } from '../../core/postgres-errors.ts';
import type { Pool } from '../../core/postgres-pool.ts';
import { optionalText, rowsOf } from '../../core/sql-row.ts';
import { UnknownCommit } from '../kernel/database.ts';

/**
 * The id of a transaction, if it has written something. "Applications may use [txid_status] to determine whether a
 * transaction committed or aborted when the application and database server become disconnected while a COMMIT is in
 * progress" (postgresql.org/docs/15/functions-info.html).
 */
export const TRANSACTION_ID = 'SELECT txid_current_if_assigned()::text AS id';
const STATUS = 'SELECT txid_status($1::bigint) AS status';
/** Of an id that the server has not given: another one has taken over, without the transaction. */
const IN_THE_FUTURE = '22023';

/** How long the outcome is asked for, and how often, in ms: a server needs a moment to see that a connection is cut. */
const PATIENCE = 1_000;
const INTERVAL = 50;

/** Whether a transaction whose commit has failed was executed all the same. @throws UnknownCommit */
export async function wasCommitted(pool: Pool, id: string, cause: unknown): Promise<boolean> {
  const end = performance.now() + PATIENCE;
  for (;;) {
    try {
      return await isCommitted(pool, id);
    } catch (error) {
      if (performance.now() > end)
        throw new UnknownCommit(
          `whether the change was made is not known: the connection was lost during its commit (${detailOf(error)})`,
          () => isCommitted(pool, id),
          cause,
        );
    }
    await setTimeout(INTERVAL);
  }
}

/** Rejects if that is not known. */
async function isCommitted(pool: Pool, id: string): Promise<boolean> {
  const status = await pool.query(STATUS, [id]).then(
    (result) => optionalText(rowsOf(result)[0] ?? {}, 'status'),
    (error: unknown) => {
      if (sqlState(error) === IN_THE_FUTURE) return 'aborted';
      throw error;
    },
  );
  if (status === 'in progress') throw new Error('the server still executes the transaction');
  return status === 'committed';
}

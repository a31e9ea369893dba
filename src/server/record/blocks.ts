import type { Database, Statement } from '../kernel/database.ts';
import { all, before, type Condition, cursorOf, notBefore, type Steps, withoutIndex } from './steps.ts';

// In SQLite, records form blocks of 4,096 in the order in which they were stored, and an index begins with the block: a batch
// then changes the few pages of the newest block, not one page for each of a thousand keys. A search looks into each block
// (docs/decisions/0066).

const BITS = 12;
const SIZE = 2 ** BITS;
const BLOCK = `(id >> ${BITS})`;

/** Columns with an index by block, by the names of the indexes. Partial, because a tool call has no model. */
const INDEXES = {
  model: 'model',
  caller: 'caller',
  user: 'user_name',
  group: 'user_group',
  target: 'target',
  tool: 'tool',
  session: 'session',
  trace: 'trace_id',
};

/** Replaces the indexes of SQLite by those of blocks; `agctl_record_blocks` has the times of the records of each. */
export const blocksMigration = `
CREATE TABLE agctl_record_blocks (block INTEGER PRIMARY KEY, oldest INTEGER NOT NULL, newest INTEGER NOT NULL) STRICT;
INSERT INTO agctl_record_blocks (block, oldest, newest)
  SELECT ${BLOCK}, min(time), max(time) FROM agctl_records GROUP BY 1;
${Object.entries(INDEXES)
  .map(
    ([name, column]) => `DROP INDEX agctl_records_${name};
CREATE INDEX agctl_records_${name} ON agctl_records (${BLOCK}, ${column}, time) WHERE ${column} IS NOT NULL;`,
  )
  .join('\n')}
`;

/** Adds the `count` records that the transaction has inserted last to their blocks. */
export const addToBlocks = (count: number): Statement => ({ sql: ADD, values: [count] });

const ADD = `INSERT INTO agctl_record_blocks (block, oldest, newest)
SELECT ${BLOCK}, min(time), max(time) FROM agctl_records WHERE id > last_insert_rowid() - ? GROUP BY 1
ON CONFLICT (block) DO UPDATE SET oldest = min(oldest, excluded.oldest), newest = max(newest, excluded.newest)`;

/** Forgets blocks all of whose records are older. */
export const deleteBlocks = (before: number): Statement => ({
  sql: 'DELETE FROM agctl_record_blocks WHERE newest < ?',
  values: [before],
});

const NEXT = 'SELECT newest AS time, 0 AS id FROM agctl_record_blocks WHERE newest < ? AND newest >= ?';

/**
 * Steps over records with a value that has an index by block. A step ends where a block begins, so that it looks into few
 * blocks. `columns`: what is read of a record; `rest`: further conditions.
 */
export function stepsByBlock(
  database: Database,
  columns: string,
  { from, to }: { readonly from: number; readonly to: number },
  indexed: Condition,
  rest: readonly Condition[],
): Steps {
  return {
    start: { time: to, id: 0 },
    async end(at, size) {
      const [row] = await database.query(`${NEXT} ORDER BY newest DESC LIMIT 1 OFFSET ?`, [
        at.time,
        from,
        Math.ceil(size / SIZE),
      ]);
      return row === undefined ? undefined : cursorOf(row);
    },
    rows(at, end, limit) {
      const blocks: Condition = {
        sql: 'newest >= ? AND oldest <= ?',
        values: [Math.max(from, end?.time ?? from), at.time],
      };
      const wanted = all([
        blocks,
        indexed,
        before(at),
        end === undefined ? { sql: 'time >= ?', values: [from] } : notBefore(end),
        ...rest.map(withoutIndex),
      ]);
      // CROSS JOIN keeps the order of the tables (sqlite.org/optoverview.html). Without the plus, the block would be compared
      // as an INTEGER column, which an index of expressions is not. That index alone answers the inner query.
      return database.query(
        `SELECT id, ${columns} FROM agctl_records WHERE id IN (
           SELECT id FROM agctl_record_blocks CROSS JOIN agctl_records ON ${BLOCK} = +block
           WHERE ${wanted.sql} ORDER BY time DESC, id DESC LIMIT ?
         ) ORDER BY time DESC, id DESC`,
        [...wanted.values, limit],
      );
    },
  };
}

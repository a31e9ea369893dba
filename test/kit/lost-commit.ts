import type { Client, Pool } from '../../src/adapter/memory/postgres/connection.ts';
import { type Database, UnknownCommit } from '../../src/server/kernel/database.ts';

const cut = (): never => {
  throw new Error('Connection terminated unexpectedly');
};

/** A pool whose connection is cut at the commit, as a network does. */
export class LosingPool {
  readonly pool: Pool;
  /** What happens to the next commit. */
  next: 'executed, answer lost' | 'not executed' | undefined;
  /** Whether the server cannot be reached. */
  isDown = false;
  /** Whether it cannot be reached from the next loss on. */
  isDownAfterLoss = false;

  constructor(pool: Pool) {
    const query: Pool['query'] = (text, values) => (this.isDown ? cut() : pool.query(text, values));
    this.pool = {
      query: async (...of) => query(...of),
      connect: () => this.#connect(pool),
      end: () => pool.end(),
    };
  }

  async #connect(pool: Pool): Promise<Client> {
    if (this.isDown) cut();
    const client = await pool.connect();
    return {
      release: () => client.release(),
      query: async (text, values) => {
        const { next } = this;
        if (text !== 'COMMIT' || next === undefined) return client.query(text, values);
        this.next = undefined;
        await client.query(next === 'not executed' ? 'ROLLBACK' : 'COMMIT');
        this.isDown = this.isDownAfterLoss;
        return cut();
      },
    };
  }
}

/**
 * Loses the connection at the commit of the next transaction that writes a table. Whether it was executed can be asked at
 * the second attempt.
 */
export function loseCommit(database: Database | undefined, table: string, isExecuted: boolean): void {
  if (database === undefined) throw new Error('the gateway has no database');
  const transaction = database.transaction.bind(database);
  let isLost = false;
  let asked = 0;
  database.transaction = async (statements) => {
    if (isLost || !statements.some(({ sql }) => sql.includes(table))) return transaction(statements);
    isLost = true;
    if (isExecuted) await transaction(statements);
    const isStored = async (): Promise<boolean> => {
      asked += 1;
      if (asked === 1) throw new Error('the server cannot be asked');
      return isExecuted;
    };
    throw new UnknownCommit('whether the change was made is not known', isStored, undefined);
  };
}

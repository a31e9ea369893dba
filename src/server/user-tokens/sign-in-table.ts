import { number, text } from '../../core/sql-row.ts';
import type { Database, SqlRow } from '../kernel/database.ts';

/** A row of `agctl_sign_ins`: a link that a client was given. */
export interface SignInRow {
  /** Hash of what the link contains. */
  readonly id: string;
  readonly owner: string;
  readonly server: string;
  readonly sealed: string;
  /** Unix time in ms. */
  readonly expiresAt: number;
}

const COLUMNS = 'id, owner, server, sealed, expires_at';

/** Sign-ins that have begun, in `config.database`: any replica can continue them. Calls reject as those of `Database`. */
export class SignInTable {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Adds a link. Of the links of a user for a server, the latest `most` are kept. */
  async add({ id, owner, server, sealed, expiresAt }: SignInRow, now: number, most: number): Promise<void> {
    await this.#database.transaction([
      { sql: 'DELETE FROM agctl_sign_ins WHERE expires_at < ?', values: [now] },
      {
        sql: `DELETE FROM agctl_sign_ins WHERE owner = ? AND server = ? AND id NOT IN (
          SELECT id FROM agctl_sign_ins WHERE owner = ? AND server = ? ORDER BY expires_at DESC LIMIT ?)`,
        values: [owner, server, owner, server, most - 1],
      },
      {
        sql: `INSERT INTO agctl_sign_ins (${COLUMNS}, attempts) VALUES (?, ?, ?, ?, ?, 0)`,
        values: [id, owner, server, sealed, expiresAt],
      },
    ]);
  }

  async read(id: string, now: number): Promise<SignInRow | undefined> {
    const [row] = await this.#database.query(
      `SELECT ${COLUMNS} FROM agctl_sign_ins WHERE id = ? AND expires_at >= ?`,
      [id, now],
    );
    return row && rowOf(row);
  }

  /** Counts an attempt to enter the code, before it is compared. False after `most` of them. */
  async mayTry(id: string, most: number): Promise<boolean> {
    const sql = 'UPDATE agctl_sign_ins SET attempts = attempts + 1 WHERE id = ? AND attempts < ?';
    return (await this.#database.transaction([{ sql, values: [id, most], required: true }])) !== undefined;
  }

  /** The user goes to the authorization server, with this `state`; an earlier one of the link is void. */
  async leave(id: string, state: string, sealed: string): Promise<boolean> {
    const sql = 'UPDATE agctl_sign_ins SET state = ?, sealed = ? WHERE id = ?';
    return (
      (await this.#database.transaction([{ sql, values: [state, sealed, id], required: true }])) !== undefined
    );
  }

  /** Takes the sign-in with that `state`, which nobody else gets then. */
  async take(state: string): Promise<SignInRow | undefined> {
    const results = await this.#database.transaction([
      { sql: `DELETE FROM agctl_sign_ins WHERE state = ? RETURNING ${COLUMNS}`, values: [state] },
    ]);
    const row = results?.[0]?.rows[0];
    return row && rowOf(row);
  }

  /** Links of a user that are open. */
  async removeOf(owner: string): Promise<void> {
    await this.#database.transaction([
      { sql: 'DELETE FROM agctl_sign_ins WHERE owner = ?', values: [owner] },
    ]);
  }
}

const rowOf = (row: SqlRow): SignInRow => ({
  id: text(row, 'id'),
  owner: text(row, 'owner'),
  server: text(row, 'server'),
  sealed: text(row, 'sealed'),
  expiresAt: number(row, 'expires_at'),
});

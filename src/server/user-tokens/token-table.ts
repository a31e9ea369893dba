import { number, optionalNumber, text } from '../../core/sql-row.ts';
import type { Database, SqlRow, SqlValue } from '../kernel/database.ts';

/** A row of `agctl_user_tokens`. Times are Unix times in ms. */
export interface TokenRow {
  readonly owner: string;
  readonly server: string;
  /** For people. */
  readonly who: string;
  readonly scope: string;
  /** Another one after each change: what was read can only be replaced while it is the current one. */
  readonly generation: string;
  readonly sealed: string;
  readonly createdAt: number;
  readonly expiresAt: number | null;
}

const COLUMNS = 'owner, server, who, scope, generation, sealed, created_at, expires_at';

/** The tokens in `config.database`. Calls reject as those of `Database`. */
export class TokenTable {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async read(owner: string, server: string): Promise<TokenRow | undefined> {
    const [row] = await this.#database.query(
      `SELECT ${COLUMNS} FROM agctl_user_tokens WHERE owner = ? AND server = ?`,
      [owner, server],
    );
    return row && rowOf(row);
  }

  /** The tokens of a user, or of all. */
  async list(owner?: string): Promise<TokenRow[]> {
    const rows = await this.#database.query(
      `SELECT ${COLUMNS} FROM agctl_user_tokens${owner === undefined ? '' : ' WHERE owner = ?'} ORDER BY who, server`,
      owner === undefined ? [] : [owner],
    );
    return rows.map(rowOf);
  }

  /** Stores what a user has got by signing in, instead of what there was. */
  async put({
    owner,
    server,
    who,
    scope,
    generation,
    sealed,
    createdAt,
    expiresAt,
  }: TokenRow): Promise<void> {
    await this.#database.transaction([
      {
        sql: `INSERT INTO agctl_user_tokens (${COLUMNS}, renewing_until) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0)
          ON CONFLICT (owner, server) DO UPDATE SET who = excluded.who, scope = excluded.scope,
          generation = excluded.generation, sealed = excluded.sealed, created_at = excluded.created_at,
          expires_at = excluded.expires_at, renewing_until = 0`,
        values: [owner, server, who, scope, generation, sealed, createdAt, expiresAt],
      },
    ]);
  }

  /** Whether this process may renew the token until then: nobody else does, and nobody has. */
  begin({ owner, server, generation }: TokenRow, now: number, until: number): Promise<boolean> {
    return this.#changes(
      `UPDATE agctl_user_tokens SET renewing_until = ?
       WHERE owner = ? AND server = ? AND generation = ? AND renewing_until < ?`,
      [until, owner, server, generation, now],
    );
  }

  /** Others may try again. */
  giveUp({ owner, server, generation }: TokenRow): Promise<boolean> {
    return this.#changes(
      'UPDATE agctl_user_tokens SET renewing_until = 0 WHERE owner = ? AND server = ? AND generation = ?',
      [owner, server, generation],
    );
  }

  /** Replaces a token by what it was renewed to. False if the user has signed in again meanwhile, or was removed. */
  renew(old: TokenRow, { generation, scope, sealed, expiresAt }: TokenRow): Promise<boolean> {
    return this.#changes(
      `UPDATE agctl_user_tokens SET generation = ?, scope = ?, sealed = ?, expires_at = ?, renewing_until = 0
       WHERE owner = ? AND server = ? AND generation = ?`,
      [generation, scope, sealed, expiresAt, old.owner, old.server, old.generation],
    );
  }

  /** Removes this token, and no newer one. */
  remove({ owner, server, generation }: TokenRow): Promise<boolean> {
    return this.#changes('DELETE FROM agctl_user_tokens WHERE owner = ? AND server = ? AND generation = ?', [
      owner,
      server,
      generation,
    ]);
  }

  async #changes(sql: string, values: readonly SqlValue[]): Promise<boolean> {
    return (await this.#database.transaction([{ sql, values, required: true }])) !== undefined;
  }
}

const rowOf = (row: SqlRow): TokenRow => ({
  owner: text(row, 'owner'),
  server: text(row, 'server'),
  who: text(row, 'who'),
  scope: text(row, 'scope'),
  generation: text(row, 'generation'),
  sealed: text(row, 'sealed'),
  createdAt: number(row, 'created_at'),
  expiresAt: optionalNumber(row, 'expires_at'),
});

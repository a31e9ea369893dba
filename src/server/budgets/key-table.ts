import type { KeySettings } from '../../core/virtual-key.ts';
import type { Database, SqlRow, Statement, StatementResult } from '../kernel/database.ts';
import type { VirtualKey } from './virtual-key.ts';

/** Counts a change. Its lock on the one row puts changes of several processes in order. */
const CHANGE: Statement = {
  sql: 'UPDATE agctl_key_changes SET count = count + 1 WHERE id = 1 RETURNING count',
};
const VERSION = 'SELECT count FROM agctl_key_changes WHERE id = 1';

/** The virtual keys in `config.database`. Calls reject as those of `Database`. */
export class KeyTable {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** All keys, with the number of changes that they include. */
  async all(): Promise<{ readonly keys: readonly VirtualKey[]; readonly version: number }> {
    // Before the keys: a change in between is read once more, not missed.
    const version = await this.version();
    const rows = await this.#database.query(
      'SELECT id, name, hash, hint, settings, created_at, revoked_at FROM agctl_keys',
    );
    return { keys: rows.map(keyOf), version };
  }

  /** The number of changes so far, of all processes. */
  async version(): Promise<number> {
    return Number((await this.#database.query(VERSION))[0]?.['count']);
  }

  /** Returns the new number of changes; undefined if another key that is not revoked has the name. */
  async add({ id, name, hash, hint, createdAt, ...settings }: VirtualKey): Promise<number | undefined> {
    const { allowedModels, metadata, budgets, expiresAt } = settings;
    const results = await this.#database.transaction([
      CHANGE,
      {
        sql: `INSERT INTO agctl_keys (id, name, hash, hint, settings, created_at) VALUES (?, ?, ?, ?, ?, ?)
          ON CONFLICT (name) WHERE revoked_at IS NULL DO NOTHING`,
        values: [
          id,
          name,
          hash,
          hint,
          JSON.stringify({ allowedModels, metadata, budgets, expiresAt }),
          createdAt,
        ],
        required: true,
      },
    ]);
    return results === undefined ? undefined : countOf(results);
  }

  /** Returns the new number of changes; undefined if it was revoked before. */
  async revoke(id: string, at: number): Promise<number | undefined> {
    const results = await this.#database.transaction([
      CHANGE,
      {
        sql: 'UPDATE agctl_keys SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL',
        values: [at, id],
        required: true,
      },
    ]);
    return results === undefined ? undefined : countOf(results);
  }
}

const countOf = (results: readonly StatementResult[]): number => Number(results[0]?.rows[0]?.['count']);

function keyOf({ id, name, hash, hint, settings, created_at, revoked_at }: SqlRow): VirtualKey {
  return {
    ...(JSON.parse(String(settings)) as Omit<KeySettings, 'name'>),
    id: String(id),
    name: String(name),
    hash: String(hash),
    hint: String(hint),
    createdAt: Number(created_at),
    ...(revoked_at === null ? {} : { revokedAt: Number(revoked_at) }),
  };
}

import { json, number, optionalNumber, RowError, text } from '../../core/sql-row.ts';
import { readStoredSettings } from '../../core/virtual-key.ts';
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

  /**
   * All keys, with the number of changes that they include. `unreadable`: ids of keys that something else has written, and
   * why they cannot be used; the others can.
   */
  async all(): Promise<{
    readonly keys: readonly VirtualKey[];
    readonly unreadable: readonly string[];
    readonly version: number;
  }> {
    // Before the keys: a change in between is read once more, not missed.
    const version = await this.version();
    const rows = await this.#database.query(
      'SELECT id, name, hash, hint, settings, created_at, revoked_at FROM agctl_keys',
    );
    const keys: VirtualKey[] = [];
    const unreadable: string[] = [];
    for (const row of rows) {
      try {
        keys.push(keyOf(row));
      } catch (error) {
        if (!(error instanceof RowError)) throw error;
        unreadable.push(`${String(row['id'])}: ${error.detail}`);
      }
    }
    return { keys, unreadable, version };
  }

  /** The number of changes so far, of all processes. */
  async version(): Promise<number> {
    return number((await this.#database.query(VERSION))[0] ?? {}, 'count');
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

const countOf = (results: readonly StatementResult[]): number => number(results[0]?.rows[0] ?? {}, 'count');

/** Throws `RowError`. A key must not become another one because a part of it was not understood. */
function keyOf(row: SqlRow): VirtualKey {
  const settings = readStoredSettings(json(row, 'settings'));
  if (settings === undefined)
    throw new RowError('column settings of the database contains no JSON object of settings');
  const revokedAt = optionalNumber(row, 'revoked_at');
  return {
    ...settings,
    id: text(row, 'id'),
    name: text(row, 'name'),
    hash: text(row, 'hash'),
    hint: text(row, 'hint'),
    createdAt: number(row, 'created_at'),
    ...(revokedAt === null ? {} : { revokedAt }),
  };
}

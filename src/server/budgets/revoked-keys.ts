import type { DatabaseSync } from 'node:sqlite';

const TABLE = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'agctl_keys'";

/**
 * Revokes in one SQLite database the virtual keys that are revoked in another one: a copy that is restored would make them valid again.
 * Returns the names of the keys that it has revoked. Databases of earlier versions may have no keys.
 */
export function revokeAsIn(other: DatabaseSync, database: DatabaseSync): string[] {
  if ([other, database].some((each) => each.prepare(TABLE).get() === undefined)) return [];
  const revoked = other.prepare('SELECT id, revoked_at FROM agctl_keys WHERE revoked_at IS NOT NULL').all();
  const update = database.prepare(
    'UPDATE agctl_keys SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL RETURNING name',
  );
  return revoked.flatMap(({ id = null, revoked_at: at = null }) =>
    update.all(at, id).map(({ name }) => String(name)),
  );
}

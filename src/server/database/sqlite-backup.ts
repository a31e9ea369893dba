import { readdirSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { copyDatabase } from '../../core/sqlite-copy.ts';
import { VERSIONS } from './migrations.ts';

/** Versions of the tables in a database, by feature; undefined if no agctl has written it. */
export function versionsIn(database: DatabaseSync): ReadonlyMap<string, number> | undefined {
  const exists = database.prepare('SELECT 1 FROM sqlite_schema WHERE name = ?').get(VERSIONS);
  if (exists === undefined) return undefined;
  const rows = database.prepare(`SELECT feature, version FROM ${VERSIONS}`).all();
  return new Map(rows.map(({ feature, version }) => [String(feature), Number(version)]));
}

/** Copies of a database beside it, oldest first: `data.db.20261129T211500123Z.backup`. */
function backupsOf(path: string): string[] {
  const start = `${basename(path)}.`;
  return readdirSync(dirname(path))
    .filter((name) => name.startsWith(start) && /^\d{8}T\d{9}Z\.backup$/.test(name.slice(start.length)))
    .toSorted()
    .map((name) => join(dirname(path), name));
}

/** Where a copy that is made now is put. */
export const backupPath = (path: string, now = new Date()): string =>
  `${path}.${now.toISOString().replace(/[-:.]/g, '')}.backup`;

/**
 * Copies an open database with these versions beside it, and removes the oldest copies beyond `keep`. Returns the path of the
 * copy; undefined if another process has migrated the database meanwhile, which has made its own.
 */
export function backUp(
  database: DatabaseSync,
  path: string,
  versions: ReadonlyMap<string, number>,
  keep: number,
): string | undefined {
  const copy = backupPath(path);
  copyDatabase(database, copy);
  if (!hasVersions(copy, versions)) {
    rmSync(copy, { force: true });
    return undefined;
  }
  for (const old of backupsOf(path).slice(0, -keep)) rmSync(old, { force: true });
  return copy;
}

function hasVersions(path: string, versions: ReadonlyMap<string, number>): boolean {
  const database = new DatabaseSync(path, { readOnly: true });
  try {
    const found = versionsIn(database) ?? new Map();
    return (
      found.size === versions.size && [...found].every(([name, version]) => versions.get(name) === version)
    );
  } finally {
    database.close();
  }
}

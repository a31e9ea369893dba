import { randomInt } from 'node:crypto';
import { closeSync, fstatSync, openSync, readdirSync, readSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { messageOf } from '../../core/errors.ts';
import { copyDatabase } from '../../core/sqlite-copy.ts';
import { VERSIONS } from './migrations.ts';

/** How much of two files is compared at once, in bytes. */
const COMPARED = 1_048_576;

/** Writes a warning to the log of the gateway. */
export type LogLine = (message: string, fields: Readonly<Record<string, unknown>>) => void;

/** Versions of the tables in a database, by feature; undefined if no agctl has written it. */
export function versionsIn(database: DatabaseSync): ReadonlyMap<string, number> | undefined {
  const exists = database.prepare('SELECT 1 FROM sqlite_schema WHERE name = ?').get(VERSIONS);
  if (exists === undefined) return undefined;
  const rows = database.prepare(`SELECT feature, version FROM ${VERSIONS}`).all();
  return new Map(rows.map(({ feature, version }) => [String(feature), Number(version)]));
}

const stamp = (now: Date): string => now.toISOString().replace(/[-:.]/g, '');

/** Where a copy that an operator makes now is put. agctl never removes it. */
export const backupPath = (path: string, now = new Date()): string => `${path}.${stamp(now)}.backup`;

const BEFORE_MIGRATION = '.before-migration-';

/** A name that no other process takes that migrates in the same millisecond: the six digits after it are random. */
const copyPath = (path: string): string =>
  `${path}${BEFORE_MIGRATION}${stamp(new Date()).slice(0, -1)}${String(randomInt(1_000_000)).padStart(6, '0')}Z.backup`;

/**
 * Copies that migrations of a database have made beside it, oldest first: `data.db.before-migration-20261129T211500123456789Z.backup`;
 * the first version with them had no random digits.
 */
function copiesOf(path: string): string[] {
  const start = basename(path) + BEFORE_MIGRATION;
  return readdirSync(dirname(path))
    .filter(
      (name) => name.startsWith(start) && /^\d{8}T\d{9}(?:\d{6})?Z\.backup$/.test(name.slice(start.length)),
    )
    .toSorted()
    .map((name) => join(dirname(path), name));
}

/**
 * Copies an open database with these versions beside it before a migration, and removes the oldest copies of migrations beyond
 * `keep`. Returns the path of the copy, which is the last one if nothing has changed since: a migration that failed is tried
 * again at each start. Undefined if another process has migrated the database meanwhile, which has made its own.
 */
export function backUp(
  database: DatabaseSync,
  path: string,
  versions: ReadonlyMap<string, number>,
  keep: number,
  log: LogLine,
): string | undefined {
  const copy = copyPath(path);
  copyDatabase(database, copy);
  if (!hasVersions(copy, versions)) {
    rmSync(copy, { force: true });
    return undefined;
  }
  // Only an earlier one: of two processes that copy at once, each would remove its own for that of the other.
  const last = copiesOf(path).findLast((each) => each < copy);
  const isKnown = last !== undefined && isSame(last, copy);
  if (isKnown) rmSync(copy, { force: true });
  for (const old of copiesOf(path).slice(0, -keep)) remove(path, old, log);
  return isKnown ? last : copy;
}

function remove(path: string, old: string, log: LogLine): void {
  try {
    rmSync(old, { force: true });
    log('an old copy from before a migration was removed', { file: path, copy: old });
  } catch (error) {
    log('an old copy from before a migration cannot be removed', {
      file: path,
      copy: old,
      problem: messageOf(error),
    });
  }
}

/** Whether two files have the same bytes: `VACUUM INTO` writes the same ones of the same state. */
function isSame(one: string, other: string): boolean {
  const files: number[] = [];
  try {
    for (const path of [one, other]) files.push(openSync(path, 'r'));
    const [first = 0, second = 0] = files;
    if (fstatSync(first).size !== fstatSync(second).size) return false;
    const [a, b] = [Buffer.alloc(COMPARED), Buffer.alloc(COMPARED)];
    for (;;) {
      const length = readSync(first, a);
      if (readSync(second, b) !== length || !a.subarray(0, length).equals(b.subarray(0, length)))
        return false;
      if (length === 0) return true;
    }
  } catch {
    // Another process has removed it meanwhile, or it cannot be read: the new copy stays.
    return false;
  } finally {
    for (const file of files) closeSync(file);
  }
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

import {
  closeSync,
  copyFileSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { messageOf } from '../../core/errors.ts';
import { createPrivateDatabase } from '../../core/private-files.ts';
import { copyDatabase } from '../../core/sqlite-copy.ts';
import type { DatabaseSchema } from '../kernel/database.ts';
import { DatabaseError } from './driver.ts';
import { missingMigrations } from './migrations.ts';
import { backupPath, versionsIn } from './sqlite-backup.ts';

/** Copies the database at `path`, which other processes may use meanwhile, to a new file. @throws DatabaseError */
export function backUpSqlite(path: string, to: string): number {
  if (!existsSync(path)) throw new DatabaseError(`${path} does not exist`, 'nothing has been stored yet');
  if (existsSync(to)) throw new DatabaseError(`${to} exists`, 'name another file');
  const database = opened(path);
  try {
    if (versionsIn(database) === undefined)
      throw new DatabaseError(`${path} is a database of another program`, 'correct config.database.url');
    return copyDatabase(database, to);
  } catch (error) {
    throw asDatabaseError(to, error);
  } finally {
    database.close();
  }
}

/**
 * Replaces the database at `path` by a copy of one, whose tables may be older: the next start migrates them. The present one is
 * copied first; returns where, or undefined if there is none. No process may have it open.
 *
 * @throws DatabaseError if the copy is damaged, of another program or of a newer agctl, or the database is in use
 */
export function restoreSqlite(
  path: string,
  from: string,
  schemas: readonly DatabaseSchema[],
  now = new Date(),
): string | undefined {
  checkCopy(from, schemas);
  const isThere = existsSync(path);
  const kept = isThere ? keepPresent(path, backupPath(path, now)) : undefined;
  const partial = `${path}.partial`;
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    rmSync(partial, { force: true });
    createPrivateDatabase(partial);
    copyFileSync(from, partial);
    const file = openSync(partial, 'r+');
    fsyncSync(file);
    closeSync(file);
    renameSync(partial, path);
    // The log of the former file would be applied to this one.
    for (const suffix of ['-wal', '-shm']) rmSync(path + suffix, { force: true });
  } catch (error) {
    rmSync(partial, { force: true });
    throw asDatabaseError(path, error);
  }
  return kept;
}

function checkCopy(from: string, schemas: readonly DatabaseSchema[]): void {
  if (!existsSync(from)) throw new DatabaseError(`${from} does not exist`, 'name a copy of the database');
  const database = opened(from);
  try {
    const versions = versionsIn(database);
    if (versions === undefined)
      throw new DatabaseError(`${from} is a database of another program`, 'name a copy of the database');
    missingMigrations(from, 'sqlite', schemas, versions);
    const [problem] = Object.values(database.prepare('PRAGMA quick_check(1)').get() ?? {});
    if (problem !== 'ok') throw new DatabaseError(`${from} is damaged`, 'name another copy');
  } catch (error) {
    throw asDatabaseError(from, error);
  } finally {
    database.close();
  }
}

/** Copies the present database. It leaves the mode with a log only if nobody else has it open (sqlite.org/wal.html, §3.3). */
function keepPresent(path: string, copy: string): string {
  const database = new DatabaseSync(path, { timeout: 0 });
  try {
    try {
      database.exec('PRAGMA journal_mode = DELETE');
    } catch (error) {
      if (!/locked|busy/i.test(messageOf(error))) throw error;
      throw new DatabaseError(`${path} is in use`, 'stop every gateway that has it open, then try again');
    }
    copyDatabase(database, copy);
    return copy;
  } catch (error) {
    throw asDatabaseError(path, error);
  } finally {
    database.close();
  }
}

function opened(path: string): DatabaseSync {
  try {
    return new DatabaseSync(path, { readOnly: true });
  } catch (error) {
    throw asDatabaseError(path, error);
  }
}

const asDatabaseError = (path: string, error: unknown): DatabaseError =>
  error instanceof DatabaseError
    ? error
    : new DatabaseError(`${path}: ${messageOf(error)}`, 'correct the path, or make room on the disk', {
        cause: error,
      });

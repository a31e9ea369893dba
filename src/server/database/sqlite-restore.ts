import {
  chownSync,
  closeSync,
  copyFileSync,
  existsSync,
  fsyncSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { messageOf } from '../../core/errors.ts';
import { makeFolder } from '../../core/make-folder.ts';
import { createPrivateDatabase } from '../../core/private-files.ts';
import { copyDatabase } from '../../core/sqlite-copy.ts';
import { RESULT, resultCode } from '../../core/sqlite-result.ts';
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

/** What is changed in a copy before it takes the place of the present database. */
type Amend = (present: DatabaseSync, copy: DatabaseSync) => void;

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
  amend: Amend = () => undefined,
): string | undefined {
  checkCopy(from, schemas);
  const isThere = existsSync(path);
  const kept = isThere ? keepPresent(path, backupPath(path, new Date())) : undefined;
  const partial = `${path}.partial`;
  try {
    makeFolder(dirname(path), 0o700);
    rmSync(partial, { force: true });
    createPrivateDatabase(partial);
    copyFileSync(from, partial);
    if (process.geteuid?.() === 0) giveToOwnerOf(isThere ? path : dirname(path), partial);
    if (kept !== undefined) amendCopy(partial, kept, amend);
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

/** A gateway that runs as a user of its own must be able to open what root restores. */
function giveToOwnerOf(like: string, file: string): void {
  const { uid, gid } = statSync(like);
  chownSync(file, uid, gid);
}

function amendCopy(copy: string, kept: string, amend: Amend): void {
  const [database, present] = [new DatabaseSync(copy), opened(kept)];
  try {
    // With a log, the file alone would not have the changes.
    database.exec('PRAGMA journal_mode = DELETE');
    amend(present, database);
  } finally {
    database.close();
    present.close();
  }
}

function checkCopy(from: string, schemas: readonly DatabaseSchema[]): void {
  const problem = fileProblem(from);
  if (problem !== undefined) throw unusable(from, problem);
  const database = opened(from);
  try {
    const versions = versionsIn(database);
    if (versions === undefined) throw unusable(from, 'is a database of another program');
    missingMigrations(from, 'sqlite', schemas, versions);
    const [found] = Object.values(database.prepare('PRAGMA quick_check(1)').get() ?? {});
    if (found !== 'ok') throw unusable(from, `is damaged (${String(found)})`);
  } catch (error) {
    const code = resultCode(error);
    if (code === RESULT.notadb || code === RESULT.corrupt)
      throw unusable(from, `is damaged (${messageOf(error)})`);
    throw asDatabaseError(from, error);
  } finally {
    database.close();
  }
}

const unusable = (from: string, problem: string): DatabaseError =>
  new DatabaseError(
    `${from} ${problem}`,
    'name another copy: a file that `agctl database backup` or an update has made',
  );

const MAGIC = 'SQLite format 3\0';
const HEADER_BYTES = 100;

/** What is wrong with a file by its size and its header (sqlite.org/fileformat2.html, §1.3), which SQLite does not tell apart. */
function fileProblem(path: string): string | undefined {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) return 'does not exist';
  if (!found.isFile()) return 'is not a file';
  if (found.size === 0) return 'is empty';
  const header = headerOf(path);
  if (header.toString('latin1', 0, MAGIC.length) !== MAGIC) return 'is not a SQLite database';
  if (header.length < HEADER_BYTES) return `is truncated: it has ${found.size} bytes`;
  const pageSize = header.readUInt16BE(16);
  const expected = header.readUInt32BE(28) * (pageSize === 1 ? 65_536 : pageSize);
  return found.size < expected ? `is truncated: it has ${found.size} of ${expected} bytes` : undefined;
}

function headerOf(path: string): Buffer {
  try {
    const file = openSync(path, 'r');
    try {
      const header = Buffer.alloc(HEADER_BYTES);
      return header.subarray(0, readSync(file, header));
    } finally {
      closeSync(file);
    }
  } catch (error) {
    throw unusable(path, `cannot be read (${messageOf(error)})`);
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

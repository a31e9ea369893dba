import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { AppError, messageOf } from '../../../core/errors.ts';
import { errorCode, membersOf, parseJson } from '../../../core/foreign.ts';
import { makeFolder } from '../../../core/make-folder.ts';
import { createPrivateDatabase } from '../../../core/private-files.ts';
import { RESULT, resultCode } from '../../../core/sqlite-result.ts';
import { damaged, openError } from './errors.ts';
import { migrate } from './schema.ts';

/**
 * How long another process may hold the file when we start, in ms: a process that ends takes a moment to release it.
 */
const LOCK_TIMEOUT = 300;

export interface OpenDatabase {
  readonly database: DatabaseSync;
  /** The last owner did not close the file; its pages were checked. */
  readonly recovered: boolean;
  /** Writes the log back and empties it: it contains earlier versions of changed pages. */
  clearLog(): void;
  close(): void;
}

/**
 * Opens or creates the file and owns it until it is closed or the process ends.
 *
 * @throws AppError with the file, the reason and the solution: `memory_in_use` (by which process), `memory_not_opened` (damaged, newer
 * version, another program's file, not writable)
 */
export function openDatabase(path: string): OpenDatabase {
  let database: DatabaseSync | undefined;
  let owned = false;
  let recovered = false;
  try {
    makeFolder(dirname(path), 0o700);
    createPrivateDatabase(path);
    database = new DatabaseSync(path, { timeout: LOCK_TIMEOUT });
    own(database, path);
    owned = true;
    recovered = wasLeftOpen(path);
    if (recovered) check(database, path);
    migrate(database, path);
    writeOwner(path);
  } catch (error) {
    if (database?.isOpen) database.close();
    const code = resultCode(error);
    if (!owned && (code === RESULT.busy || code === RESULT.locked)) throw inUse(path);
    throw openError(path, error);
  }
  const open = database;
  return {
    database,
    recovered,
    clearLog: () => open.exec('PRAGMA wal_checkpoint(TRUNCATE)'),
    close: () => {
      open.close();
      removeOwner(path);
    },
  };
}

/**
 * The exclusive lock is acquired by the first write transaction and then kept
 * (sqlite.org/pragma.html#pragma_locking_mode).
 */
function own(database: DatabaseSync, path: string): void {
  database.exec('PRAGMA locking_mode = EXCLUSIVE');
  // A first statement that only reads would not detect a read-only file.
  database.exec('BEGIN IMMEDIATE; COMMIT');
  const mode = Object.values(database.prepare('PRAGMA journal_mode = WAL').get() ?? {})[0];
  if (mode !== 'wal')
    throw new Error(`${path}: the file system does not support a write-ahead log (mode ${mode})`);
  database.exec('PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -16384');
  // Deleted content is overwritten with zeros (docs/decisions/0053).
  database.exec('PRAGMA secure_delete = ON');
  // 16 MiB of log: checkpoints are four times rarer than by default, and an insertion takes a quarter less time.
  database.exec('PRAGMA wal_autocheckpoint = 4000');
  database.exec('BEGIN IMMEDIATE; COMMIT');
}

function check(database: DatabaseSync, path: string): void {
  const finding = Object.values(database.prepare('PRAGMA quick_check(1)').get() ?? {})[0];
  if (finding !== 'ok') throw damaged(path, String(finding));
}

/**
 * A file next to the database that identifies its owner. It is not the lock: that is SQLite's exclusive lock, which the
 * kernel releases however the owner dies. If the file exists while nobody holds the lock, the last owner did not close
 * the database.
 */
export interface Owner {
  readonly pid: number;
  readonly host: string;
  readonly since: string;
}

function ownerFile(database: string): string {
  return `${database}.lock`;
}

function readOwner(database: string): Owner | undefined {
  try {
    const { pid, host, since } = membersOf(parseJson(readFileSync(ownerFile(database), 'utf8')));
    const isOwner = typeof pid === 'number' && typeof host === 'string' && typeof since === 'string';
    return isOwner ? { pid, host, since } : undefined;
  } catch {
    return undefined;
  }
}

/** Whether such a file exists, readable or not. */
function wasLeftOpen(database: string): boolean {
  try {
    readFileSync(ownerFile(database));
    return true;
  } catch (error) {
    return errorCode(error) !== 'ENOENT';
  }
}

function writeOwner(database: string): void {
  const owner: Owner = { pid: process.pid, host: hostname(), since: new Date().toISOString() };
  const file = ownerFile(database);
  try {
    // Written atomically, because another process may read it at any time.
    writeFileSync(`${file}.new`, `${JSON.stringify(owner)}\n`, { mode: 0o600 });
    renameSync(`${file}.new`, file);
  } catch (error) {
    throw new AppError('memory_not_opened', {
      message: `${file}: cannot be written (${messageOf(error)}): the folder must be writable and have free space`,
      cause: error,
    });
  }
}

function removeOwner(database: string): void {
  rmSync(ownerFile(database), { force: true });
}

function inUse(database: string): AppError {
  const owner = readOwner(database);
  const who =
    owner === undefined
      ? 'another program'
      : `process ${owner.pid} on ${owner.host}, since ${owner.since} (${ownerFile(database)})`;
  return new AppError('memory_in_use', {
    message:
      `${database}: in use by ${who}. Only one process can own a memory file: stop that one, use another folder with --data, ` +
      'or use PostgreSQL (MEMORY_DATABASE_URL) for several',
  });
}

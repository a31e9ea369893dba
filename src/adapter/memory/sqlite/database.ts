import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { damaged, openError, RESULT, resultCode } from './errors.ts';
import { inUse, removeOwner, wasLeftOpen, writeOwner } from './owner.ts';
import { migrate } from './schema.ts';

/**
 * How long another process may hold the file when we start, in ms: a process that ends takes a moment to release it.
 */
const LOCK_TIMEOUT = 300;

export interface OpenDatabase {
  readonly database: DatabaseSync;
  /** The last owner did not close the file; its pages were checked. */
  readonly recovered: boolean;
  close(): void;
}

/**
 * Opens or creates the file and owns it until it is closed or the process ends.
 *
 * @throws AppError `memory_not_opened` with the file, the reason and the solution: in use (by which process), damaged,
 * newer version, another program's file, not writable
 */
export function openDatabase(path: string): OpenDatabase {
  let database: DatabaseSync | undefined;
  let owned = false;
  let recovered = false;
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    database = new DatabaseSync(path, { timeout: LOCK_TIMEOUT });
    own(database, path);
    owned = true;
    recovered = wasLeftOpen(path);
    if (recovered) check(database, path);
    migrate(database, path);
    writeOwner(path);
  } catch (error) {
    if (database?.isOpen) database.close();
    if (!owned && [RESULT.busy, RESULT.locked].includes(resultCode(error) as 5)) throw inUse(path);
    throw openError(path, error);
  }
  const open = database;
  return {
    database,
    recovered,
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
  // 16 MiB of log: checkpoints are four times rarer than by default, and an insertion takes a quarter less time.
  database.exec('PRAGMA wal_autocheckpoint = 4000');
  database.exec('BEGIN IMMEDIATE; COMMIT');
}

function check(database: DatabaseSync, path: string): void {
  const finding = Object.values(database.prepare('PRAGMA quick_check(1)').get() ?? {})[0];
  if (finding !== 'ok') throw damaged(path, String(finding));
}

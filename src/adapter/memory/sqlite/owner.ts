import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { AppError, messageOf } from '../../../core/errors.ts';

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

export function ownerFile(database: string): string {
  return `${database}.lock`;
}

export function readOwner(database: string): Owner | undefined {
  try {
    const owner = JSON.parse(readFileSync(ownerFile(database), 'utf8'));
    return Number.isInteger(owner?.pid) ? owner : undefined;
  } catch {
    return undefined;
  }
}

/** Whether such a file exists, readable or not. */
export function wasLeftOpen(database: string): boolean {
  try {
    readFileSync(ownerFile(database));
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ENOENT';
  }
}

export function writeOwner(database: string): void {
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

export function removeOwner(database: string): void {
  rmSync(ownerFile(database), { force: true });
}

export function inUse(database: string): AppError {
  const owner = readOwner(database);
  const who =
    owner === undefined
      ? 'another program'
      : `process ${owner.pid} on ${owner.host}, since ${owner.since} (${ownerFile(database)})`;
  return new AppError('memory_not_opened', {
    message:
      `${database}: in use by ${who}. Only one process can own a memory file: stop that one, use another folder with --data, ` +
      'or use PostgreSQL (MEMORY_DATABASE_URL) for several',
  });
}

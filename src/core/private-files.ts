import { chmodSync, closeSync, existsSync, openSync, statSync } from 'node:fs';

/** Files that SQLite keeps beside a database. It creates them with the mode of the database. */
const BESIDE = ['', '-wal', '-shm', '-journal'] as const;

/**
 * Makes the file of a SQLite database, and those beside it, readable by this user only, and creates the database if there is none.
 * SQLite itself would create it with the mode that the umask leaves, in a folder that others may read; files of earlier versions
 * have that mode. Files of another user keep theirs. Call it before the database is opened. Never throws: SQLite reports why a
 * file cannot be opened.
 */
export function createPrivateDatabase(path: string): void {
  try {
    if (!existsSync(path)) closeSync(openSync(path, 'a', 0o600));
    for (const suffix of BESIDE) makePrivate(path + suffix);
  } catch {
    // The folder does not exist or cannot be written, the file belongs to somebody else, or the file system has no modes.
  }
}

function makePrivate(path: string): void {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found?.isFile() === true && (found.mode & 0o077) !== 0) chmodSync(path, found.mode & 0o700);
}

import { closeSync, fsyncSync, openSync, renameSync, rmSync, statSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import { createPrivateDatabase } from './private-files.ts';

/**
 * Writes a copy of an open database to a new file, which appears complete or not at all. `VACUUM INTO` reads one
 * consistent state (sqlite.org/lang_vacuum.html) and copies only live rows, so deleted text is not in a backup.
 * Returns the size in bytes.
 */
export function copyDatabase(database: DatabaseSync, path: string): number {
  const partial = `${path}.partial`;
  try {
    // `VACUUM INTO` writes to an empty file too, and keeps its mode.
    createPrivateDatabase(partial);
    database.prepare('VACUUM INTO ?').run(partial);
    const file = openSync(partial, 'r+');
    fsyncSync(file);
    closeSync(file);
    renameSync(partial, path);
    return statSync(path).size;
  } catch (error) {
    rmSync(partial, { force: true });
    throw error;
  }
}

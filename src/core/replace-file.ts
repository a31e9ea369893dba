import { randomUUID } from 'node:crypto';
import {
  closeSync,
  fchmodSync,
  fsyncSync,
  openSync,
  realpathSync,
  renameSync,
  statSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { errorCode } from './foreign.ts';

/**
 * Creates or replaces a file atomically: after a crash it has the old content or the new one. An existing file keeps its
 * mode, and a symbolic link is kept while its target is replaced. Synchronous, so nothing in this process runs between
 * `isUnchanged`, which is called last, and the replacement. Returns false if `isUnchanged` does.
 *
 * @throws Error of `node:fs` if the file cannot be written
 */
export function replaceFile(path: string, bytes: Uint8Array, isUnchanged = (): boolean => true): boolean {
  const { target, mode } = existing(path);
  const temporary = join(dirname(target), `.agctl-${randomUUID()}.tmp`);
  const file = openSync(temporary, 'wx', 0o600);
  try {
    try {
      fchmodSync(file, mode);
      let written = 0;
      while (written < bytes.length) written += writeSync(file, bytes, written);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    if (isUnchanged()) {
      renameSync(temporary, target);
      return true;
    }
    unlinkSync(temporary);
    return false;
  } catch (error) {
    unlinkSync(temporary);
    throw error;
  }
}

function existing(path: string): { target: string; mode: number } {
  try {
    const target = realpathSync(path);
    return { target, mode: statSync(target).mode & 0o7777 };
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error;
    return { target: path, mode: 0o644 };
  }
}

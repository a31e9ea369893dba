import { randomUUID } from 'node:crypto';
import {
  closeSync,
  fchmodSync,
  fchownSync,
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
 * mode and, if root replaces it, its owner, and a symbolic link is kept while its target is replaced. Synchronous, so nothing in this process runs between
 * `isUnchanged`, which is called last, and the replacement. Returns false if `isUnchanged` does.
 *
 * @throws Error of `node:fs` if the file cannot be written
 */
export function replaceFile(path: string, bytes: Uint8Array, isUnchanged = (): boolean => true): boolean {
  const { target, mode, owner } = existing(path);
  const temporary = join(dirname(target), `.agctl-${randomUUID()}.tmp`);
  const file = openSync(temporary, 'wx', 0o600);
  try {
    try {
      // The user of a gateway must be able to read what root changes. Only root may give a file away.
      if (owner !== undefined && process.geteuid?.() === 0) fchownSync(file, owner.uid, owner.gid);
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

function existing(path: string): { target: string; mode: number; owner?: { uid: number; gid: number } } {
  try {
    const target = realpathSync(path);
    const { mode, uid, gid } = statSync(target);
    return { target, mode: mode & 0o7777, owner: { uid, gid } };
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error;
    return { target: path, mode: 0o644 };
  }
}

import { existsSync, mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Creates a folder, and those above it that are missing. `mkdir` of Node.js with `recursive` never returns if the folder above exists and
 * cannot have another one: below /proc, in a folder that was deleted while it is mounted, below a dangling link
 * (openclaw/openclaw#130807, seen with Node.js 26).
 *
 * @throws the error of the system if it is not there afterwards
 */
export function makeFolder(path: string, mode = 0o777): void {
  const missing = [path];
  for (let above = dirname(path); !existsSync(above) && above !== dirname(above); above = dirname(above))
    missing.push(above);
  for (const folder of missing.reverse())
    try {
      mkdirSync(folder, { mode });
    } catch (error) {
      // It may have been there, or another process has made it.
      if (!isFolder(folder)) throw error;
    }
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}

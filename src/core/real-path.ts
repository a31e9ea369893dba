import { realpathSync } from 'node:fs';

/** An absolute path with links resolved; the same path if the file is not there. */
export function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join, resolve } from 'node:path';

/** Directories that the system searches without PATH (POSIX confstr `_CS_PATH`). */
const DEFAULT_PATH = ['/bin', '/usr/bin'].join(delimiter);

/** Finds the executable of a command as a child with this environment and working folder would; undefined if there is none. */
export function findCommand(
  cmd: string,
  env: Readonly<Record<string, string | undefined>>,
  folder: string,
): string | undefined {
  const candidates =
    cmd.includes('/') || cmd.includes('\\')
      ? [resolve(folder, cmd)]
      : (env['PATH'] ?? DEFAULT_PATH).split(delimiter).map((entry) => resolve(folder, join(entry, cmd)));
  return candidates.find((candidate) => {
    try {
      accessSync(candidate, constants.X_OK);
      return statSync(candidate).isFile();
    } catch {
      return false;
    }
  });
}

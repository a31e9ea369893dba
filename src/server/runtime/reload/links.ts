import { lstat, readlink } from 'node:fs/promises';
import { dirname, join, parse, resolve, sep } from 'node:path';
import { LIMITS } from '../../../core/limits.ts';

/**
 * Folders in which a change can make the path refer to another file: that of the file, and those of all symbolic links on
 * its path. At most `LIMITS.watchedFolders` (40).
 */
export async function foldersToWatch(file: string): Promise<ReadonlySet<string>> {
  const folders = new Set<string>();
  let target = file;
  // Links may form a cycle.
  for (let links = 0; links < LIMITS.watchedFolders; links++) {
    const link = await firstLink(target);
    folders.add(dirname(link?.path ?? target));
    if (link === undefined) break;
    target = link.target;
  }
  return folders;
}

/** The first symbolic link on a path, and the path with this link resolved. */
async function firstLink(path: string): Promise<{ path: string; target: string } | undefined> {
  const { root } = parse(path);
  const parts = path.slice(root.length).split(sep);
  let at = root;
  for (const [index, part] of parts.entries()) {
    at = join(at, part);
    const stat = await lstat(at).catch(() => undefined);
    if (stat === undefined) return undefined;
    if (!stat.isSymbolicLink()) continue;
    const linkTarget = resolve(dirname(at), await readlink(at).catch(() => part));
    return { path: at, target: join(linkTarget, ...parts.slice(index + 1)) };
  }
  return undefined;
}

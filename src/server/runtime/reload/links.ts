import { lstat, readlink } from 'node:fs/promises';
import { dirname, join, parse, resolve, sep } from 'node:path';
import { LIMITS } from '../../../core/limits.ts';

/**
 * Folders in which a change can make the path lead to another file: that of the file, and that of every symbolic link
 * on the way to it. At most `LIMITS.watchedFolders`.
 */
export async function foldersToWatch(file: string): Promise<ReadonlySet<string>> {
  const folders = new Set<string>();
  let target = file;
  // Links may lead round in a circle.
  for (let links = 0; links < LIMITS.watchedFolders; links++) {
    const link = await firstLink(target);
    folders.add(dirname(link?.path ?? target));
    if (link === undefined) break;
    target = link.target;
  }
  return folders;
}

/** The first part of a path that is a symbolic link, and where the path leads with that followed. */
async function firstLink(path: string): Promise<{ path: string; target: string } | undefined> {
  const { root } = parse(path);
  const parts = path.slice(root.length).split(sep);
  let at = root;
  for (const [index, part] of parts.entries()) {
    at = join(at, part);
    const stat = await lstat(at).catch(() => undefined);
    if (stat === undefined) return undefined;
    if (!stat.isSymbolicLink()) continue;
    const leads = resolve(dirname(at), await readlink(at).catch(() => part));
    return { path: at, target: join(leads, ...parts.slice(index + 1)) };
  }
  return undefined;
}

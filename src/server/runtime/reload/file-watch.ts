import { type FSWatcher, watch } from 'node:fs';
import { lstat, readlink, stat } from 'node:fs/promises';
import { dirname, join, parse, resolve, sep } from 'node:path';
import { messageOf } from '../../../core/errors.ts';
import { LIMITS } from '../../../core/limits.ts';
import type { Log } from '../../../core/log.ts';

/**
 * Reports changed files once they have not changed for `LIMITS.reloadDebounce`. Watches their folders, so it does not matter
 * how a file is written: in place, by renaming, by deleting and creating it, or by changing a symbolic link. Events only
 * trigger a check; polling every `LIMITS.watchPollInterval` finds changes without events, as on network file systems.
 */
export class FileWatch {
  readonly #log: Log;
  readonly #changed: (files: readonly string[]) => void;
  /** Signature of each file at the last check. */
  readonly #files = new Map<string, string>();
  readonly #watchers = new Map<string, FSWatcher>();
  readonly #poll: NodeJS.Timeout;
  #checkTimer: NodeJS.Timeout | undefined;
  #quiet: NodeJS.Timeout | undefined;
  #dirty = new Set<string>();
  #dirtySince = 0;
  #checking: Promise<void> | undefined;
  #isCheckRequested = false;
  #isClosed = false;
  #hasWarned = false;

  constructor(log: Log, changed: (files: readonly string[]) => void) {
    this.#log = log;
    this.#changed = changed;
    this.#poll = setInterval(() => void this.#check(), LIMITS.watchPollInterval).unref();
  }

  /** Replaces the set of watched files (absolute paths). Resolves once they are watched. */
  async set(files: readonly string[]): Promise<void> {
    for (const file of this.#files.keys()) if (!files.includes(file)) this.#files.delete(file);
    for (const file of files) if (!this.#files.has(file)) this.#files.set(file, await signatureOf(file));
    await this.#check();
  }

  close(): void {
    this.#isClosed = true;
    clearInterval(this.#poll);
    clearTimeout(this.#checkTimer);
    clearTimeout(this.#quiet);
    for (const watcher of this.#watchers.values()) watcher.close();
    this.#watchers.clear();
  }

  /** Called for any event in a watched folder. Debounced, because other files there, such as logs, may change constantly. */
  #event(): void {
    this.#checkTimer ??= setTimeout(() => {
      this.#checkTimer = undefined;
      void this.#check();
    }, LIMITS.watchDebounce);
  }

  /** Runs one check at a time. A request during a check starts another one after it. */
  #check(): Promise<void> {
    this.#isCheckRequested = true;
    this.#checking ??= this.#checkWhileRequested().finally(() => {
      this.#checking = undefined;
    });
    return this.#checking;
  }

  async #checkWhileRequested(): Promise<void> {
    while (this.#isCheckRequested && !this.#isClosed) {
      this.#isCheckRequested = false;
      await this.#checkNow();
    }
  }

  async #checkNow(): Promise<void> {
    const folders = new Map<string, string>();
    for (const file of this.#files.keys())
      for (const folder of await foldersToWatch(file)) {
        const { dev, ino } = (await stat(folder).catch(() => undefined)) ?? {};
        // A folder that was deleted and created again needs a new watcher.
        if (ino !== undefined) folders.set(`${folder}\u0000${dev} ${ino}`, folder);
      }
    if (this.#isClosed) return;
    for (const [key, watcher] of this.#watchers) if (!folders.has(key)) this.#drop(key, watcher);
    for (const [key, folder] of folders) if (!this.#watchers.has(key)) this.#add(key, folder);
    for (const [file, before] of this.#files) {
      const now = await signatureOf(file);
      // `set` may have been called meanwhile.
      if (now === before || this.#files.get(file) !== before) continue;
      this.#files.set(file, now);
      this.#noteChange(file);
    }
  }

  #noteChange(file: string): void {
    if (this.#isClosed) return;
    const now = performance.now();
    if (this.#dirty.size === 0) this.#dirtySince = now;
    this.#dirty.add(file);
    clearTimeout(this.#quiet);
    const wait = Math.min(LIMITS.reloadDebounce, Math.max(0, this.#dirtySince + LIMITS.reloadMaxDelay - now));
    this.#quiet = setTimeout(() => void this.#notify(), wait);
  }

  async #notify(): Promise<void> {
    // A change whose event has not been checked yet restarts the wait.
    const since = performance.now() - this.#dirtySince;
    const timer = this.#quiet;
    if (since < LIMITS.reloadMaxDelay) await this.#check();
    if (this.#isClosed || this.#quiet !== timer) return;
    const files = [...this.#dirty];
    this.#dirty = new Set();
    this.#changed(files);
  }

  #add(key: string, folder: string): void {
    try {
      const watcher = watch(folder, { persistent: false }, () => this.#event());
      watcher.on('error', () => this.#drop(key, watcher));
      this.#watchers.set(key, watcher);
    } catch (error) {
      if (this.#hasWarned) return;
      this.#hasWarned = true;
      this.#log.warn('agctl::reload', 'a folder cannot be watched: changes are detected with a delay', {
        folder,
        problem: messageOf(error),
      });
    }
  }

  #drop(key: string, watcher: FSWatcher): void {
    this.#watchers.delete(key);
    watcher.close();
  }
}

/** Identifies a version of a file: changes when the file is written, replaced, deleted or created. */
async function signatureOf(file: string): Promise<string> {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = await stat(file, { bigint: true });
    return `${dev} ${ino} ${size} ${mtimeNs} ${ctimeNs}`;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'unreadable';
  }
}

/**
 * Folders in which a change can make the path refer to another file: that of the file, and those of all symbolic links on
 * its path. At most `LIMITS.watchedFolders` (40).
 */
async function foldersToWatch(file: string): Promise<ReadonlySet<string>> {
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

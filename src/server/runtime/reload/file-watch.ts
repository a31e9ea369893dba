import { type FSWatcher, watch } from 'node:fs';
import { lstat, readlink, stat } from 'node:fs/promises';
import { basename, dirname, join, parse, resolve, sep } from 'node:path';
import { messageOf } from '../../../core/errors.ts';
import { errorCode } from '../../../core/foreign.ts';
import { LIMITS } from '../../../core/limits.ts';
import type { Log } from '../../../core/log.ts';

/**
 * Reports changed files once they have not changed for `LIMITS.reloadDebounce`. Watches their folders, so it does not matter
 * how a file is written: in place, by renaming, by deleting and creating it, or by changing a symbolic link. Events only
 * trigger a check; polling every `LIMITS.watchPollInterval` finds changes without events, as on network file systems.
 * Events of other files in these folders are ignored: the database of a busy gateway may be beside its configuration.
 */
export class FileWatch {
  readonly #log: Log;
  readonly #changed: (files: readonly string[]) => void;
  /** Signature of each file at the last check. */
  readonly #files = new Map<string, string>();
  readonly #watchers = new Map<string, FSWatcher>();
  /** Entries of each watched folder that files or links on their paths are, as of the last check. */
  #entries: ReadonlyMap<string, ReadonlySet<string>> = new Map();
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

  /** Called for any event in a watched folder. `name` is that of the folder if the folder itself was moved or deleted. */
  #event(folder: string, name: string | null): void {
    const isOther =
      name !== null && name !== basename(folder) && this.#entries.get(folder)?.has(name) === false;
    if (isOther) return;
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
    const entries = new Map<string, Set<string>>();
    for (const file of this.#files.keys())
      for (const path of await pathsToWatch(file)) {
        const folder = dirname(path);
        const known = entries.get(folder);
        if (known === undefined) entries.set(folder, new Set([basename(path)]));
        else known.add(basename(path));
      }
    const folders = new Map<string, string>();
    for (const folder of entries.keys()) {
      const { dev, ino } = (await stat(folder).catch(() => undefined)) ?? {};
      // A folder that was deleted and created again needs a new watcher.
      if (ino !== undefined) folders.set(`${folder}\u0000${dev} ${ino}`, folder);
    }
    if (this.#isClosed) return;
    this.#entries = entries;
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
      const watcher = watch(folder, { persistent: false }, (_type, name) => this.#event(folder, name));
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
    return errorCode(error) || 'unreadable';
  }
}

/**
 * Paths whose change can make the path of a file refer to another file: that of the file, and those of all symbolic links
 * on it. At most `LIMITS.watchedFolders` (40).
 */
async function pathsToWatch(file: string): Promise<ReadonlySet<string>> {
  const paths = new Set<string>();
  let target = file;
  // Links may form a cycle.
  for (let links = 0; links < LIMITS.watchedFolders; links++) {
    const link = await firstLink(target);
    paths.add(link?.path ?? target);
    if (link === undefined) break;
    target = link.target;
  }
  return paths;
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

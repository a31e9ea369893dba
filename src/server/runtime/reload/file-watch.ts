import { type FSWatcher, watch } from 'node:fs';
import { stat } from 'node:fs/promises';
import { messageOf } from '../../../core/errors.ts';
import { LIMITS } from '../../../core/limits.ts';
import type { Log } from '../../../core/log.ts';
import { foldersToWatch } from './links.ts';

/**
 * Tells when files have changed, and that they are quiet again. Watches their folders, so that it does not matter how
 * a file is written: in place, renamed over, deleted and made again, or by a link that now leads elsewhere. Events
 * only say when to look; a look now and then finds what no event told, as on network file systems.
 */
export class FileWatch {
  readonly #log: Log;
  readonly #changed: (files: readonly string[]) => void;
  /** Each file with what it was at the last look. */
  readonly #files = new Map<string, string>();
  readonly #watchers = new Map<string, FSWatcher>();
  readonly #poll: NodeJS.Timeout;
  #soon: NodeJS.Timeout | undefined;
  #quiet: NodeJS.Timeout | undefined;
  #dirty = new Set<string>();
  #dirtySince = 0;
  #looking: Promise<void> | undefined;
  #isWanted = false;
  #isClosed = false;
  #hasWarned = false;

  constructor(log: Log, changed: (files: readonly string[]) => void) {
    this.#log = log;
    this.#changed = changed;
    this.#poll = setInterval(() => void this.#look(), LIMITS.watchPoll).unref();
  }

  /** Watches these files, absolute, and no others. Resolves when it does. */
  async set(files: readonly string[]): Promise<void> {
    for (const file of this.#files.keys()) if (!files.includes(file)) this.#files.delete(file);
    for (const file of files) if (!this.#files.has(file)) this.#files.set(file, await signatureOf(file));
    await this.#look();
  }

  close(): void {
    this.#isClosed = true;
    clearInterval(this.#poll);
    clearTimeout(this.#soon);
    clearTimeout(this.#quiet);
    for (const watcher of this.#watchers.values()) watcher.close();
    this.#watchers.clear();
  }

  /** Something happened in a folder, perhaps to another file: a folder of logs must not keep us busy. */
  #event(): void {
    this.#soon ??= setTimeout(() => {
      this.#soon = undefined;
      void this.#look();
    }, LIMITS.watchEvents);
  }

  /** One at a time; who comes during a look gets another after it. */
  #look(): Promise<void> {
    this.#isWanted = true;
    this.#looking ??= this.#lookWhileWanted().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  async #lookWhileWanted(): Promise<void> {
    while (this.#isWanted && !this.#isClosed) {
      this.#isWanted = false;
      await this.#lookNow();
    }
  }

  async #lookNow(): Promise<void> {
    const folders = new Map<string, string>();
    for (const file of this.#files.keys())
      for (const folder of await foldersToWatch(file)) {
        const { dev, ino } = (await stat(folder).catch(() => undefined)) ?? {};
        // A folder that was deleted and made again is another one.
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
    const wait = Math.min(LIMITS.reloadQuiet, Math.max(0, this.#dirtySince + LIMITS.reloadLongest - now));
    this.#quiet = setTimeout(() => void this.#tell(), wait);
  }

  async #tell(): Promise<void> {
    // What came in the last moment, of which the event is still to be looked at, begins the wait again.
    const since = performance.now() - this.#dirtySince;
    const timer = this.#quiet;
    if (since < LIMITS.reloadLongest) await this.#look();
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
      this.#log.warn('agctl::reload', 'a folder cannot be watched: changes are noticed a little later', {
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

/** Another text for every other file or content; for a file that is not there, too. */
async function signatureOf(file: string): Promise<string> {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = await stat(file, { bigint: true });
    return `${dev} ${ino} ${size} ${mtimeNs} ${ctimeNs}`;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? 'unreadable';
  }
}

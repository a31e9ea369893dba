import { type FSWatcher, watch } from 'node:fs';
import { messageOf } from '../../core/errors.ts';
import type { Log } from '../../core/log.ts';
import { MEMORY_API_LIMITS } from '../../core/memory-limits.ts';

/**
 * Runs the sync of the docs folder after its files have changed. Watches the folders that the last sync has read: how a file is
 * written does not matter, and the sync finds out by hash what has changed.
 */
export class DocsWatch {
  readonly #sync: () => Promise<unknown>;
  readonly #log: Log;
  readonly #watchers = new Map<string, FSWatcher>();
  #quiet: NodeJS.Timeout | undefined;
  #isDirty = false;
  #isRunning = false;
  #isClosed = false;
  #hasWarned = false;

  /** `sync` begins after the call, even if one is running, and does not reject. It is not called again before it has settled. */
  constructor(sync: () => Promise<unknown>, log: Log) {
    this.#sync = sync;
    this.#log = log;
  }

  /** Watches a folder (absolute path), which is about to be read. */
  add(folder: string): void {
    if (this.#isClosed || this.#watchers.has(folder)) return;
    try {
      const watcher = watch(folder, { persistent: false }, () => this.#changed());
      watcher.on('error', () => {
        watcher.close();
        this.#watchers.delete(folder);
        this.#changed();
      });
      this.#watchers.set(folder, watcher);
    } catch (error) {
      // The system allows no more watches, for example; the other folders are watched all the same.
      if (!this.#hasWarned)
        this.#log.warn(
          'memory::backend',
          'a folder of documents cannot be watched: its changes are read at the next start',
          { folder, problem: messageOf(error) },
        );
      this.#hasWarned = true;
    }
  }

  /** No other folders are left. */
  keep(folders: readonly string[]): void {
    const there = new Set(folders);
    for (const [folder, watcher] of this.#watchers) {
      if (there.has(folder)) continue;
      watcher.close();
      this.#watchers.delete(folder);
    }
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#quiet);
    for (const watcher of this.#watchers.values()) watcher.close();
    this.#watchers.clear();
  }

  /** A program that writes many files, or one in several steps, causes few syncs. */
  #changed(): void {
    this.#isDirty = true;
    if (this.#isClosed || this.#isRunning || this.#quiet !== undefined) return;
    this.#quiet = setTimeout(() => {
      this.#quiet = undefined;
      void this.#syncWhileDirty();
    }, MEMORY_API_LIMITS.docsQuiet).unref();
  }

  async #syncWhileDirty(): Promise<void> {
    this.#isRunning = true;
    while (this.#isDirty && !this.#isClosed) {
      this.#isDirty = false;
      await this.#sync();
    }
    this.#isRunning = false;
  }
}

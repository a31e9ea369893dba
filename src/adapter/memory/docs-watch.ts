import { type FSWatcher, type Stats, statSync, watch } from 'node:fs';
import { stat } from 'node:fs/promises';
import { messageOf } from '../../core/errors.ts';
import type { Log } from '../../core/log.ts';
import { MEMORY_API_LIMITS } from '../../core/memory-limits.ts';

/**
 * Runs the sync of the docs folder after its files have changed. Watches the folders that the last sync has read: how a file is
 * written does not matter, and the sync finds out by hash what has changed. A watch sees a folder and not its path, so the docs folder
 * itself is looked at too: it may be replaced, or be a link that is switched.
 */
export class DocsWatch {
  readonly #sync: () => Promise<unknown>;
  readonly #log: Log;
  readonly #watchers = new Map<string, { readonly watcher: FSWatcher; readonly identity: string }>();
  readonly #looking: NodeJS.Timeout;
  #quiet: NodeJS.Timeout | undefined;
  #isDirty = false;
  #isRunning = false;
  #isClosed = false;
  #hasWarned = false;

  /**
   * @param root the docs folder
   * @param sync begins after the call, even if one is running, and does not reject. It is not called again before it has settled.
   */
  constructor(root: string, sync: () => Promise<unknown>, log: Log) {
    this.#sync = sync;
    this.#log = log;
    let known: string | undefined;
    const look = (): void => {
      void stat(root)
        .then(identityOf, () => 'none')
        .then((identity) => {
          if (known !== undefined && known !== identity) this.#changed();
          known = identity;
        });
    };
    look();
    this.#looking = setInterval(look, MEMORY_API_LIMITS.docsLook).unref();
  }

  /** Watches a folder (absolute path), which is about to be read. */
  add(folder: string): void {
    if (this.#isClosed) return;
    try {
      const identity = identityOf(statSync(folder));
      const known = this.#watchers.get(folder);
      if (known?.identity === identity) return;
      known?.watcher.close();
      const watcher = watch(folder, { persistent: false }, () => this.#changed());
      watcher.on('error', () => {
        watcher.close();
        this.#watchers.delete(folder);
        this.#changed();
      });
      this.#watchers.set(folder, { watcher, identity });
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
    for (const [folder, { watcher }] of this.#watchers) {
      if (there.has(folder)) continue;
      watcher.close();
      this.#watchers.delete(folder);
    }
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#quiet);
    clearInterval(this.#looking);
    for (const { watcher } of this.#watchers.values()) watcher.close();
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

/** Tells a folder from another one at its path: numbers of inodes are used again. */
function identityOf({ dev, ino, birthtimeMs }: Pick<Stats, 'dev' | 'ino' | 'birthtimeMs'>): string {
  return `${dev}:${ino}:${birthtimeMs}`;
}

import type { Backend } from './documents.ts';
import { SyncRun } from './sync-run.ts';
import { noSync, type SyncStatus } from './sync-status.ts';

export interface DocsSync {
  /** Reads the folder and updates the store. If a sync is already running, returns its result. Never rejects. */
  run(): Promise<SyncStatus>;
  status(): SyncStatus;
  /** Stops a running sync between two writes and waits until it has ended. */
  close(): Promise<void>;
}

export interface DocsSyncOptions {
  /** The docs folder; without one, a sync only re-embeds texts for a new embedder. */
  readonly folder: string | undefined;
  /** Called for every document and every batch of embeddings. */
  readonly progress?: (status: SyncStatus) => void;
}

export const SYNC_NOTE = 'docs-sync';
const LOCK = 'docs-sync';
/** Creates the sync of a docs folder; see `DocsSync`. */
export function createDocsSync(backend: Backend, { folder, progress }: DocsSyncOptions): DocsSync {
  const stop = new AbortController();
  let last: SyncRun | undefined;
  let running: Promise<SyncStatus> | undefined;

  const once = async (): Promise<SyncStatus> => {
    const run = new SyncRun(backend, folder, stop.signal, progress);
    last = run;
    try {
      const isDone = await backend.store.exclusively(LOCK, async () => {
        await run.whole(folder);
        run.end();
        await backend.store.setNote(SYNC_NOTE, run.status());
        return true;
      });
      // Another process is running a sync.
      if (isDone === undefined) return run.status();
    } catch (error) {
      run.end(error);
    }
    progress?.(run.status());
    return run.status();
  };

  return {
    run() {
      running ??= once().finally(() => {
        running = undefined;
      });
      return running;
    },
    status: () => last?.status() ?? noSync(),
    async close() {
      stop.abort(new Error('the memory backend is closing'));
      await running;
    },
  };
}

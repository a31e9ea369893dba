import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '../../core/errors.ts';
import type { Log } from '../../core/log.ts';
import { MEMORY_API_LIMITS } from '../../core/memory-limits.ts';
import type { SyncStatus } from '../../core/memory-model.ts';
import { DEFAULT_NAMESPACE } from '../namespace.ts';
import { wakingAfter } from './background-queue.ts';
import { indexTurn } from './chat-index.ts';
import { createDocsSync, type DocsSync, SYNC_NOTE, storedSync } from './docs-sync.ts';
import { DocsWatch } from './docs-watch.ts';
import type { Backend } from './documents.ts';
import type { Embedder } from './embed/embedder.ts';
import { EmbeddingQueue } from './embed/embedding-queue.ts';
import type { Extractor } from './extract/chat-extractor.ts';
import { ExtractionQueue } from './extract/extraction-queue.ts';
import { createSweeper, type Lifetimes, withLifetimes } from './lifetimes.ts';
import type { SiteBase } from './markdown/links.ts';
import type { Store, Turn } from './store.ts';

/** The components that the endpoints use. */
export interface Memory {
  readonly namespace: string;
  readonly store: Store;
  /** Undefined if there is none. */
  readonly docsFolder: string | undefined;
  readonly siteBase: SiteBase | undefined;
  readonly embedder: Embedder;
  /** Whether chat turns are entities too. */
  readonly indexesChat: boolean;
  readonly embeddings: EmbeddingQueue;
  /** Undefined if no model extracts entities. */
  readonly extraction: ExtractionQueue | undefined;
  readonly sync: DocsSync;
  /** How long an ingestion waits for the sync before it answers, in ms. */
  readonly syncWait: number;
  /** Whether the first sync of this process has ended. */
  readonly isReady: boolean;
  /** Status of the current or last sync, which may have run in an earlier process. */
  syncStatus(): Promise<SyncStatus>;
  /** Indexes a stored turn, if that is enabled. A failure has no other effect. */
  index(turn: Turn): Promise<void>;
  /** Whether no sync, no indexing and no embedding is running. */
  readonly isIdle: boolean;
  /** Runs the first sync, again after a growing delay if it fails. Resolves after the first attempt; never rejects. */
  start(): Promise<void>;
  /** Stops a running sync and indexing, and waits until they have ended. Leaves store and embedder open. */
  stop(): Promise<void>;
}

export interface MemoryOptions {
  /** Default: `default`. */
  readonly namespace?: string | undefined;
  readonly store: Store;
  readonly embedder: Embedder;
  /** Undefined if there is none. */
  readonly docsFolder: string | undefined;
  /** Where the docs folder is on its site. */
  readonly siteBase?: SiteBase | undefined;
  /** Whether changes in the docs folder are read at once. */
  readonly watchesDocs?: boolean;
  /** Value of MEMORY_INDEX_CHAT. */
  readonly indexesChat: boolean;
  readonly log: Log;
  readonly syncWait?: number;
  /** Value of MEMORY_TTL. */
  readonly lifetimes?: Lifetimes | undefined;
  /** Undefined: no entities are extracted. */
  readonly extractor?: Extractor | undefined;
  /** First delay after a failure of the extractor, in ms. */
  readonly extractionDelay?: number | undefined;
}

/** The memory of one namespace: a store with its search, sync and ingestion. */
export function createMemory(options: MemoryOptions): Memory {
  const { lifetimes = {}, embedder, docsFolder, indexesChat, log } = options;
  // An entity of agents is embedded after it was written; deleting an observation writes it again.
  const embedded = wakingAfter(
    options.store,
    ['changeGraph', 'putExtraction', 'importBatch', 'erase', 'expire'],
    () => embeddings.wake(),
  );
  const extraction =
    options.extractor === undefined
      ? undefined
      : new ExtractionQueue({
          searched: { store: embedded, embedder },
          extractor: options.extractor,
          log,
          delay: options.extractionDelay,
        });
  const written =
    extraction === undefined
      ? embedded
      : wakingAfter(embedded, ['putDocument', 'putEntities', 'importBatch'], () => extraction.wake());
  const store = withLifetimes(written, lifetimes);
  const embeddings = new EmbeddingQueue({ store, embedder, log });
  const { sync, watching } = docsOf(options, { store, embedder }, embeddings);
  const sweeper = createSweeper(store, lifetimes, log);
  const indexing = new Set<Promise<void>>();
  const stop = new AbortController();
  // Without a docs folder there is nothing to wait for.
  let isReady = docsFolder === undefined;
  return {
    namespace: options.namespace ?? DEFAULT_NAMESPACE,
    store,
    docsFolder,
    siteBase: options.siteBase,
    embedder,
    indexesChat,
    embeddings,
    extraction,
    sync,
    syncWait: options.syncWait ?? MEMORY_API_LIMITS.syncWait,
    get isReady() {
      return isReady;
    },
    async syncStatus() {
      const status = sync.status();
      return status.state === 'idle' ? (storedSync(await store.note(SYNC_NOTE)) ?? status) : status;
    },
    async index(turn) {
      if (!indexesChat) return;
      const task = indexTurn({ store, embedder }, turn, stop.signal)
        .then(() => {
          if (!embedder.isImmediate) embeddings.wake();
        })
        .catch((error: unknown) =>
          log.warn('memory::backend', 'a turn could not be indexed', {
            turn: turn.id,
            problem: messageOf(error),
          }),
        )
        .finally(() => indexing.delete(task));
      indexing.add(task);
      // A slow embedder delays the writers instead of filling the memory.
      if (indexing.size > MEMORY_API_LIMITS.indexingConcurrency) await Promise.race(indexing);
    },
    async start() {
      sweeper.start();
      // What an earlier process left, or an earlier embedder.
      embeddings.wake();
      extraction?.wake();
      const { state } = await sync.run();
      isReady = true;
      if (state === 'failed') void syncAgain(sync, stop.signal);
    },
    get isIdle() {
      const isBusy =
        sync.status().state === 'running' ||
        embeddings.isBusy ||
        extraction?.isBusy === true ||
        sweeper.isRunning;
      return indexing.size === 0 && !isBusy;
    },
    async stop() {
      watching?.close();
      await sweeper.stop();
      await sync.close();
      await embeddings.close();
      await extraction?.close();
      stop.abort(new Error('the memory backend is closing'));
      await Promise.all(indexing);
    },
  };
}

/** The sync of the docs folder, and what runs it again after a change. */
function docsOf(
  { docsFolder, siteBase, watchesDocs = false, log }: MemoryOptions,
  backend: Backend,
  embeddings: EmbeddingQueue,
): { readonly sync: DocsSync; readonly watching: DocsWatch | undefined } {
  const again = async (): Promise<void> => {
    // What changes while a sync runs may have been read already.
    if (sync.status().state === 'running') await sync.run();
    await sync.run();
  };
  const watching =
    watchesDocs && docsFolder !== undefined ? new DocsWatch(docsFolder, again, log) : undefined;
  const sync = createDocsSync(backend, {
    folder: docsFolder,
    siteBase,
    embeddings,
    watch: watching,
    progress: reporter(log, docsFolder !== undefined),
  });
  return { sync, watching };
}

/** Runs the first sync again until it succeeds: a folder may be mounted late, or the store's disk be full. */
async function syncAgain(sync: DocsSync, signal: AbortSignal): Promise<void> {
  let wait: number = MEMORY_API_LIMITS.syncRetry;
  for (let state = 'failed'; state === 'failed' && !signal.aborted; ) {
    await sleep(wait, undefined, { signal, ref: false }).catch(() => undefined);
    if (signal.aborted) return;
    wait = Math.min(wait * 2, MEMORY_API_LIMITS.syncMaxRetry);
    state = (await sync.run()).state;
  }
}

/** Logs the progress of a sync at intervals, and its result; without documents only if something was done or failed. */
function reporter(log: Log, hasDocuments: boolean): (status: SyncStatus) => void {
  let saidAt = 0;
  return (status) => {
    const {
      state,
      total,
      scanned,
      added,
      updated,
      unchanged,
      removed,
      failed,
      embedded,
      errors,
      durationMs,
    } = status;
    if (state === 'running') {
      if (durationMs - saidAt < MEMORY_API_LIMITS.syncReport) return;
      saidAt = durationMs;
      log.info('memory::sync', 'reading documents', { scanned, total });
      return;
    }
    saidAt = 0;
    for (const { path, message } of errors) log.warn('memory::sync', message, path === '' ? {} : { path });
    if (state === 'done' && !hasDocuments && embedded === 0) return;
    // The folder could not be read, as the warning says: nothing is known of its documents.
    if (state === 'done' && total === 0 && errors.some(({ path }) => path === '')) return;
    log.info('memory::sync', state === 'done' ? 'documents are up to date' : 'sync failed', {
      documents: total,
      added,
      updated,
      unchanged,
      removed,
      failed,
      ms: durationMs,
    });
  };
}

import { messageOf } from '../../core/errors.ts';
import { elementsOf, membersOf, numberIn, stringIn, textIn } from '../../core/foreign.ts';
import { MEMORY_STORE_LIMITS } from '../../core/memory-limits.ts';
import type { SyncError, SyncStatus } from '../../core/memory-model.ts';
import { docsKey, docsPlace, documentsOf, FIRST_FOLDER, isGone, numberOfFolder } from './docs-folders.ts';
import { FolderWorkspaces, relateLinks } from './docs-relations.ts';
import { renameMoved } from './docs-renames.ts';
import { type DocsFile, type DocsScan, readDocument, readProblem, scanDocs } from './docs-scan.ts';
import type { DocsWatch } from './docs-watch.ts';
import { type Backend, putDocument, type StoredDocument } from './documents.ts';
import type { EmbeddingQueue } from './embed/embedding-queue.ts';
import type { SiteBase } from './markdown/links.ts';
import type { DocumentRecord } from './store.ts';

export interface DocsSync {
  /** Reads the folder and updates the store. If a sync is already running, returns its result. Never rejects. */
  run(): Promise<SyncStatus>;
  status(): SyncStatus;
  /** Stops a running sync between two writes and waits until it has ended. */
  close(): Promise<void>;
}

export interface DocsSyncOptions {
  /** The docs folder; without one, a sync has nothing to read. */
  readonly folder: string | undefined;
  readonly siteBase?: SiteBase | undefined;
  /** Embeds what the sync stores, unless the embedder is immediate. */
  readonly embeddings?: EmbeddingQueue | undefined;
  /** Sees the folders that a sync reads. */
  readonly watch?: Pick<DocsWatch, 'add' | 'keep'> | undefined;
  /** Called for every document and every batch of embeddings. */
  readonly progress?: (status: SyncStatus) => void;
}

export const SYNC_NOTE = 'docs-sync';
/** Held by whatever changes documents of a docs folder. */
export const DOCS_LOCK = 'docs-sync';

/** Creates the sync of a docs folder; see `DocsSync`. */
export function createDocsSync(
  backend: Backend,
  { folder, siteBase, embeddings, watch, progress }: DocsSyncOptions,
): DocsSync {
  const stop = new AbortController();
  let last: SyncRun | undefined;
  let running: Promise<SyncStatus> | undefined;

  const once = async (): Promise<SyncStatus> => {
    const run = new SyncRun(
      backend,
      { folder, siteBase, embeddings, watch, ...(progress && { progress }) },
      stop.signal,
    );
    last = run;
    try {
      const isDone = await backend.store.exclusively(DOCS_LOCK, async () => {
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

/** Set while links of a docs folder may be missing, so that its next sync repairs one that was killed. */
const linksNote = (folder: number): string => `docs-links${docsKey(folder, '')}`;

const REMOVED_TOGETHER = 200;

/** One sync. */
class SyncRun {
  readonly counts: SyncCounts = { ...noSync(), state: 'running', startedAt: new Date().toISOString() };
  readonly #startedAt = performance.now();
  readonly #backend: Backend;
  readonly #siteBase: SiteBase | undefined;
  readonly #watch: DocsSyncOptions['watch'];
  readonly #embeddings: EmbeddingQueue | undefined;
  readonly #signal: AbortSignal;
  readonly #progress: ((status: SyncStatus) => void) | undefined;
  readonly #folder: string;
  /** Known once the folder was read. */
  #number = FIRST_FOLDER;
  #workspaces: FolderWorkspaces;
  readonly #changed = new Set<string>();
  /** Set when links of documents stored since then may be missing. */
  #linksMarked: Promise<void> | undefined;

  constructor(
    backend: Backend,
    { folder, siteBase, embeddings, watch, progress }: DocsSyncOptions,
    signal: AbortSignal,
  ) {
    this.#siteBase = siteBase;
    this.#watch = watch;
    this.#backend = backend;
    this.#embeddings = embeddings;
    this.#signal = signal;
    this.#progress = progress;
    this.#folder = folder ?? '';
    this.#workspaces = new FolderWorkspaces(backend, this.#folder, this.#number);
  }

  status(): SyncStatus {
    const { counts } = this;
    if (counts.state === 'running') counts.durationMs = Math.round(performance.now() - this.#startedAt);
    return { ...counts, errors: [...counts.errors] };
  }

  async whole(folder: string | undefined): Promise<void> {
    const scan = folder === undefined ? undefined : await this.#scan(folder);
    if (scan !== undefined) await this.#documents(scan);
    this.#embeddings?.wake();
  }

  end(error?: unknown): void {
    const { counts } = this;
    counts.durationMs = Math.round(performance.now() - this.#startedAt);
    counts.errors.sort((a, b) => (a.path < b.path ? -1 : 1));
    counts.state = error === undefined ? 'done' : 'failed';
    if (error === undefined) return;
    const message = this.#signal.aborted
      ? 'stopped before its end; the next sync continues from here'
      : messageOf(error);
    counts.errors.unshift({ path: '', message });
  }

  async #scan(folder: string): Promise<DocsScan | undefined> {
    try {
      const scan = await scanDocs(folder, this.#signal, (each) => this.#watch?.add(each));
      for (const error of scan.errors) this.#failed(error.path, error.message);
      this.counts.total = scan.files.length;
      this.#watch?.keep(scan.folders);
      return scan;
    } catch (error) {
      this.#signal.throwIfAborted();
      this.#note('', `the docs folder cannot be read, so nothing was removed: ${messageOf(error)}`);
      return undefined;
    }
  }

  async #documents(scan: DocsScan): Promise<void> {
    const { store, embedder } = this.#backend;
    const number = await numberOfFolder(store, this.#folder, scan, this.#signal);
    if (number === undefined) return;
    this.#number = number;
    this.#workspaces = new FolderWorkspaces(this.#backend, this.#folder, this.#number);
    const wasBehind = (await store.note(linksNote(this.#number))) === 'missing';
    const before = await documentsOf(store, this.#number);
    if (scan.isComplete) await renameMoved(store, this.#number, before, scan.files, this.#signal);
    await this.#each(scan.files);
    await this.#remove(scan);
    await this.#removeFolders(before, scan);
    if (!wasBehind && this.#linksMarked === undefined) return;
    // After an interrupted sync, the changed documents are unknown, so all links are processed.
    const all = await documentsOf(store, this.#number);
    const changed = wasBehind ? undefined : this.#changed;
    await relateLinks(store, { number: this.#number, documents: all, changed }, embedder.id, this.#signal);
    await store.setNote(linksNote(this.#number), 'complete');
  }

  /**
   * Processes several documents concurrently: while one waits for the disk, the next is split and embedded, and waiting
   * writes share an fsync.
   */
  async #each(files: readonly DocsFile[]): Promise<void> {
    // A shared iterator: an exception in one `for` loop ends it for the others too.
    const left = (function* () {
      yield* files;
    })();
    const lane = async (): Promise<void> => {
      for (const file of left) {
        this.#signal.throwIfAborted();
        await this.#document(file);
        this.counts.scanned += 1;
        this.#report();
      }
    };
    const ends = await Promise.allSettled(Array.from({ length: MEMORY_STORE_LIMITS.syncConcurrency }, lane));
    for (const end of ends) if (end.status === 'rejected') throw end.reason;
  }

  #markLinks(): Promise<void> {
    this.#linksMarked ??= this.#backend.store
      .setNote(linksNote(this.#number), 'missing')
      .catch((error: unknown) => {
        this.#linksMarked = undefined;
        throw error;
      });
    return this.#linksMarked;
  }

  async #document({ path, file }: DocsFile): Promise<void> {
    try {
      const content = await readDocument(file);
      const { status } = await this.#put(path, content);
      if (status === 'created') this.counts.added += 1;
      else if (status === 'updated') this.counts.updated += 1;
      else this.counts.unchanged += 1;
    } catch (error) {
      this.#signal.throwIfAborted();
      this.#failed(path, readProblem(path, error));
    }
  }

  async #put(path: string, content: string): Promise<StoredDocument> {
    let reported = 0;
    const document = await putDocument(
      this.#backend,
      {
        origin: 'docs_dir',
        key: docsKey(this.#number, path),
        path,
        ...(this.#number !== FIRST_FOLDER && { folder: this.#number, source: `${this.#folder}/${path}` }),
        content,
        workspace: this.#workspaces.idFor(path),
        siteBase: this.#siteBase,
      },
      {
        signal: this.#signal,
        embedded: (count) => {
          this.counts.embedded += count - reported;
          reported = count;
          this.#report();
        },
        beforeWrite: async () => {
          await this.#markLinks();
          await this.#workspaces.store(path);
        },
      },
    );
    if (document.status !== 'unchanged') this.#changed.add(path);
    return document;
  }

  /** Removes documents whose file is gone. A folder that is empty, gone itself, or was not read completely removes nothing. */
  async #remove(scan: DocsScan): Promise<void> {
    const { store } = this.#backend;
    const known = await documentsOf(store, this.#number);
    const there = new Set(scan.files.map(({ path }) => path));
    const gone = known.map(({ key }) => key).filter((key) => !there.has(docsPlace(key).path));
    if (gone.length === 0) return;
    if (there.size === 0)
      this.#note('', `the docs folder has no documents: the ${gone.length} stored ones were kept`);
    else if (await isGone(this.#folder))
      this.#note('', `the docs folder was deleted meanwhile: ${gone.length} missing documents were kept`);
    else if (!scan.isComplete)
      this.#note('', `the docs folder was not read completely: ${gone.length} missing documents were kept`);
    else
      for (let start = 0; start < gone.length; start += REMOVED_TOGETHER) {
        this.#signal.throwIfAborted();
        this.counts.removed += await store.removeDocuments(
          'docs_dir',
          gone.slice(start, start + REMOVED_TOGETHER),
        );
        this.#report();
      }
  }

  /** Removes folders that have no documents any more. */
  async #removeFolders(before: readonly DocumentRecord[], scan: DocsScan): Promise<void> {
    const there = new Set(scan.files.map(({ path }) => path));
    const gone = before.map(({ key }) => docsPlace(key).path).filter((path) => !there.has(path));
    if (gone.length === 0) return;
    const left = await documentsOf(this.#backend.store, this.#number);
    await this.#workspaces.removeUnused(
      gone,
      left.map(({ key }) => docsPlace(key).path),
    );
  }

  #failed(path: string, message: string): void {
    this.counts.failed += 1;
    this.#note(path, message);
  }

  #note(path: string, message: string): void {
    noteError(this.counts, path, message);
  }

  #report(): void {
    this.#progress?.(this.status());
  }
}

/** The state of a sync while it runs. */
type SyncCounts = { -readonly [Key in keyof SyncStatus]: SyncStatus[Key] } & { errors: SyncError[] };

const STATES = ['idle', 'running', 'done', 'failed'] as const;

/** Reads a status that was stored; undefined if the row has something else. */
export function storedSync(value: unknown): SyncStatus | undefined {
  const members = membersOf(value);
  const state = STATES.find((each) => each === members['state']);
  if (state === undefined) return undefined;
  const count = (name: string): number => numberIn(members[name]) ?? 0;
  return {
    state,
    scanned: count('scanned'),
    total: count('total'),
    added: count('added'),
    updated: count('updated'),
    unchanged: count('unchanged'),
    removed: count('removed'),
    failed: count('failed'),
    errors: elementsOf(members['errors'])
      .map(membersOf)
      .map(({ path, message }) => ({ path: textIn(path), message: textIn(message) })),
    embedded: count('embedded'),
    startedAt: stringIn(members['startedAt']) ?? null,
    durationMs: count('durationMs'),
  };
}

function noSync(): SyncCounts {
  return {
    state: 'idle',
    scanned: 0,
    total: 0,
    added: 0,
    updated: 0,
    unchanged: 0,
    removed: 0,
    failed: 0,
    errors: [],
    embedded: 0,
    startedAt: null,
    durationMs: 0,
  };
}

/** Keeps the first errors; further ones are only counted. */
function noteError(counts: SyncCounts, path: string, message: string): void {
  if (counts.errors.length < MEMORY_STORE_LIMITS.syncErrors) counts.errors.push({ path, message });
}

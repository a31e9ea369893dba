import { rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { Worker } from 'node:worker_threads';
import { AppError } from '../../../core/errors.ts';
import type { Log } from '../../../core/log.ts';
import { MEMORY_STORE_LIMITS } from '../../../core/memory-limits.ts';
import { DEFAULT_NAMESPACE } from '../../namespace.ts';
import { checkLimit } from '../check-input.ts';
import { exclusiveNames } from '../exclusive-names.ts';
import { operationsOver } from '../sql/operations.ts';
import type { NamespacedStore, Store } from '../store.ts';
import { type Answer, type Call, errorOf, type Result } from './messages.ts';
import { backupPath } from './namespace-files.ts';
import { DATABASE_FILE } from './namespace-folder.ts';

const SCOPE = 'memory::sqlite';

export interface SqliteOptions {
  /** The file; alternatively `dataDir`, the folder with `memory.db`. Created if missing. */
  readonly path?: string;
  readonly dataDir?: string;
  readonly log: Log;
}

interface Waiting {
  readonly bytes: number;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: AppError) => void;
}

/**
 * Opens the embedded store: one file per namespace, all owned by this process until `close`, in a thread of their own
 * so that a scan or an fsync never blocks the caller's event loop. Rejects with `memory_in_use` or
 * `memory_not_opened` (see `openDatabase`).
 */
export async function openSqliteStore(options: SqliteOptions): Promise<NamespacedStore> {
  const path = resolve(options.path ?? join(options.dataDir ?? '.', DATABASE_FILE));
  const thread = new StoreThread(path, options.log);
  await thread.opened;
  const exclusively = exclusiveNames();
  const namespace = (name: string): Store => ({
    kind: 'sqlite',
    ...operationsOver((operation, args) => thread.call(name, operation, args)),
    exclusively: (task, run) => exclusively(`${name} ${task}`, run),
    close: async () => undefined,
  });
  return {
    ...namespace(DEFAULT_NAMESPACE),
    namespace,
    async namespaces(page) {
      checkLimit(page.limit);
      // The order of answers to one namespace is the order of its calls: a namespace that was just created is listed.
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- `NamespaceFiles.list` has this result
      return (await thread.call(DEFAULT_NAMESPACE, 'list', [page])) as never;
    },
    removeNamespace: async (name) => (await thread.call(name, 'remove', [])) === true,
    async backup(name) {
      const copy = backupPath(path);
      const bytes = Number(await thread.call(name, 'backup', [copy]));
      return { path: copy, bytes, discard: () => rm(copy, { force: true }) };
    },
    close: () => thread.close(),
  };
}

/** The caller's side of `worker.ts`. The queue is bounded in number and bytes. */
class StoreThread {
  readonly opened: Promise<void>;
  readonly #worker: Worker;
  readonly #waiting = new Map<number, Waiting>();
  readonly #log: Log;
  readonly #openPromise: { resolve: () => void; reject: (error: AppError) => void };
  #nextId = 1;
  #bytes = 0;
  #gone: AppError | undefined;
  #closing: Promise<void> | undefined;

  constructor(path: string, log: Log) {
    this.#log = log;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.opened = promise;
    this.#openPromise = { resolve, reject };
    // The name of the bundled file is that in scripts/build-program.mjs.
    const file = import.meta.url.endsWith('.ts') ? './worker.ts' : './sqlite-worker.js';
    this.#worker = new Worker(new URL(file, import.meta.url), {
      workerData: { path },
      name: 'agctl-memory',
      // Older Node.js versions warn at every start that node:sqlite is experimental.
      execArgv: ['--disable-warning=ExperimentalWarning'],
    });
    this.#worker.on('message', (answer: Answer) => this.#take(answer));
    this.#worker.on('error', (error) => this.#end(String(error)));
    this.#worker.on('exit', () => this.#end('the thread of the memory store has ended'));
  }

  call(namespace: string, name: Call['name'], args: readonly unknown[]): Promise<unknown> {
    if (this.#gone !== undefined) return Promise.reject(this.#gone);
    if (this.#closing !== undefined && name !== 'close') return Promise.reject(closed());
    const bytes = sizeOf(args);
    if (
      name !== 'close' &&
      (this.#waiting.size >= MEMORY_STORE_LIMITS.queue ||
        (this.#waiting.size > 0 && this.#bytes + bytes > MEMORY_STORE_LIMITS.queueBytes))
    )
      return Promise.reject(new AppError('memory_busy'));
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const id = this.#nextId++;
    this.#waiting.set(id, { bytes, resolve, reject });
    this.#bytes += bytes;
    this.#worker.postMessage({ id, namespace, name, args } satisfies Call);
    return promise;
  }

  #take(answer: Answer): void {
    if (answer.kind === 'opened') this.#openPromise.resolve();
    else if (answer.kind === 'refused') this.#openPromise.reject(errorOf(answer.failure));
    else if (answer.kind === 'log') this.#log[answer.level](SCOPE, answer.message, answer.fields);
    else this.#complete(answer);
  }

  #complete(answer: Result): void {
    const waiting = this.#waiting.get(answer.id);
    if (waiting === undefined) return;
    this.#waiting.delete(answer.id);
    this.#bytes -= waiting.bytes;
    if (answer.kind === 'result') waiting.resolve(answer.value);
    else waiting.reject(errorOf(answer.failure));
  }

  #end(detail: string): void {
    this.#gone ??= this.#closing === undefined ? new AppError('memory_unavailable', { detail }) : closed();
    this.#openPromise.reject(this.#gone);
    for (const waiting of this.#waiting.values()) waiting.reject(this.#gone);
    this.#waiting.clear();
    this.#bytes = 0;
  }

  /** Calls made before still run. A second call waits for the first. */
  close(): Promise<void> {
    this.#closing ??= this.#shut();
    return this.#closing;
  }

  async #shut(): Promise<void> {
    const ended = new Promise((resolve) => this.#worker.once('exit', resolve));
    if (this.#gone !== undefined) return;
    await this.call(DEFAULT_NAMESPACE, 'close', []);
    await ended;
  }
}

function closed(): AppError {
  return new AppError('memory_unavailable', { message: 'the memory store is closed' });
}

/** Approximate size of a call in bytes: texts and vectors are almost all of it. */
function sizeOf(value: unknown): number {
  if (typeof value === 'string') return value.length * 2;
  if (ArrayBuffer.isView(value)) return value.byteLength;
  if (typeof value !== 'object' || value === null) return 8;
  let sum = 16;
  for (const part of Object.values(value)) sum += sizeOf(part);
  return sum;
}

import { randomUUID } from 'node:crypto';
import { readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { AppError, messageOf } from '../../../core/errors.ts';
import { errorCode, membersOf } from '../../../core/foreign.ts';
import { makeFolder } from '../../../core/make-folder.ts';
import { MEMORY_STORE_LIMITS } from '../../../core/memory-limits.ts';
import { RESULT, resultCode } from '../../../core/sqlite-result.ts';
import { DEFAULT_NAMESPACE } from '../../namespace.ts';
import type { NamespaceSize } from '../store.ts';
import type { LogLine } from './messages.ts';
import { DATABASE_FILE, NAMESPACES_FOLDER, namespaceFolder, namespaceOfFolder } from './namespace-folder.ts';
import { OwnedFile } from './owned-file.ts';

/** Temporary copies and folders being deleted; none is the name of a namespace. */
const BACKUP = '.backup-';
const REMOVED = '.removed-';

export function backupPath(defaultFile: string): string {
  return join(dirname(defaultFile), `${BACKUP}${randomUUID()}.db`);
}

/**
 * The files of all namespaces. `default` stays open, and with it the lock on the whole folder; of the others, the least
 * recently used file is closed when too many are open or their vectors take too much memory. All calls run in one
 * thread, one after another, so a file that is closed has no call in progress.
 */
export class NamespaceFiles {
  readonly #path: string;
  readonly #folder: string;
  readonly #log: LogLine;
  /** Open files, the least recently used first. */
  readonly #open = new Map<string, OwnedFile>();
  readonly #names: Set<string>;

  /**
   * Opens the file of `default`, then reads which others exist.
   *
   * @throws AppError `memory_not_opened`
   */
  constructor(path: string, log: LogLine) {
    this.#path = path;
    this.#folder = dirname(path);
    this.#log = log;
    this.#open.set(DEFAULT_NAMESPACE, new OwnedFile(path, log));
    this.#names = new Set([DEFAULT_NAMESPACE, ...this.#found()]);
  }

  /** Names of existing namespaces. Deletes what an interrupted backup or removal has left. */
  #found(): string[] {
    const spaces = join(this.#folder, NAMESPACES_FOLDER);
    this.#clean(this.#folder, BACKUP);
    this.#clean(spaces, REMOVED);
    return entries(spaces).flatMap((entry) => namespaceOfFolder(entry) ?? []);
  }

  #clean(folder: string, prefix: string): void {
    for (const entry of entries(folder))
      if (entry.startsWith(prefix)) rmSync(join(folder, entry), { recursive: true, force: true });
  }

  /** The file of a namespace, opened if necessary; undefined if the namespace does not exist. */
  existing(namespace: string): OwnedFile | undefined {
    return this.#names.has(namespace) ? this.#file(namespace) : undefined;
  }

  /**
   * The file of a namespace, which is created if necessary. A process that dies meanwhile leaves an empty namespace.
   *
   * @throws AppError `memory_full` if there are too many namespaces
   */
  created(namespace: string): OwnedFile {
    if (!this.#names.has(namespace) && this.#names.size >= MEMORY_STORE_LIMITS.namespaces)
      throw new AppError('memory_full', {
        message:
          `the memory store has ${this.#names.size} namespaces, the maximum: nothing was stored; delete namespaces ` +
          'that are not used (DELETE /api/memory/namespaces/NAME)',
      });
    try {
      const file = this.#file(namespace);
      this.#names.add(namespace);
      return file;
    } catch (error) {
      if (!this.#names.has(namespace))
        rmSync(namespaceFolder(this.#folder, namespace), { recursive: true, force: true });
      throw error;
    }
  }

  #file(namespace: string): OwnedFile {
    const open = this.#open.get(namespace);
    const file = open ?? this.#opened(namespace);
    // The most recently used one is the last.
    this.#open.delete(namespace);
    this.#open.set(namespace, file);
    return file;
  }

  #opened(namespace: string): OwnedFile {
    try {
      this.#makeRoom({ more: 1 });
      return new OwnedFile(this.#pathOf(namespace), this.#log);
    } catch (error) {
      // The message names a path and is for the operator.
      const { cause } = membersOf(error);
      const isFull = resultCode(cause) === RESULT.full || errorCode(cause) === 'ENOSPC';
      throw new AppError(isFull ? 'memory_full' : 'memory_unavailable', {
        ...(isFull ? {} : { message: 'the memory store cannot open this namespace; its log has the reason' }),
        detail: messageOf(error),
        cause: error,
      });
    }
  }

  /** Closes least recently used files while there are too many, or while their vectors take too much memory. */
  #makeRoom({ more = 0, keep }: { readonly more?: number; readonly keep?: string }): void {
    for (const [namespace, file] of this.#open) {
      const others = this.#open.size - 1;
      const fits = others + more <= MEMORY_STORE_LIMITS.openNamespaces;
      if (fits && this.#vectorBytes() <= MEMORY_STORE_LIMITS.openVectorBytes) return;
      // A failed disk is remembered by the open file.
      if (namespace !== DEFAULT_NAMESPACE && namespace !== keep && !file.isBroken)
        this.#close(namespace, file);
    }
  }

  #vectorBytes(): number {
    let sum = 0;
    for (const file of this.#open.values()) sum += file.vectorBytes;
    return sum;
  }

  /** After a call on this namespace: its vectors may have grown. */
  used(namespace: string): void {
    this.#makeRoom({ keep: namespace });
  }

  #close(namespace: string, file: OwnedFile): void {
    this.#open.delete(namespace);
    try {
      file.close();
    } catch (error) {
      this.#log('warn', 'the file of a namespace could not be closed', {
        namespace,
        problem: messageOf(error),
      });
    }
  }

  /** Deletes a namespace: its folder disappears in one step, then its files. False if there is none. */
  remove(namespace: string): boolean {
    if (namespace === DEFAULT_NAMESPACE || !this.#names.has(namespace)) return false;
    const file = this.#open.get(namespace);
    if (file !== undefined) this.#close(namespace, file);
    const spaces = join(this.#folder, NAMESPACES_FOLDER);
    const removed = join(spaces, `${REMOVED}${randomUUID()}`);
    makeFolder(spaces, 0o700);
    renameSync(namespaceFolder(this.#folder, namespace), removed);
    this.#names.delete(namespace);
    rmSync(removed, { recursive: true, force: true });
    return true;
  }

  list({ limit, cursor = '' }: { readonly limit: number; readonly cursor?: string | undefined }): {
    readonly namespaces: NamespaceSize[];
    readonly nextCursor: string | null;
  } {
    const rest = [...this.#names].filter((name) => name > cursor).sort();
    const namespaces = rest.slice(0, limit).map((name) => ({ name, bytes: this.#size(name) }));
    return {
      namespaces,
      nextCursor: rest.length > namespaces.length ? (namespaces.at(-1)?.name ?? null) : null,
    };
  }

  #size(namespace: string): number {
    const path = this.#pathOf(namespace);
    const bytes = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0;
    return bytes(path) + bytes(`${path}-wal`);
  }

  #pathOf(namespace: string): string {
    return namespace === DEFAULT_NAMESPACE
      ? this.#path
      : join(namespaceFolder(this.#folder, namespace), DATABASE_FILE);
  }

  /** Closes all files; the lock on the folder last. */
  close(): void {
    for (const [namespace, file] of this.#open)
      if (namespace !== DEFAULT_NAMESPACE) this.#close(namespace, file);
    this.#open.get(DEFAULT_NAMESPACE)?.close();
  }
}

function entries(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return [];
    throw error;
  }
}

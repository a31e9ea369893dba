import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { dirname } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { AppError } from '../../../../core/errors.ts';
import { makeFolder } from '../../../../core/make-folder.ts';
import { MEMORY_STORE_LIMITS } from '../../../../core/memory-limits.ts';
import type { StoredFile } from './manifest.ts';

/** A folder or archive that a model is in. */
export interface ModelSource {
  /** Paths of its files, with `/`. @throws AppError `bad_request` */
  list(): Promise<readonly string[]>;
  /**
   * Copies files, by their path in the source, to paths on disk.
   *
   * @throws AppError `bad_request` for a file that cannot be copied
   */
  copy(files: ReadonlyMap<string, string>): Promise<ReadonlyMap<string, StoredFile>>;
}

export function refuseSource(source: string, problem: string): never {
  throw new AppError('bad_request', { message: `${source}: ${problem}` });
}

/** Counts what a source has given; one that gives too much is refused. */
export class Budget {
  readonly #source: string;
  #files = 0;
  #bytes = 0;

  constructor(source: string) {
    this.#source = source;
  }

  addFile(): void {
    this.#files += 1;
    if (this.#files > MEMORY_STORE_LIMITS.modelSourceFiles)
      refuseSource(
        this.#source,
        `has more than ${MEMORY_STORE_LIMITS.modelSourceFiles} files: name the folder of the model itself`,
      );
  }

  addBytes(count: number): void {
    this.#bytes += count;
    if (this.#bytes > MEMORY_STORE_LIMITS.modelBytes)
      refuseSource(
        this.#source,
        `has more than ${MEMORY_STORE_LIMITS.modelBytes / 1024 ** 3} GiB, unpacked, which is too much for a model`,
      );
  }
}

/** Writes a file that only this user can read, on disk before it resolves. */
export async function storeFile(
  content: AsyncIterable<Uint8Array>,
  target: string,
  budget: Budget,
): Promise<StoredFile> {
  const hash = createHash('sha256');
  let bytes = 0;
  makeFolder(dirname(target), 0o700);
  await pipeline(
    content,
    async function* (chunks: AsyncIterable<Uint8Array>) {
      for await (const chunk of chunks) {
        budget.addBytes(chunk.length);
        bytes += chunk.length;
        hash.update(chunk);
        yield chunk;
      }
    },
    createWriteStream(target, { mode: 0o600, flush: true, flags: 'wx' }),
  );
  return { bytes, sha256: hash.digest('hex') };
}

/** Whether a path in an archive stays in the folder that it is unpacked to, on every system. */
export const staysInside = (path: string): boolean =>
  !/^[/\\]|^[A-Za-z]:|\0/.test(path) && !path.split(/[/\\]/).includes('..');

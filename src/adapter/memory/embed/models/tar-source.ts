import { createReadStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { AppError, messageOf } from '../../../../core/errors.ts';
import type { StoredFile } from './manifest.ts';
import { Budget, type ModelSource, refuseSource, staysInside, storeFile } from './model-source.ts';
import { type TarEntry, tarEntries } from './tar.ts';

/** A tar archive, compressed with gzip or not. It is read from the beginning for each call. */
export function tarSource(archive: string, isCompressed: boolean): ModelSource {
  const each = (use: (entry: TarEntry) => Promise<void>): Promise<void> => {
    const read = async (bytes: AsyncIterable<Buffer>): Promise<void> => {
      for await (const entry of tarEntries(bytes)) {
        if (!staysInside(entry.path))
          refuseSource(archive, `contains ${JSON.stringify(entry.path)}, which leads out of the archive`);
        await use(entry);
      }
    };
    const file = createReadStream(archive);
    return (isCompressed ? pipeline(file, createGunzip(), read) : pipeline(file, read)).catch(
      (error: unknown) => {
        if (error instanceof AppError) throw error;
        refuseSource(archive, `is not a tar archive, or damaged: ${messageOf(error)}`);
      },
    );
  };
  return {
    async list() {
      const paths: string[] = [];
      const budget = new Budget(archive);
      await each(async ({ path, isFile, size }) => {
        budget.addFile();
        budget.addBytes(size);
        if (isFile) paths.push(path);
      });
      return paths;
    },
    async copy(files) {
      const budget = new Budget(archive);
      const stored = new Map<string, StoredFile>();
      await each(async ({ path, isFile, content }) => {
        const target = files.get(path);
        if (target === undefined || !isFile) return;
        if (stored.has(path)) refuseSource(archive, `contains ${path} twice`);
        stored.set(path, await storeFile(Readable.from(content), target, budget));
      });
      return stored;
    },
  };
}

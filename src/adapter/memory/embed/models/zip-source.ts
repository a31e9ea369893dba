import { type FileHandle, open } from 'node:fs/promises';
import { AppError, messageOf } from '../../../../core/errors.ts';
import type { StoredFile } from './manifest.ts';
import { Budget, type ModelSource, refuseSource, staysInside, storeFile } from './model-source.ts';
import { type ZipEntry, zipContent, zipEntries } from './zip.ts';

/** A ZIP archive, such as a `.jar` or `.whl`. */
export function zipSource(archive: string): ModelSource {
  const withFiles = async <T>(
    use: (files: ReadonlyMap<string, ZipEntry>, file: FileHandle) => Promise<T>,
  ) => {
    const file = await open(archive);
    try {
      return await use(await filesOf(archive, file), file);
    } catch (error) {
      if (error instanceof AppError) throw error;
      return refuseSource(archive, `is not a ZIP archive that can be read: ${messageOf(error)}`);
    } finally {
      await file.close();
    }
  };
  return {
    list: () => withFiles(async (files) => [...files.keys()]),
    copy: (wanted) =>
      withFiles(async (files, file) => {
        const budget = new Budget(archive);
        const stored = new Map<string, StoredFile>();
        for (const [path, target] of wanted) {
          const entry = files.get(path);
          if (entry === undefined) refuseSource(archive, `${path} is not a file`);
          const content = zipContent(archive, file, entry);
          stored.set(
            path,
            await storeFile(content, target, budget).catch((error: unknown) => {
              if (error instanceof AppError) throw error;
              return refuseSource(archive, `${path} cannot be unpacked: ${messageOf(error)}`);
            }),
          );
        }
        return stored;
      }),
  };
}

/** By path; without folders and links. */
async function filesOf(archive: string, file: FileHandle): Promise<ReadonlyMap<string, ZipEntry>> {
  const budget = new Budget(archive);
  const files = new Map<string, ZipEntry>();
  for await (const entry of zipEntries(file)) {
    budget.addFile();
    const { path, isFile, size } = entry;
    budget.addBytes(size);
    if (!staysInside(path))
      refuseSource(archive, `contains ${JSON.stringify(path)}, which leads out of the archive`);
    if (files.has(path)) refuseSource(archive, `contains ${path} twice`);
    if (isFile) files.set(path, entry);
  }
  return files;
}

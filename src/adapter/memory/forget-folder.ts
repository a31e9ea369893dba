import { resolve } from 'node:path';
import { AppError } from '../../core/errors.ts';
import { MEMORY_STORE_LIMITS } from '../../core/memory-limits.ts';
import { docsFolders, docsPlace, documentsOf, dropFolder, isGone, listedFolders } from './docs-folders.ts';
import { FolderWorkspaces } from './docs-relations.ts';
import { DOCS_LOCK } from './docs-sync.ts';
import type { Memory } from './memory.ts';
import type { Erasure, ErasureOptions } from './store.ts';

/**
 * Deletes the documents of a docs folder, with its workspaces, once nobody needs them any more. That of this backend is refused: its
 * next sync would store them again.
 *
 * @param folder absolute path, as it was read
 * @throws AppError `memory_not_found` with the folders that there are, `memory_invalid`, `memory_busy`, `memory_changed`
 */
export async function forgetFolder(
  memory: Memory,
  folder: string,
  options: ErasureOptions,
): Promise<Erasure> {
  const { store, embedder } = memory;
  const path = resolve(folder);
  const known = (await docsFolders(store)).find((one) => one.path === path);
  if (known === undefined) throw await unknownFolder(memory, path);
  if (memory.docsFolder !== undefined && resolve(memory.docsFolder) === path)
    throw new AppError('memory_invalid', {
      message: `${path} is the docs folder of this backend, which would read it again: start it with another one first`,
    });
  const forget = async (): Promise<Erasure> => {
    const documents = await documentsOf(store, known.number);
    const first = documents.slice(0, MEMORY_STORE_LIMITS.erased);
    const { note: _ofFiles, ...erased } = await store.erase(
      { documents: first.map(({ id }) => id) },
      options,
    );
    const isWhole = first.length === documents.length;
    if (erased.deleted && isWhole) {
      const paths = documents.map(({ key }) => docsPlace(key).path);
      await new FolderWorkspaces({ store, embedder }, path, known.number).removeUnused(paths, []);
      await dropFolder(store, known.number);
    }
    return {
      ...erased,
      truncated: !isWhole,
      ...(!(await isGone(path)) && {
        note: `${path} still exists: its documents are stored again when a backend reads it`,
      }),
    };
  };
  // A sync numbers folders, and this one may just become that of a sync.
  const done = options.preview === true ? await forget() : await store.exclusively(DOCS_LOCK, forget);
  if (done === undefined)
    throw new AppError('memory_busy', { message: 'the docs folder is being read: try again in a moment' });
  return done;
}

async function unknownFolder({ store, docsFolder }: Memory, path: string): Promise<AppError> {
  const others = (await listedFolders(store, docsFolder)).map((one) => one.path);
  const known =
    others.length === 0 ? 'there are none of any folder' : `there are those of ${others.join(', ')}`;
  return new AppError('memory_not_found', { message: `no documents of ${path} are stored: ${known}` });
}

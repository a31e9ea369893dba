import { posix } from 'node:path';
import type { Backend } from './documents.ts';
import { workspaceId } from './ids.ts';
import type { NewEntity, Relation } from './store.ts';

/** Stores the folders of documents as workspaces: a document belongs to its folder, a folder to its parent. */
export class FolderWorkspaces {
  readonly #backend: Backend;
  readonly #name: string;
  readonly #stored = new Map<string, Promise<void>>();

  /** @param folder the docs folder; its last path segment names the root workspace */
  constructor(backend: Backend, folder: string) {
    this.#backend = backend;
    this.#name = posix.basename(folder.replaceAll('\\', '/')) || 'docs';
  }

  idFor(path: string): string {
    return workspaceId('folder', folderOf(path));
  }

  /** Stores the parent folders of a document, each once, from the root downwards. Resolves when they are stored. */
  store(path: string): Promise<void> {
    return this.#store(folderOf(path));
  }

  #store(folder: string): Promise<void> {
    let stored = this.#stored.get(folder);
    if (stored === undefined) {
      stored = this.#put(folder).catch((error: unknown) => {
        // The next document of the folder tries again.
        this.#stored.delete(folder);
        throw error;
      });
      this.#stored.set(folder, stored);
    }
    return stored;
  }

  async #put(folder: string): Promise<void> {
    const relations: Relation[] = [];
    if (folder !== '') {
      await this.#store(folderOf(folder));
      relations.push({
        fromId: workspaceId('folder', folder),
        toId: workspaceId('folder', folderOf(folder)),
        relationType: 'BELONGS_TO',
        weight: 1,
      });
    }
    const { store, embedder } = this.#backend;
    await store.putEntities([this.#workspace(folder)], relations, embedder.id);
  }

  #workspace(folder: string): NewEntity {
    return {
      id: workspaceId('folder', folder),
      name: folder === '' ? this.#name : `${this.#name}/${folder}`,
      type: 'workspace',
      content: '',
      metadata: { origin: 'docs_dir', path: folder },
      embedding: undefined,
      searchText: '',
    };
  }
}

/** Empty for the docs folder itself. */
function folderOf(path: string): string {
  const folder = posix.dirname(path);
  return folder === '.' ? '' : folder;
}

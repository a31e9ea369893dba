import { posix } from 'node:path';
import { elementsOf, membersOf, numberIn } from '../../core/foreign.ts';
import { docsKey, docsPlace, FIRST_FOLDER } from './docs-folders.ts';
import type { Backend } from './documents.ts';
import { workspaceId } from './ids.ts';
import { LinkedDocuments } from './markdown/links.ts';
import type { DocumentRecord, Entity, NewEntity, Relation, RelationType, Store } from './store.ts';

/** Documents processed together. */
const PAGE = 200;

/** The documents of a docs folder, whose number it has. */
export interface LinkedFolder {
  readonly number: number;
  readonly documents: readonly DocumentRecord[];
  /** Paths of documents that are new or have new links; undefined for all. */
  readonly changed: ReadonlySet<string> | undefined;
}

/**
 * Creates relations for the links and dependencies between documents of a docs folder. A link to a missing document
 * becomes a relation once the document exists: the metadata of the `doc_file` contains the links.
 */
export async function relateLinks(
  store: Store,
  { number, documents, changed }: LinkedFolder,
  embedder: string,
  signal: AbortSignal,
): Promise<void> {
  const ids = new Map(documents.map(({ key, id }) => [docsPlace(key).path, id]));
  const linked = new LinkedDocuments(ids.keys());
  for (let start = 0; start < documents.length; start += PAGE) {
    signal.throwIfAborted();
    const page = documents.slice(start, start + PAGE);
    const files = await store.entities(page.map(({ id }) => id));
    // Metadata of an imported document is that of its author.
    const isNew = (key: unknown): boolean =>
      changed === undefined || (typeof key === 'string' && changed.has(key));
    const relations: Relation[] = [];
    for (const { id: fromId, metadata } of files) {
      const from = metadata['path'];
      const relate = (toId: string, key: unknown, relationType: RelationType, weight: number): void => {
        if (toId !== fromId && (isNew(from) || isNew(key)))
          relations.push({ fromId, toId, relationType, weight });
      };
      for (const [link, count] of linksIn(metadata)) {
        const target = linked.find(link) ?? '';
        const toId = ids.get(target);
        if (toId !== undefined) relate(toId, target, 'REFERENCES', count);
      }
      for (const name of dependenciesIn(metadata)) {
        const target = linked.find(name) ?? '';
        const toId = ids.get(target);
        if (toId !== undefined) relate(toId, target, 'DEPENDS_ON', 1);
        else
          for (const found of await titled(store, name, number))
            relate(found.id, found.metadata['path'], 'DEPENDS_ON', 1);
      }
    }
    const none: readonly NewEntity[] = [];
    if (relations.length > 0) await store.putEntities(none, joined(relations), embedder);
  }
}

/** `guide` and `guide.md` are two links but one relation. */
function joined(relations: readonly Relation[]): Relation[] {
  const byEnds = new Map<string, Relation>();
  for (const relation of relations) {
    const key = `${relation.fromId} ${relation.toId} ${relation.relationType}`;
    const weight = relation.weight + (byEnds.get(key)?.weight ?? 0);
    byEnds.set(key, { ...relation, weight });
  }
  return [...byEnds.values()];
}

/** The document of the docs folder that has this title, if it is only one. */
async function titled(store: Store, title: string, folder: number): Promise<readonly Entity[]> {
  const files = (await store.byName(title, SAME_TITLE)).filter(
    ({ type, metadata }) =>
      type === 'doc_file' &&
      metadata['origin'] === 'docs_dir' &&
      (numberIn(metadata['folder']) ?? FIRST_FOLDER) === folder,
  );
  return files.length === 1 ? files : [];
}

/** Entities of one name that are looked at. */
const SAME_TITLE = 20;

function dependenciesIn(metadata: Readonly<Record<string, unknown>>): string[] {
  return elementsOf(metadata['dependsOn']).filter((name) => typeof name === 'string');
}

function linksIn(metadata: Readonly<Record<string, unknown>>): [string, number][] {
  return Object.entries(membersOf(metadata['links'])).flatMap(([link, count]) =>
    typeof count === 'number' ? [[link, count]] : [],
  );
}

/** Stores the folders of documents as workspaces: a document belongs to its folder, a folder to its parent. */
export class FolderWorkspaces {
  readonly #backend: Backend;
  readonly #name: string;
  readonly #number: number;
  readonly #stored = new Map<string, Promise<void>>();

  /**
   * @param folder the docs folder; its last path segment names the root workspace
   * @param number that of the docs folder
   */
  constructor(backend: Backend, folder: string, number: number) {
    this.#backend = backend;
    this.#number = number;
    this.#name = posix.basename(folder.replaceAll('\\', '/')) || 'docs';
  }

  idFor(path: string): string {
    return this.#id(folderOf(path));
  }

  #id(folder: string): string {
    return workspaceId('folder', docsKey(this.#number, folder));
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
        fromId: this.#id(folder),
        toId: this.#id(folderOf(folder)),
        relationType: 'BELONGS_TO',
        weight: 1,
      });
    }
    const { store, embedder } = this.#backend;
    await store.putEntities([this.#workspace(folder)], relations, embedder.id);
  }

  /**
   * Removes the folders of documents that are gone and have no others now.
   *
   * @param gone paths of documents that were stored
   * @param left those of all that are stored
   */
  async removeUnused(gone: readonly string[], left: readonly string[]): Promise<void> {
    const used = new Set(left.flatMap(foldersOf));
    const unused = new Set(gone.flatMap(foldersOf).filter((folder) => !used.has(folder)));
    if (left.length === 0) unused.add('');
    const { store } = this.#backend;
    if (unused.size > 0) await store.removeEntities([...unused].map((folder) => this.#id(folder)));
  }

  #workspace(folder: string): NewEntity {
    return {
      id: this.#id(folder),
      name: folder === '' ? this.#name : `${this.#name}/${folder}`,
      type: 'workspace',
      content: '',
      metadata: {
        origin: 'docs_dir',
        path: folder,
        ...(this.#number !== FIRST_FOLDER && { folder: this.#number }),
      },
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

/** The folder of a document, and those above it, without the docs folder itself. */
function foldersOf(path: string): string[] {
  const folders: string[] = [];
  for (let folder = folderOf(path); folder !== ''; folder = folderOf(folder)) folders.push(folder);
  return folders;
}

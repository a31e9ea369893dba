import { resolve } from 'node:path';
import { type DocsFolder, docsFolders, docsKey, documentsOf, FIRST_FOLDER } from './docs-folders.ts';
import { workspaceId } from './ids.ts';
import { LinkedDocuments, pathOfAddress, type SiteBase } from './markdown/links.ts';
import type { Entity, Store } from './store.ts';

/** What is known of the docs folder that a process serves. */
export interface ServedDocs {
  /** Absolute; undefined if there is none. */
  readonly docsFolder?: string | undefined;
  readonly siteBase?: SiteBase | undefined;
}

/**
 * The document or folder that a citation names: what results say of their origin (`guide/setup.md:12#install`, a source of an ingested
 * document, an absolute path in another docs folder), the same with the name of the docs folder or without extension, and the address on
 * the site of the docs folder. The docs folder of this process comes first.
 */
export async function citedBy(store: Store, citation: string, served: ServedDocs): Promise<Entity[]> {
  const spellings = spellingsOf(citation);
  for (const spelling of spellings) {
    const ingested = await store.document('ingest', spelling);
    if (ingested !== undefined) return [...(await store.entities([ingested.id]))];
  }
  const folders = await folderOrder(store, served);
  for (const find of [atPath, asLinked])
    for (const folder of folders) {
      const paths = new Set(
        (await Promise.all(spellings.map((one) => pathsIn(store, one, folder, served)))).flat(),
      );
      const id = await find(store, folder, paths);
      const found = id === undefined ? [] : await store.entities([id]);
      if (found.length > 0) return [...found];
    }
  return [];
}

/** The citation, and the same without anchor and line. */
function spellingsOf(citation: string): string[] {
  const bare = citation.replace(/#.*$/s, '');
  return [...new Set([citation, bare, bare.replace(/:[1-9]\d{0,8}$/, '')])].filter((one) => one !== '');
}

async function folderOrder(store: Store, { docsFolder }: ServedDocs): Promise<DocsFolder[]> {
  const known = await docsFolders(store);
  if (known.length === 0) return [{ number: FIRST_FOLDER, path: docsFolder }];
  const own = docsFolder === undefined ? undefined : resolve(docsFolder);
  return known.sort((left, right) => Number(right.path === own) - Number(left.path === own));
}

/** Paths in a docs folder that may be meant. Empty for the folder itself. */
async function pathsIn(
  store: Store,
  text: string,
  { number, path: folder }: DocsFolder,
  { siteBase }: ServedDocs,
): Promise<string[]> {
  const paths: string[] = [];
  if (folder !== undefined && (text === folder || text.startsWith(`${folder}/`)))
    paths.push(text.slice(folder.length + 1));
  const path = text.replace(/^(?:\.?\/)+/, '').replace(/(?<!\/)\/+$/, '');
  if (path !== '') {
    paths.push(path);
    // With the name of the docs folder, as people see it.
    const [root] = await store.entities([workspaceId('folder', docsKey(number, ''))]);
    if (root !== undefined && path.startsWith(`${root.name}/`)) paths.push(path.slice(root.name.length + 1));
  }
  const onSite = siteBase === undefined ? undefined : pathOfAddress(text, siteBase);
  return onSite === undefined ? paths : [...paths, onSite];
}

async function atPath(
  store: Store,
  { number }: DocsFolder,
  paths: ReadonlySet<string>,
): Promise<string | undefined> {
  for (const path of paths) {
    const document = await store.document('docs_dir', docsKey(number, path));
    const id = document?.id ?? workspaceId('folder', docsKey(number, path));
    if ((await store.entities([id])).length > 0) return id;
  }
  return undefined;
}

/** As a link to it is written: without extension, or for the page of a folder. */
async function asLinked(
  store: Store,
  { number }: DocsFolder,
  paths: ReadonlySet<string>,
): Promise<string | undefined> {
  const documents = await documentsOf(store, number);
  const ids = new Map(documents.map(({ key, id }) => [key, id]));
  const linked = new LinkedDocuments([...ids.keys()].map((key) => key.slice(docsKey(number, '').length)));
  for (const path of paths) {
    const found = linked.find(path);
    if (found !== undefined) return ids.get(docsKey(number, found));
  }
  return undefined;
}

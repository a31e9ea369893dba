// Documents belong to the folder that brought them. The first folder of a memory has number 1, and its documents have their paths as
// keys; those of further folders have the number in front, which no path begins with (docs/decisions).
import { realpath, stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { elementsOf, errorCode, membersOf, numberIn, stringIn } from '../../core/foreign.ts';
import { type DocsScan, readDocument } from './docs-scan.ts';
import { contentHash } from './documents.ts';
import type { DocumentRecord, Entity, Store } from './store.ts';

/** A folder whose documents a memory has. */
export interface DocsFolder {
  readonly number: number;
  /** Absolute; undefined for documents of a version that did not keep it. */
  readonly path: string | undefined;
}

/** A docs folder as it is listed. */
export interface ListedFolder {
  readonly path: string;
  /** Whether this backend reads it. */
  readonly isServed: boolean;
  /** Whether there is nothing at its path: the documents stay until they are deleted. */
  readonly isGone: boolean;
}

const NOTE = 'docs-folders';
/** Number of the first docs folder of a memory. */
export const FIRST_FOLDER = 1;
/** A path in a folder never begins with a slash. */
const NUMBERED = /^\/([1-9]\d{0,8})\/(.*)$/s;

/** The key of a document, or of a folder inside, of the docs folder with this number. */
export function docsKey(folder: number, path: string): string {
  return folder === FIRST_FOLDER ? path : `/${folder}/${path}`;
}

/** Number of the docs folder, and path in it, of a key. */
export function docsPlace(key: string): { readonly folder: number; readonly path: string } {
  const [, folder, path] = NUMBERED.exec(key) ?? [];
  return folder === undefined || path === undefined
    ? { folder: FIRST_FOLDER, path: key }
    : { folder: Number(folder), path };
}

/** Documents of one docs folder, of all that are stored. */
export async function documentsOf(store: Store, folder: number): Promise<DocumentRecord[]> {
  return (await store.documents('docs_dir')).filter(({ key }) => docsPlace(key).folder === folder);
}

/** The folders whose documents the memory has, by number. */
export async function docsFolders(store: Store): Promise<DocsFolder[]> {
  return elementsOf(membersOf(await store.note(NOTE))['folders']).flatMap((one) => {
    const { number, path } = membersOf(one);
    const known = numberIn(number);
    return known === undefined ? [] : [{ number: known, path: stringIn(path) }];
  });
}

/**
 * The folders whose documents the memory has, as far as their paths are known.
 *
 * @param current the docs folder of this process
 */
export async function listedFolders(store: Store, current: string | undefined): Promise<ListedFolder[]> {
  const own = current === undefined ? undefined : resolve(current);
  const listed = (await docsFolders(store)).map(async ({ path }) =>
    path === undefined ? [] : [{ path, isServed: path === own, isGone: await isGone(path) }],
  );
  return (await Promise.all(listed)).flat();
}

/** Forgets a docs folder that has no documents any more. */
export async function dropFolder(store: Store, number: number): Promise<void> {
  const left = (await docsFolders(store)).filter((one) => one.number !== number);
  await store.setNote(NOTE, { folders: left });
}

/**
 * The number of a docs folder, which it keeps; undefined for one that has brought no documents yet. A folder that has moved keeps its documents: it takes over those of a folder that is gone, or
 * whose path is not known, if it has at least half of them unchanged.
 *
 * @param folder absolute path
 * @param scan what is in it
 * @throws the signal's reason
 */
export async function numberOfFolder(
  store: Store,
  folder: string,
  scan: DocsScan,
  signal: AbortSignal,
): Promise<number | undefined> {
  const path = resolve(folder);
  const stored = await store.documents('docs_dir');
  const noted = await docsFolders(store);
  // The documents of an earlier version have no folder yet.
  const known: readonly DocsFolder[] =
    noted.length === 0 && stored.length > 0 ? [{ number: FIRST_FOLDER, path: undefined }] : noted;
  const itself =
    known.find((one) => one.path === path) ?? (await firstWith(known, (one) => isSame(one.path, path)));
  if (itself !== undefined) return itself.number;
  // It may be mounted later: which folder it is shows only then.
  if (scan.files.length === 0) return undefined;
  const moved = await firstWith(known, async (one) => {
    const own = stored.filter(({ key }) => docsPlace(key).folder === one.number);
    return (await isGone(one.path)) && (await hasHalf(store, own, scan, signal));
  });
  const number = moved?.number ?? 1 + Math.max(FIRST_FOLDER - 1, ...known.map((one) => one.number));
  const others = known.filter((one) => one.number !== number);
  await store.setNote(NOTE, { folders: [...others, { number, path }] });
  return number;
}

async function firstWith(
  folders: readonly DocsFolder[],
  test: (folder: DocsFolder) => Promise<boolean>,
): Promise<DocsFolder | undefined> {
  for (const folder of folders) if (await test(folder)) return folder;
  return undefined;
}

/** Whether two paths lead to one folder, as with a symbolic link. */
async function isSame(path: string | undefined, other: string): Promise<boolean> {
  if (path === undefined) return false;
  const [left, right] = await Promise.all([path, other].map((one) => realpath(one).catch(() => undefined)));
  return left !== undefined && left === right;
}

export async function isGone(path: string | undefined): Promise<boolean> {
  if (path === undefined) return true;
  return stat(path).then(
    () => false,
    (error: unknown) => errorCode(error) === 'ENOENT',
  );
}

/** Whether a folder has at least half of these documents, at the same paths and with the same bytes. */
async function hasHalf(
  store: Store,
  documents: readonly DocumentRecord[],
  { files, isComplete }: DocsScan,
  signal: AbortSignal,
): Promise<boolean> {
  const enough = (isComplete ? documents.length : Math.min(documents.length, files.length)) / 2;
  const byPath = new Map(files.map(({ path, file }) => [path, file]));
  let same = 0;
  for (const { id, key } of documents) {
    signal.throwIfAborted();
    const { path } = docsPlace(key);
    const file = byPath.get(path);
    if (file === undefined) continue;
    const [stored] = await store.entities([id]);
    const hash = stored?.metadata['contentHash'];
    const text = await readDocument(file).catch(() => undefined);
    if (text !== undefined && (hash === contentHash(text) || hash === hashOfRelease020(path, text)))
      same += 1;
  }
  return same > 0 && same >= enough;
}

/** Releases until 0.2.0, which kept no folders, hashed the path of a document with its text. */
function hashOfRelease020(path: string, text: string): string {
  // The title and the source, which documents of a docs folder did not have, came before it.
  return contentHash(`${JSON.stringify([null, null, path])}\0${text}`);
}

/** Metadata of an entity, with the place of its document as readers know it. */
export type DocsPlaces = (metadata: Entity['metadata']) => Entity['metadata'];

/**
 * Says where passages are from: a document of the docs folder that is served has its path there; one of another folder its absolute
 * path, by which it can be opened and which no other document has.
 *
 * @param current the docs folder of this process
 */
export async function docsPlaces(store: Store, current: string | undefined): Promise<DocsPlaces> {
  const folders = await docsFolders(store);
  if (folders.length < 2) return (metadata) => metadata;
  const own = current === undefined ? undefined : resolve(current);
  const paths = new Map(folders.map(({ number, path }) => [number, path]));
  return (metadata) => {
    const { path, folder: number, origin } = metadata;
    if (typeof path !== 'string' || origin !== 'docs_dir') return metadata;
    const folder = paths.get(numberIn(number) ?? FIRST_FOLDER);
    if (folder === undefined) return metadata;
    const shown = folder === own ? path : path === '' ? folder : `${folder}/${path}`;
    return { ...metadata, path: shown, source: shown, folder };
  };
}

import { docsKey, docsPlace } from './docs-folders.ts';
import { type DocsFile, readDocument } from './docs-scan.ts';
import { contentHash } from './documents.ts';
import type { DocumentRecord, DocumentRename, Store } from './store.ts';

/** Documents that are read together, and renamed in one transaction. */
const TOGETHER = 200;

/**
 * Gives documents whose file is gone the path of a new file with the same bytes. Nothing else counts as a rename: a likeness could join
 * two different documents. A path that is still there keeps its document, whatever its file contains now.
 *
 * @param folder number of the docs folder
 * @param known what is stored of it
 * @param files what the folder has; must be complete
 * @returns their number
 * @throws the signal's reason
 */
export async function renameMoved(
  store: Store,
  folder: number,
  known: readonly DocumentRecord[],
  files: readonly DocsFile[],
  signal: AbortSignal,
): Promise<number> {
  const there = new Set(files.map(({ path }) => path));
  const gone = known.filter(({ key }) => !there.has(docsPlace(key).path));
  if (gone.length === 0) return 0;
  const stored = new Set(known.map(({ key }) => docsPlace(key).path));
  const fresh = files.filter(({ path }) => !stored.has(path));
  if (fresh.length === 0) return 0;
  const left = await hashesOf(store, gone, signal);
  const arrived: Hashed[] = [];
  for (const { path, file } of fresh) {
    signal.throwIfAborted();
    const hash = await hashOfFile(file);
    if (hash !== undefined && left.has(hash)) arrived.push({ path, hash });
  }
  const renames = [...Map.groupBy(arrived, ({ hash }) => hash)].flatMap(([hash, some]) =>
    paired(
      left.get(hash) ?? [],
      some.map(({ path }) => path),
    ),
  );
  let count = 0;
  for (let start = 0; start < renames.length; start += TOGETHER) {
    signal.throwIfAborted();
    count += await store.renameDocuments(
      'docs_dir',
      renames
        .slice(start, start + TOGETHER)
        .map(({ from, to }) => ({ from: docsKey(folder, from), to: docsKey(folder, to) })),
    );
  }
  return count;
}

interface Hashed {
  readonly path: string;
  readonly hash: string;
}

/** Paths of stored documents, by the hash of their text. */
async function hashesOf(
  store: Store,
  documents: readonly DocumentRecord[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const paths = new Map<string, string[]>();
  for (let start = 0; start < documents.length; start += TOGETHER) {
    signal.throwIfAborted();
    const page = documents.slice(start, start + TOGETHER);
    const hashes = new Map(
      (await store.entities(page.map(({ id }) => id))).map(({ id, metadata }) => [
        id,
        metadata['contentHash'],
      ]),
    );
    for (const { id, key } of page) {
      const hash = hashes.get(id);
      if (typeof hash !== 'string') continue;
      const same = paths.get(hash);
      const { path } = docsPlace(key);
      if (same === undefined) paths.set(hash, [path]);
      else same.push(path);
    }
  }
  return paths;
}

/** Undefined for a file that cannot be read, which the sync reports. */
async function hashOfFile(file: string): Promise<string | undefined> {
  try {
    return contentHash(await readDocument(file));
  } catch {
    return undefined;
  }
}

/** Pairs equal files: those whose paths have most in common at their end first, as in a folder that was moved. */
function paired(from: readonly string[], to: readonly string[]): DocumentRename[] {
  const renames: DocumentRename[] = [];
  let left = [...from];
  let open = [...to];
  const depth = Math.max(...[...from, ...to].map((path) => path.split('/').length));
  for (let length = depth; length >= 0 && left.length > 0 && open.length > 0; length -= 1) {
    const endOf = (path: string): string => (length === 0 ? '' : path.split('/').slice(-length).join('/'));
    const byEnd = Map.groupBy(open, endOf);
    left = left.filter((path) => {
      const target = byEnd.get(endOf(path))?.shift();
      if (target !== undefined) renames.push({ from: path, to: target });
      return target === undefined;
    });
    open = [...byEnd.values()].flat();
  }
  return renames;
}

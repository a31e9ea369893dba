import { isUtf8 } from 'node:buffer';
import { constants, type Dirent } from 'node:fs';
import { open, readdir, realpath, stat } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { messageOf } from '../../core/errors.ts';
import { errorCode } from '../../core/foreign.ts';
import { MEMORY_STORE_LIMITS } from '../../core/memory-limits.ts';
import { checkDocumentSize } from './documents.ts';

export interface DocsFile {
  /** Path in the docs folder, with `/` on every system; the key of the document. */
  readonly path: string;
  /** The real path of the file. */
  readonly file: string;
}

export interface DocsScan {
  /** Real paths of the folders that were read. */
  readonly folders: readonly string[];
  /** Sorted by path. */
  readonly files: readonly DocsFile[];
  readonly errors: readonly { readonly path: string; readonly message: string }[];
  /** Whether every folder could be read; only then is a file that is not listed known to be deleted. */
  readonly isComplete: boolean;
}

const DOCUMENT = /\.mdx?$/i;

interface Folder {
  readonly path: string;
  readonly file: string;
  readonly depth: number;
}

class Scan {
  readonly #root: string;
  readonly #entering: ((folder: string) => void) | undefined;
  readonly #seen = new Set<string>();
  readonly #links: Folder[] = [];
  readonly folders: string[] = [];
  readonly files: DocsFile[] = [];
  readonly errors: { path: string; message: string }[] = [];
  isComplete = true;

  constructor(root: string, entering: ((folder: string) => void) | undefined) {
    this.#root = root;
    this.#entering = entering;
  }

  /** Real files come first: a symbolic link to one of them is not a second document. */
  async run(signal: AbortSignal | undefined): Promise<void> {
    await this.#folders([{ path: '', file: this.#root, depth: 0 }], signal);
    for (let link = this.#links.shift(); link !== undefined; link = this.#links.shift()) {
      signal?.throwIfAborted();
      await this.#link(link, signal);
    }
    this.files.sort((left, right) => (left.path < right.path ? -1 : 1));
  }

  #fail(path: string, message: string): void {
    this.errors.push({ path, message });
  }

  async #folders(waiting: Folder[], signal: AbortSignal | undefined): Promise<void> {
    for (let folder = waiting.shift(); folder !== undefined; folder = waiting.shift()) {
      signal?.throwIfAborted();
      if (this.#seen.has(folder.file)) continue;
      this.#seen.add(folder.file);
      if (folder.depth > MEMORY_STORE_LIMITS.folderDepth) {
        this.isComplete = false;
        this.#fail(
          folder.path,
          `folders nested deeper than ${MEMORY_STORE_LIMITS.folderDepth} levels are not read`,
        );
        continue;
      }
      this.folders.push(folder.file);
      this.#entering?.(folder.file);
      waiting.push(...(await this.#folder(folder)));
    }
  }

  /** Collects the documents of a folder and returns its subfolders. */
  async #folder({ path, file, depth }: Folder): Promise<Folder[]> {
    let entries: Dirent[];
    try {
      entries = await readdir(file, { withFileTypes: true });
    } catch (error) {
      // The caller reports an unreadable docs folder.
      if (path === '') throw error;
      this.isComplete = false;
      this.#fail(path, `the folder cannot be read: ${messageOf(error)}`);
      return [];
    }
    const folders: Folder[] = [];
    for (const entry of entries.sort((left, right) => (left.name < right.name ? -1 : 1))) {
      // Skips hidden entries: `.git`, and the `..data` folders that Kubernetes creates for mounted files.
      if (entry.name.startsWith('.') || entry.name === 'node_modules') continue;
      const inside = {
        path: path === '' ? entry.name : `${path}/${entry.name}`,
        file: join(file, entry.name),
      };
      if (entry.isSymbolicLink()) this.#links.push({ ...inside, depth: depth + 1 });
      else if (entry.isDirectory()) folders.push({ ...inside, depth: depth + 1 });
      else if (entry.isFile()) this.#document(inside);
    }
    return folders;
  }

  #document({ path, file }: DocsFile): void {
    if (!DOCUMENT.test(path) || this.#seen.has(file)) return;
    if (this.files.length >= MEMORY_STORE_LIMITS.documents) {
      if (this.isComplete)
        this.#fail(path, `documents beyond the first ${MEMORY_STORE_LIMITS.documents} are not read`);
      this.isComplete = false;
      return;
    }
    this.#seen.add(file);
    this.files.push({ path, file });
  }

  async #link(link: Folder, signal: AbortSignal | undefined): Promise<void> {
    try {
      const file = await realpath(link.file);
      const kind = await stat(file);
      if (!kind.isDirectory() && !DOCUMENT.test(link.path)) return;
      if (file !== this.#root && !file.startsWith(this.#root + sep)) {
        this.#fail(link.path, 'a symbolic link that leads outside of the docs folder is not followed');
      } else if (kind.isDirectory()) await this.#folders([{ ...link, file }], signal);
      else if (kind.isFile()) this.#document({ path: link.path, file });
    } catch (error) {
      signal?.throwIfAborted();
      if (DOCUMENT.test(link.path)) this.#fail(link.path, linkProblem(error));
    }
  }
}

/**
 * Lists the documents of a folder: `.md` and `.mdx` files that are not hidden. Follows symbolic links only within the
 * folder.
 *
 * @param entering called with each folder (real path) before it is read
 * @throws the system's error if the folder itself cannot be read, and the signal's reason
 */
export async function scanDocs(
  folder: string,
  signal?: AbortSignal,
  entering?: (folder: string) => void,
): Promise<DocsScan> {
  const scan = new Scan(await realpath(folder), entering);
  await scan.run(signal);
  return scan;
}

function linkProblem(error: unknown): string {
  const code = errorCode(error);
  if (code === 'ENOENT') return 'the symbolic link leads to nothing: remove it, or restore what it leads to';
  return code === 'ELOOP' ? 'the symbolic link leads to itself: remove it' : messageOf(error);
}

/** Node.js puts it in place of bytes of a file name that are not UTF-8. */
const REPLACEMENT = '\ufffd';

/** Why a document cannot be read. */
export function readProblem(path: string, error: unknown): string {
  return errorCode(error) === 'ENOENT' && path.includes(REPLACEMENT)
    ? 'the name of the file or of a folder above it is not UTF-8: rename it'
    : messageOf(error);
}

/**
 * Reads a document as text.
 *
 * @throws AppError `body_too_large`, an error if it is not UTF-8, and the system's errors
 */
export async function readDocument(file: string): Promise<string> {
  // A file may have been replaced by a link or a pipe since it was listed.
  const handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const status = await handle.stat();
    if (!status.isFile()) throw new Error('it is no longer a file');
    checkDocumentSize(status.size);
    const bytes = await handle.readFile();
    if (!isUtf8(bytes)) throw new Error('it is not UTF-8 text: save it as UTF-8');
    return bytes.toString('utf8');
  } finally {
    await handle.close();
  }
}

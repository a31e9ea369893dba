import { createReadStream } from 'node:fs';
import { readdir, realpath, stat } from 'node:fs/promises';
import { basename, dirname, join, relative, sep } from 'node:path';
import type { StoredFile } from './manifest.ts';
import { Budget, type ModelSource, refuseSource, staysInside, storeFile } from './model-source.ts';

/** Folders that contain no model, and may contain very many files. */
const SKIPPED = new Set(['.git', 'node_modules', '__pycache__']);

/** A folder on this machine. */
export function folderSource(folder: string): ModelSource {
  return {
    async list() {
      const found: string[] = [];
      const budget = new Budget(folder);
      const open = [''];
      for (let inside = open.pop(); inside !== undefined; inside = open.pop())
        for (const entry of await readdir(join(folder, inside), { withFileTypes: true })) {
          budget.addFile();
          const path = inside === '' ? entry.name : `${inside}/${entry.name}`;
          if (!entry.isDirectory()) found.push(path);
          else if (!SKIPPED.has(entry.name)) open.push(path);
        }
      return found;
    },
    async copy(files) {
      const budget = new Budget(folder);
      const stored = new Map<string, StoredFile>();
      const root = await rootOf(folder);
      for (const [path, target] of files) {
        const real = await realpath(join(folder, path));
        if (!staysInside(relative(root, real)))
          refuseSource(
            folder,
            `${path} is a symbolic link to a file outside the folder: put the file itself there`,
          );
        if (!(await stat(real)).isFile()) refuseSource(folder, `${path} is not a file`);
        stored.set(path, await storeFile(createReadStream(real), target, budget));
      }
      return stored;
    },
  };
}

/** The folder; in the cache of Hugging Face, whose files are links to `blobs`, the folder of the model there. */
async function rootOf(folder: string): Promise<string> {
  const real = await realpath(folder);
  const model = dirname(dirname(real));
  const isCache = basename(dirname(real)) === 'snapshots' && basename(model).startsWith(`models--`);
  return isCache ? model : real.endsWith(sep) ? real.slice(0, -1) : real;
}

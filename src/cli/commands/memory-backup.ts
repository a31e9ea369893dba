import { createWriteStream, existsSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { DATABASE_FILE, namespaceFolder } from '../../adapter/memory/sqlite/namespace-folder.ts';
import { DEFAULT_NAMESPACE, isNamespace } from '../../adapter/namespace.ts';
import { messageOf } from '../../core/errors.ts';
import { CommandError, EXIT_CODES } from '../../core/exit-codes.ts';
import { elementsOf, membersOf } from '../../core/foreign.ts';
import { makeFolder } from '../../core/make-folder.ts';
import { MEMORY_STORE_LIMITS } from '../../core/memory-limits.ts';
import { counted } from '../../core/render/counted.ts';
import type { Run } from '../context.ts';
import { namespaceFrom } from '../memory/options.ts';
import { membersIn, type RestOptions, request, streamOf, unexpected } from '../memory/rest.ts';

interface Options extends RestOptions {
  readonly operands: readonly string[];
}

/**
 * Copies one namespace of a running backend to a file, or all of them to a folder with the layout of `--data`. Each
 * namespace is copied in one consistent state; nothing that exists is overwritten.
 */
export const run: Run<Options> = async ({ operands: [target = ''], namespace, memoryApiUrl }, context) => {
  const get: Get = (path) =>
    request(memoryApiUrl === undefined ? {} : { memoryApiUrl }, context, `/namespaces${path}`);
  const only = namespaceFrom(namespace);
  const path = resolve(context.cwd, target);
  if (only !== undefined) {
    if (existsSync(path)) throw new CommandError('usage', `${path} exists: name another file`);
    await copy(get, only, path);
    context.stderr.write(`copied namespace ${only} to ${path}\n`);
    return EXIT_CODES.ok.code;
  }
  if (existsSync(path) && !isEmptyFolder(path))
    throw new CommandError('usage', `${path} exists: name a new or empty folder`);
  let count = 0;
  for await (const name of namespaces(get)) {
    const folder = name === DEFAULT_NAMESPACE ? path : namespaceFolder(path, name);
    await copy(get, name, join(folder, DATABASE_FILE));
    count += 1;
  }
  context.stderr.write(`copied ${counted(count, 'namespace')} to ${path}\n`);
  return EXIT_CODES.ok.code;
};

function isEmptyFolder(path: string): boolean {
  try {
    return readdirSync(path).length === 0;
  } catch {
    return false;
  }
}

/** Requests a path below `/namespaces`. */
type Get = (path: string) => Promise<Response>;

/** Names of all namespaces. */
async function* namespaces(get: Get): AsyncGenerator<string> {
  // A backend has at most so many; one that repeats a page would be asked for ever.
  const seen = new Set<string>();
  for (let cursor: unknown = ''; typeof cursor === 'string'; ) {
    const query = cursor === '' ? '' : `?cursor=${encodeURIComponent(cursor)}`;
    const page = await membersIn(await get(query));
    if (!Array.isArray(page['namespaces'])) throw unexpected();
    const before = seen.size;
    for (const item of elementsOf(page['namespaces'])) {
      const { name } = membersOf(item);
      if (!isNamespace(name) || seen.has(name)) continue;
      seen.add(name);
      yield name;
    }
    cursor = page['nextCursor'];
    if (typeof cursor === 'string' && (seen.size === before || seen.size > MEMORY_STORE_LIMITS.namespaces))
      throw unexpected();
  }
}

/** Appears under its name when it is complete. */
async function copy(get: Get, namespace: string, path: string): Promise<void> {
  const bytes = streamOf(await get(`/${encodeURIComponent(namespace)}/backup`));
  const partial = `${path}.partial`;
  try {
    makeFolder(dirname(path), 0o700);
    // On disk before it gets its name.
    const file = createWriteStream(partial, { mode: 0o600, flush: true });
    await pipeline(bytes, file);
    renameSync(partial, path);
  } catch (error) {
    rmSync(partial, { force: true });
    throw new CommandError('not_ok', `${path} could not be written: ${messageOf(error)}`);
  }
}

import { createWriteStream, existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { memoryApiUrl } from '../../adapter/base-url.ts';
import { DATABASE_FILE, namespaceFolder } from '../../adapter/memory/sqlite/namespace-folder.ts';
import { DEFAULT_NAMESPACE, isNamespace } from '../../adapter/namespace.ts';
import { messageOf } from '../../core/errors.ts';
import { CommandError, EXIT_CODES } from '../../core/exit-codes.ts';
import { counted } from '../../core/render/counted.ts';
import type { Run } from '../context.ts';
import { apiKeyFrom, namespaceFrom } from '../memory/options.ts';

interface Options {
  readonly operands: readonly string[];
  readonly namespace?: string;
  readonly memoryApiUrl?: string;
}

/** The backend of `agctl memory serve` and `agctl memory-backend serve` on this machine. */
const LOCAL = 'http://127.0.0.1:3006';

/**
 * Copies one namespace of a running backend to a file, or all of them to a folder with the layout of `--data`. Each
 * namespace is copied in one consistent state; nothing that exists is overwritten.
 */
export const run: Run<Options> = async ({ operands, namespace, memoryApiUrl: url }, context) => {
  const [target = ''] = operands;
  const base = memoryApiUrl(url ?? context.env['MEMORY_API_URL'] ?? LOCAL);
  const key = apiKeyFrom(context);
  const backend = new BackendFiles(base, key === undefined ? {} : { authorization: `Bearer ${key}` });
  const only = namespaceFrom(namespace);
  const path = resolve(context.cwd, target);
  if (only !== undefined) {
    if (existsSync(path)) throw new CommandError('usage', `${path} exists: name another file`);
    await backend.copy(only, path);
    context.stderr.write(`copied namespace ${only} to ${path}\n`);
    return EXIT_CODES.ok.code;
  }
  if (existsSync(path) && !isEmptyFolder(path))
    throw new CommandError('usage', `${path} exists: name a new or empty folder`);
  let count = 0;
  for await (const name of backend.namespaces()) {
    const folder = name === DEFAULT_NAMESPACE ? path : namespaceFolder(path, name);
    await backend.copy(name, join(folder, DATABASE_FILE));
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

class BackendFiles {
  readonly #base: URL;
  readonly #headers: Readonly<Record<string, string>>;

  constructor(base: URL, headers: Readonly<Record<string, string>>) {
    this.#base = base;
    this.#headers = headers;
  }

  /** Names of all namespaces. */
  async *namespaces(): AsyncGenerator<string> {
    for (let cursor: string | null = ''; cursor !== null; ) {
      const query = cursor === '' ? '' : `?cursor=${encodeURIComponent(cursor)}`;
      const page = (await (await this.#get(`/namespaces${query}`)).json()) as {
        readonly namespaces: readonly { readonly name: unknown }[];
        readonly nextCursor: string | null;
      };
      for (const { name } of page.namespaces) if (isNamespace(name)) yield name;
      cursor = page.nextCursor;
    }
  }

  /** Appears under its name when it is complete. */
  async copy(namespace: string, path: string): Promise<void> {
    const response = await this.#get(`/namespaces/${encodeURIComponent(namespace)}/backup`);
    const partial = `${path}.partial`;
    try {
      mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
      // On disk before it gets its name.
      const file = createWriteStream(partial, { mode: 0o600, flush: true });
      await pipeline(Readable.fromWeb(response.body as never), file);
      renameSync(partial, path);
    } catch (error) {
      rmSync(partial, { force: true });
      throw new CommandError('not_ok', `${path} could not be written: ${messageOf(error)}`);
    }
  }

  async #get(path: string): Promise<Response> {
    let response: Response;
    try {
      response = await fetch(`${this.#base.href}${path}`, { headers: this.#headers, redirect: 'error' });
    } catch {
      throw new CommandError(
        'not_ok',
        `the memory backend at ${this.#base.origin} cannot be reached`,
        'start it, or name its address with --memory-api-url; the folder of a stopped backend can simply be copied',
      );
    }
    if (response.ok) return response;
    const body = (await response.json().catch(() => undefined)) as
      | { error?: { message?: unknown } }
      | undefined;
    const reason =
      typeof body?.error?.message === 'string' ? body.error.message : `status ${response.status}`;
    const hint = [401, 403].includes(response.status)
      ? 'set MEMORY_API_KEY to the key of the backend'
      : undefined;
    throw new CommandError('not_ok', `the memory backend answered: ${reason}`, hint);
  }
}

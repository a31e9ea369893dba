import { mkdirSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { createHashEmbedder } from '../../src/adapter/memory/embed/hash-embedder.ts';
import { createMemoryApp } from '../../src/adapter/memory/http/app.ts';
import { createMemories, type Memories } from '../../src/adapter/memory/memories.ts';
import type { Memory, MemoryOptions } from '../../src/adapter/memory/memory.ts';
import { openStore } from '../../src/adapter/memory/open-store.ts';
import type { NamespacedStore } from '../../src/adapter/memory/store.ts';
import type { NamespaceKeys } from '../../src/adapter/namespace-keys.ts';
import { createLog } from '../../src/core/log.ts';
import { temporaryFolder } from './folder.ts';
import type { Json } from './mcp.ts';

export interface RestReply {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Json;
}

/** A real memory backend in this process, on a free port, with a folder of its own. */
export interface TestBackend extends AsyncDisposable {
  readonly url: string;
  readonly docs: string;
  readonly data: string;
  /** That of `default`. */
  readonly memory: Memory;
  readonly memories: Memories;
  readonly log: readonly string[];
  get(path: string, headers?: Record<string, string>): Promise<RestReply>;
  post(path: string, body?: unknown, headers?: Record<string, string>): Promise<RestReply>;
  delete(path: string): Promise<RestReply>;
}

export interface TestBackendOptions extends Partial<Omit<MemoryOptions, 'store'>> {
  readonly store?: NamespacedStore;
  /** Files of the docs folder, by path. */
  readonly docs?: Readonly<Record<string, string>>;
  readonly key?: string;
  readonly namespaceKeys?: NamespaceKeys;
  readonly requiresNamespace?: boolean;
  /** Do not wait for the first sync. */
  readonly isStarting?: boolean;
  /** Folder of a built dashboard. */
  readonly pages?: string;
  readonly allowedHosts?: readonly string[];
  /** Folder of a store that exists already. */
  readonly data?: string;
}

/** Starts one, and waits for its first sync, unless told otherwise. */
export async function memoryBackend(options: TestBackendOptions = {}): Promise<TestBackend> {
  const folder = await temporaryFolder();
  const { docs = {}, key, pages, isStarting = false, allowedHosts = [] } = options;
  const { namespaceKeys, requiresNamespace = false } = options;
  const { data = join(folder.path, 'data'), ...more } = options;
  const files = join(folder.path, 'docs');
  writeFiles(files, docs);
  const lines: string[] = [];
  const sink = { write: (line: string) => void lines.push(line), dropped: 0, flush: () => Promise.resolve() };
  const log = createLog(sink, 'debug', 'text');
  const memories = createMemories({
    store: await openStore({ dataDir: data, log }),
    embedder: createHashEmbedder(),
    docsFolder: files,
    indexesChat: false,
    log,
    ...more,
  });
  const app = await createMemoryApp({
    memories,
    log,
    pages,
    access: { key, namespaceKeys, requiresNamespace, allowedHosts: new Set(allowedHosts) },
  });
  await app.listen({ host: '127.0.0.1', port: 0 });
  const url = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;
  const synced = memories.start();
  if (!isStarting) await synced;
  const call = async (path: string, init: RequestInit): Promise<RestReply> => {
    const response = await fetch(`${url}${path.startsWith('/') ? path : `/api/memory/${path}`}`, init);
    const text = await response.text();
    const isJson = response.headers.get('content-type')?.includes('json');
    return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text };
  };
  return {
    url,
    docs: files,
    data,
    memory: memories.default,
    memories,
    log: lines,
    get: (path, headers = {}) => call(path, { headers }),
    delete: (path) => call(path, { method: 'DELETE' }),
    post: (path, body, headers = {}) =>
      call(path, {
        method: 'POST',
        headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
        ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      }),
    [Symbol.asyncDispose]: async () => {
      app.server.closeAllConnections();
      await app.close();
      await memories.close();
      await folder.remove();
    },
  };
}

export function writeFiles(folder: string, files: Readonly<Record<string, string>>): void {
  mkdirSync(folder, { recursive: true });
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
}

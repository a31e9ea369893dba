import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from './folder.ts';
import { writeFiles } from './memory-backend.ts';
import { type RunOptions, type ServeProcess, service } from './process.ts';

/** The memory service as users run it: processes of `agctl`, with a folder of their own. Leaving its scope kills them. */
export interface MemoryProcesses extends AsyncDisposable {
  /** The adapter's MCP endpoint. */
  readonly mcp: string;
  /** The backend's REST interface. */
  readonly api: string;
  readonly folder: string;
  readonly adapter: ServeProcess;
  readonly backend: ServeProcess;
}

/** Adapter and backend as two processes, on free ports. */
export async function memoryProcesses(docs: Readonly<Record<string, string>>): Promise<MemoryProcesses> {
  const folder = await temporaryFolder();
  writeFiles(join(folder.path, 'docs'), docs);
  const backend = await service(['memory-backend', 'serve', '--port', '0'], {
    env: {
      MEMORY_DATA_DIR: join(folder.path, 'data'),
      MEMORY_DOCS_DIR: join(folder.path, 'docs'),
      MEMORY_API_KEY: 'shared-key',
    },
  });
  const adapter = await service(['memory-adapter', 'serve'], {
    env: {
      PORT: '0',
      MEMORY_API_URL: backend.url,
      MEMORY_API_KEY: 'shared-key',
      MEMORY_ADAPTER_KEY: 'key-of-the-adapter',
    },
  });
  return {
    mcp: `${adapter.url}/mcp`,
    api: `${backend.url}/api/memory`,
    folder: folder.path,
    adapter,
    backend,
    [Symbol.asyncDispose]: async () => {
      await adapter[Symbol.asyncDispose]();
      await backend[Symbol.asyncDispose]();
      await folder.remove();
    },
  };
}

/** `agctl memory serve` on free ports. */
export function memoryServe(folder: string, options: RunOptions = {}): Promise<ServeProcess> {
  mkdirSync(join(folder, 'docs'), { recursive: true });
  const args = [
    '--port',
    '0',
    '--backend-port',
    '0',
    '--data',
    join(folder, 'data'),
    '--docs',
    join(folder, 'docs'),
  ];
  return service(['memory', 'serve', ...args], options);
}

/** An address that a service names in its banner. */
export function addressOf({ stderr }: ServeProcess, name: 'mcp' | 'api' | 'ui'): string {
  const found = new RegExp(`^  ${name} +(http\\S+)$`, 'm').exec(stderr)?.[1];
  if (found === undefined) throw new Error(`no ${name} in: ${stderr}`);
  return found;
}

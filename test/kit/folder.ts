import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A folder of its own, removed when its scope is left. */
export async function temporaryFolder(): Promise<
  { path: string; remove(): Promise<void> } & AsyncDisposable
> {
  const path = await mkdtemp(join(tmpdir(), 'agctl-test-'));
  // Again, because Node.js writes its cache of compiled code while a process ends.
  const remove = (): Promise<void> => rm(path, { recursive: true, force: true, maxRetries: 10 });
  return { path, remove, [Symbol.asyncDispose]: remove };
}

/** A path where a unix socket can be made; `remove` takes its folder away. */
export async function temporarySocket(): Promise<{ path: string; remove(): Promise<void> }> {
  const { path, remove } = await temporaryFolder();
  return { path: join(path, 's.sock'), remove };
}

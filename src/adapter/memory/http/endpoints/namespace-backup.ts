import { createReadStream } from 'node:fs';
import { z } from 'zod';
import { defineEndpointForAll, namespaceName } from '../endpoint.ts';
import { MemoryError } from '../memory-error.ts';

const LOCK = 'backup';

/** A consistent copy of one namespace, as SQLite database. One backup runs at a time, because each takes disk space. */
export const namespaceBackup = defineEndpointForAll({
  method: 'GET',
  path: '/namespaces/:name/backup',
  params: z.strictObject({ name: namespaceName }),
  async run({ params: { name }, memories: { store } }) {
    const backup = await store.exclusively(LOCK, () => store.backup(name));
    if (backup === undefined)
      throw new MemoryError('memory_busy', 'another backup is being written, try again in a moment');
    const stream = createReadStream(backup.path);
    // Also when the caller disconnects.
    stream.once('close', () => void backup.discard());
    return { body: stream };
  },
});

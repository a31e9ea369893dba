import { createReadStream } from 'node:fs';
import { z } from 'zod';
import { DEFAULT_NAMESPACE, isNamespace } from '../../../namespace.ts';
import { defineEndpointForAll, NOT_A_CURSOR, namespaceName, pageLimit } from '../endpoint.ts';
import { MemoryError } from '../memory-error.ts';

/** The namespaces by name, with their sizes. */
export const namespaces = defineEndpointForAll({
  method: 'GET',
  path: '/namespaces',
  query: z.strictObject({
    limit: pageLimit,
    cursor: z.string().refine(isNamespace, NOT_A_CURSOR).optional(),
  }),
  run: async ({ query, memories }) => ({ body: await memories.store.namespaces(query) }),
});

/** Deletes a namespace with everything in it; answers when its files or tables are gone. */
export const namespaceDelete = defineEndpointForAll({
  method: 'DELETE',
  path: '/namespaces/:name',
  audit: 'memory.delete',
  params: z.strictObject({ name: namespaceName }),
  async run({ params: { name }, memories }) {
    if (name === DEFAULT_NAMESPACE)
      throw new MemoryError('memory_invalid', '`name`: the namespace `default` cannot be deleted');
    if (!(await memories.remove(name))) throw new MemoryError('memory_not_found', 'no such namespace');
    return { body: { name, deleted: true } };
  },
});

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

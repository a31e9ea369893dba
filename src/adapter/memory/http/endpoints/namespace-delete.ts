import { z } from 'zod';
import { DEFAULT_NAMESPACE } from '../../../namespace.ts';
import { defineEndpointForAll, namespaceName } from '../endpoint.ts';
import { MemoryError } from '../memory-error.ts';

/** Deletes a namespace with everything in it; answers when its files or tables are gone. */
export const namespaceDelete = defineEndpointForAll({
  method: 'DELETE',
  path: '/namespaces/:name',
  params: z.strictObject({ name: namespaceName }),
  async run({ params: { name }, memories }) {
    if (name === DEFAULT_NAMESPACE)
      throw new MemoryError('memory_invalid', '`name`: the namespace `default` cannot be deleted');
    if (!(await memories.remove(name))) throw new MemoryError('memory_not_found', 'no such namespace');
    return { body: { name, deleted: true } };
  },
});

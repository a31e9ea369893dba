import { z } from 'zod';
import { MEMORY_API_LIMITS as LIMITS } from '../../../../core/memory-limits.ts';
import { defineEndpoint } from '../endpoint.ts';
import { MemoryError } from '../memory-error.ts';

/** One entity with its whole content. */
export const entity = defineEndpoint({
  method: 'GET',
  path: '/entities/:id',
  params: z.strictObject({ id: z.string().min(1).max(LIMITS.nameLength) }),
  async run({ params: { id }, memory }) {
    const [found] = await memory.store.entities([id]);
    if (found === undefined) throw new MemoryError('memory_not_found', 'no entity has this id');
    const { title: _title, heading: _heading, searchText: _words, ...shown } = found;
    return { body: shown };
  },
});

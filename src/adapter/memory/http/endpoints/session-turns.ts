import { z } from 'zod';
import { defineEndpoint, pageLimit, sessionId, wholeNumber } from '../endpoint.ts';
import { MemoryError } from '../memory-error.ts';

/** The turns of one chat thread, oldest first. */
export const sessionTurns = defineEndpoint({
  method: 'GET',
  path: '/sessions/:id/turns',
  params: z.strictObject({ id: sessionId }),
  query: z.strictObject({ after: wholeNumber(0, Number.MAX_SAFE_INTEGER, 0), limit: pageLimit }),
  async run({ params: { id }, query, memory }) {
    const page = await memory.store.turns(id, query);
    if (page === undefined) throw new MemoryError('memory_not_found', 'no session has this id');
    return { body: page };
  },
});

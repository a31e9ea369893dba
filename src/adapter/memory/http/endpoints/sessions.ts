import { z } from 'zod';
import { cursor, defineEndpoint, pageLimit } from '../endpoint.ts';

/** The chat threads, most recent first. */
export const sessions = defineEndpoint({
  method: 'GET',
  path: '/sessions',
  query: z.strictObject({ limit: pageLimit, cursor }),
  run: async ({ query, memory }) => ({ body: await memory.store.sessions(query) }),
});

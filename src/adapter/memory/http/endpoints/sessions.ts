import { z } from 'zod';
import { defineEndpoint } from '../endpoint.ts';
import { cursor, pageLimit } from '../fields.ts';

/** The chat threads, most recent first. */
export const sessions = defineEndpoint({
  method: 'GET',
  path: '/sessions',
  query: z.strictObject({ limit: pageLimit, cursor }),
  run: async ({ query, memory }) => ({ body: await memory.store.sessions(query) }),
});

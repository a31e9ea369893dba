import { z } from 'zod';
import { defineEndpoint, NOT_A_CURSOR, pageLimit } from '../endpoint.ts';

/** The chat threads, most recent first. */
export const sessions = defineEndpoint({
  method: 'GET',
  path: '/sessions',
  query: z.strictObject({
    limit: pageLimit,
    cursor: z
      .string()
      .regex(/^\d{1,15}$/, NOT_A_CURSOR)
      .optional(),
  }),
  run: async ({ query, memory }) => ({ body: await memory.store.sessions(query) }),
});

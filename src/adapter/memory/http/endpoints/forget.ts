import { z } from 'zod';
import { MEMORY_API_LIMITS } from '../../../../core/memory-limits.ts';
import { defineEndpoint } from '../endpoint.ts';

const request = z
  .strictObject({
    about: z.string().trim().min(2).max(MEMORY_API_LIMITS.nameLength),
    preview: z.boolean().default(false),
    token: z.string().min(1).max(100).optional(),
  })
  .refine(({ preview, token }) => preview || token !== undefined, {
    path: ['token'],
    message:
      'expected the token of a preview (`"preview": true`), so that what was shown is deleted, and nothing else',
  });

/** Deletes everything that mentions a name or text, after a preview. */
export const forget = defineEndpoint({
  method: 'POST',
  path: '/forget',
  body: request,
  run: async ({ body: { about, ...options }, memory }) => ({
    body: await memory.store.erase({ about }, options),
  }),
});

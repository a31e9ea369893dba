import { z } from 'zod';
import { isNamespace } from '../../../namespace.ts';
import { defineEndpointForAll, NOT_A_CURSOR, pageLimit } from '../endpoint.ts';

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

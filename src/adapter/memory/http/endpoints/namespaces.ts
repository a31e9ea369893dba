import { z } from 'zod';
import { cursor, defineEndpointForAll, pageLimit } from '../endpoint.ts';

/** The namespaces by name, with their sizes. */
export const namespaces = defineEndpointForAll({
  method: 'GET',
  path: '/namespaces',
  query: z.strictObject({ limit: pageLimit, cursor }),
  run: async ({ query, memories }) => ({ body: await memories.store.namespaces(query) }),
});

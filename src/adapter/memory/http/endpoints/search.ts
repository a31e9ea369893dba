import { z } from 'zod';
import { LIMITS } from '../../../../core/limits.ts';
import { search as searchStore } from '../../search/search.ts';
import { defineEndpoint } from '../endpoint.ts';
import { entityType } from '../fields.ts';

/** Similarity search over all indexed entities (spec, "search_knowledge"). */
export const search = defineEndpoint({
  method: 'POST',
  path: '/search',
  body: z.strictObject({
    query: z.string().min(1).max(LIMITS.memoryQueryLength),
    limit: z.int().min(1).max(LIMITS.memoryResults).default(5),
    minScore: z.number().min(0).max(1).default(0.7),
    types: z.array(entityType).min(1).optional(),
    debug: z.boolean().default(false),
  }),
  run: async ({ body, memory, signal }) => ({ body: await searchStore(memory, body, signal) }),
});

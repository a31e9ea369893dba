import { z } from 'zod';
import { MEMORY_API_LIMITS } from '../../../../core/memory-limits.ts';
import { importLines } from '../../transfer.ts';
import { defineEndpoint } from '../endpoint.ts';

/** Stores lines of an export, all or none; the answer comes when they are on disk. */
export const imported = defineEndpoint({
  method: 'POST',
  path: '/import',
  requestBytes: MEMORY_API_LIMITS.importBytes,
  body: z.string('expected JSON Lines with the content type application/x-ndjson'),
  run: async ({ body, memory }) => ({
    body: await importLines(memory.store, body.split('\n'), memory.embedder.id),
  }),
});

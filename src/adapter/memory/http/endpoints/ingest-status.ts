import { defineEndpoint } from '../endpoint.ts';

/** How the sync of the docs folder is going, or went. */
export const ingestStatus = defineEndpoint({
  method: 'GET',
  path: '/ingest/status',
  run: async ({ memory }) => ({ body: { sync: await memory.syncStatus() } }),
});

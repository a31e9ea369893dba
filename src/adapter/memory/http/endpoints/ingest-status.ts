import { defineEndpoint } from '../endpoint.ts';

/** Status of the current or last sync of the docs folder. */
export const ingestStatus = defineEndpoint({
  method: 'GET',
  path: '/ingest/status',
  run: async ({ memory }) => ({ body: { sync: await memory.syncStatus() } }),
});

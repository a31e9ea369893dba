import { VERSION } from '../../../../core/version.ts';
import { listedFolders } from '../../docs-folders.ts';
import { defineEndpoint } from '../endpoint.ts';

/** Counts of everything stored, and whether the first sync has ended. */
export const stats = defineEndpoint({
  method: 'GET',
  path: '/stats',
  run: async ({ memory }) => ({
    body: {
      ...(await memory.store.stats()),
      ready: memory.isReady,
      sync: await memory.syncStatus(),
      docsFolders: await listedFolders(memory.store, memory.docsFolder),
      store: memory.store.kind,
      embedder: memory.embedder.id,
      embedding: await memory.embeddings.status(),
      extraction: await memory.extraction?.status(),
      version: VERSION,
    },
  }),
});

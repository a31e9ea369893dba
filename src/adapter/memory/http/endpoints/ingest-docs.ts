import { setTimeout as pause } from 'node:timers/promises';
import { z } from 'zod';
import { MEMORY_API_LIMITS, MEMORY_STORE_LIMITS } from '../../../../core/memory-limits.ts';
import type { SyncStatus } from '../../../../core/memory-model.ts';
import { ingestDocument } from '../../documents.ts';
import type { Memory } from '../../memory.ts';
import { defineEndpoint } from '../endpoint.ts';
import { checked } from '../memory-error.ts';

const document = z.strictObject({
  title: z.string().min(1).max(MEMORY_API_LIMITS.nameLength),
  content: z.string().min(1),
  source: z.string().min(1).max(MEMORY_STORE_LIMITS.queryLength).optional(),
});

/**
 * Starts a sync of the docs folder; indexes the document in the body first, if there is one. Answers with status 202 if
 * the sync continues after the response.
 */
export const ingestDocs = defineEndpoint({
  method: 'POST',
  path: '/ingest/docs',
  body: z.looseObject({}).optional(),
  async run({ body = {}, memory }) {
    // Repeating it changes nothing, so it continues when the caller disconnects.
    const stored =
      Object.keys(body).length === 0
        ? undefined
        : await ingestDocument(memory, checked(document, body, 'body'));
    const [sync] = await Promise.all([synced(memory), stored === undefined ? undefined : embedded(memory)]);
    return {
      status: sync.state === 'running' ? 202 : 200,
      body: { ...(stored === undefined ? {} : { document: stored }), sync },
    };
  },
});

/** Waits for the vectors, so that the document is found by its meaning as soon as this is answered. */
async function embedded({ embedder, embeddings }: Memory): Promise<void> {
  if (!embedder.isImmediate) await embeddings.settled(MEMORY_STORE_LIMITS.embeddingWait);
}

async function synced({ sync, syncWait }: Memory): Promise<SyncStatus> {
  const enough = new AbortController();
  try {
    const status = await Promise.race([
      sync.run(),
      pause(syncWait, undefined, { signal: enough.signal, ref: false }),
    ]);
    return status ?? sync.status();
  } finally {
    enough.abort();
  }
}

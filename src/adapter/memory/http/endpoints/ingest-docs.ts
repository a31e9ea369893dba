import { setTimeout as pause } from 'node:timers/promises';
import { z } from 'zod';
import { MEMORY_API_LIMITS, MEMORY_STORE_LIMITS } from '../../../../core/memory-limits.ts';
import { ingestDocument } from '../../documents.ts';
import type { Memory } from '../../memory.ts';
import type { SyncStatus } from '../../sync-status.ts';
import { defineEndpoint } from '../endpoint.ts';
import { checked } from '../failure.ts';

const document = z.strictObject({
  title: z.string().min(1).max(MEMORY_API_LIMITS.nameLength),
  content: z.string().min(1),
  source: z.string().min(1).max(MEMORY_STORE_LIMITS.queryLength).optional(),
});

/**
 * Reads the docs folder again; with a document in the body, indexes that first. 202 when the sync goes on after the
 * answer.
 */
export const ingestDocs = defineEndpoint({
  method: 'POST',
  path: '/ingest/docs',
  body: z.looseObject({}).optional(),
  async run({ body = {}, memory }) {
    // A repetition of what was stored changes nothing, so the caller's leaving need not stop it.
    const stored =
      Object.keys(body).length === 0
        ? undefined
        : await ingestDocument(memory, checked(document, body, 'body'));
    const sync = await synced(memory);
    return {
      status: sync.state === 'running' ? 202 : 200,
      body: { ...(stored === undefined ? {} : { document: stored }), sync },
    };
  },
});

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

import { Readable } from 'node:stream';
import { z } from 'zod';
import { MEMORY_API_LIMITS } from '../../../../core/memory-limits.ts';
import type { Store } from '../../store.ts';
import { exportLines, importLines } from '../../transfer.ts';
import { defineEndpoint } from '../endpoint.ts';

async function* textOf(store: Store): AsyncGenerator<string> {
  for await (const line of exportLines(store)) yield `${JSON.stringify(line)}\n`;
}

/** Everything that calls have stored, as JSON Lines, read while it is sent. */
export const exported = defineEndpoint({
  method: 'GET',
  path: '/export',
  run: async ({ memory }) => ({ type: 'application/x-ndjson', body: Readable.from(textOf(memory.store)) }),
});

/** Stores lines of an export, all or none; the answer comes when they are on disk. */
export const imported = defineEndpoint({
  method: 'POST',
  path: '/import',
  requestBytes: MEMORY_API_LIMITS.importBytes,
  body: z.string('expected JSON Lines with the content type application/x-ndjson'),
  run: async ({ body, memory }) => ({
    body: await importLines(memory, body.split('\n')),
  }),
});

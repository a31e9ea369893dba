import { Readable } from 'node:stream';
import type { Store } from '../../store.ts';
import { exportLines } from '../../transfer.ts';
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

import { afterAll, beforeAll, describe } from 'vitest';
import { openStoreOn } from '../../../../src/adapter/memory/postgres/open.ts';
import type { Store } from '../../../../src/adapter/memory/store.ts';
import { pgliteServer } from '../../../kit/pglite-pool.ts';
import { recordingLog } from '../recording-log.ts';
import { storeContract } from '../store-contract.ts';
import { twoBackends } from '../two-backends.ts';

// One server for all: to compile PostgreSQL and create its database takes four seconds of CPU time.
let server: Awaited<ReturnType<typeof pgliteServer>>;
beforeAll(async () => {
  server = await pgliteServer();
  // Half a minute where others want the processor too.
}, 120_000);
afterAll(() => server.close());
const open = (): Promise<Store> => openStoreOn(server.pool(), 'PGlite', recordingLog());

storeContract('postgres (in process)', async () => ({ open, remove: () => Promise.resolve() }));

// One session serves both here, so transactions never overlap: test/interop/postgres does this on a real server.
describe('two memory backends on one PostgreSQL database', () => {
  beforeAll(() => server.empty());
  twoBackends(open, 8);
});

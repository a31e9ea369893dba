import { afterAll, beforeAll, describe } from 'vitest';
import { openStoreOn } from '../../../../src/adapter/memory/postgres/open.ts';
import { pgliteServer } from '../../../kit/pglite-pool.ts';
import { recordingLog } from '../recording-log.ts';
import { twoBackends } from '../two-backends.ts';

// One session serves both here, so transactions never overlap: test/interop/postgres does this on a real server.
describe('two memory backends on one PostgreSQL database', () => {
  let server: Awaited<ReturnType<typeof pgliteServer>>;
  beforeAll(async () => {
    server = await pgliteServer();
    // Compiling PostgreSQL takes half a minute where others want the processor too.
  }, 120_000);
  afterAll(() => server.close());
  twoBackends(() => openStoreOn(server.pool(), 'PGlite', recordingLog()), 8);
});

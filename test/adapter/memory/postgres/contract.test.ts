import { openStoreOn } from '../../../../src/adapter/memory/postgres/open.ts';
import { pgliteServer } from '../../../kit/pglite-pool.ts';
import { recordingLog } from '../recording-log.ts';
import { storeContract } from '../store-contract.ts';

storeContract('postgres (in process)', async () => {
  const server = await pgliteServer();
  return {
    open: () => openStoreOn(server.pool(), 'PGlite', recordingLog()),
    remove: () => server.close(),
  };
});

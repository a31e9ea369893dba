import { openSqliteStore } from '../../../../src/adapter/memory/sqlite/open.ts';
import { temporaryFolder } from '../../../kit/folder.ts';
import { recordingLog } from '../recording-log.ts';
import { storeContract } from '../store-contract.ts';

storeContract('sqlite', async () => {
  const folder = await temporaryFolder();
  return {
    open: () => openSqliteStore({ dataDir: folder.path, log: recordingLog() }),
    remove: () => folder.remove(),
  };
});

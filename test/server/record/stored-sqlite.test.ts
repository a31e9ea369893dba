import { afterAll, beforeAll } from 'vitest';
import { LIMITS } from '../../../src/core/limits.ts';
import { openSqlite } from '../../../src/server/database/sqlite.ts';
import { recordSchema } from '../../../src/server/record/schema.ts';
import { recordingLog } from '../../adapter/memory/recording-log.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { recordContract } from './record-contract.ts';

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
beforeAll(async () => {
  folder = await temporaryFolder();
});
afterAll(() => folder.remove());

recordContract('sqlite', () =>
  openSqlite({
    path: `${folder.path}/data.db`,
    mustExist: false,
    schemas: [recordSchema],
    log: recordingLog(),
    limits: LIMITS,
  }),
);

// Stores one turn in a new namespace after another and says which were acknowledged.
import { writeSync } from 'node:fs';
import { openSqliteStore } from '../../../../src/adapter/memory/sqlite/open.ts';
import { recordingLog } from '../recording-log.ts';
import { turn } from '../records.ts';

const [folder = '', attempts = '0'] = process.argv.slice(2);
const store = await openSqliteStore({ dataDir: folder, log: recordingLog() });
for (let n = 0; n < Number(attempts); n++) {
  const name = `n${process.pid}-${Date.now()}-${n}`;
  const said = await store
    .namespace(name)
    .appendTurn(turn('s', name))
    .then(
      () => name,
      (error: { readonly code: string }) => `failed ${error.code}`,
    );
  writeSync(1, `${said}\n`);
}
process.exit();

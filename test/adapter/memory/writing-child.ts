// Stores numbered turns of a given size one after the other and says which were acknowledged. Ends after a number of
// them, or after 20 that failed.
import { writeSync } from 'node:fs';
import { openSqliteStore } from '../../../src/adapter/memory/sqlite/open.ts';
import { recordingLog } from './recording-log.ts';
import { turn } from './records.ts';

const [path = '', size = '0', count = '400'] = process.argv.slice(2);
const store = await openSqliteStore({ path, log: recordingLog() });
let failures = 0;
for (let n = 1; n <= Number(count) && failures < 20; n++) {
  try {
    await store.appendTurn(turn('s', `${n} ${'x'.repeat(Number(size))}`));
    writeSync(1, `${n}\n`);
  } catch (error) {
    failures++;
    const { code, message } = error as { code: string; message: string };
    writeSync(1, `failed ${n} ${code} ${message}\n`);
  }
}
process.exit();

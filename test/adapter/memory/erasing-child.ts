// Imports numbered batches and deletes every second one again, and says what was acknowledged, until it is killed or has
// failed 20 times.
import { writeSync } from 'node:fs';
import { openSqliteStore } from '../../../src/adapter/memory/sqlite/open.ts';
import { recordingLog } from './recording-log.ts';

const [path = '', start = '0', count = '1000000'] = process.argv.slice(2);
const store = await openSqliteStore({ path, log: recordingLog() });
let failures = 0;
const said = async (what: string, task: Promise<unknown>): Promise<void> => {
  try {
    await task;
    writeSync(1, `${what}\n`);
  } catch (error) {
    failures += 1;
    writeSync(1, `failed ${what} ${(error as { code: string }).code}\n`);
  }
};
for (let n = Number(start); n < Number(start) + Number(count) && failures < 20; n++) {
  const turns = Array.from({ length: 5 }, (_, part) => ({
    id: `${n}-${part}`,
    sessionId: `batch ${n}`,
    agentId: 'a',
    role: 'user' as const,
    content: `marker${n}x ${'text '.repeat(200)}`,
    createdAt: '2026-01-01T00:00:00.000Z',
  }));
  const entity = { name: `Entity ${n}`, entityType: 't', observations: [`marker${n}x`] };
  await said(`stored ${n}`, store.importBatch({ entities: [entity], relations: [], turns, documents: [] }));
  if (n % 2 === 1) await said(`deleted ${n}`, store.erase({ about: `marker${n}x` }, {}));
}
process.exit();

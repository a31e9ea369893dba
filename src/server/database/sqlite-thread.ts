import { parentPort, workerData } from 'node:worker_threads';
import { messageOf } from '../../core/errors.ts';
import { RESULT, resultCode } from '../../core/sqlite-result.ts';
import { DatabaseError } from './driver.ts';
import { SqliteFile, type SqliteFileOptions } from './sqlite-file.ts';
import type { Answer, Call, CallResult } from './sqlite-messages.ts';

// The thread that has a SQLite file open, so that reads and writes never block the event loop of the gateway.

const port = parentPort;
if (port === null) throw new Error('sqlite-thread.ts runs as a worker thread');
const answer = (message: Answer): void => port.postMessage(message);
// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- `SqliteThread` starts this thread with it
const start = workerData as SqliteFileOptions;
/** Whether the file was deleted or replaced is checked this often, in ms: a check takes 2 µs. */
const CHECK_INTERVAL = 1_000;

let file: SqliteFile | undefined;
let checkedAt = 0;

function openFile(): SqliteFile {
  const now = performance.now();
  if (file !== undefined && now - checkedAt > CHECK_INTERVAL) {
    checkedAt = now;
    if (file.isReplaced) {
      file.close();
      file = undefined;
      if (!start.isReader)
        answer({
          kind: 'log',
          message: 'the database file was deleted or replaced: it is opened again',
          fields: { file: start.path },
        });
    }
  }
  file ??= new SqliteFile(start, (message, fields) => answer({ kind: 'log', message, fields }));
  return file;
}

function perform(call: Call): CallResult {
  if (call.kind === 'query') return openFile().query(call.statement);
  if (call.kind === 'transaction') return openFile().transaction(call.statements);
  file?.close();
  return undefined;
}

port.on('message', (call: Call) => {
  try {
    answer({ kind: 'result', id: call.id, value: perform(call) });
  } catch (error) {
    answer({ kind: 'failure', id: call.id, detail: detailOf(error) });
  }
  if (call.kind === 'close') port.close();
});

/** The texts of SQLite name no values. */
function detailOf(error: unknown): string {
  if (error instanceof DatabaseError) return error.message;
  return DETAILS.get(resultCode(error)) ?? `SQLite: ${messageOf(error)}`;
}

const DETAILS: ReadonlyMap<number | undefined, string> = new Map([
  [RESULT.full, 'the disk is full'],
  [RESULT.busy, 'locked by another process'],
  [RESULT.readonly, 'the file is read-only'],
  [RESULT.ioerr, 'the disk failed'],
  [RESULT.corrupt, 'the file is damaged'],
]);

try {
  openFile();
  answer({ kind: 'opened' });
} catch (error) {
  const help = error instanceof DatabaseError ? error.help : '';
  answer({ kind: 'refused', message: messageOf(error), help });
  port.close();
}

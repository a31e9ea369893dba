import { parentPort, workerData } from 'node:worker_threads';
import { AppError, type ErrorCode } from '../../../core/errors.ts';
import type { LogFields } from '../../../core/log.ts';
import { MEMORY_STORE_LIMITS } from '../../../core/memory-limits.ts';
import { OPERATIONS, type Operation, runOperation } from '../sql/operations.ts';
import { type OpenDatabase, openDatabase } from './database.ts';
import { SqliteEngine } from './engine.ts';
import { callError, openError, RESULT, resultCode } from './errors.ts';

// The thread that owns the file. Calls arrive as messages and are answered in order; queued writes are committed
// together and acknowledged after the commit.

export interface Call {
  readonly id: number;
  readonly name: Operation | 'close';
  readonly args: readonly unknown[];
}

export interface Failure {
  readonly code: ErrorCode;
  readonly message: string;
  readonly detail: string | undefined;
}

export type Answer =
  | { readonly kind: 'opened' }
  | { readonly kind: 'refused'; readonly failure: Failure }
  | { readonly kind: 'result'; readonly id: number; readonly value: unknown }
  | { readonly kind: 'failure'; readonly id: number; readonly failure: Failure }
  | {
      readonly kind: 'log';
      readonly level: 'info' | 'warn' | 'error';
      readonly message: string;
      readonly fields: LogFields;
    };

const port = parentPort;
if (port === null) throw new Error('sqlite/worker.ts runs as a worker thread');
const answer = (message: Answer): void => port.postMessage(message);
const log = (level: 'info' | 'warn' | 'error', message: string, fields: LogFields): void =>
  answer({ kind: 'log', level, message, fields });

function failureOf(error: AppError): Failure {
  return { code: error.code, message: error.message, detail: error.detail };
}

function erases(call: Call | undefined): boolean {
  return call !== undefined && call.name !== 'close' && OPERATIONS[call.name].erases === true;
}

function failed(message: Answer, error: AppError): Answer {
  return message.kind === 'result' ? { kind: 'failure', id: message.id, failure: failureOf(error) } : message;
}

class Owner {
  readonly #file: OpenDatabase;
  readonly #engine: SqliteEngine;
  readonly #queue: Call[] = [];
  #draining = false;
  /**
   * Set when the disk has failed: the state of the page cache after a failed fsync is unknown, so nothing more is
   * written.
   */
  #broken: AppError | undefined;

  constructor(file: OpenDatabase, engine: SqliteEngine) {
    this.#file = file;
    this.#engine = engine;
  }

  take(call: Call): void {
    this.#queue.push(call);
    if (this.#draining) return;
    this.#draining = true;
    // Everything else that has arrived by then belongs to the same batch.
    setImmediate(() => void this.#drain());
  }

  async #drain(): Promise<void> {
    for (let call = this.#queue.shift(); call !== undefined; call = this.#queue.shift()) {
      if (call.name === 'close') return this.#close(call);
      if (OPERATIONS[call.name].writes) await this.#write(this.#batch(call));
      else await this.#read(call);
      // Lets messages arrive, so that the next batch is larger than one.
      await new Promise((resolve) => setImmediate(resolve));
    }
    this.#draining = false;
  }

  #batch(first: Call): Call[] {
    const batch = [first];
    for (
      let next = this.#queue[0];
      next !== undefined && batch.length < MEMORY_STORE_LIMITS.batch;
      next = this.#queue[0]
    ) {
      if (next.name === 'close' || !OPERATIONS[next.name].writes) break;
      batch.push(next);
      this.#queue.shift();
    }
    return batch;
  }

  async #read(call: Call): Promise<void> {
    try {
      const value = await runOperation(this.#engine, call.name as Operation, call.args);
      answer({ kind: 'result', id: call.id, value });
    } catch (error) {
      answer({ kind: 'failure', id: call.id, failure: failureOf(callError(error)) });
    }
  }

  async #write(batch: readonly Call[]): Promise<void> {
    try {
      if (this.#broken !== undefined) throw this.#broken;
      const answers = await this.#transaction(batch);
      this.#engine.committed();
      const erasure = this.#erase(batch);
      for (const [index, message] of answers.entries())
        answer(erasure !== undefined && erases(batch[index]) ? failed(message, erasure) : message);
    } catch (error) {
      // The failure may be due to a single call that does not fit on the disk, so each call is retried alone.
      if (batch.length > 1 && this.#broken === undefined) {
        for (const call of batch) await this.#write([call]);
        return;
      }
      const failure = failureOf(callError(error));
      for (const call of batch) answer({ kind: 'failure', id: call.id, failure });
    }
  }

  /** After a commit that deleted content: removes it from the log too. Returns the problem if that failed. */
  #erase(batch: readonly Call[]): AppError | undefined {
    if (!batch.some(erases)) return undefined;
    try {
      this.#file.clearLog();
      return undefined;
    } catch (error) {
      return new AppError('memory_unavailable', {
        message:
          'deleted, but the log of the memory store still contains it, because it could not be written back: free space ' +
          'on the disk, then delete again or restart',
        detail: String(error),
      });
    }
  }

  /** Resolves to the answers once everything is on disk; otherwise throws. */
  async #transaction(batch: readonly Call[]): Promise<Answer[]> {
    const { database } = this.#file;
    const answers: Answer[] = [];
    try {
      database.exec('BEGIN IMMEDIATE');
      for (const call of batch) answers.push(await this.#step(call));
      database.exec('COMMIT');
      return answers;
    } catch (error) {
      if (resultCode(error) === RESULT.ioerr) this.#stopWriting(error);
      if (database.isTransaction) database.exec('ROLLBACK');
      throw error;
    }
  }

  /** One call of a batch: if it is refused, it is rolled back and the others continue. */
  async #step(call: Call): Promise<Answer> {
    const { database } = this.#file;
    database.exec('SAVEPOINT step');
    try {
      const value = await runOperation(this.#engine, call.name as Operation, call.args);
      database.exec('RELEASE step');
      return { kind: 'result', id: call.id, value };
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      database.exec('ROLLBACK TO step; RELEASE step');
      return { kind: 'failure', id: call.id, failure: failureOf(error) };
    }
  }

  #stopWriting(error: unknown): void {
    this.#broken = new AppError('memory_unavailable', {
      message: 'the disk of the memory store failed: nothing more is stored until a restart',
      detail: String(error),
    });
    log('error', 'the disk failed: nothing more is stored; check the disk, then restart', {
      error: String(error),
    });
  }

  #close(call: Call): void {
    try {
      this.#file.close();
      answer({ kind: 'result', id: call.id, value: undefined });
    } catch (error) {
      answer({ kind: 'failure', id: call.id, failure: failureOf(callError(error)) });
    }
    port?.close();
  }
}

function start(path: string): void {
  const started = performance.now();
  try {
    const file = openDatabase(path);
    if (file.recovered)
      log('warn', 'was not closed by its last owner; the check found no damage', {
        path,
        ms: Math.round(performance.now() - started),
      });
    const engine = new SqliteEngine(
      file.database,
      (embedder) => (done, total) => log('info', 'reading vectors', { embedder, done, total }),
    );
    const owner = new Owner(file, engine);
    port?.on('message', (call: Call) => owner.take(call));
    answer({ kind: 'opened' });
  } catch (error) {
    answer({ kind: 'refused', failure: failureOf(openError(path, error)) });
    port?.close();
  }
}

start((workerData as { path: string }).path);

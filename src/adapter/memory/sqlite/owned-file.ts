import { AppError } from '../../../core/errors.ts';
import { copyDatabase } from '../../../core/sqlite-copy.ts';
import { RESULT, resultCode } from '../../../core/sqlite-result.ts';
import { entryOf, OPERATIONS, runOperation } from '../sql/operations.ts';
import { type OpenDatabase, openDatabase } from './database.ts';
import { SqliteEngine } from './engine.ts';
import { callError } from './errors.ts';
import { failureOf, type LogLine, type OperationCall, type Result } from './messages.ts';

/** The open file of one namespace. Writes of a batch are committed together. */
export class OwnedFile {
  readonly #file: OpenDatabase;
  readonly #engine: SqliteEngine;
  readonly #log: LogLine;
  /**
   * Set when the disk has failed: the state of the page cache after a failed fsync is unknown, so nothing more is
   * written.
   */
  #broken: AppError | undefined;

  /**
   * Opens or creates the file.
   *
   * @throws AppError `memory_not_opened`
   */
  constructor(path: string, log: LogLine) {
    const started = performance.now();
    this.#file = openDatabase(path);
    this.#log = log;
    if (this.#file.recovered)
      log('warn', 'was not closed by its last owner; the check found no damage', {
        path,
        ms: Math.round(performance.now() - started),
      });
    this.#engine = new SqliteEngine(
      this.#file.database,
      (embedder) => (done, total) => log('info', 'reading vectors', { embedder, done, total }),
    );
  }

  get isBroken(): boolean {
    return this.#broken !== undefined;
  }

  /** Bytes of the vectors in memory. */
  get vectorBytes(): number {
    return this.#engine.vectorBytes;
  }

  async read(call: OperationCall): Promise<Result> {
    try {
      const value = await runOperation(this.#engine, call.name, call.args);
      return { kind: 'result', id: call.id, value };
    } catch (error) {
      return { kind: 'failure', id: call.id, failure: failureOf(callError(error)) };
    }
  }

  /** The results, once everything that succeeded is on disk. */
  async write(batch: readonly OperationCall[]): Promise<Result[]> {
    try {
      if (this.#broken !== undefined) throw this.#broken;
      const results = await this.#transaction(batch);
      this.#engine.committed();
      const erasure = this.#erase(batch);
      if (erasure === undefined) return results;
      return results.map((result, index) => (erases(batch[index]) ? failed(result, erasure) : result));
    } catch (error) {
      // The failure may be due to a single call that does not fit on the disk, so each call is retried alone.
      if (batch.length > 1 && this.#broken === undefined) {
        const results: Result[] = [];
        for (const call of batch) results.push(...(await this.write([call])));
        return results;
      }
      const failure = failureOf(callError(error));
      return batch.map(({ id }) => ({ kind: 'failure', id, failure }));
    }
  }

  /** After a commit that deleted content: removes it from the log too. Returns the problem if that failed. */
  #erase(batch: readonly OperationCall[]): AppError | undefined {
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

  async #transaction(batch: readonly OperationCall[]): Promise<Result[]> {
    const { database } = this.#file;
    const results: Result[] = [];
    try {
      database.exec('BEGIN IMMEDIATE');
      for (const call of batch) results.push(await this.#step(call));
      database.exec('COMMIT');
      return results;
    } catch (error) {
      if (resultCode(error) === RESULT.ioerr) this.#stopWriting(error);
      if (database.isTransaction) database.exec('ROLLBACK');
      throw error;
    }
  }

  /** One call of a batch: if it is refused, it is rolled back and the others continue. */
  async #step(call: OperationCall): Promise<Result> {
    const { database } = this.#file;
    database.exec('SAVEPOINT step');
    try {
      const value = await runOperation(this.#engine, call.name, call.args);
      database.exec('RELEASE step');
      return { kind: 'result', id: call.id, value };
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      database.exec('ROLLBACK TO step; RELEASE step');
      return { kind: 'failure', id: call.id, failure: failureOf(callError(error)) };
    }
  }

  #stopWriting(error: unknown): void {
    this.#broken = new AppError('memory_unavailable', {
      message: 'the disk of the memory store failed: nothing more is stored until a restart',
      detail: String(error),
    });
    this.#log('error', 'the disk failed: nothing more is stored; check the disk, then restart', {
      error: String(error),
    });
  }

  /** Writes a consistent copy to a new file; returns its size. */
  copyTo(path: string): number {
    return copyDatabase(this.#file.database, path);
  }

  close(): void {
    this.#file.close();
  }
}

/** Whether a batch has a call that brings its namespace into being. */
export function creates(batch: readonly OperationCall[]): boolean {
  return batch.some(({ name }) => OPERATIONS[name].creates);
}

function erases(call: OperationCall | undefined): boolean {
  if (call === undefined) return false;
  return entryOf(call.name).erases?.(...call.args) === true;
}

function failed(result: Result, error: AppError): Result {
  return result.kind === 'result' ? { kind: 'failure', id: result.id, failure: failureOf(error) } : result;
}

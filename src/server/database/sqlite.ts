import { Worker } from 'node:worker_threads';
import { AppError } from '../../core/errors.ts';
import type { Limits } from '../../core/limits.ts';
import type { Log } from '../../core/log.ts';
import type { DatabaseSchema, SqlRow, SqlValue, Statement, StatementResult } from '../kernel/database.ts';
import { TransientMap } from '../kernel/transient-map.ts';
import { DatabaseError, type Driver } from './driver.ts';
import type { SqliteFileOptions } from './sqlite-file.ts';
import type { Answer, Call, CallResult } from './sqlite-messages.ts';

const SCOPE = 'agctl::database';
const CLOSING = 'the gateway is closing';

export interface SqliteOptions {
  /** Absolute. */
  readonly path: string;
  readonly mustExist: boolean;
  /** As in `SqliteFileOptions`. Default: `LIMITS.databaseBackups`. */
  readonly backups?: number;
  readonly schemas: readonly DatabaseSchema[];
  readonly log: Log;
  readonly limits: Limits;
}

/**
 * Opens a SQLite file: a thread that writes, and one that reads, which starts with the first query.
 *
 * @throws DatabaseError
 */
export async function openSqlite(options: SqliteOptions): Promise<Driver> {
  const writer = new SqliteThread(options, false);
  await writer.opened;
  let reader: SqliteThread | undefined;
  let isClosed = false;
  return {
    query: (sql, values) => {
      if (isClosed) return Promise.reject(unavailable(CLOSING));
      reader ??= new SqliteThread(options, true);
      const call: NewCall = { kind: 'query', statement: { sql, values: values ?? [] } };
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a query is answered with rows
      return reader.call(call, sizeOf(values)) as Promise<readonly SqlRow[]>;
    },
    transaction: (statements) =>
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a transaction is answered with results
      writer.call({ kind: 'transaction', statements }, sizeOfAll(statements)) as Promise<
        readonly StatementResult[] | undefined
      >,
    close: async () => {
      isClosed = true;
      // SQLite writes the log back into the file when its last connection is closed, but not if that connection is read-only.
      await reader?.close();
      await writer.close();
    },
  };
}

type NewCall = Call extends infer Each ? (Each extends Call ? Omit<Each, 'id'> : never) : never;

interface Waiting {
  readonly bytes: number;
  resolve(value: CallResult): void;
  reject(error: AppError): void;
}

/** The caller's side of `sqlite-thread.ts`. A thread that has died is started again by the next call. */
class SqliteThread {
  readonly opened: Promise<void>;
  readonly #options: SqliteOptions;
  readonly #isReader: boolean;
  readonly #waiting = new TransientMap<number, Waiting>();
  #worker: Worker | undefined;
  #nextId = 1;
  #bytes = 0;
  #closing: Promise<void> | undefined;

  constructor(options: SqliteOptions, isReader: boolean) {
    this.#options = options;
    this.#isReader = isReader;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.opened = promise;
    // A reader's failure is that of its first call.
    promise.catch(() => undefined);
    this.#start({ resolve, reject });
  }

  call(call: NewCall, bytes: number): Promise<CallResult> {
    if (this.#closing !== undefined && call.kind !== 'close') return Promise.reject(unavailable(CLOSING));
    const { databaseQueue, databaseQueueBytes } = this.#options.limits;
    const isFull =
      this.#waiting.size >= databaseQueue ||
      (this.#waiting.size > 0 && this.#bytes + bytes > databaseQueueBytes);
    if (isFull && call.kind !== 'close')
      return Promise.reject(unavailable('too many calls wait for the database'));
    const { promise, resolve, reject } = Promise.withResolvers<CallResult>();
    const id = this.#nextId++;
    this.#waiting.set(id, { bytes, resolve, reject });
    this.#bytes += bytes;
    const worker = this.#worker ?? this.#start();
    worker.postMessage({ ...call, id } satisfies Call);
    return promise;
  }

  /** Calls made before still run. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const worker = this.#worker;
    if (worker === undefined) return;
    const ended = new Promise((resolve) => worker.once('exit', resolve));
    await this.call({ kind: 'close' }, 0).catch(() => undefined);
    await ended;
  }

  #start(opening?: { resolve(): void; reject(error: DatabaseError): void }): Worker {
    const { path, mustExist, schemas, limits, backups = limits.databaseBackups } = this.#options;
    // The name of the bundled file is that in scripts/build-program.mjs.
    const code = import.meta.url.endsWith('.ts') ? './sqlite-thread.ts' : './database-worker.js';
    const worker = new Worker(new URL(code, import.meta.url), {
      workerData: {
        path,
        mustExist,
        backups,
        schemas,
        isReader: this.#isReader,
        lockTimeout: limits.databaseLock,
      } satisfies SqliteFileOptions,
      name: 'agctl-database',
      // Older Node.js versions warn at every start that node:sqlite is experimental.
      execArgv: ['--disable-warning=ExperimentalWarning'],
    });
    let problem = 'the thread of the database has ended';
    worker.on('message', (answer: Answer) => {
      if (answer.kind === 'opened') opening?.resolve();
      else if (answer.kind === 'refused') {
        problem = answer.message;
        opening?.reject(new DatabaseError(answer.message, answer.help));
      } else if (answer.kind === 'log') this.#options.log.warn(SCOPE, answer.message, answer.fields);
      else this.#complete(answer);
    });
    worker.on('error', (error) => {
      problem = String(error);
    });
    worker.on('exit', () => {
      if (this.#worker === worker) this.#worker = undefined;
      opening?.reject(new DatabaseError(problem, 'look at the log'));
      this.#failAll(unavailable(problem));
    });
    this.#worker = worker;
    return worker;
  }

  #complete(answer: Answer & { readonly kind: 'result' | 'failure' }): void {
    const waiting = this.#waiting.get(answer.id);
    if (waiting === undefined) return;
    this.#waiting.delete(answer.id);
    this.#bytes -= waiting.bytes;
    if (answer.kind === 'result') waiting.resolve(answer.value);
    else waiting.reject(unavailable(answer.detail));
  }

  #failAll(error: AppError): void {
    for (const waiting of this.#waiting.values()) waiting.reject(error);
    this.#waiting.clear();
    this.#bytes = 0;
  }
}

function unavailable(detail: string): AppError {
  return new AppError('database_unavailable', { detail });
}

function sizeOfAll(statements: readonly Statement[]): number {
  let sum = 0;
  for (const { values, many = [] } of statements) {
    sum += sizeOf(values);
    for (const each of many) sum += sizeOf(each);
  }
  return sum;
}

function sizeOf(values: readonly SqlValue[] = []): number {
  let sum = 0;
  for (const value of values)
    sum += typeof value === 'string' ? value.length * 2 : value instanceof Uint8Array ? value.length : 8;
  return sum;
}

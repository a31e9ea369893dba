import { AppError, messageOf } from '../../core/errors.ts';
import { textIn } from '../../core/foreign.ts';
import type { Limits } from '../../core/limits.ts';
import type { Log } from '../../core/log.ts';
import { type Database, type Statement, UnknownCommit } from '../kernel/database.ts';
import type { Bound } from '../kernel/inspection.ts';
import type { RequestContext } from '../kernel/request/request-context.ts';
import { payloadOf } from './payload.ts';
import type { RecordPolicy } from './policy.ts';
import { type RequestRecord, recordOf } from './request-record.ts';
import { Retention } from './retention.ts';
import { type QueuedRecord, storeStatements } from './statements.ts';

const SCOPE = 'agctl::record';

/** Writes a page, so a full disk is noticed. */
const PROBE: Statement = { sql: "UPDATE agctl_schema SET version = version WHERE feature = 'record'" };

export interface RecorderOptions {
  readonly database: Database;
  readonly log: Log;
  readonly limits: Limits;
  /** Whether this process deletes old records: those older than `retention`, in ms. */
  readonly deletesOld: boolean;
  retention(): number;
}

/**
 * Stores finished requests in batches. While the database fails, records wait; beyond `LIMITS.recordQueue` they are lost,
 * which is logged and counted.
 */
export class Recorder {
  readonly #options: RecorderOptions;
  #queue: QueuedRecord[] = [];
  #size = 0;
  #retention: Retention | undefined;
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> | undefined;
  /** The batch whose commit was lost, until it is known whether it is stored. */
  #unknown:
    | { readonly batch: readonly QueuedRecord[]; readonly isStored: () => Promise<boolean> }
    | undefined;
  /** Wait before the next attempt, in ms; 0 if the last one succeeded. */
  #wait = 0;
  /** When the database has last stored something, on the clock of `performance.now()`. */
  #storedAt = Number.NEGATIVE_INFINITY;
  #lostReported = 0;
  #lostReportedAt = Number.NEGATIVE_INFINITY;
  /** Records since the start. */
  stored = 0;
  lost = 0;

  constructor(options: RecorderOptions) {
    this.#options = options;
    if (options.deletesOld) this.#retention = new Retention(options);
  }

  /**
   * Whether the database takes records. If it has not stored anything for `LIMITS.recordFreshness` ms, the answer waits for
   * an attempt, for at most `LIMITS.recordProbe` ms.
   */
  isStoring(): boolean | Promise<boolean> {
    if (this.#wait > 0) return false;
    const { recordFreshness, recordProbe } = this.#options.limits;
    if (performance.now() - this.#storedAt < recordFreshness) return true;
    this.#write();
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const late = setTimeout(resolve, recordProbe, false).unref();
    void this.#writing?.then(() => {
      clearTimeout(late);
      resolve(this.#wait === 0);
    });
    return promise;
  }

  /** Adds a request that has ended. */
  add(ctx: RequestContext, status: number, policy: RecordPolicy): void {
    const { recordQueue, recordQueueBytes, recordDelay, recordBatch } = this.#options.limits;
    if (this.#queue.length >= recordQueue || this.#size >= recordQueueBytes) {
      this.lost += 1;
      this.#reportLost();
      return;
    }
    const record = recordOf(ctx, status, policy);
    const isSummed = policy.payloads === 'none';
    const payload = isSummed ? undefined : payloadOf(ctx, policy);
    const size = sizeOf(record) + (payload === undefined ? 0 : payload.words.length * 2);
    this.#queue.push({ record, payload, isSummed, size });
    this.#size += size;
    if (this.#wait > 0 || this.#writing !== undefined) return;
    if (this.#queue.length >= recordBatch) this.#write();
    else this.#timer ??= setTimeout(() => this.#write(), recordDelay).unref();
  }

  bounds(): Bound[] {
    const { recordQueue, recordQueueBytes } = this.#options.limits;
    return [
      { name: 'record.queue', max: recordQueue, used: () => this.#queue.length },
      { name: 'record.queueBytes', max: recordQueueBytes, used: () => this.#size },
    ];
  }

  get queued(): number {
    return this.#queue.length;
  }

  /** Stores what waits, for at most `LIMITS.recordFlush` ms; the rest is lost. */
  async close(): Promise<void> {
    const end = performance.now() + this.#options.limits.recordFlush;
    clearTimeout(this.#timer);
    await Promise.all([this.#writing, this.#retention?.close()]);
    while (this.#queue.length > 0 && performance.now() < end) {
      await this.#attempt();
      // One attempt more than those that failed before: the database may have come back.
      if (this.#wait > 0) break;
    }
    clearTimeout(this.#timer);
    this.lost += this.#queue.length;
    this.#queue = [];
    if (this.lost > this.#lostReported) this.#reportLost(true);
  }

  #write(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#writing ??= this.#attempt().finally(() => {
      this.#writing = undefined;
      this.#next();
    });
  }

  #next(): void {
    if (this.#queue.length === 0 && this.#wait === 0) return;
    const { recordBatch, recordDelay } = this.#options.limits;
    const delay = this.#wait > 0 ? this.#wait : recordDelay;
    if (this.#wait === 0 && this.#queue.length >= recordBatch) this.#write();
    else this.#timer ??= setTimeout(() => this.#write(), delay).unref();
  }

  /** Stores the oldest records, which stay in the queue until they are stored. Without one, tries whether it could. */
  async #attempt(): Promise<void> {
    const { database, log, limits } = this.#options;
    const batch = this.#unknown?.batch ?? this.#batch();
    try {
      const isStored = (await this.#unknown?.isStored()) ?? false;
      this.#unknown = undefined;
      if (!isStored)
        await database.transaction(batch.length === 0 ? [PROBE] : storeStatements(database.kind, batch));
      this.#queue.splice(0, batch.length);
      for (const { size } of batch) this.#size -= size;
      this.stored += batch.length;
      if (this.#wait > 0) log.info(SCOPE, 'requests are recorded again', { waiting: this.#queue.length });
      this.#wait = 0;
      this.#storedAt = performance.now();
    } catch (error) {
      if (error instanceof UnknownCommit) this.#unknown = { batch, isStored: error.isStored };
      const problem = error instanceof AppError ? (error.detail ?? error.message) : messageOf(error);
      if (this.#wait === 0)
        log.warn(SCOPE, 'requests cannot be recorded; they wait', { problem, waiting: this.#queue.length });
      this.#wait = Math.min(limits.recordMaxRetry, Math.max(limits.recordRetry, this.#wait * 2));
    }
  }

  #batch(): QueuedRecord[] {
    const { recordBatch, recordBatchBytes } = this.#options.limits;
    let bytes = 0;
    let count = 0;
    for (const { size } of this.#queue) {
      if (count >= recordBatch || (count > 0 && bytes + size > recordBatchBytes)) break;
      bytes += size;
      count += 1;
    }
    return this.#queue.slice(0, count);
  }

  #reportLost(isLast = false): void {
    const now = performance.now();
    const { log, limits } = this.#options;
    if (!isLast && now - this.#lostReportedAt < limits.recordWarningInterval) return;
    this.#lostReportedAt = now;
    log.warn(SCOPE, 'records of requests were lost: the database fails or is too slow', {
      lost: this.lost - this.#lostReported,
      total: this.lost,
    });
    this.#lostReported = this.lost;
  }
}

/** What a request is answered with that must not go unrecorded. */
export function unrecorded(): AppError {
  return new AppError('database_unavailable', {
    message: 'the gateway cannot record requests at the moment; try again later',
  });
}

/** Approximate memory of a record in bytes. */
function sizeOf(record: RequestRecord): number {
  let size = 400;
  for (const name of LONG_TEXTS) size += textIn(record[name]).length;
  return size;
}

const LONG_TEXTS = ['path', 'error', 'agent', 'added'] as const;

import { AppError, messageOf } from '../../core/errors.ts';
import type { Limits } from '../../core/limits.ts';
import type { Log } from '../../core/log.ts';
import { optionalNumber } from '../../core/sql-row.ts';
import type { Database, Statement } from '../kernel/database.ts';
import { earlierTime } from '../kernel/database-time.ts';
import { deleteBlocks } from './blocks.ts';
import { USAGE_CONFLICT, USAGE_KEYS, USAGE_SUMS } from './statements.ts';

const SCOPE = 'agctl::record';
const DAY = 24 * 3_600_000;

/** Where the time comes from; tests have clocks of their own. */
export interface Clock {
  /** Unix time in ms, which jumps when somebody sets it. */
  now(): number;
  /** ms that only grow. */
  monotonic(): number;
  /** The earlier one of a Unix time of this process and that of the database. */
  earlier(database: Database, own: number): Promise<number>;
}

const CLOCK: Clock = { now: () => Date.now(), monotonic: () => performance.now(), earlier: earlierTime };

export interface RetentionOptions {
  readonly database: Database;
  readonly log: Log;
  readonly limits: Limits;
  /** Age at which records are deleted, in ms. */
  retention(): number;
  readonly clock?: Clock;
}

/**
 * Deletes old records in small transactions, so that readers and writers wait for none of them. After a jump of the clock
 * it waits, because with a wrong clock everything would be old.
 */
export class Retention {
  readonly #options: RetentionOptions;
  readonly #clock: Clock;
  readonly #timer: NodeJS.Timeout;
  #offset: number;
  #waitsUntil = Number.NEGATIVE_INFINITY;
  #running: Promise<void> | undefined;
  #isClosed = false;

  constructor(options: RetentionOptions) {
    this.#options = options;
    this.#clock = options.clock ?? CLOCK;
    this.#offset = this.#currentOffset();
    this.#timer = setInterval(() => void this.run(), options.limits.recordExpiryInterval).unref();
  }

  /** Deletes what is too old now. A run that is under way continues. */
  run(): Promise<void> {
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#timer);
    await this.#running;
  }

  async #run(): Promise<void> {
    if (this.#hasJumped()) return;
    const { database, limits, log, retention } = this.#options;
    try {
      const now = await this.#clock.earlier(database, this.#clock.now());
      const before = now - retention();
      for (let isDone = false; !isDone && !this.#isClosed; ) {
        const results = await database.transaction(
          deleteStatements(database.kind, before, limits.recordExpiryBatch),
        );
        isDone = (results?.at(-1)?.changes ?? 0) < limits.recordExpiryBatch;
      }
      const days = Math.floor((now - limits.usageHours) / DAY) * 24;
      await database.transaction([
        { sql: 'DELETE FROM agctl_usage WHERE hour < ?', values: [Math.floor(before / DAY) * 24] },
        ...(database.kind === 'sqlite' ? [deleteBlocks(before)] : []),
      ]);
      await this.#sumDays(days);
    } catch (error) {
      log.warn(SCOPE, 'old records could not be deleted; they are tried again', {
        problem: problemOf(error),
      });
    }
  }

  /** One day in each transaction: a gateway that was not running for a month has many. */
  async #sumDays(end: number): Promise<void> {
    const { database } = this.#options;
    for (let from = 0; !this.#isClosed; ) {
      const [row] = await database.query(
        'SELECT min(hour) AS hour FROM agctl_usage WHERE hour >= ? AND hour < ? AND hour % 24 <> 0',
        [from, end],
      );
      const hour = row === undefined ? null : optionalNumber(row, 'hour');
      // A database that returns an hour that was not asked for would be asked for ever.
      if (hour === null || hour < from) return;
      const day = Math.floor(hour / 24) * 24;
      from = day + 24;
      await database.transaction([
        { sql: SUM_DAY, values: [day, from] },
        { sql: 'DELETE FROM agctl_usage WHERE hour > ? AND hour < ?', values: [day, from] },
      ]);
    }
  }

  #hasJumped(): boolean {
    const { log, limits } = this.#options;
    const offset = this.#currentOffset();
    const jump = offset - this.#offset;
    this.#offset = offset;
    if (Math.abs(jump) > limits.recordClockJump) {
      log.warn(SCOPE, 'the clock has jumped; no records are deleted for an hour', {
        'jump.ms': Math.round(jump),
      });
      this.#waitsUntil = this.#clock.monotonic() + limits.recordClockSettle;
    }
    return this.#clock.monotonic() < this.#waitsUntil;
  }

  #currentOffset(): number {
    return this.#clock.now() - this.#clock.monotonic();
  }
}

const problemOf = (error: unknown): string =>
  error instanceof AppError ? (error.detail ?? error.message) : messageOf(error);

/** Adds the sums of the hours of a day to its first hour: a table of 24 times fewer rows. */
const SUM_DAY = `INSERT INTO agctl_usage (${[...USAGE_KEYS, ...USAGE_SUMS].join(', ')})
SELECT hour / 24 * 24, ${USAGE_KEYS.slice(1).join(', ')}, ${USAGE_SUMS.map((name) => `sum(${name})`).join(', ')}
FROM agctl_usage WHERE hour > ? AND hour < ?
GROUP BY hour / 24, ${USAGE_KEYS.slice(1).join(', ')} ${USAGE_CONFLICT}`;

/** The last statement deletes at most `count` records; those before, what belongs to them. */
function deleteStatements(kind: Database['kind'], before: number, count: number): Statement[] {
  const old = '(SELECT id FROM agctl_records WHERE time < ? ORDER BY time, id LIMIT ?)';
  const values = [before, count];
  const words = { sql: `DELETE FROM agctl_record_words WHERE rowid IN ${old}`, values };
  return [
    ...(kind === 'sqlite' ? [words] : []),
    { sql: `DELETE FROM agctl_record_payloads WHERE id IN ${old}`, values },
    { sql: `DELETE FROM agctl_records WHERE id IN ${old}`, values },
  ];
}

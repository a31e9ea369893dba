import { messageOf } from '../../core/errors.ts';
import type { Limits } from '../../core/limits.ts';
import type { Log } from '../../core/log.ts';
import type { Database } from '../kernel/database.ts';
import { earlierTime } from '../kernel/database-time.ts';

interface ExpiryOptions {
  readonly database: Database;
  /** Age at which events are deleted, in ms. */
  readonly retention: number;
  readonly log: Log;
  readonly limits: Limits;
}

/**
 * Deletes old events, a batch at a time. Not in an interval in which the clock has jumped, nor in the first one of a process: with a wrong
 * clock, all of them would be old.
 */
export class Expiry {
  readonly #options: ExpiryOptions;
  readonly #timer: NodeJS.Timeout;
  #offset = offsetNow();

  constructor(options: ExpiryOptions) {
    this.#options = options;
    this.#timer = setInterval(() => void this.#check(), options.limits.auditExpiryInterval).unref();
  }

  close(): void {
    clearInterval(this.#timer);
  }

  async #check(): Promise<void> {
    const { database, retention, log, limits } = this.#options;
    const offset = offsetNow();
    const hasJumped = Math.abs(offset - this.#offset) > limits.recordClockJump;
    this.#offset = offset;
    if (hasJumped) return;
    try {
      const before = (await earlierTime(database, Date.now())) - retention;
      for (let deleted = limits.recordExpiryBatch; deleted === limits.recordExpiryBatch; ) {
        const results = await database.transaction([
          {
            sql: 'DELETE FROM agctl_audit WHERE id IN (SELECT id FROM agctl_audit WHERE time < ? ORDER BY time LIMIT ?)',
            values: [before, limits.recordExpiryBatch],
          },
        ]);
        deleted = results?.[0]?.changes ?? 0;
      }
    } catch (error) {
      log.warn('audit', 'old events could not be deleted; they are tried again', {
        problem: messageOf(error),
      });
    }
  }
}

const offsetNow = (): number => Date.now() - performance.now();

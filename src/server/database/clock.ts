import { durationText } from '../../core/duration.ts';
import type { Limits } from '../../core/limits.ts';
import type { Log } from '../../core/log.ts';

type Query = (sql: string) => Promise<readonly unknown[]>;

const NOW = 'SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT) AS now';

/** What to do about clocks that differ. */
export const CLOCK_HELP =
  'synchronise both machines (NTP): windows of budgets, the expiry of keys and the times of records follow the clock of each gateway';

/** How far the clock of this machine is ahead of that of PostgreSQL, in ms; undefined if it did not say. */
export async function clockDifference(query: Query): Promise<number | undefined> {
  const before = Date.now();
  const [row] = await query(NOW);
  const there = typeof row === 'object' && row !== null && 'now' in row ? Number(row.now) : Number.NaN;
  return Number.isFinite(there) ? (before + Date.now()) / 2 - there : undefined;
}

/** Says how clocks differ that differ too much. */
export function clockProblem(difference: number | undefined, { databaseClock }: Limits): string | undefined {
  if (difference === undefined || Math.abs(difference) <= databaseClock) return undefined;
  const much = durationText(Math.round(Math.abs(difference) / 1000) * 1000);
  return `the clock of this machine is ${much} ${difference > 0 ? 'ahead of' : 'behind'} that of the database`;
}

interface ClockOptions {
  readonly query: Query;
  readonly log: Log;
  readonly limits: Limits;
}

/** Warns once when the clock of this machine differs from that of the database, and says when it does no more. */
export class ClockWatch {
  readonly #options: ClockOptions;
  readonly #timer: NodeJS.Timeout;
  #isWarned = false;

  constructor(options: ClockOptions) {
    this.#options = options;
    this.#timer = setInterval(() => void this.compare(), options.limits.databaseClockCheck).unref();
    void this.compare();
  }

  async compare(): Promise<void> {
    const { query, log, limits } = this.#options;
    // A database that does not answer is reported elsewhere.
    const difference = await clockDifference(query).catch(() => undefined);
    if (difference === undefined) return;
    const problem = clockProblem(difference, limits);
    if (problem !== undefined && !this.#isWarned) log.warn('agctl::database', problem, { help: CLOCK_HELP });
    if (problem === undefined && this.#isWarned)
      log.info('agctl::database', 'the clock of this machine is that of the database again');
    this.#isWarned = problem !== undefined;
  }

  close(): void {
    clearInterval(this.#timer);
  }
}

import type { SpendingStore } from './spending-store.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
/** Counters of windows that began longer ago are removed: the longest window has 31 days. */
const KEPT = 62 * DAY;
/** A clock that was corrected by more than this has jumped, in ms. */
const JUMP = 60_000;

/** Where the time comes from; tests have clocks of their own. */
export interface PruningClock {
  /** Unix time in ms, which jumps when somebody sets it. */
  now(): number;
  /** ms that only grow. */
  monotonic(): number;
}

const CLOCK: PruningClock = { now: () => Date.now(), monotonic: () => performance.now() };

/**
 * Removes the counters of old windows once a day. Not in an hour in which the clock has jumped, nor in the first hour of a
 * process: with a wrong clock, the windows of today would be old, and their budgets unused when the clock is right again.
 */
export class Pruning {
  readonly #store: Pick<SpendingStore, 'prune'>;
  readonly #clock: PruningClock;
  readonly #timer: NodeJS.Timeout;
  #offset: number;
  #prunedAt = Number.NEGATIVE_INFINITY;

  constructor(store: Pick<SpendingStore, 'prune'>, clock: PruningClock = CLOCK) {
    this.#store = store;
    this.#clock = clock;
    this.#offset = this.#currentOffset();
    this.#timer = setInterval(() => void this.check(), HOUR).unref();
  }

  /** Called every hour. A failure leaves the counters for the next day. */
  async check(): Promise<void> {
    const offset = this.#currentOffset();
    const hasJumped = Math.abs(offset - this.#offset) > JUMP;
    this.#offset = offset;
    const monotonic = this.#clock.monotonic();
    if (hasJumped || monotonic - this.#prunedAt < DAY) return;
    this.#prunedAt = monotonic;
    await this.#store.prune(KEPT, this.#clock.now()).catch(() => undefined);
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #currentOffset(): number {
    return this.#clock.now() - this.#clock.monotonic();
  }
}

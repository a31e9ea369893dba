import { type BudgetUnit, type BudgetWindow, windowEnd, windowStart } from '../../core/budget.ts';
import { detailOf } from '../../core/errors.ts';
import type { Log } from '../../core/log.ts';
import { TransientMap } from '../kernel/transient-map.ts';
import { Batches } from './batches.ts';
import type { Amounts, Claim, Counter } from './counter.ts';
import type { SpendingStore } from './spending-store.ts';

/** Whether a call may begin. `left`: what the refusing counter has left, besides what open calls have reserved. */
export type Reserved =
  | { readonly id: number }
  | { readonly refusedBy: number; readonly left: number; readonly start: number }
  | { readonly unavailable: string };

interface Reservation {
  readonly id: number;
  readonly owner: number;
  isCharged: boolean;
  readonly parts: { readonly counter: Counter; readonly unit: BudgetUnit; left: number; charged: number }[];
}

export interface LedgerOptions {
  readonly store: SpendingStore;
  readonly log: Log;
  /** Counters in memory (`LIMITS.budgetCounters`). */
  readonly maxCounters: number;
  /** How long counters are taken as unchanged by other processes (`LIMITS.budgetFreshness`). */
  readonly freshness: number;
  /** How long calls wait for the store (`LIMITS.budgetWait`). */
  readonly wait: number;
  /** How long another process counts as present (`LIMITS.budgetPresence`). */
  readonly presence: number;
  readonly failed: () => void;
}

/**
 * The budgets of a gateway: calls reserve an estimate before they begin, and are charged what they have used. What was
 * charged is in the store; what is reserved only in memory, because a process that is killed takes its calls with it.
 */
export class Ledger {
  readonly #options: LedgerOptions;
  /** By name: that of the newest window, and of older ones that calls still use or that are not written. */
  readonly #counters = new Map<string, Counter[]>();
  readonly #reservations = new TransientMap<number, Reservation>();
  readonly #batches: Batches;
  /** The windows of the last call. */
  readonly #windows: { [Window in BudgetWindow]?: { readonly start: number; readonly end: number } } = {};
  #lastId = 0;
  /** Reservations of calls that were not charged yet. */
  #uncharged = 0;

  constructor(options: LedgerOptions) {
    this.#options = options;
    this.#batches = new Batches({ ...options, isUrgent: () => this.#uncharged === 0 });
  }

  /** Names of counters in memory. */
  get size(): number {
    return this.#counters.size;
  }

  /**
   * Reserves the amounts of one call in all counters, or in none. `owner`: the worker that has the call; 0 without
   * workers. The window is that of this moment, also for what the call is charged later.
   */
  reserve(owner: number, claims: readonly Claim[], amounts: Amounts): Reserved | Promise<Reserved> {
    const now = Date.now();
    const counters: Counter[] = [];
    for (const claim of claims) {
      const found = this.#counterOf(claim, now);
      if (found === undefined) {
        stopWaiting(counters);
        return { unavailable: 'too many counters are in use' };
      }
      found.waiting += 1;
      counters.push(found);
    }
    const known = counters.every((counter) => this.#batches.knows(counter));
    if (known && this.#batches.isFresh(this.#options.freshness))
      return this.#decide(owner, claims, counters, amounts);
    return this.#batches.read(counters).then(
      () => this.#decide(owner, claims, counters, amounts),
      (error: unknown) => {
        stopWaiting(counters);
        return { unavailable: detailOf(error) };
      },
    );
  }

  #decide(owner: number, claims: readonly Claim[], counters: readonly Counter[], amounts: Amounts): Reserved {
    stopWaiting(counters);
    for (let index = 0; index < claims.length; index += 1) {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- one of each for every index of `claims`
      const { limit, unit } = claims[index] as Claim;
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- one of each for every index of `claims`
      const { spent = 0, unwritten, reserved, start } = counters[index] as Counter;
      const left = limit - spent - unwritten - reserved;
      // A call that is free of charge would pass an exhausted budget otherwise.
      if (left < Math.max(1, amounts[unit])) return { refusedBy: index, left, start };
    }
    const parts = claims.map(({ unit }, index) => {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- one of each for every index of `claims`
      const counter = counters[index] as Counter;
      counter.reserved += amounts[unit];
      return { counter, unit, left: amounts[unit], charged: 0 };
    });
    this.#lastId += 1;
    this.#uncharged += 1;
    const reservation: Reservation = { id: this.#lastId, owner, isCharged: false, parts };
    this.#reservations.set(this.#lastId, reservation);
    return { id: this.#lastId };
  }

  /** What was charged and is not in the store, in no order. */
  unwritten(): Counter[] {
    return [...this.#counters.values()].flat().filter(({ unwritten }) => unwritten !== 0);
  }

  /** Counters whose charges wait for the next transaction. */
  get waiting(): number {
    return this.#batches.waiting;
  }

  /**
   * Charges a call. `amounts` is everything that it has used so far, so that it can be charged several times. Resolves
   * when the store has it, or has failed, which was logged: then the charge is kept, and written later.
   */
  charge(id: number, amounts: Amounts): void | Promise<void> {
    return this.#charge(id, amounts, 0);
  }

  /** `least`: the least change of what the call was charged so far. */
  #charge(id: number, amounts: Amounts, least: number): void | Promise<void> {
    const changed: Counter[] = [];
    const reservation = this.#reservations.get(id);
    if (reservation === undefined) return;
    this.#charged(reservation);
    for (const part of reservation.parts) {
      const more = amounts[part.unit] - part.charged;
      if (more === 0 || !(more >= least)) continue;
      part.charged += more;
      part.counter.unwritten += more;
      const settled = Math.max(0, Math.min(part.left, more));
      part.left -= settled;
      part.counter.reserved -= settled;
      changed.push(part.counter);
    }
    if (changed.length > 0) return this.#batches.write(changed);
  }

  /**
   * Charges a call that has ended, and releases the rest of what it had reserved. An estimate that was too high is
   * corrected.
   */
  release(id: number, amounts: Amounts): void | Promise<void> {
    const written = this.#charge(id, amounts, Number.NEGATIVE_INFINITY);
    this.#drop(id);
    return written;
  }

  #drop(id: number): void {
    const reservation = this.#reservations.get(id);
    if (reservation === undefined) return;
    for (const part of reservation.parts) part.counter.reserved -= part.left;
    this.#reservations.delete(id);
    this.#charged(reservation);
    this.#batches.hurry();
  }

  #charged(reservation: Reservation): void {
    if (!reservation.isCharged) this.#uncharged -= 1;
    reservation.isCharged = true;
  }

  /** Releases what the calls of a worker that has ended had reserved. */
  releaseAll(owner: number): void {
    for (const { id, owner: its } of this.#reservations.values()) if (its === owner) this.#drop(id);
  }

  /** Resolves when everything that was charged is written, or cannot be. */
  flushed(): Promise<void> {
    return this.#batches.idle();
  }

  /** What open calls have reserved, and what is not written yet, by counter. */
  open(counter: string, start: number): Pick<Counter, 'reserved' | 'unwritten'> | undefined {
    return this.#counters.get(counter)?.find((known) => known.start === start);
  }

  /** `windowStart`, which is computed once in each window: that of a month takes longer than all else here. */
  #windowStart(window: BudgetWindow, now: number): number {
    const known = this.#windows[window];
    if (known !== undefined && known.start <= now && now < known.end) return known.start;
    const start = windowStart(window, now);
    this.#windows[window] = { start, end: windowEnd(window, start) ?? Number.POSITIVE_INFINITY };
    return start;
  }

  /** As `#find`. A claim keeps its counter: to look up one of thousands by its name takes longer than all else here. */
  #counterOf(claim: Claim, now: number): Counter | undefined {
    const start = this.#windowStart(claim.window, now);
    const { found } = claim;
    if (found?.start === start && !found.isForgotten) return found;
    const looked = this.#find(claim.counter, start);
    if (looked !== undefined) claim.found = looked;
    return looked;
  }

  /** Undefined if the memory for counters is used up by those that cannot be forgotten. */
  #find(name: string, start: number): Counter | undefined {
    const windows = this.#counters.get(name);
    // The newest window is the last one.
    const known = windows?.findLast((counter) => counter.start === start);
    if (known !== undefined) return known;
    const added: Counter = {
      counter: name,
      start,
      spent: undefined,
      era: 0,
      unwritten: 0,
      reserved: 0,
      waiting: 0,
      isForgotten: false,
    };
    if (windows !== undefined) {
      for (const counter of windows) counter.isForgotten = isForgettable(counter);
      this.#counters.set(name, [...windows.filter(({ isForgotten }) => !isForgotten), added]);
      return added;
    }
    if (this.#counters.size >= this.#options.maxCounters && !this.#forgetOne()) return undefined;
    this.#counters.set(name, [added]);
    return added;
  }

  /** Forgets one of the oldest counters that no call uses and that is written. */
  #forgetOne(): boolean {
    let looked = 0;
    for (const [name, windows] of this.#counters) {
      if (windows.every(isForgettable)) {
        for (const counter of windows) counter.isForgotten = true;
        return this.#counters.delete(name);
      }
      looked += 1;
      if (looked === 100) return false;
    }
    return false;
  }
}

/** Not one of a call that is about to reserve: it would be another counter than that of the next call. */
const isForgettable = ({ unwritten, reserved, waiting }: Counter): boolean =>
  unwritten === 0 && reserved === 0 && waiting === 0;

function stopWaiting(counters: readonly Counter[]): void {
  for (const counter of counters) counter.waiting -= 1;
}

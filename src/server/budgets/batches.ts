import { detailOf } from '../../core/errors.ts';
import type { Log } from '../../core/log.ts';
import { UnknownCommit } from '../kernel/database.ts';
import type { Counter } from './counter.ts';
import type { Charge, SpendingStore } from './spending-store.ts';

const SCOPE = 'proxy::budgets';

/** After a failure of the store, calls are refused for this long without asking it again, in ms. */
const RETRY_AFTER = 1_000;
/**
 * Time between the starts of two transactions, in ms. One costs as much CPU time as ten to twenty charges in it, most of
 * it for waking the thread of the database, so a busy gateway collects them; up to 100 calls a second, none waits.
 */
const INTERVAL = 10;
/**
 * The same if no call is open that could join the next one: its calls need not wait. Not 0, so that one client that calls
 * again at once does not get more than 1,000 transactions a second. With 4 ms, a gateway with 32 connections was idle for a third of the time.
 */
const URGENT_INTERVAL = 1;

export interface BatchesOptions {
  readonly store: SpendingStore;
  readonly log: Log;
  /** Called when the store fails. */
  readonly failed: () => void;
  /** Whether no call is open that could still join the next transaction. */
  readonly isUrgent: () => boolean;
  /** How long calls wait for the store, in ms; what they were charged is written when it answers. */
  readonly wait: number;
  /** How long another process counts as present after it was noticed, in ms (`LIMITS.budgetPresence`). */
  readonly presence: number;
}

/**
 * Writes counters to the store and reads them, many in one transaction: while one runs, the next is collected. A
 * transaction costs far more than what is in it.
 */
export class Batches {
  readonly #store: SpendingStore;
  readonly #log: Log;
  readonly #onFailure: () => void;
  readonly #isUrgent: () => boolean;
  readonly #wait: number;
  readonly #presence: number;
  /** Of the next transaction. */
  #changed = new Set<Counter>();
  #read = new Set<Counter>();
  #next: PromiseWithResolvers<void> | undefined;
  /** Resolves also if the next transaction fails. */
  #ended: Promise<void> = Promise.resolve();
  /** Those who wait for the transaction that runs. */
  #current: Promise<void> | undefined;
  #running: Promise<void> | undefined;
  /** Whether the transaction that runs has taken longer than calls wait. Its outcome is unknown until it ends. */
  #isLate = false;
  /** When the last transaction began, on the clock of `performance.now()`. */
  #lastAt = Number.NEGATIVE_INFINITY;
  #othersAt = Number.NEGATIVE_INFINITY;
  /** Ends whenever another process is noticed, which may have charged any counter. */
  #era = 0;
  /** Starts the next transaction. */
  #timer: NodeJS.Timeout | undefined;
  /** Whether the timer has the shorter interval. */
  #isHurried = false;
  #retry: NodeJS.Timeout | undefined;
  /** What a transaction has charged whose commit was lost, until it is known whether it is stored. */
  #unknown:
    | { readonly amounts: ReadonlyMap<Counter, number>; readonly isStored: () => Promise<boolean> }
    | undefined;
  #failure: { readonly since: number; readonly at: number; readonly message: string } | undefined;

  constructor({ store, log, failed, isUrgent, wait, presence }: BatchesOptions) {
    this.#store = store;
    this.#log = log;
    this.#onFailure = failed;
    this.#isUrgent = isUrgent;
    this.#wait = wait;
    this.#presence = presence;
  }

  /** Whether the counters are those of the store: no other process writes it, as of `freshness` ms ago. */
  isFresh(freshness: number): boolean {
    const now = performance.now();
    return (
      this.#failure === undefined && now - this.#lastAt < freshness && now - this.#othersAt > this.#presence
    );
  }

  /** Whether a counter was read, and no other process can have charged it since, if `isFresh`. */
  knows({ spent, era }: Counter): boolean {
    return spent !== undefined && era === this.#era;
  }

  /** Reads counters. Rejects if the store has failed. */
  read(counters: readonly Counter[]): Promise<void> {
    const failure = this.#failure;
    if (failure !== undefined && (this.#isLate || performance.now() - failure.at < RETRY_AFTER))
      return Promise.reject(new Error(failure.message));
    for (const counter of counters) this.#read.add(counter);
    return this.#scheduled();
  }

  /** Counters that are written with the next transaction. */
  get waiting(): number {
    return this.#changed.size;
  }

  /** Writes what counters were charged. Resolves also if the store fails: it is written with a later transaction. */
  write(counters: readonly Counter[]): Promise<void> {
    for (const counter of counters) this.#changed.add(counter);
    if (this.#isLate) return Promise.resolve();
    void this.#scheduled();
    this.hurry();
    return this.#ended;
  }

  /** Called when fewer calls are open: if nothing can join the next transaction, it starts earlier. */
  hurry(): void {
    if (this.#timer === undefined || this.#isHurried || !this.#isUrgent()) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#startSoon();
  }

  async idle(): Promise<void> {
    if (this.#isLate) return;
    if (this.#changed.size > 0) await this.#scheduled().catch(() => undefined);
    if (!this.#isLate) await this.#current?.catch(() => undefined);
  }

  #scheduled(): Promise<void> {
    if (this.#next === undefined) {
      this.#next = Promise.withResolvers();
      this.#ended = this.#next.promise.catch(() => undefined);
      if (this.#running === undefined) this.#startSoon();
    }
    return this.#next.promise;
  }

  #startSoon(): void {
    this.#isHurried = this.#isUrgent();
    const interval = this.#isHurried ? URGENT_INTERVAL : INTERVAL;
    const wait = this.#lastAt + interval - performance.now();
    // At least at the end of the turn: calls that end in the same turn share a transaction.
    if (wait > 0) this.#timer ??= setTimeout(() => this.#start(), wait);
    else setImmediate(() => this.#start());
  }

  #start(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#running !== undefined || this.#next === undefined) return;
    this.#running = this.#run().finally(() => {
      this.#running = undefined;
      if (this.#next !== undefined) this.#startSoon();
    });
  }

  async #run(): Promise<void> {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- `#start` calls this only if there is one
    const { promise, resolve, reject } = this.#next as PromiseWithResolvers<void>;
    this.#current = promise;
    const changed = [...this.#changed];
    const read = [...this.#read].filter((counter) => !this.#changed.has(counter));
    this.#next = undefined;
    this.#changed = new Set();
    this.#read = new Set();
    this.#lastAt = performance.now();
    const late = setTimeout(() => {
      this.#isLate = true;
      const error = new Error(`no answer within ${this.#wait} ms`);
      this.#failed(error.message);
      reject(error);
      this.#next?.reject(error);
      this.#next = undefined;
    }, this.#wait);
    let charges: readonly Charge[] = [];
    try {
      await this.#settle();
      charges = changed.map((counter) => ({
        counter: counter.counter,
        start: counter.start,
        amount: counter.unwritten,
        known: this.knows(counter) ? counter.spent : undefined,
      }));
      const { totals, isAlone } = await this.#store.exchange(charges, read);
      if (!isAlone) {
        this.#othersAt = performance.now();
        this.#era += 1;
      }
      for (const [index, counter] of [...changed, ...read].entries()) {
        counter.spent = totals[index];
        counter.era = this.#era;
        counter.unwritten -= charges[index]?.amount ?? 0;
      }
      this.#recovered();
      resolve();
      // What was charged while it was late.
      if (this.#changed.size > 0) this.#scheduled().catch(() => undefined);
    } catch (error) {
      if (error instanceof UnknownCommit) {
        const amounts = new Map(changed.map((counter, index) => [counter, charges[index]?.amount ?? 0]));
        this.#unknown = { amounts, isStored: error.isStored };
      }
      // Written again with the next transaction.
      for (const counter of changed) this.#changed.add(counter);
      this.#failed(detailOf(error));
      reject(error);
    } finally {
      clearTimeout(late);
      this.#isLate = false;
    }
  }

  /** What is stored must not be charged once more. Rejects while that is not known. */
  async #settle(): Promise<void> {
    if (this.#unknown === undefined) return;
    const { amounts, isStored } = this.#unknown;
    if (await isStored()) for (const [counter, amount] of amounts) counter.unwritten -= amount;
    this.#unknown = undefined;
  }

  #failed(message: string): void {
    const at = performance.now();
    if (this.#failure?.message !== message)
      this.#log.error(SCOPE, 'the database of budgets cannot be used', { problem: message });
    this.#failure = { since: this.#failure?.since ?? at, at, message };
    this.#onFailure();
    // Charges of calls that have ended must not wait for another call.
    if (this.#changed.size === 0 || this.#retry !== undefined) return;
    this.#retry = setTimeout(() => {
      this.#retry = undefined;
      this.#scheduled().catch(() => undefined);
    }, RETRY_AFTER).unref();
  }

  #recovered(): void {
    if (this.#failure === undefined) return;
    const seconds = Math.round((performance.now() - this.#failure.since) / 1000);
    this.#log.info(SCOPE, 'the database of budgets can be used again', { 'failed.s': seconds });
    this.#failure = undefined;
  }
}

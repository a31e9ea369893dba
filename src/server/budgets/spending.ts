import { amountText, type BudgetLimit, type BudgetUnit, parseBudget } from '../../core/budget.ts';
import type { Limits } from '../../core/limits.ts';
import type { Log } from '../../core/log.ts';
import type { Database } from '../kernel/database.ts';
import type { Remote, Shared, SharedState } from '../kernel/shared-state.ts';
import { Slot } from '../kernel/slot.ts';
import { type Amounts, type Claim, counterName, partsOfCounter } from './counter.ts';
import { KeyList } from './key-list.ts';
import { KeyTable } from './key-table.ts';
import { Ledger, type Reserved } from './ledger.ts';
import { Pruning } from './pruning.ts';
import { DatabaseSpending, type SpendingStore } from './spending-store.ts';
import type { RefusedKey, VirtualKey } from './virtual-key.ts';

const SCOPE = 'proxy::budgets';

/** What requests need of a virtual key. A JSON value, because workers get it from the process that has the keys. */
export interface KnownKey extends Pick<VirtualKey, 'id' | 'name' | 'metadata' | 'allowedModels'> {
  readonly claims: readonly Claim[];
}

/** What requests do, in whichever process they are. */
export type SpendingOperations = {
  /** The key with this hash, if it may be used; null otherwise. */
  find(hash: string): KnownKey | null | Promise<KnownKey | null>;
  /** Which key with this hash `find` does not return, and why; null for one that is not known. */
  refused(hash: string): RefusedKey | null;
  reserve(owner: number, claims: readonly Claim[], amounts: Amounts): Reserved | Promise<Reserved>;
  charge(id: number, amounts: Amounts): void | Promise<void>;
  release(id: number, amounts: Amounts): void | Promise<void>;
  releaseAll(owner: number): void;
};

export interface SpendingOptions {
  readonly database: Database;
  readonly log: Log;
  readonly limits: Limits;
  readonly sharedState: SharedState;
  /** Number of this worker, from 1; 0 without workers, and in the process that starts them. */
  readonly worker: number;
  /** Called when the database of budgets fails. */
  failed(): void;
}

/**
 * Virtual keys, and the budgets of keys and of the configuration. One process has them for all workers of a gateway; in a
 * worker, `call` asks it.
 */
export class Spending {
  readonly call: Remote<SpendingOperations>;
  /** Of the process that has them: not to be used in a worker. */
  readonly keys: KeyList;
  readonly ledger: Ledger;
  readonly store: SpendingStore;
  readonly worker: number;
  readonly #log: Log;
  readonly #known = new WeakMap<VirtualKey, KnownKey>();
  readonly #shared: Shared<SpendingOperations>;
  /** Of the process that has the budgets. */
  readonly #pruning: Pruning | undefined;

  constructor({ database, log, limits, sharedState, worker, failed }: SpendingOptions) {
    this.worker = worker;
    this.#log = log;
    this.store = new DatabaseSpending(database);
    this.keys = new KeyList(new KeyTable(database), log, limits.keyRefresh);
    this.ledger = new Ledger({
      store: this.store,
      log,
      maxCounters: limits.budgetCounters,
      freshness: limits.budgetFreshness,
      wait: limits.budgetWait,
      presence: limits.budgetPresence,
      failed,
    });
    const { ledger } = this;
    this.#shared = sharedState.join<SpendingOperations>(() => 'spending', {
      find: (hash) => {
        const found = this.keys.find(hash);
        return found instanceof Promise ? found.then((key) => this.#knownKey(key)) : this.#knownKey(found);
      },
      refused: (hash) => this.keys.refused(hash) ?? null,
      reserve: (owner, claims, amounts) => ledger.reserve(owner, claims, amounts),
      charge: (id, amounts) => ledger.charge(id, amounts),
      release: (id, amounts) => ledger.release(id, amounts),
      releaseAll: (owner) => ledger.releaseAll(owner),
    });
    this.call = this.#shared.call;
    if (worker === 0) this.#pruning = new Pruning(this.store);
    // What a worker with this number has left behind.
    if (worker > 0) void Promise.resolve(this.call.releaseAll(worker)).catch(() => undefined);
  }

  /** One line for each budget, with the sum of its subjects. */
  #reportLost(): void {
    const lost = new Map<string, { budget: string; unit: BudgetUnit; amount: number }>();
    for (const { counter, unwritten } of this.ledger.unwritten()) {
      const parts = partsOfCounter(counter);
      if (parts === undefined) continue;
      const { budget, unit } = parts;
      const name = `${unit} ${budget}`;
      lost.set(name, { budget, unit, amount: (lost.get(name)?.amount ?? 0) + unwritten });
    }
    const help = 'answers were sent while the database failed; add the amounts to what you bill';
    for (const { budget, unit, amount } of [...lost.values()].slice(0, REPORTED))
      this.#log.error(SCOPE, 'charges of a budget are lost: the database fails at the end of the gateway', {
        budget,
        lost: amountText(unit, amount),
        help,
      });
    if (lost.size > REPORTED)
      this.#log.error(SCOPE, 'charges of more budgets are lost', { budgets: lost.size - REPORTED });
  }

  #knownKey(key: VirtualKey | undefined): KnownKey | null {
    if (key === undefined) return null;
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const { id, name, metadata, allowedModels } = key;
    const claims = claimsOfKey(key);
    const created: KnownKey = { id, name, metadata, claims, ...(allowedModels && { allowedModels }) };
    this.#known.set(key, created);
    return created;
  }

  /** Resolves when everything that was charged is written, or cannot be: then the log says what is lost. The database is closed later. */
  async close(): Promise<void> {
    this.keys.close();
    this.#pruning?.close();
    await this.ledger.flushed();
    this.#reportLost();
    this.#shared.release();
  }
}

/** The budgets of a report; the others are counted. */
const REPORTED = 20;

/** The counters of a key's own budgets. */
export function claimsOfKey({ id, budgets }: Pick<VirtualKey, 'id' | 'budgets'>): Claim[] {
  return budgets.flatMap((text) => {
    const limit = parseBudget(text);
    return limit === undefined ? [] : [claimOf(`${KEY_PREFIX}${id}`, limit, '')];
  });
}

/** Names of configured budgets contain no slash. */
export const KEY_PREFIX = 'key/';

export function claimOf(budget: string, { unit, window, amount }: BudgetLimit, subject: string): Claim {
  return { counter: counterName(budget, { unit, window }, subject), unit, window, limit: amount };
}

/** The spending of a process; undefined without `config.database`. Set on the settings before policies are compiled. */
export const spendingOf = new Slot<Spending>();

import { amountText, budgetText, windowEnd } from '../../core/budget.ts';
import { AppError, detailOf } from '../../core/errors.ts';
import type { RequestContext } from '../kernel/request/request-context.ts';
import { Slot } from '../kernel/slot.ts';
import type { Amounts, Claim } from './counter.ts';
import type { Reserved } from './ledger.ts';
import type { Spending } from './spending.ts';

/** A counter of a call, and what is shown of it. */
export interface NamedClaim extends Claim {
  /** Name of the budget, for clients, logs and metrics; `virtual key` for those of keys. */
  readonly budget: string;
  /** Name of the virtual key whose budget it is. */
  readonly key?: string | undefined;
  /** Whether calls go on if it cannot be counted: `failureMode: failOpen`. */
  readonly isOpen: boolean;
}

export type BudgetOutcome = 'allowed' | 'refused' | 'uncounted' | 'unavailable';

/** Counts calls by budget, for the metrics. */
export type BudgetMeter = (budget: string, outcome: BudgetOutcome) => void;

/** The budgets that the call of one request takes from. Set by the policies of its caller. */
export class CallBudget {
  readonly #spending: Spending;
  readonly #meter: BudgetMeter;
  #claims: readonly NamedClaim[] = [];
  #countsMoney: boolean | undefined;
  #id: number | undefined;
  #charged: Amounts = { usd: 0, tokens: 0 };

  constructor(spending: Spending, meter: BudgetMeter) {
    this.#spending = spending;
    this.#meter = meter;
  }

  add(claims: readonly NamedClaim[]): void {
    this.#claims = this.#claims.length === 0 ? claims : [...this.#claims, ...claims];
    this.#countsMoney = undefined;
  }

  /** Whether a price is needed. */
  get countsMoney(): boolean {
    this.#countsMoney ??= this.#claims.some(({ unit }) => unit === 'usd');
    return this.#countsMoney;
  }

  get isReserved(): boolean {
    return this.#id !== undefined;
  }

  /**
   * Reserves what a call is expected to use. Throws an `AppError`, or rejects with it: 429 if a budget has less left, 503
   * if the database of budgets fails and one of them is not open then. A promise only if it has to wait.
   */
  reserve(ctx: RequestContext, amounts: Amounts): void | Promise<void> {
    if (this.#claims.length === 0) return;
    const outcome = this.#reserve(amounts);
    if (outcome instanceof Promise) return outcome.then((decided) => this.#reserved(ctx, amounts, decided));
    this.#reserved(ctx, amounts, outcome);
  }

  /** As `reserve`, for something that was used already: reserves nothing, and no budget refuses it. */
  open(ctx: RequestContext): void | Promise<void> {
    if (this.#id !== undefined) return;
    this.#claims = this.#claims.map((claim) => ({ ...claim, limit: Number.MAX_SAFE_INTEGER }));
    return this.reserve(ctx, { usd: 0, tokens: 0 });
  }

  #reserved(ctx: RequestContext, amounts: Amounts, outcome: Reserved): void {
    if ('id' in outcome) {
      this.#id = outcome.id;
      for (const { budget } of this.#claims) this.#meter(budget, 'allowed');
      ctx.observer?.policy({ kind: 'budgets', action: 'apply', reason: 'reserved', snapshot: amounts });
      return;
    }
    if ('unavailable' in outcome) {
      this.#failed(ctx, outcome.unavailable);
      return;
    }
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the ledger returns an index of these claims
    const claim = this.#claims[outcome.refusedBy] as NamedClaim;
    this.#meter(claim.budget, 'refused');
    throw exceeded(ctx, claim, amounts, outcome);
  }

  /**
   * A call that cannot be counted: its tokens or its price are unknown. Throws an `AppError` (403) unless all budgets
   * of that unit are open.
   */
  refuseUncounted(
    ctx: RequestContext,
    {
      why,
      detail,
      unit,
    }: { readonly why: string; readonly detail?: string | undefined; readonly unit?: 'usd' },
  ): void {
    const affected = this.#claims.filter((claim) => unit === undefined || claim.unit === unit);
    const closed = affected.find(({ isOpen }) => !isOpen);
    for (const { budget } of affected) this.#meter(budget, closed === undefined ? 'uncounted' : 'refused');
    if (closed !== undefined) {
      const message = `${titleOf(closed)} does not allow calls that cannot be counted: ${why}`;
      ctx.observer?.policy({ kind: 'budgets', action: 'deny', reason: message });
      throw new AppError('llm_forbidden', { message, ...(detail !== undefined && { detail }) });
    }
    this.#claims = this.#claims.filter((claim) => !affected.includes(claim));
    this.#countsMoney = undefined;
  }

  /**
   * Charges everything that the call has used so far. Resolves when it is written, or when the process that has the
   * budgets will write it. Rejects with an `AppError` (503) in a worker whose process with the budgets is gone: the answer
   * must not be sent, because nobody counts it.
   */
  charge(amounts: Amounts): void | Promise<void> {
    if (
      this.#id === undefined ||
      (amounts.tokens <= this.#charged.tokens && amounts.usd <= this.#charged.usd)
    )
      return;
    this.#charged = amounts;
    const written = this.#spending.call.charge(this.#id, amounts);
    // Only in a worker, the process with the budgets may be gone.
    if (!(written instanceof Promise) || this.#spending.worker === 0) return written;
    return written.catch((error: unknown) => {
      throw new AppError('budget_failed', { detail: detailOf(error) });
    });
  }

  /** The call has ended. Can be called without a reservation. */
  end(amounts: Amounts): void {
    if (this.#id === undefined) return;
    const released = this.#spending.call.release(this.#id, amounts);
    // Of a process that is gone, the reservations are, too.
    if (released instanceof Promise) released.catch(() => undefined);
    this.#id = undefined;
  }

  #reserve(amounts: Amounts): Reserved | Promise<Reserved> {
    const { call, worker } = this.#spending;
    // What only this process needs is not sent to another one.
    const claims: readonly Claim[] =
      worker === 0
        ? this.#claims
        : this.#claims.map(({ counter, unit, window, limit }) => ({ counter, unit, window, limit }));
    const outcome = call.reserve(worker, claims, amounts);
    if (!(outcome instanceof Promise)) return outcome;
    // A worker gets nothing if the configuration with the budgets is gone.
    return (outcome as Promise<Reserved | undefined>).then(
      (decided) => decided ?? { unavailable: 'the gateway is closing' },
      (error: unknown) => ({ unavailable: detailOf(error) }),
    );
  }

  #failed(ctx: RequestContext, why: string): void {
    const closed = this.#claims.find(({ isOpen }) => !isOpen);
    for (const { budget } of this.#claims)
      this.#meter(budget, closed === undefined ? 'uncounted' : 'unavailable');
    ctx.observer?.policy({
      kind: 'budgets',
      action: closed === undefined ? 'skip' : 'deny',
      reason: `the database of budgets cannot be used: ${why}`,
    });
    if (closed === undefined) return;
    throw new AppError('budget_failed', { detail: why, headers: ['retry-after', '1'] });
  }
}

export const callBudget = new Slot<CallBudget>();

function exceeded(
  ctx: RequestContext,
  claim: NamedClaim,
  amounts: Amounts,
  { left, start }: { readonly left: number; readonly start: number },
): AppError {
  const { budget, key, unit, window, limit } = claim;
  const end = windowEnd(window, start);
  const resets = end === undefined ? 'it does not reset' : `it resets at ${isoSeconds(end)}`;
  const shown = `${titleOf(claim)} (${budgetText({ unit, window, amount: limit })})`;
  const message =
    left <= 0
      ? `${shown} is used up; ${resets}`
      : `${shown} has ${amountText(unit, left)} left, and this call may use ${amountText(unit, amounts[unit])}: ask for fewer output tokens, or wait; ${resets}`;
  ctx.observer?.policy({
    kind: 'budgets',
    action: 'deny',
    reason: message,
    snapshot: { budget, ...(key !== undefined && { key }), limit, left },
  });
  const headers =
    end === undefined
      ? []
      : [
          'retry-after',
          String(Math.max(1, Math.ceil((end - Date.now()) / 1000))),
          'x-budget-reset',
          isoSeconds(end),
        ];
  // Clients of OpenAI and Anthropic repeat a 429 several times otherwise.
  return new AppError('budget_exceeded', { message, headers: [...headers, 'x-should-retry', 'false'] });
}

const titleOf = ({ budget, key }: NamedClaim): string =>
  key === undefined ? `budget \`${budget}\`` : `the budget of key \`${key}\``;

const isoSeconds = (time: number): string => new Date(time).toISOString().replace('.000Z', 'Z');

import { callBudget } from '../../budgets/call-budget.ts';
import type { Amounts } from '../../budgets/counter.ts';
import type { RequestContext } from '../../kernel/request/request-context.ts';
import { Slot } from '../../kernel/slot.ts';
import type { PriceCatalog } from '../cost/catalog.ts';
import type { CostOutcome, LlmCall } from '../llm-call.ts';
import type { CallBody } from '../request/call-body.ts';
import { largestNumber } from '../request/request-numbers.ts';
import { MAX_TOKENS, type Usage } from '../usage.ts';
import { estimateInput, estimateUsage } from './token-estimate.ts';

/** Output tokens that a call is expected to use if it sets no maximum: a long answer to a question. */
const USUAL_OUTPUT = 1_000;

/** The prices when the request began: a reload does not change those of calls that run. */
export const callPrices = new Slot<PriceCatalog>();

/**
 * Reserves what a call may use in the budgets of its caller, once: not again for the next model after a failure. Throws
 * an `AppError`: 429 if a budget has less left, 403 if the call cannot be counted, 503 if the database fails.
 */
export function reserveBudget(ctx: RequestContext, call: LlmCall, body?: CallBody): void | Promise<void> {
  const budget = callBudget.get(ctx);
  if (budget === undefined || budget.isReserved || call.isFree === true) return;
  if (call.isUnmetered === true)
    return budget.refuseUncounted(ctx, { why: 'the tokens of the model are not counted' });
  // It uses something when it runs, at a price of models that the call does not name. A used-up budget refuses it.
  if (call.batch?.kind === 'creation') return budget.reserve(ctx, { tokens: 0, usd: 0 });
  const usage = { input: estimateInput(call.request), output: expectedOutput(call, body) };
  const cost = budget.countsMoney ? priceOf(ctx, call, usage) : undefined;
  if (cost !== undefined && cost.status !== 'Exact')
    budget.refuseUncounted(ctx, {
      why: `the price of \`${call.providerModel ?? call.requestModel}\` (${call.provider}) is unknown: add it to \`config.modelCatalog\`, or set \`failureMode: failOpen\` where the budget or the key is configured`,
      detail: cost.reason,
      unit: 'usd',
    });
  return budget.reserve(ctx, amountsOf(usage, cost));
}

/** What targets have used of a call that failed before the one that answered. */
export const usedByFailed = new Slot<Amounts>();

/** Charges what a call has used so far. Resolves when it is written; a promise only if there is something to write. */
export function chargeBudget(ctx: RequestContext, call: LlmCall): void | Promise<void> {
  const budget = callBudget.get(ctx);
  if (budget?.isReserved !== true || call.isFree === true) return;
  const reported = call.providerUsage === null ? undefined : (call.providerUsage ?? call.usage);
  const usage = reported ?? estimateUsage(call);
  const cost = budget.countsMoney ? priceOf(ctx, call, usage) : undefined;
  if (cost !== undefined) call.priced = { usage, cost };
  return budget.charge(withFailed(ctx, amountsOf(usage, cost)));
}

/** Charges a call that has ended, and releases the rest of its reservation. */
export function endBudget(ctx: RequestContext, { usage, cost }: LlmCall): void {
  callBudget.get(ctx)?.end(withFailed(ctx, amountsOf(usage, cost)));
}

/** Amounts of a call, with those of the targets that failed before. */
export function withFailed(ctx: RequestContext, { tokens, usd }: Amounts): Amounts {
  const before = usedByFailed.get(ctx);
  return { tokens: tokens + (before?.tokens ?? 0), usd: usd + (before?.usd ?? 0) };
}

function priceOf(ctx: RequestContext, call: LlmCall, usage: Usage): CostOutcome | undefined {
  const names = [call.responseModel, call.providerModel, call.requestModel];
  return callPrices.get(ctx)?.price(call.provider, names, usage);
}

/** What budgets count. */
export function amountsOf(usage: Usage | undefined, cost: CostOutcome | undefined): Amounts {
  return {
    tokens: usage === undefined ? 0 : usage.input + usage.output,
    usd: cost?.picoUsd === undefined ? 0 : nanoUsd(cost.picoUsd),
  };
}

/** 10^-12 USD in 10^-9 USD, rounded up. */
const nanoUsd = (picoUsd: bigint): number => Number((picoUsd + 999n) / 1000n);

/** The most output tokens that the request asks for. A session has no request. */
function expectedOutput(call: LlmCall, body: CallBody | undefined): number {
  if (body === undefined) return USUAL_OUTPUT;
  if (call.hasNoText === true) return 0;
  const most = largestNumber(body, 'tokens') ?? USUAL_OUTPUT;
  return Math.min(most * Math.max(1, largestNumber(body, 'answers') ?? 1), MAX_TOKENS);
}

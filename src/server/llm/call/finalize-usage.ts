import type { RequestContext } from '../../kernel/request/request-context.ts';
import type { PriceCatalog } from '../cost/catalog.ts';
import { isProviderFault } from '../errors.ts';
import { type CostOutcome, type LlmCall, refuse } from '../llm-call.ts';
import { isZero } from '../usage.ts';
import { amountsOf, callPrices, endBudget, usedByFailed, withFailed } from './budget.ts';
import { estimateUsage } from './token-estimate.ts';
import { chargeSoFar } from './token-limits.ts';

/**
 * Finalizes an ended call: reads a non-streaming response, settles the health of the model, estimates unreported tokens, looks up the price and charges
 * token limits. Must be called once, before the access-log line is written.
 */
export function finalizeUsage(ctx: RequestContext, call: LlmCall, catalog: PriceCatalog): void {
  call.nonStreaming?.finalize(call);
  readProviderUsage(call);
  // An error inside a 2xx response: without this, the log would show a success.
  if (call.providerError !== undefined && call.progress !== 'rejected' && ctx.error === undefined) {
    ctx.error = 'the provider responded with an error';
    ctx.reason = 'UpstreamFailure';
  }
  const hasFailed = ctx.reason === 'UpstreamFailure' || ctx.reason === 'Timeout';
  call.settle?.(!ctx.isAbandoned && hasFailed && isProviderFault(call.providerError ?? {}));
  countTokens(ctx, call, catalog);
  endBudget(ctx, call);
  // Batches have limits of their own at providers: the rate of other calls is not theirs.
  chargeSoFar(ctx, (call.counted === undefined ? call.usage : undefined) ?? { input: 0, output: 0 });
}

/** Counts what the call of a target has used that failed, before another one is called: its provider charges for that. */
export function countFailedCall(ctx: RequestContext, call: LlmCall): void {
  const catalog = callPrices.get(ctx);
  if (catalog === undefined) return;
  readProviderUsage(call);
  countTokens(ctx, call, catalog);
  usedByFailed.set(ctx, withFailed(ctx, amountsOf(call.usage, call.cost)));
  refuse(call);
}

/** The format of the client may have fewer classes of tokens than that of the provider. */
function readProviderUsage(call: LlmCall): void {
  if (call.providerUsage === null) call.usage = undefined;
  else if (call.providerUsage !== undefined) call.usage = call.providerUsage;
}

function countTokens(ctx: RequestContext, call: LlmCall, catalog: PriceCatalog): void {
  if (call.progress === 'sent' && !ctx.isAbandoned && ctx.reason !== 'Timeout') call.progress = 'rejected';
  if (call.progress !== undefined && call.progress !== 'rejected') completeUsage(ctx, call);
  if (isUncounted(call)) call.usage = call.counted?.usage;
  call.cost = costOf(call, catalog);
}

function costOf(call: LlmCall, catalog: PriceCatalog): CostOutcome {
  const { usage, priced, counted } = call;
  if (counted !== undefined) return counted.cost;
  if (call.isCacheHit === true) return NOTHING;
  if (usage !== undefined && priced?.usage === usage) return priced.cost;
  return catalog.price(call.provider, [call.responseModel, call.providerModel, call.requestModel], usage);
}

/** The cost of an answer that was given before. */
const NOTHING: CostOutcome = { status: 'Exact', total: '0', picoUsd: 0n, parts: { total: 0 } };

/** Calls without usage of their own, even if the response reports some. */
const isUncounted = ({ isUnmetered, isFree, isRetrieval, ranInBackground }: LlmCall): boolean =>
  isUnmetered === true || isFree === true || (isRetrieval === true && ranInBackground !== true);

/**
 * A provider charges for a call even if its usage report does not reach the gateway. A client that disconnects before
 * the report, or requests none, is charged for the bytes seen (docs/decisions/0005).
 */
function completeUsage(ctx: RequestContext, call: LlmCall): void {
  const { progress } = call;
  if (call.isFree || call.isRetrieval) return;
  // No measurement: the response has text.
  const usage = isZero(call.usage) && call.outputBytes ? undefined : call.usage;
  if (usage !== undefined && progress === 'complete') return;
  // Only an error was received: a rejection, whatever the status.
  if (usage === undefined && call.providerError !== undefined && !call.outputBytes) return;
  const estimate = estimateUsage(call);
  // Some providers report cumulative usage in every event, starting near zero.
  if (usage !== undefined && usage.output >= estimate.output) return;
  call.usage = usage === undefined ? estimate : { ...usage, output: estimate.output };
  call.estimated = estimateReason(ctx, call);
}

function estimateReason(ctx: RequestContext, { progress, hasNoText }: LlmCall): string {
  if (progress === 'complete' || hasNoText) return 'the provider reported no usage';
  if (ctx.isAbandoned && ctx.reason !== 'Timeout')
    return 'the client disconnected before the provider reported usage';
  // Plain text, such as the subtitles of a recording, or too long to be read.
  if (ctx.error === undefined) return 'no usage was found in the response';
  return `the response ended before the provider reported usage: ${ctx.error}`;
}

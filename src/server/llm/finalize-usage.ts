import type { RequestContext } from '../kernel/request-context.ts';
import { tokenListeners } from '../kernel/token-usage.ts';
import type { LlmCall } from './call.ts';
import type { PriceCatalog } from './cost/catalog.ts';
import { countMedia, textBytes } from './texts.ts';
import type { Usage } from './usage.ts';

/**
 * Settles a call that has ended: reads what was left to read, estimates tokens that nobody reported, finds the price,
 * charges token limits. Run once, before the access log.
 */
export function finalizeUsage(ctx: RequestContext, call: LlmCall, catalog: PriceCatalog): void {
  call.nonStreaming?.settle(call);
  // The client reads it in the answer; the status was good, so that only this tells the log.
  if (call.providerError !== undefined && call.progress !== 'refused' && ctx.error === undefined) {
    ctx.error = 'the provider answered with an error';
    ctx.reason = 'UpstreamFailure';
  }
  if (call.progress === 'asked' && !ctx.isAbandoned && ctx.reason !== 'Timeout') call.progress = 'refused';
  if (call.progress !== undefined && call.progress !== 'refused') completeUsage(ctx, call);
  const { usage } = call;
  call.cost = catalog.price(
    call.provider,
    [call.responseModel, call.providerModel, call.requestModel],
    usage,
  );
  for (const charge of tokenListeners.get(ctx) ?? [])
    charge(usage === undefined ? 0 : usage.input + usage.output);
}

/**
 * A provider that was asked does its work, whether or not its report reaches us: a client that leaves before the report,
 * or asks for none, is charged for what went by (docs/decisions/0005).
 */
function completeUsage(ctx: RequestContext, call: LlmCall): void {
  const { usage, progress } = call;
  if (usage !== undefined && progress === 'whole') return;
  // Nothing but an error came: it is a refusal, whatever its status.
  if (usage === undefined && call.providerError !== undefined && !call.saidBytes) return;
  const estimate = estimated(call);
  // Some providers report in every event, or begin with a report of almost nothing.
  if (usage !== undefined && usage.output >= estimate.output) return;
  call.usage = usage === undefined ? estimate : { ...usage, output: estimate.output };
  call.estimated = whyEstimated(ctx, call);
}

function whyEstimated(ctx: RequestContext, { progress, hasNoText }: LlmCall): string {
  if (progress === 'whole' || hasNoText) return 'the provider reported no usage';
  if (ctx.isAbandoned && ctx.reason !== 'Timeout')
    return 'the client left before the provider reported usage';
  return `the response ended before the provider reported usage: ${ctx.error ?? 'cut off'}`;
}

/** Four bytes of text are a token, roughly, in all languages that common tokenizers were made for. */
const BYTES_PER_TOKEN = 4;
/** An image of medium size, with the providers that say what they charge. */
const MEDIA_TOKENS = 1_000;

function estimated({ request, hasNoText, saidBytes = 0 }: LlmCall): Usage {
  const { messages, prompt, input, instructions, tools, system, query, documents } = request;
  const told = [messages, prompt, input, instructions, tools, system, query, documents];
  const bytes = told.reduce((sum: number, part) => sum + textBytes(part), 0);
  const media = told.reduce((sum: number, part) => sum + countMedia(part), 0);
  return {
    input: Math.ceil(bytes / BYTES_PER_TOKEN) + media * MEDIA_TOKENS + countNumbers(prompt ?? input),
    output: hasNoText ? 0 : Math.ceil(saidBytes / BYTES_PER_TOKEN),
  };
}

/** A prompt may be given as token numbers, in one or several lists. */
function countNumbers(value: unknown): number {
  if (!Array.isArray(value)) return 0;
  return (value as unknown[])
    .flatMap((item) => (Array.isArray(item) ? (item as unknown[]) : [item]))
    .filter((item) => typeof item === 'number').length;
}

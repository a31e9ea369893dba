import type { RequestContext } from '../../kernel/request/request-context.ts';
import { tokenListeners } from '../../kernel/request/shared-slots.ts';
import { Slot } from '../../kernel/slot.ts';
import type { LlmCall } from '../llm-call.ts';
import type { Usage } from '../usage.ts';
import { usedByFailed } from './budget.ts';
import { estimateUsage } from './token-estimate.ts';

/** Tokens that token limits were charged with for a request. */
const charged = new Slot<number>();

/** Charges token limits with an estimate of the request, once, whatever number of models it is sent to. */
export function chargeEarly(ctx: RequestContext, call: LlmCall): void {
  if (call.isFree || charged.get(ctx) !== undefined) return;
  chargeSoFar(ctx, { input: estimateUsage(call).input, output: 0 });
}

/** Charges token limits with what a call has used until now, less what was charged before, which may be more. */
export function chargeSoFar(ctx: RequestContext, { input, output }: Usage): void {
  const listeners = tokenListeners.get(ctx);
  if (listeners === undefined) return;
  const used = input + output + (usedByFailed.get(ctx)?.tokens ?? 0);
  const rest = used - (charged.get(ctx) ?? 0);
  charged.set(ctx, used);
  for (const charge of listeners) charge(rest);
}

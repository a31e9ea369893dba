import { LIMITS } from '../../../core/limits.ts';
import { callBudget } from '../../budgets/call-budget.ts';
import type { Reply, RequestContext } from '../../kernel/request/request-context.ts';
import { UpstreamBody } from '../../transport/upstream/upstream-body.ts';
import type { LlmCall } from '../llm-call.ts';
import { chargeBudget } from './budget.ts';
import { LlmStream } from './stream.ts';

/** Waits until a complete answer is charged, before it is sent: what a client has received is never lost. */
export async function chargedReply(ctx: RequestContext, call: LlmCall, reply: Reply): Promise<Reply> {
  const budget = callBudget.get(ctx);
  const { body } = reply;
  // A stream and a batch charge themselves before their end. An answer without text, such as speech, costs what its prompt does.
  if (
    budget?.isReserved !== true ||
    call.progress === 'rejected' ||
    body instanceof LlmStream ||
    call.batch !== undefined
  )
    return reply;
  if (!(body instanceof UpstreamBody) || call.nonStreaming === undefined || call.hasNoText === true) {
    await chargeBudget(ctx, call);
    return reply;
  }
  const { bytes, isComplete } = await body.hold(LIMITS.responseBodyBytes);
  // Too long to be read: charged when it has ended.
  if (!isComplete) return reply;
  body.replaced();
  call.nonStreaming.finalize(call);
  call.nonStreaming = undefined;
  await chargeBudget(ctx, call);
  return { ...reply, body: bytes };
}

import { AppError } from '../../../core/errors.ts';
import { discardReply } from '../../kernel/request/error-response.ts';
import type { Reply, RequestContext } from '../../kernel/request/request-context.ts';
import { isCallFailure } from '../../transport/upstream/upstream-error.ts';
import { LlmError, UNTRANSLATABLE } from '../errors.ts';
import { failedModels, llmCall } from '../llm-call.ts';
import type { Failover, FailoverTarget } from '../models/failover.ts';
import { countFailedCall } from './finalize-usage.ts';
import { traceEvictedTargets } from './trace-events.ts';

/**
 * Calls targets one after the other until one does not fail, while nothing has been sent to the client. A failure is
 * what `health` of the model says, a call that did not get a response, or a stream that ended before its first output; after one, also
 * a request that cannot be translated for the next model.
 * `attempt` calls a target; `isLast` is false if another one would follow. The failure of the last target is the client's.
 */
export async function callWithFailover(
  ctx: RequestContext,
  failover: Failover,
  attempt: (target: FailoverTarget, isLast: boolean) => Promise<Reply>,
): Promise<Reply> {
  const tried = new Set<FailoverTarget>();
  const reported = ctx.observer === undefined ? undefined : new Set<FailoverTarget>();
  let target = failover.choose(tried);
  while (target !== undefined) {
    if (reported !== undefined)
      traceEvictedTargets(ctx, failover.evicted(target), { chosen: target, tried, reported });
    tried.add(target);
    const isLast = tried.size >= failover.size;
    try {
      const reply = await attempt(target, isLast);
      if (isLast || ctx.isAbandoned || llmCall.get(ctx)?.failed !== true) return reply;
      discardReply(reply);
    } catch (error) {
      // The response has begun, and nothing of it was sent.
      if (isCallFailure(error) && !ctx.isAbandoned) llmCall.get(ctx)?.settle?.(true);
      // While others fail, a model that cannot be asked is passed over; a healthy one is not given up for what it cannot express.
      const isPassedOver = tried.size > 1 && error instanceof LlmError && error.llmCode === UNTRANSLATABLE;
      if (isLast || ctx.isAbandoned || !(isPassedOver || isCallFailure(error))) throw error;
    }
    const failed = llmCall.get(ctx);
    if (failed !== undefined) countFailedCall(ctx, failed);
    failedModels.ensure(ctx, () => []).push(target.model);
    ctx.forgetFailure();
    const next = failover.choose(tried);
    ctx.observer?.emit(
      { type: 'policyEvent', kind: 'llm_failover', details: { failed: target.model, next: next?.model } },
      { severity: 'warn' },
    );
    target = next;
  }
  throw new AppError('no_backend');
}

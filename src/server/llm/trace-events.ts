import type { LlmRouteType } from '../../core/trace/event.ts';
import type { RequestObserver } from '../kernel/observer.ts';
import type { Reply, RequestContext } from '../kernel/request-context.ts';
import { UpstreamBody } from '../transport/upstream-body.ts';
import type { LlmCall } from './call.ts';
import type { EndpointStats } from './endpoint-stats.ts';
import type { FailoverTarget } from './failover.ts';

const ROUTE_TYPES: Readonly<Record<LlmCall['operation'], LlmRouteType>> = {
  chat: 'Completions',
  text_completion: 'Completions',
  embeddings: 'Embeddings',
  responses: 'Responses',
  other: 'Detect',
};

/** An LLM request was understood; `text` is its body as the client sent it. */
export function traceLlmRequest(observer: RequestObserver, call: LlmCall, text: string): void {
  const { provider, operation, requestModel, streaming } = call;
  const routeType = ROUTE_TYPES[operation];
  observer.emit({ type: 'llmRouteResolved', provider, routeType });
  if (!observer.isBrief) observer.body('llm request before translation', Buffer.from(text));
  observer.emit({
    type: 'llmRequestDetected',
    provider,
    inputFormat: routeType,
    upstreamRouteType: routeType,
    requestModel,
    streaming,
  });
}

/** A call has failed: for how long its model is left alone now, if it is. */
export function traceEviction(observer: RequestObserver, call: LlmCall, { info }: EndpointStats): void {
  if (info.evictedUntil === null) return;
  const details = { model: call.providerModel ?? call.requestModel, for: info.evictedUntil };
  observer.emit({ type: 'policyEvent', kind: 'llm_eviction', details }, { severity: 'warn' });
}

/** A target was chosen: who was passed over because it is left alone, and for how long that lasts; each once. */
export function traceEvictedTargets(
  { observer }: RequestContext,
  targets: readonly FailoverTarget[],
  { chosen, tried, told }: Readonly<{ chosen: object; tried: ReadonlySet<object>; told: Set<object> }>,
): void {
  for (const target of targets) {
    if (tried.has(target) || told.has(target)) continue;
    told.add(target);
    const details = {
      model: target.model,
      for: target.stats.info.evictedUntil,
      ...(target === chosen ? { taken: 'all the same: no target is left' } : {}),
    };
    observer?.emit({ type: 'policyEvent', kind: 'llm_left_alone', details }, { severity: 'warn' });
  }
}

/** A provider has answered: the reply before anything is done to it. */
export function traceLlmReply(observer: RequestObserver, call: LlmCall, reply: Reply): void {
  if (observer.isBrief) return;
  observer.responseSnapshot('raw response', reply);
  const { body } = reply;
  const isStream = reply.headers.get('content-type')?.toLowerCase().startsWith('text/event-stream') === true;
  if (isStream) {
    const { provider, operation } = call;
    const inputFormat = ROUTE_TYPES[operation];
    observer.emit({
      type: 'llmStreamingTranslation',
      provider,
      inputFormat,
      upstreamRouteType: inputFormat,
      streamFormat: 'sseJson',
    });
  }
  if (body instanceof UpstreamBody) body.observers.push(observer.rawResponse());
  else if (typeof body === 'string' || body instanceof Uint8Array)
    observer.body('llm raw response', Buffer.from(body as string));
}

import type { LlmRouteType } from '../../../core/trace/event.ts';
import type { RequestObserver } from '../../kernel/observer.ts';
import type { Reply, RequestContext } from '../../kernel/request/request-context.ts';
import { UpstreamBody } from '../../transport/upstream/upstream-body.ts';
import { type ProviderFormatKey, providerFormatOf } from '../formats/index.ts';
import type { LlmCall } from '../llm-call.ts';
import type { FailoverTarget } from '../models/failover.ts';
import type { EndpointStats } from '../models/health.ts';

const routeTypeOf = (format: ProviderFormatKey | undefined): LlmRouteType =>
  providerFormatOf(format)?.routeType ?? 'Detect';

/** Emits a parsed LLM request. `body`: the client's; undefined if guardrails have not checked it yet. */
export function traceLlmRequest(
  observer: RequestObserver,
  call: LlmCall,
  body: { toString(): string } | undefined,
): void {
  const { provider, format, upstreamFormat, requestModel, streaming } = call;
  const routeType = routeTypeOf(format);
  observer.emit({ type: 'llmRouteResolved', provider, routeType });
  if (body !== undefined) traceRequestBody(observer, body);
  observer.emit({
    type: 'llmRequestDetected',
    provider,
    inputFormat: routeType,
    upstreamRouteType: routeTypeOf(upstreamFormat ?? format),
    requestModel,
    streaming,
  });
}

export function traceRequestBody(observer: RequestObserver, body: { toString(): string }): void {
  if (!observer.isBrief) observer.body('llm request before translation', Buffer.from(body.toString()));
}

/** Emits the eviction of a model after a failed call, if it is evicted now. */
export function traceEviction(observer: RequestObserver, call: LlmCall, { info }: EndpointStats): void {
  if (info.evictedUntil === null) return;
  const details = { model: call.providerModel ?? call.requestModel, for: info.evictedUntil };
  observer.emit({ type: 'policyEvent', kind: 'llm_eviction', details }, { severity: 'warn' });
}

/** Emits the targets that were skipped because they are evicted, and for how long. Each is reported once. */
export function traceEvictedTargets(
  { observer }: RequestContext,
  targets: readonly FailoverTarget[],
  {
    chosen,
    tried,
    reported,
  }: Readonly<{ chosen: object; tried: ReadonlySet<object>; reported: Set<object> }>,
): void {
  for (const target of targets) {
    if (tried.has(target) || reported.has(target)) continue;
    reported.add(target);
    const details = {
      model: target.model,
      for: target.stats.info.evictedUntil,
      ...(target === chosen ? { taken: 'used anyway: every target is evicted' } : {}),
    };
    observer?.emit({ type: 'policyEvent', kind: 'llm_evicted', details }, { severity: 'warn' });
  }
}

/** Emits the provider's reply before it is processed: its body only if no guardrails check it. */
export function traceLlmReply(
  observer: RequestObserver,
  call: LlmCall,
  reply: Reply,
  isGuarded: boolean,
): void {
  if (observer.isBrief) return;
  observer.responseSnapshot('raw response', reply);
  const { body } = reply;
  const isStream = reply.headers.get('content-type')?.toLowerCase().startsWith('text/event-stream') === true;
  if (isStream) {
    const { provider, format, upstreamFormat } = call;
    observer.emit({
      type: 'llmStreamingTranslation',
      provider,
      inputFormat: routeTypeOf(format),
      upstreamRouteType: routeTypeOf(upstreamFormat ?? format),
      streamFormat: 'sseJson',
    });
  }
  if (isGuarded) return;
  if (body instanceof UpstreamBody) body.observers.push(observer.rawResponse());
  else if (typeof body === 'string') observer.body('llm raw response', Buffer.from(body));
  else if (body instanceof Uint8Array) observer.body('llm raw response', Buffer.from(body));
}

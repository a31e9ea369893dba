import type { Reply, RequestContext } from '../kernel/request-context.ts';
import {
  allowsPassthrough,
  callModel,
  chooseModel,
  type LlmRuntime,
  type ModelRequest,
  unknownCall,
} from './call-model.ts';
import { callWithFailover } from './call-with-failover.ts';
import { type Endpoint, endpointAt, isModelList, passthroughAt } from './endpoints.ts';
import { modelListResponse, requireAllowed } from './model-list.ts';
import { matchesModel } from './model-patterns.ts';
import { readRequest, requestedModel } from './read-request.ts';
import { isRealtime, openRealtime, realtimeModel } from './realtime.ts';
import { chooseTarget } from './virtual-models.ts';

/** Answers a request of an LLM route: a call of a model, a realtime session, or the model list. Throws an `AppError`. */
export async function handleCall(ctx: RequestContext, runtime: LlmRuntime): Promise<Reply> {
  ctx.protocol = 'llm';
  if (isModelList(ctx)) return modelListResponse(ctx, runtime);
  if (isRealtime(ctx)) return callRealtime(ctx, runtime);
  const endpoint = endpointAt(ctx.method, ctx.path) ?? passthroughEndpoint(ctx, runtime);
  const body = await readRequest(ctx, endpoint, runtime.maxBodySize);
  const requested = requestedModel(ctx, endpoint, body);
  if (requested === undefined) return callUnnamed(ctx, runtime, { body, endpoint });
  requireAllowed(ctx, requested);
  const request = { requested, body, endpoint };
  const virtual = runtime.virtual.get(requested);
  if (virtual === undefined) return await callModel(ctx, runtime, request);
  if (virtual.failover === undefined)
    return callModel(ctx, runtime, { ...request, target: chooseTarget(virtual, ctx, body.value) });
  return callWithFailover(ctx, virtual.failover, (target, isLast) =>
    callModel(ctx, runtime, { ...request, body: body.original(), target, awaitsOutput: !isLast }),
  );
}

function callRealtime(ctx: RequestContext, runtime: LlmRuntime): Promise<Reply> {
  const requested = realtimeModel(ctx);
  requireAllowed(ctx, requested);
  const virtual = runtime.virtual.get(requested);
  const target = virtual && chooseTarget(virtual, ctx, { model: requested });
  const model = chooseModel(ctx, runtime, target?.model ?? requested, target !== undefined);
  const guardrails = [runtime.requestGuardrails, runtime.responseGuardrails].concat(
    model.guardrails === undefined ? [] : [model.guardrails.request, model.guardrails.response],
  );
  return openRealtime(ctx, {
    requested,
    providerModel: model.model ?? target?.model,
    model,
    stats: target?.stats ?? model.stats,
    limits: runtime.limits,
    hasGuardrails: guardrails.some((list) => list.length > 0),
  });
}

function passthroughEndpoint(ctx: RequestContext, { models }: LlmRuntime): Endpoint {
  if (!models.some((model) => allowsPassthrough(ctx, model))) throw unknownCall(ctx);
  return passthroughAt(ctx.path);
}

/**
 * Handles a call without a model: uses the default model of the API or, for a `passthrough` path, the most specific
 * model that allows it. Throws an `AppError`: 404 if there is none, 403 if the caller's key may not use it.
 */
function callUnnamed(
  ctx: RequestContext,
  runtime: LlmRuntime,
  { body, endpoint }: Pick<ModelRequest, 'body' | 'endpoint'>,
): Promise<Reply> {
  const { defaultModel } = endpoint;
  const open = runtime.models.filter(
    (model) =>
      model.isPublic &&
      model.matchesRequest(ctx) &&
      (!endpoint.isPassthrough || allowsPassthrough(ctx, model)),
  );
  const entry =
    open.find(({ name }) => defaultModel !== undefined && matchesModel(name, defaultModel)) ?? open[0];
  if (entry === undefined) throw unknownCall(ctx);
  const requested = defaultModel ?? entry.name;
  requireAllowed(ctx, requested);
  return callModel(ctx, runtime, { requested, body, endpoint, entry });
}

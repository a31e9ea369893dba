import { AppError } from '../../core/errors.ts';
import type { Reply, RequestContext } from '../kernel/request/request-context.ts';
import { aiPolicy } from './ai-policy.ts';
import { callModel } from './call/call-model.ts';
import { callWithFailover } from './call/call-with-failover.ts';
import {
  allowsPassthrough,
  chooseModel,
  guardrailsOf,
  type LlmRuntime,
  mayCall,
  unknownCall,
} from './call/llm-runtime.ts';
import type { ModelRequest } from './call/planned-call.ts';
import { hookCall } from './call/policy-hooks.ts';
import { replacingName } from './models/model.ts';
import { modelListResponse, requireAllowed, requireNamed } from './models/model-list.ts';
import { matchesModel } from './models/model-patterns.ts';
import { chooseTarget, namedTarget, virtualModelOf } from './models/virtual-models.ts';
import { isRealtime, openRealtime, realtimeModel } from './realtime/realtime.ts';
import { OpaqueBody } from './request/call-body.ts';
import { type Endpoint, endpointAt, isModelList, passthroughAt } from './request/endpoints.ts';
import { namedModels } from './request/named-models.ts';
import { isModelOptional, readRequest, requestedModel } from './request/read-request.ts';
import { routedEndpoint, typeOf } from './request/routed-calls.ts';

/** Answers a request of an LLM route: a call of a model, a realtime session, or the model list. Throws an `AppError`. */
export async function handleCall(ctx: RequestContext, runtime: LlmRuntime): Promise<Reply> {
  ctx.protocol = 'llm';
  const routes = aiPolicy.get(ctx)?.routes;
  const type = routes === undefined ? undefined : typeOf(routes, ctx.path);
  if (routes !== undefined && type === undefined) throw unknownCall(ctx);
  if (isModelList(ctx) && (type ?? 'models') === 'models') return modelListResponse(ctx, runtime);
  if (isRealtime(ctx) && (type ?? 'realtime') === 'realtime') return callRealtime(ctx, runtime);
  const endpoint = type === undefined ? endpointByPath(ctx, runtime) : routedEndpoint(type, ctx);
  if (endpoint === undefined) throw unknownCall(ctx);
  const sent = await readRequest(ctx, endpoint, runtime.maxBodySize);
  const { fixedModel } = runtime;
  const named = requestedModel(ctx, endpoint, sent, { isOptional: fixedModel !== undefined });
  const chosen = named ?? (isModelOptional(endpoint) ? undefined : fixedModel);
  if (chosen !== undefined) requireAllowed(ctx, chosen);
  const { body, model } = await hookCall(ctx, endpoint, sent, chosen);
  const requested = chosen ?? model;
  for (const each of namedModels(body.value, endpoint.format))
    if (each.name !== requested) requireNamed(ctx, each, runtime);
  if (requested === undefined) return callUnnamed(ctx, runtime, { body, endpoint });
  const request = {
    requested,
    wanted: model ?? wantedModel(ctx, requested),
    body,
    endpoint,
    isModelFilledIn: named === undefined,
  };
  const { balanced } = runtime;
  if (balanced !== undefined)
    return callWithFailover(ctx, balanced.failover, (target, isLast) => {
      const entry = balanced.models.get(target.model);
      if (entry === undefined) throw new AppError('no_backend');
      return callModel(ctx, runtime, {
        ...request,
        body: body.original(),
        entry,
        stats: target.stats,
        awaitsOutput: !isLast,
      });
    });
  const { wanted } = request;
  const virtual = virtualModelOf(runtime.virtual, wanted);
  if (virtual === undefined) return await callModel(ctx, runtime, request);
  if (virtual.failover === undefined) {
    const target = namedTarget(virtual, chooseTarget(virtual, ctx, body.value), wanted);
    return callModel(ctx, runtime, { ...request, target });
  }
  return callWithFailover(ctx, virtual.failover, (chosen, isLast) => {
    const target = namedTarget(virtual, chosen, wanted);
    return callModel(ctx, runtime, { ...request, body: body.original(), target, awaitsOutput: !isLast });
  });
}

/** The requested name, or the one that replaces it: `modelAliases` of the policy `ai`. */
function wantedModel(ctx: RequestContext, requested: string): string {
  return aiPolicy.get(ctx)?.aliasOf?.(requested) ?? requested;
}

async function callRealtime(ctx: RequestContext, runtime: LlmRuntime): Promise<Reply> {
  const requested = realtimeModel(ctx);
  requireAllowed(ctx, requested);
  const { model: replacing } = await hookCall(
    ctx,
    { format: 'realtime' },
    new OpaqueBody(Buffer.alloc(0), ''),
    requested,
  );
  const wanted = replacing ?? wantedModel(ctx, requested);
  const virtual = virtualModelOf(runtime.virtual, wanted);
  const target = virtual && namedTarget(virtual, chooseTarget(virtual, ctx, { model: wanted }), wanted);
  const model = chooseModel(ctx, runtime, target?.model ?? wanted, target !== undefined);
  model.authorize?.(ctx);
  return openRealtime(ctx, {
    requested,
    providerModel:
      replacingName(model, target?.model ?? wanted) ??
      target?.model ??
      (wanted === requested ? undefined : wanted),
    model,
    stats: target?.stats ?? model.stats,
    limits: runtime.limits,
    guardrails: guardrailsOf(ctx, runtime, model),
  });
}

function endpointByPath(ctx: RequestContext, { models }: LlmRuntime): Endpoint | undefined {
  const known = endpointAt(ctx.method, ctx.path);
  if (known !== undefined || !models.some((model) => allowsPassthrough(ctx, model))) return known;
  return passthroughAt(ctx.method, ctx.path);
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
    (model) => model.isPublic && model.matchesRequest(ctx) && mayCall(ctx, endpoint, model),
  );
  const entry =
    open.find(({ name }) => defaultModel !== undefined && matchesModel(name, defaultModel)) ?? open[0];
  if (entry === undefined) throw unknownCall(ctx);
  const requested = defaultModel ?? entry.name;
  requireAllowed(ctx, requested);
  return callModel(ctx, runtime, { requested, wanted: requested, body, endpoint, entry });
}

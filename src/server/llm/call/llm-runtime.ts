import type { Limits } from '../../../core/limits.ts';
import type { RuntimeSettings } from '../../kernel/compile-context.ts';
import type { RequestContext } from '../../kernel/request/request-context.ts';
import { aiPolicy } from '../ai-policy.ts';
import type { CountedBatches } from '../batches/counted-batches.ts';
import { llmError } from '../errors.ts';
import type { Guard } from '../guardrails/guard.ts';
import type { Guardrails, ResponseGuard } from '../guardrails/guardrails.ts';
import type { Failover } from '../models/failover.ts';
import type { Model } from '../models/model.ts';
import { type ModelListing, unknownModel } from '../models/model-list.ts';
import { allowsCall, type Endpoint } from '../request/endpoints.ts';

/** The compiled configuration of one LLM backend, shared by its calls. */
export interface LlmRuntime extends ModelListing {
  readonly maxBodySize: number;
  readonly limits: Limits;
  /** Undefined: batches are not counted. */
  readonly countedBatches?: CountedBatches | undefined;
  readonly requestGuardrails: readonly Guard[];
  readonly responseGuardrails: readonly ResponseGuard[];
  /** Providers of which each call uses a healthy one, whatever model it names. */
  readonly balanced?: { readonly failover: Failover; readonly models: ReadonlyMap<string, Model> };
  /** The model of calls that name none, if the name of the client is replaced in any case. */
  readonly fixedModel?: string | undefined;
}

/** Bytes of a request body: `maxBufferSize` if it is set, because expressions may read the body, else a limit of its own. */
export function maxBodySize({ isBufferSizeSet, maxBufferSize, limits }: RuntimeSettings): number {
  return isBufferSizeSet ? maxBufferSize : limits.llmRequestBytes;
}

/**
 * The most specific matching model. Internal models only match as targets. Throws an `AppError` (404) if there is none.
 */
export function chooseModel(
  ctx: RequestContext,
  { findModel, listed }: LlmRuntime,
  requested: string,
  isTarget: boolean,
): Model {
  const model = findModel(
    requested,
    ({ isPublic, matchesRequest }) => (isPublic || isTarget) && matchesRequest(ctx),
  );
  if (model === undefined) throw unknownModel(ctx, requested, listed);
  return model;
}

/** The guardrails of a call in their order: those of the backend, of the policy `ai`, and of the model. */
export function guardrailsOf(
  ctx: RequestContext,
  runtime: LlmRuntime,
  model: Model,
): Omit<Guardrails, 'close'> {
  const own = [aiPolicy.get(ctx)?.guardrails, model.guardrails].filter((each) => each !== undefined);
  if (own.length === 0) return { request: runtime.requestGuardrails, response: runtime.responseGuardrails };
  return {
    request: [...runtime.requestGuardrails, ...own.flatMap(({ request }) => request)],
    response: [...runtime.responseGuardrails, ...own.flatMap(({ response }) => response)],
  };
}

/** 404: the endpoint does not exist or no model allows it. Thrown before a provider, and so its key, is selected. */
export function unknownCall({ method, path }: RequestContext): Error {
  const hint = 'send a POST with a `model`, such as /v1/chat/completions; GET /v1/models lists the models';
  return llmError(
    'llm_unknown_call',
    'unknown_url',
    `unknown endpoint ${method} ${path}: ${hint}`,
    'other calls must be allowed by `passthrough` of a model or, if the route has the policy `ai`, by its `routes`',
  );
}

/** Whether `passthrough` of a model allows the path of a request. */
export const allowsPassthrough = ({ method, path }: RequestContext, { passthrough }: Model): boolean =>
  allowsCall(passthrough, method, path);

/** Whether a model may get the call of a request. */
export function mayCall(ctx: RequestContext, { isPassthrough, isRouted }: Endpoint, model: Model): boolean {
  return isPassthrough !== true || isRouted === true || allowsPassthrough(ctx, model);
}

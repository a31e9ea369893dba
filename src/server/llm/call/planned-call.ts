import type { RequestContext } from '../../kernel/request/request-context.ts';
import { logReads } from '../../kernel/request/shared-slots.ts';
import { type AiPolicy, aiPolicy } from '../ai-policy.ts';
import type { Guardrails } from '../guardrails/guardrails.ts';
import type { LlmCall } from '../llm-call.ts';
import type { EndpointStats } from '../models/health.ts';
import { configuredName, type Model, replacingName } from '../models/model.ts';
import { type VirtualTarget, virtualModelOf } from '../models/virtual-models.ts';
import type { CallBody } from '../request/call-body.ts';
import type { Endpoint } from '../request/endpoints.ts';
import { type ChosenFormat, chooseFormat } from '../translation/translation.ts';
import { chooseModel, guardrailsOf, type LlmRuntime, mayCall, unknownCall } from './llm-runtime.ts';
import { countsTokensItself } from './token-estimate.ts';

/** A request for a model. */
export interface ModelRequest {
  /** The model name of the client. */
  readonly requested: string;
  /** The name to look for: that of the client, or an alias of it. */
  readonly wanted: string;
  readonly body: CallBody;
  readonly endpoint: Endpoint;
  /** Whether the client named no model, so that `requested` is the `fixedModel`. */
  readonly isModelFilledIn?: boolean;
  /** The entry of `models`, if it was not selected by name. */
  readonly entry?: Model;
  /** The selected target of a virtual model. */
  readonly target?: VirtualTarget;
  /** Statistics of `entry`, if it is one of several. */
  readonly stats?: EndpointStats;
  /** Whether a stream that fails before its first output rejects, so that another target can be called. */
  readonly awaitsOutput?: boolean;
}

/** What is decided about a call before anything of it is changed. */
export interface PlannedCall extends ModelRequest {
  readonly call: LlmCall;
  readonly model: Model;
  readonly policy: AiPolicy | undefined;
  readonly guardrails: Omit<Guardrails, 'close'>;
  /** The name that replaces that of the client, at the provider. */
  readonly providerModel: string | undefined;
  readonly nameAtProvider: string;
  /** The gateway answers itself with a number of tokens. */
  readonly countsTokens: boolean;
  /** The format for the provider; undefined if it gets the call as it is. */
  readonly chosen: ChosenFormat | undefined;
}

/**
 * Chooses the model, if the request does not say which, and the format for its provider. Throws an `AppError`: 404 for an unknown
 * model or call, 403 if the caller may not use it, 400 for a call that the provider does not have.
 */
export function planCall(ctx: RequestContext, runtime: LlmRuntime, request: ModelRequest): PlannedCall {
  const { requested, wanted, endpoint, target, entry } = request;
  const model = entry ?? chooseModel(ctx, runtime, target?.model ?? wanted, target !== undefined);
  if (!mayCall(ctx, endpoint, model)) throw unknownCall(ctx);
  model.authorize?.(ctx);
  const providerModel =
    replacingName(model, target?.model ?? wanted) ??
    target?.model ??
    (wanted === requested ? undefined : wanted);
  const nameAtProvider = providerModel ?? requested;
  const isForwarded = endpoint.isPassthrough === true || model.passthrough.isNative;
  const countsTokens = !isForwarded && countsTokensItself(endpoint, model, nameAtProvider);
  const chosen = countsTokens || isForwarded ? undefined : formatFor(model, endpoint, nameAtProvider);
  return {
    ...request,
    call: callOf(ctx, runtime, request, { model, providerModel, chosen }),
    model,
    policy: aiPolicy.get(ctx),
    guardrails: guardrailsOf(ctx, runtime, model),
    providerModel,
    nameAtProvider,
    countsTokens,
    chosen,
  };
}

/** The call as it begins. It has all members that most calls get, so that V8 allocates it once. */
function callOf(
  ctx: RequestContext,
  runtime: LlmRuntime,
  { requested, wanted, body, endpoint }: ModelRequest,
  { model, providerModel, chosen }: Pick<PlannedCall, 'model' | 'providerModel' | 'chosen'>,
): LlmCall {
  const virtual = virtualModelOf(runtime.virtual, wanted);
  return {
    limits: runtime.limits,
    format: endpoint.format,
    upstreamFormat: chosen?.translation === undefined ? undefined : chosen.provider.type,
    operation: endpoint.operation,
    provider: model.provider.telemetryName,
    requestModel: requested,
    configuredModel:
      virtual === undefined
        ? configuredName(model, requested)
        : configuredName({ name: virtual.name, model: undefined }, requested),
    providerModel,
    streaming: endpoint.target?.stream ?? isStream(body.value['stream']),
    hasNoText: endpoint.hasNoText ?? false,
    isFree: endpoint.isFree ?? false,
    isUnmetered: model.passthrough.isOpaque,
    isRetrieval: endpoint.isRetrieval,
    batch: model.passthrough.isOpaque ? undefined : endpoint.batch,
    request: body.value,
    keepsCompletion: logReads.get(ctx)?.reads('llm.completion', 'llm.toolCalls') === true,
    progress: undefined,
    failed: undefined,
    providerError: undefined,
    responseModel: undefined,
    usage: undefined,
    estimated: undefined,
    outputBytes: undefined,
    nonStreaming: undefined,
    firstTokenAfter: undefined,
    lastTokenAfter: undefined,
    cost: undefined,
  };
}

/** The format for the provider; undefined if it gets the call as it is, or if it is the built-in model. */
function formatFor(
  { name, provider, formats }: Model,
  { format }: Endpoint,
  nameAtProvider: string,
): ChosenFormat | undefined {
  if (format === undefined || provider.answer !== undefined) return undefined;
  return chooseFormat(format, formats, { name, nameAtProvider });
}

/** Form fields are strings. */
export const isStream = (value: unknown): boolean => value === true || value === 'true';

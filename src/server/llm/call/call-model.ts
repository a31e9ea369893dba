import type { Limits } from '../../../core/limits.ts';
import { callBudget } from '../../budgets/call-budget.ts';
import { resolverFor } from '../../expressions/variable.ts';
import { backendTimeouts } from '../../kernel/backend.ts';
import type { RuntimeSettings } from '../../kernel/compile-context.ts';
import type { Reply, RequestContext } from '../../kernel/request-context.ts';
import { logReads, originalWithheld } from '../../kernel/shared-slots.ts';
import { UpstreamBody } from '../../transport/upstream-body.ts';
import { aiPolicy } from '../ai-policy.ts';
import type { LlmCall } from '../call.ts';
import { llmCall } from '../call.ts';
import { promptOf } from '../chat/prompt.ts';
import { gatewayCredential } from '../credentials.ts';
import { llmError } from '../errors.ts';
import { formatOf } from '../formats/index.ts';
import type { Guard } from '../guardrails/guard.ts';
import { type Guardrails, type ResponseGuard, runGuards } from '../guardrails/guardrails.ts';
import { requestTexts } from '../guardrails/request-texts.ts';
import type { Failover } from '../models/failover.ts';
import type { EndpointStats } from '../models/health.ts';
import { configuredName, type Model } from '../models/model.ts';
import { type ModelListing, unknownModel } from '../models/model-list.ts';
import { matchesModel } from '../models/model-patterns.ts';
import type { VirtualTarget } from '../models/virtual-models.ts';
import { type CallBody, changeFields } from '../request/call-body.ts';
import { allowsCall, type Endpoint } from '../request/endpoints.ts';
import { enrichPrompts } from '../request/enrich-prompts.ts';
import { nameModelOfBatch } from '../request/named-models.ts';
import { markCached } from '../request/prompt-caching.ts';
import { countMedia } from '../texts.ts';
import { type ChosenFormat, chooseFormat, translateCall } from '../translation/translation.ts';
import { reserveBudget } from './budget.ts';
import { callProvider } from './call-provider.ts';
import { chargedReply } from './charged-reply.ts';
import { processResponse, requireGuardable } from './response.ts';
import { StreamStart } from './stream-start.ts';
import { countsTokensItself, tokenCountResponse } from './token-estimate.ts';
import { chargeEarly } from './token-limits.ts';
import { traceLlmReply, traceLlmRequest, traceRequestBody } from './trace-events.ts';

/** The compiled configuration of one LLM backend, shared by its calls. */
export interface LlmRuntime extends ModelListing {
  readonly maxBodySize: number;
  readonly limits: Limits;
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

/** Calls one model, from the client's request to its response. Throws an `AppError` for what the client gets as an error. */
export async function callModel(
  ctx: RequestContext,
  runtime: LlmRuntime,
  {
    requested,
    wanted,
    body,
    endpoint,
    target,
    entry,
    stats,
    awaitsOutput = false,
    isModelFilledIn = false,
  }: ModelRequest,
): Promise<Reply> {
  const model = entry ?? chooseModel(ctx, runtime, target?.model ?? wanted, target !== undefined);
  if (!mayCall(ctx, endpoint, model)) throw unknownCall(ctx);
  model.authorize?.(ctx);
  const policy = aiPolicy.get(ctx);
  const providerModel = model.model ?? target?.model ?? (wanted === requested ? undefined : wanted);
  const nameAtProvider = providerModel ?? requested;
  const isForwarded = endpoint.isPassthrough === true || model.passthrough.isNative;
  const countsTokens = !isForwarded && countsTokensItself(endpoint, model, nameAtProvider);
  const chosen = countsTokens || isForwarded ? undefined : formatFor(model, endpoint, nameAtProvider);
  const call: LlmCall = {
    limits: runtime.limits,
    format: endpoint.format,
    ...(chosen?.translation && { upstreamFormat: chosen.provider.type }),
    operation: endpoint.operation,
    provider: model.provider.telemetryName,
    requestModel: requested,
    configuredModel: runtime.virtual.has(wanted) ? wanted : configuredName(model, requested),
    ...(providerModel === undefined ? {} : { providerModel }),
    streaming: endpoint.target?.stream ?? isStream(body.value['stream']),
    hasNoText: endpoint.hasNoText ?? false,
    isFree: endpoint.isFree ?? false,
    isUnmetered: model.passthrough.isOpaque,
    ...(endpoint.isRetrieval && { isRetrieval: true }),
    request: body.value,
    ...(logReads.get(ctx)?.reads('llm.completion', 'llm.toolCalls') === true && { keepsCompletion: true }),
  };
  llmCall.set(ctx, call);
  ctx.backend = model.backend ?? ctx.backend;
  const guardrails = guardrailsOf(ctx, runtime, model);
  const isGuarded = guardrails.request.length > 0;
  if (ctx.observer !== undefined) traceLlmRequest(ctx.observer, call, isGuarded ? undefined : body);
  if (policy !== undefined) changeFields(body, policy.fields, resolverFor(ctx));
  changeFields(body, model.fields, resolverFor(ctx));
  // The requested model is already authorized; the provider's model name comes from the configuration.
  if (providerModel !== undefined && (body.value['model'] !== undefined || isModelFilledIn))
    body.set('model', providerModel);
  if (endpoint.format === 'batchEmbedContents') nameModelOfBatch(body, nameAtProvider);
  if (policy?.prompts !== undefined) enrichPrompts(body, endpoint.format, policy.prompts);
  // The texts go nowhere, so no guardrail needs to see them.
  if (countsTokens) return tokenCountResponse(ctx, call, body);
  if (isGuarded) {
    await guardRequest(ctx, call, guardrails.request, body);
    if (ctx.observer !== undefined) traceRequestBody(ctx.observer, body);
  }
  // The prompt as sent: a guardrail may have masked the client's texts.
  if (logReads.get(ctx)?.reads('llm.prompt') === true) call.prompt = promptOf((field) => body.get(field));
  const isStreamed = endpoint.target?.stream ?? isStream(body.get('stream'));
  if (isStreamed) requireGuardable(call, guardrails.response);
  const stripsUsage = askForUsage(call, body);
  const translated =
    chosen?.translation &&
    translateCall(chosen.translation, body, {
      model: nameAtProvider,
      stream: isStreamed,
    });
  const sent = translated?.body ?? body;
  const caching = model.promptCaching ?? policy?.promptCaching;
  if (caching !== undefined && model.provider.hasPromptCaching === true)
    markCached(sent, { format: chosen?.provider.type, model: nameAtProvider }, caching);
  if (policy?.finalFields !== undefined) changeFields(sent, policy.finalFields, resolverFor(ctx));
  if (model.finalFields !== undefined) changeFields(sent, model.finalFields, resolverFor(ctx));
  const reserving = callBudget.get(ctx) === undefined ? undefined : reserveBudget(ctx, call, body);
  if (reserving !== undefined) await reserving;
  if (model.chargesEarly) chargeEarly(ctx, call);
  const answer = await callProvider(ctx, model, {
    call,
    body: sent,
    stats: stats ?? target?.stats ?? model.stats,
    format: chosen?.provider,
    path: endpoint.path,
    // A stream that is silent from the start is as good as one that fails before its first output.
    headersTimeout: awaitsOutput && isStreamed ? runtime.limits.streamIdle : undefined,
    translation: translated?.translation,
  });
  const reply = awaitsOutput ? await withOutput(ctx, call, answer) : answer;
  if (ctx.observer !== undefined) traceLlmReply(ctx.observer, call, reply, guardrails.response.length > 0);
  model.changeResponseHeaders?.(reply.headers);
  const processed = processResponse(ctx, call, reply, {
    guardrails: guardrails.response,
    request: () => body.toString(),
    stripsUsage,
    keyEncodings: gatewayCredential(ctx, model).encodings,
  });
  return callBudget.get(ctx) === undefined ? processed : chargedReply(ctx, call, await processed);
}

/** Waits for the first output of a stream. Throws an `AppError` (502) if it fails before. */
async function withOutput(ctx: RequestContext, call: LlmCall, reply: Reply): Promise<Reply> {
  const { status, headers, body } = reply;
  const isStream = headers.get('content-type')?.toLowerCase().startsWith('text/event-stream') === true;
  if (!isStream || status > 299 || !(body instanceof UpstreamBody)) return reply;
  const idle = backendTimeouts.get(ctx)?.idle ?? call.limits.streamIdle;
  const start = new StreamStart(body, formatOf(call.format), {
    idle,
    frameBytes: call.limits.streamFrameBytes,
  });
  const failed = await start.failed;
  if (failed === undefined) return { status, headers, body: start.body };
  start.body.discard();
  throw llmError(
    'upstream_invalid',
    'upstream_failed',
    `upstream call failed: ${failed}`,
    `${ctx.endpoint}: ${failed}`,
  );
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
const isStream = (value: unknown): boolean => value === true || value === 'true';

/**
 * The most specific matching model. Internal models only match as targets. Throws an `AppError` (404) if there is none.
 */
export function chooseModel(
  ctx: RequestContext,
  { models, listed }: LlmRuntime,
  requested: string,
  isTarget: boolean,
): Model {
  const model = models.find(
    ({ name, isPublic, matchesRequest }) =>
      (isPublic || isTarget) && matchesModel(name, requested) && matchesRequest(ctx),
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

async function guardRequest(
  ctx: RequestContext,
  call: LlmCall,
  guards: readonly Guard[],
  body: CallBody,
): Promise<void> {
  const media = countMedia(body.get('messages')) + countMedia(body.get('input')) + body.files;
  if (media > 0) call.unseenMedia = media;
  const { texts, replace } = requestTexts(body, guards);
  let isUnchanged = false;
  try {
    const checked = await runGuards(guards, 'request', texts, resolverFor(ctx), ctx.signal);
    isUnchanged =
      checked.length === texts.length &&
      checked.every(({ content }, index) => content === texts[index]?.content);
    if (!isUnchanged) replace(checked);
  } finally {
    if (!isUnchanged) originalWithheld.set(ctx, true);
  }
}

/** Requests the usage report of a stream. Returns whether it must be removed from the response. */
function askForUsage(call: LlmCall, body: CallBody): boolean {
  // The field as sent: the configuration may have changed it.
  const isReportOptional = call.format === 'completions' || call.format === 'textCompletions';
  if (body.get('stream') !== true || !isReportOptional || body.has('stream_options')) return false;
  body.set('stream_options', { include_usage: true });
  return true;
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

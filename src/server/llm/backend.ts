import { z } from 'zod';
import type { Limits } from '../../core/limits.ts';
import { resolverFor } from '../expressions/variable.ts';
import { backendTimeouts, defineBackend } from '../kernel/backend.ts';
import type { CompileContext } from '../kernel/compile-context.ts';
import type { ClientApi, Reply, RequestContext } from '../kernel/request-context.ts';
import { logReads } from '../kernel/shared-slots.ts';
import { UpstreamBody } from '../transport/upstream-body.ts';
import type { LlmCall } from './call.ts';
import { llmCall } from './call.ts';
import { type CallBody, changeFields } from './call-body.ts';
import { callProvider } from './call-provider.ts';
import { callWithFailover } from './call-with-failover.ts';
import { errorBody } from './client-error.ts';
import { promptOf } from './conversation.ts';
import { allowsCall, type Endpoint, endpointAt, isModelList, passthroughAt } from './endpoints.ts';
import { llmError } from './errors.ts';
import { formatOf } from './formats/index.ts';
import type { Guard } from './guardrails/guard.ts';
import {
  compileGuardrails,
  guardrailsSchema,
  type ResponseGuard,
  runGuards,
} from './guardrails/guardrails.ts';
import { requestTexts } from './guardrails/request-texts.ts';
import { compileModel, type Model, modelBackend, modelSchema, sendsProviderKey } from './model.ts';
import { type ModelListing, modelListResponse, requireAllowed, unknownModel } from './model-list.ts';
import { bySpecificity, matchesModel, reportUnreachableModels } from './model-patterns.ts';
import { providerEntrySchema, reportUnknownKinds } from './model-provider.ts';
import { readRequest, requestedModel } from './read-request.ts';
import { isRealtime, openRealtime, realtimeModel } from './realtime.ts';
import { processResponse, requireGuardable } from './response.ts';
import { StreamStart } from './stream-start.ts';
import { countMedia } from './texts.ts';
import { countsTokensItself, tokenCountResponse } from './token-estimate.ts';
import { traceLlmReply, traceLlmRequest } from './trace-events.ts';
import { type ChosenFormat, chooseFormat, translateCall } from './translation/translation.ts';
import {
  chooseTarget,
  compileVirtualModels,
  type VirtualTarget,
  virtualModelSchema,
} from './virtual-models.ts';

/** Fields of an LLM backend and of the simplified top-level `llm`. */
export const llmFields = {
  models: z.array(modelSchema).min(1).describe('Models that clients may request.'),
  virtualModels: z
    .array(virtualModelSchema)
    .default([])
    .describe('Names that resolve to one of several models. They take precedence over `models`.'),
  providers: z.array(providerEntrySchema).default([]).describe('Providers shared by several models.'),
  guardrails: guardrailsSchema
    .optional()
    .describe('Guardrails for all models. The guardrails of a model run after them.'),
};

/** The compiled configuration of one LLM backend, shared by its calls. */
export interface LlmRuntime extends ModelListing {
  readonly maxBodySize: number;
  readonly limits: Limits;
  readonly requestGuardrails: readonly Guard[];
  readonly responseGuardrails: readonly ResponseGuard[];
}

/** Every error on an LLM route has the format of the client's call, including errors of policies. */
const llmApi: ClientApi = {
  protocol: 'llm',
  // `%2F` in the id of `/v1/models/{id}`.
  hasEncodedSlashes: true,
  errorBody,
  // Listing models and counting tokens must work for a client that has exhausted its token limit.
  usesTokens: (ctx) => !isModelList(ctx) && endpointAt(ctx.method, ctx.path)?.isFree !== true,
};

export const llm = defineBackend({
  key: 'llm',
  api: llmApi,
  schema: z
    .strictObject({
      ...llmFields,
      policies: z
        .strictObject({ guardrails: guardrailsSchema.optional() })
        .optional()
        .describe('`guardrails`: as `guardrails` of the backend, after them.'),
    })
    .describe('LLM providers behind one OpenAI-compatible endpoint.'),
  exposes: ({ models, providers }) =>
    models.some((model) => sendsProviderKey(model, providers))
      ? 'call models with your provider key'
      : undefined,
  open(config, context) {
    const isTopLevel = context.path[0] === 'llm';
    const compiled = config.models.flatMap(
      // Models of the top-level section are separate backends, also in dumps.
      (model, index) =>
        compileModel(
          model,
          config.providers,
          context.at('models', index),
          isTopLevel ? `/${modelBackend(model.name, index)}` : undefined,
        ) ?? [],
    );
    reportUnknownKinds(config.providers, context.at('providers'));
    reportDuplicateEntries(config.providers, context);
    reportUnreachableModels(config.models, config.virtualModels, context);
    const configured = config.models.map(({ name }) => name);
    const virtual = compileVirtualModels(
      config.virtualModels,
      { models: compiled, configured },
      context.at('virtualModels'),
    );
    const guardrails = [
      ...(config.guardrails === undefined
        ? []
        : [compileGuardrails(config.guardrails, context.at('guardrails'))]),
      ...(config.policies?.guardrails === undefined
        ? []
        : [compileGuardrails(config.policies.guardrails, context.at('policies', 'guardrails'))]),
    ];
    const runtime: LlmRuntime = {
      models: bySpecificity(compiled),
      virtual,
      listed: [
        ...new Set(compiled.filter(({ isPublic }) => isPublic).map(({ name }) => name)),
        ...virtual.keys(),
      ],
      startedAt: Math.floor(Date.now() / 1000),
      maxBodySize: context.settings.maxBufferSize,
      limits: context.settings.limits,
      requestGuardrails: guardrails.flatMap(({ request }) => request),
      responseGuardrails: guardrails.flatMap(({ response }) => response),
    };
    context.inspection.addBackend(context.path, () => ({
      endpoints: compiled.map(({ stats }) => stats.info),
    }));
    return {
      handle: (ctx) => handle(ctx, runtime),
      close: async () => {
        for (const { failover } of virtual.values()) failover?.close();
        await Promise.all([
          ...guardrails.map((each) => each.close()),
          ...compiled.flatMap((model) => [model.upstream?.close(), model.guardrails?.close()]),
        ]);
      },
    };
  },
});

function reportDuplicateEntries(
  entries: readonly { readonly name: string }[],
  context: CompileContext,
): void {
  for (const [index, { name }] of entries.entries()) {
    if (entries.findIndex((entry) => entry.name === name) === index) continue;
    context
      .at('providers', index, 'name')
      .report({ code: 'AGW0106', message: `two provider entries are named \`${name}\`` });
  }
}

/** 404: the endpoint does not exist or no model allows it. Thrown before a provider, and so its key, is selected. */
function unknownCall({ method, path }: RequestContext): Error {
  const hint = 'send a POST with a `model`, such as /v1/chat/completions; GET /v1/models lists the models';
  return llmError(
    'llm_unknown_call',
    'unknown_url',
    `unknown endpoint ${method} ${path}: ${hint}`,
    'other provider endpoints must be allowed by `passthrough` of a model',
  );
}

async function handle(ctx: RequestContext, runtime: LlmRuntime): Promise<Reply> {
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

const allowsPassthrough = ({ method, path }: RequestContext, { passthrough }: Model): boolean =>
  allowsCall(passthrough, method, path);

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

/** A request for a model. */
interface ModelRequest {
  /** The model name of the client. */
  readonly requested: string;
  readonly body: CallBody;
  readonly endpoint: Endpoint;
  /** The entry of `models`, if it was not selected by name. */
  readonly entry?: Model;
  /** The selected target of a virtual model. */
  readonly target?: VirtualTarget;
  /** Whether a stream that fails before its first output rejects, so that another target can be called. */
  readonly awaitsOutput?: boolean;
}

async function callModel(
  ctx: RequestContext,
  runtime: LlmRuntime,
  { requested, body, endpoint, target, entry, awaitsOutput = false }: ModelRequest,
): Promise<Reply> {
  const model = entry ?? chooseModel(ctx, runtime, target?.model ?? requested, target !== undefined);
  if (endpoint.isPassthrough && !allowsPassthrough(ctx, model)) throw unknownCall(ctx);
  const providerModel = model.model ?? target?.model;
  const nameAtProvider = providerModel ?? requested;
  const countsTokens = !endpoint.isPassthrough && countsTokensItself(endpoint, model, nameAtProvider);
  const chosen = countsTokens ? undefined : formatFor(model, endpoint, nameAtProvider);
  const call: LlmCall = {
    limits: runtime.limits,
    format: endpoint.format,
    operation: endpoint.operation,
    provider: model.provider.telemetryName,
    requestModel: requested,
    ...(providerModel === undefined ? {} : { providerModel }),
    streaming: isStream(body.value['stream']),
    hasNoText: endpoint.hasNoText ?? false,
    isFree: endpoint.isFree ?? false,
    request: body.value,
    ...(logReads.get(ctx)?.reads('llm.completion', 'llm.toolCalls') === true && { keepsCompletion: true }),
  };
  llmCall.set(ctx, call);
  ctx.backend = model.backend ?? ctx.backend;
  if (ctx.observer !== undefined) traceLlmRequest(ctx.observer, call, body.toString());
  changeFields(body, model.fields, resolverFor(ctx));
  // The requested model is already authorized; the provider's model name comes from the configuration.
  if (providerModel !== undefined && body.value['model'] !== undefined) body.set('model', providerModel);
  // The texts go nowhere, so no guardrail needs to see them.
  if (countsTokens) return tokenCountResponse(ctx, body);
  const requestGuardrails = [...runtime.requestGuardrails, ...(model.guardrails?.request ?? [])];
  if (requestGuardrails.length > 0) await guardRequest(ctx, call, requestGuardrails, body);
  // The prompt as sent: a guardrail may have masked the client's texts.
  if (logReads.get(ctx)?.reads('llm.prompt') === true) call.prompt = promptOf((field) => body.get(field));
  const responseGuardrails = [...runtime.responseGuardrails, ...(model.guardrails?.response ?? [])];
  if (isStream(body.get('stream'))) requireGuardable(call, responseGuardrails);
  const stripsUsage = askForUsage(call, body);
  const translated =
    chosen?.translation &&
    translateCall(chosen.translation, body, {
      model: nameAtProvider,
      stream: isStream(body.get('stream')),
    });
  const sent = translated?.body ?? body;
  if (model.finalFields !== undefined) changeFields(sent, model.finalFields, resolverFor(ctx));
  const answer = await callProvider(ctx, model, {
    call,
    body: sent,
    stats: target?.stats ?? model.stats,
    format: chosen?.provider,
    translation: translated?.translation,
  });
  const reply = awaitsOutput ? await withOutput(ctx, call, answer) : answer;
  if (ctx.observer !== undefined) traceLlmReply(ctx.observer, call, reply);
  model.changeResponseHeaders?.(reply.headers);
  return processResponse(ctx, call, reply, {
    guardrails: responseGuardrails,
    stripsUsage,
    keyEncodings: model.keyEncodings,
  });
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
  { format, isPassthrough }: Endpoint,
  nameAtProvider: string,
): ChosenFormat | undefined {
  if (isPassthrough || format === undefined || provider.answer !== undefined) return undefined;
  return chooseFormat(format, formats, { name, nameAtProvider });
}

/** Form fields are strings. */
const isStream = (value: unknown): boolean => value === true || value === 'true';

/**
 * The most specific matching model. Internal models only match as targets. Throws an `AppError` (404) if there is none.
 */
function chooseModel(
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

async function guardRequest(
  ctx: RequestContext,
  call: LlmCall,
  guards: readonly Guard[],
  body: CallBody,
): Promise<void> {
  const media = countMedia(body.get('messages')) + countMedia(body.get('input')) + body.files;
  if (media > 0) call.unseenMedia = media;
  const { texts, replace } = requestTexts(body);
  const checked = await runGuards(guards, 'request', texts, resolverFor(ctx), ctx.signal);
  const isMasked =
    checked.length !== texts.length ||
    checked.some(({ content }, index) => content !== texts[index]?.content);
  if (isMasked) replace(checked);
}

/** Requests the usage report of a stream. Returns whether it must be removed from the response. */
function askForUsage(call: LlmCall, body: CallBody): boolean {
  // The field as sent: the configuration may have changed it.
  const isReportOptional = call.format === 'completions' || call.format === 'textCompletions';
  if (body.get('stream') !== true || !isReportOptional || body.has('stream_options')) return false;
  body.set('stream_options', { include_usage: true });
  return true;
}

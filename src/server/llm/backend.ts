import { z } from 'zod';
import { resolverFor } from '../expressions/resolver.ts';
import { defineBackend } from '../kernel/backend.ts';
import type { CompileContext } from '../kernel/compile-context.ts';
import type { Reply, RequestContext } from '../kernel/request-context.ts';
import { failedBeforeSending } from '../transport/upstream-error.ts';
import type { LlmCall } from './call.ts';
import { llmCall } from './call.ts';
import type { CallBody } from './call-body.ts';
import { callProvider } from './call-provider.ts';
import { llmApi } from './client-api.ts';
import { promptOf } from './conversation.ts';
import { type Endpoint, endpointAt, isModelList, passthroughAt } from './endpoints.ts';
import { llmError } from './errors.ts';
import type { Failover } from './failover.ts';
import { checkMessages } from './guardrails/check.ts';
import { compileGuardrails, guardrailsSchema } from './guardrails/guardrails.ts';
import { requestTexts } from './guardrails/request-texts.ts';
import type { Webhook } from './guardrails/webhook.ts';
import {
  compileModel,
  type Model,
  modelBackend,
  modelSchema,
  providerEntrySchema,
  reportUnknownKinds,
} from './model.ts';
import { answerModels, type Listing, requireAllowed } from './model-list.ts';
import { unknownModel } from './model-refusal.ts';
import { bySpecificity, matchesModel } from './models.ts';
import { opens } from './passthrough.ts';
import { namedModel, readRequest } from './read-request.ts';
import { answerOf, requireGuardable } from './response.ts';
import { countMedia } from './texts.ts';
import { traceEvictedTargets, traceLlmReply, traceLlmRequest } from './trace-events.ts';
import { changeFields } from './transform.ts';
import { reportUnreachedModels } from './unreached-models.ts';
import {
  chooseTarget,
  compileVirtualModels,
  type VirtualTarget,
  virtualModelSchema,
} from './virtual-models.ts';

/** Fields of an LLM backend; also of the simplified top-level `llm`. */
export const llmFields = {
  models: z.array(modelSchema).min(1).describe('Models that clients may ask for.'),
  virtualModels: z
    .array(virtualModelSchema)
    .default([])
    .describe('Names that stand for one of several models; they come before `models`.'),
  providers: z.array(providerEntrySchema).default([]).describe('Providers that several models share.'),
  guardrails: guardrailsSchema
    .optional()
    .describe('Guardrails of all models; those of a model come after them.'),
};

/** What all calls of one LLM backend share. */
export interface LlmRuntime extends Listing {
  readonly maxBodySize: number;
  readonly requestGuardrails: readonly Webhook[];
  readonly responseGuardrails: readonly Webhook[];
}

export const llm = defineBackend({
  key: 'llm',
  api: llmApi,
  schema: z.strictObject(llmFields).describe('LLM providers behind one OpenAI-compatible endpoint.'),
  open(config, context) {
    const isTopLevel = context.path[0] === 'llm';
    const compiled = config.models.flatMap(
      // Those of the top-level section are backends of their own, also in dumps.
      (model, index) =>
        compileModel(
          model,
          config.providers,
          context.at('models', index),
          isTopLevel ? `/${modelBackend(model.name, index)}` : undefined,
        ) ?? [],
    );
    reportUnknownKinds(config.providers, context.at('providers'));
    refuseDuplicateEntries(config.providers, context);
    reportUnreachedModels(config.models, config.virtualModels, context);
    const written = config.models.map(({ name }) => name);
    const virtual = compileVirtualModels(
      config.virtualModels,
      { models: compiled, written },
      context.at('virtualModels'),
    );
    const guardrails =
      config.guardrails === undefined
        ? undefined
        : compileGuardrails(config.guardrails, context.at('guardrails'));
    const runtime: LlmRuntime = {
      models: bySpecificity(compiled),
      virtual,
      listed: [
        ...new Set(compiled.filter(({ isPublic }) => isPublic).map(({ name }) => name)),
        ...virtual.keys(),
      ],
      startedAt: Math.floor(Date.now() / 1000),
      maxBodySize: context.settings.maxBufferSize,
      requestGuardrails: guardrails?.request ?? [],
      responseGuardrails: guardrails?.response ?? [],
    };
    context.inspection.addBackend(context.path, () => ({
      endpoints: compiled.map(({ stats }) => stats.info),
    }));
    return {
      handle: (ctx) => handle(ctx, runtime),
      close: async () => {
        await Promise.all([
          guardrails?.close(),
          ...compiled.flatMap((model) => [model.upstream?.close(), model.guardrails?.close()]),
        ]);
      },
    };
  },
});

function refuseDuplicateEntries(
  entries: readonly { readonly name: string }[],
  context: CompileContext,
): void {
  for (const [index, { name }] of entries.entries()) {
    if (entries.findIndex((entry) => entry.name === name) === index) continue;
    context
      .at('providers', index, 'name')
      .report({ code: 'AGW0106', message: `two provider entries are called \`${name}\`` });
  }
}

/** 404: there is no such call, or nobody opened it. Thrown before a provider, and so its key, is chosen. */
function noSuchCall({ method, path }: RequestContext): Error {
  const hint = 'send a POST with a `model`, such as /v1/chat/completions; GET /v1/models lists the models';
  return llmError(
    'llm_unknown_call',
    'unknown_url',
    `there is nothing at ${method} ${path}: ${hint}`,
    'calls besides those of every model are opened by `passthrough` of a model',
  );
}

async function handle(ctx: RequestContext, runtime: LlmRuntime): Promise<Reply> {
  ctx.protocol = 'llm';
  if (isModelList(ctx)) return answerModels(ctx, runtime);
  const endpoint = endpointAt(ctx.method, ctx.path) ?? passedThrough(ctx, runtime);
  const body = await readRequest(ctx, endpoint, runtime.maxBodySize);
  const named = namedModel(ctx, endpoint, body);
  if (named === undefined) return callUnnamed(ctx, runtime, { body, endpoint });
  requireAllowed(ctx, named);
  const wanted = { requested: named, body, endpoint };
  const virtual = runtime.virtual.get(named);
  if (virtual === undefined) return callModel(ctx, runtime, wanted);
  const target = chooseTarget(virtual, ctx, body.value);
  if (virtual.failover === undefined) return callModel(ctx, runtime, { ...wanted, target });
  return callInTurn(ctx, runtime, { ...wanted, target }, virtual.failover);
}

function passedThrough(ctx: RequestContext, { models }: LlmRuntime): Endpoint {
  if (!models.some((model) => isOpen(ctx, model))) throw noSuchCall(ctx);
  return passthroughAt(ctx.path);
}

const isOpen = ({ method, path }: RequestContext, { passthrough }: Model): boolean =>
  opens(passthrough, method, path);

/**
 * A call that names no model: of the default model of its API, or, where `passthrough` opened it, of the most specific
 * model that did. The caller's key must be for that one.
 */
function callUnnamed(
  ctx: RequestContext,
  runtime: LlmRuntime,
  { body, endpoint }: Pick<Wanted, 'body' | 'endpoint'>,
): Promise<Reply> {
  const { defaultModel } = endpoint;
  const open = runtime.models.filter(
    (model) => model.isPublic && model.takes(ctx) && (!endpoint.isPassthrough || isOpen(ctx, model)),
  );
  const entry =
    open.find(({ name }) => defaultModel !== undefined && matchesModel(name, defaultModel)) ?? open[0];
  if (entry === undefined) throw noSuchCall(ctx);
  const requested = defaultModel ?? entry.name;
  requireAllowed(ctx, requested);
  return callModel(ctx, runtime, { requested, body, endpoint, entry });
}

/** What a client asked for, and which model is to answer it. */
interface Wanted {
  readonly requested: string;
  readonly body: CallBody;
  readonly endpoint: Endpoint;
  /** The entry of `models`, where it was not chosen by name. */
  readonly entry?: Model;
  /** The target of a virtual model. */
  readonly target?: VirtualTarget;
}

/** Goes on to the next target as long as none was reached: whatever was reached may have acted. */
async function callInTurn(
  ctx: RequestContext,
  runtime: LlmRuntime,
  wanted: Wanted & { readonly target: VirtualTarget },
  failover: Failover,
): Promise<Reply> {
  const tried = new Set<VirtualTarget>();
  let { target } = wanted;
  const told = ctx.observer === undefined ? undefined : new Set<VirtualTarget>();
  for (;;) {
    if (told !== undefined)
      traceEvictedTargets(ctx, failover.evicted(target), { chosen: target, tried, told });
    try {
      return await callModel(ctx, runtime, { ...wanted, body: wanted.body.unchanged(), target });
    } catch (error) {
      tried.add(target);
      const next = failedBeforeSending(error) && !ctx.isAbandoned ? failover.choose(tried) : undefined;
      if (next === undefined) throw error;
      ctx.observer?.emit(
        { type: 'policyEvent', kind: 'llm_failover', details: { failed: target.model, next: next.model } },
        { severity: 'warn' },
      );
      target = next;
    }
  }
}

async function callModel(
  ctx: RequestContext,
  runtime: LlmRuntime,
  { requested, body, endpoint, target, entry }: Wanted,
): Promise<Reply> {
  const model = entry ?? chooseModel(ctx, runtime, target?.model ?? requested, target !== undefined);
  if (endpoint.isPassthrough && !isOpen(ctx, model)) throw noSuchCall(ctx);
  const providerModel = model.model ?? target?.model;
  const call: LlmCall = {
    operation: endpoint.operation,
    provider: model.provider.telemetryName,
    requestModel: requested,
    ...(providerModel === undefined ? {} : { providerModel }),
    streaming: isStream(body.value['stream']),
    hasNoText: endpoint.hasNoText ?? false,
    request: body.value,
    ...(ctx.logReads?.reads('llm.completion', 'llm.toolCalls') === true && { keepsCompletion: true }),
  };
  llmCall.set(ctx, call);
  ctx.backend = model.backend ?? ctx.backend;
  if (ctx.observer !== undefined) traceLlmRequest(ctx.observer, call, body.toString());
  changeFields(body, model.fields, resolverFor(ctx));
  // What the client asked for is settled; what the provider is asked for is configuration.
  if (providerModel !== undefined && body.value['model'] !== undefined) body.set('model', providerModel);
  await guardRequest(ctx, call, [...runtime.requestGuardrails, ...(model.guardrails?.request ?? [])], body);
  // As it goes out: a guardrail may have masked what the client wrote.
  if (ctx.logReads?.reads('llm.prompt') === true) call.prompt = promptOf((field) => body.get(field));
  const responseGuardrails = [...runtime.responseGuardrails, ...(model.guardrails?.response ?? [])];
  if (isStream(body.get('stream'))) requireGuardable(call, responseGuardrails);
  const stripsUsage = askForUsage(call, body);
  const reply = await callProvider(ctx, model, { call, body, stats: target?.stats ?? model.stats });
  if (ctx.observer !== undefined) traceLlmReply(ctx.observer, call, reply);
  model.changeResponseHeaders?.(reply.headers);
  return answerOf(ctx, call, reply, {
    guardrails: responseGuardrails,
    stripsUsage,
    keyForms: model.keyForms,
  });
}

/** Forms have texts alone. */
const isStream = (value: unknown): boolean => value === true || value === 'true';

/** The most specific model entry of that name whose conditions hold. Internal ones are for virtual models alone. */
function chooseModel(
  ctx: RequestContext,
  { models, listed }: LlmRuntime,
  wanted: string,
  isTarget: boolean,
): Model {
  const model = models.find(
    ({ name, isPublic, takes }) => (isPublic || isTarget) && matchesModel(name, wanted) && takes(ctx),
  );
  if (model === undefined) throw unknownModel(ctx, wanted, listed);
  return model;
}

async function guardRequest(
  ctx: RequestContext,
  call: LlmCall,
  webhooks: readonly Webhook[],
  body: CallBody,
): Promise<void> {
  if (webhooks.length === 0) return;
  const media = countMedia(body.get('messages')) + countMedia(body.get('input')) + body.files;
  if (media > 0) call.unseenMedia = media;
  const { texts, replace } = requestTexts(body);
  const checked = await checkMessages(webhooks, texts, resolverFor(ctx), ctx.signal);
  const isMasked =
    checked.length !== texts.length ||
    checked.some(({ content }, index) => content !== texts[index]?.content);
  if (isMasked) replace(checked);
}

/** Streams only report their tokens when asked to. Returns whether the report must be taken out again. */
function askForUsage(call: LlmCall, body: CallBody): boolean {
  // As it goes out: the configuration may have set the field or taken it away.
  const isStream =
    body.get('stream') === true && (call.operation === 'chat' || call.operation === 'text_completion');
  if (!isStream || body.has('stream_options')) return false;
  body.set('stream_options', { include_usage: true });
  return true;
}

import { z } from 'zod';
import { AppError } from '../../core/errors.ts';
import { LIMITS } from '../../core/limits.ts';
import { defineBackend } from '../backend.ts';
import type { CompileContext } from '../compile-context.ts';
import type { Exchange, Reply } from '../http/exchange.ts';
import { textReply } from '../http/respond.ts';
import { neverReached } from '../http/upstream-error.ts';
import { traceLeftAlone, traceLlmReply, traceLlmRequest } from '../observe/trace/llm.ts';
import { lookupIn } from '../variables.ts';
import { LlmBody } from './body.ts';
import { callProvider } from './call-provider.ts';
import { llmError } from './errors.ts';
import type { Failover } from './failover.ts';
import { checkMessages } from './guardrails/check.ts';
import { compileGuardrails, guardrailsSchema } from './guardrails/guardrails.ts';
import { requestTexts } from './guardrails/request-texts.ts';
import type { Webhook } from './guardrails/webhook.ts';
import type { LlmCall } from './log-fields.ts';
import { compileModel, type Model, modelSchema, providerEntrySchema } from './model.ts';
import { forbiddenModel, unknownModel } from './model-refusal.ts';
import { bySpecificity, isModelList, matchesModel } from './models.ts';
import { answerOf, requireGuardable } from './response.ts';
import { countMedia } from './texts.ts';
import { changeFields } from './transform.ts';
import { reportUnreachedModels } from './unreached-models.ts';
import {
  chooseTarget,
  compileVirtualModels,
  type VirtualModels,
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
export interface LlmRuntime {
  readonly models: readonly Model[];
  readonly virtual: VirtualModels;
  /** Names that clients may ask for. */
  readonly listed: readonly string[];
  readonly startedAt: number;
  readonly requestGuardrails: readonly Webhook[];
  readonly responseGuardrails: readonly Webhook[];
}

export const llm = defineBackend({
  key: 'llm',
  schema: z.strictObject(llmFields).describe('LLM providers behind one OpenAI-compatible endpoint.'),
  open(config, context) {
    const compiled = config.models.flatMap(
      (model, index) => compileModel(model, config.providers, context.at('models', index)) ?? [],
    );
    refuseDuplicateEntries(config.providers, context);
    reportUnreachedModels(config.models, config.virtualModels, context);
    const virtual = compileVirtualModels(config.virtualModels, compiled, context.at('virtualModels'));
    const guardrails =
      config.guardrails === undefined
        ? undefined
        : compileGuardrails(config.guardrails, context.at('guardrails'));
    const runtime: LlmRuntime = {
      models: bySpecificity(compiled),
      virtual,
      listed: [...compiled.filter(({ isPublic }) => isPublic).map(({ name }) => name), ...virtual.keys()],
      startedAt: Math.floor(Date.now() / 1000),
      requestGuardrails: guardrails?.request ?? [],
      responseGuardrails: guardrails?.response ?? [],
    };
    context.inspection.addBackend(context.path, () => ({
      endpoints: compiled.map(({ stats }) => stats.info),
    }));
    return {
      handle: (x) => handle(x, runtime),
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

function noSuchCall({ method, path }: Exchange): Error {
  const hint = 'send a POST with a `model`, such as /v1/chat/completions; GET /v1/models lists the models';
  return llmError('llm_unknown_call', 'unknown_url', `there is nothing at ${method} ${path}: ${hint}`);
}

async function handle(x: Exchange, runtime: LlmRuntime): Promise<Reply> {
  x.protocol = 'llm';
  if (isModelList(x.path)) return listModels(x, runtime);
  // The OpenAI API has no other call without a body whose model we could choose by.
  if (x.method === 'GET' || x.method === 'HEAD') throw noSuchCall(x);
  const body = await readRequest(x);
  const requested = body.get('model');
  if (typeof requested !== 'string' || requested === '') {
    throw llmError('llm_invalid', 'missing_model', "LLM request body is missing string field 'model'");
  }
  requireAllowed(x, requested);
  const virtual = runtime.virtual.get(requested);
  if (virtual === undefined) return callModel(x, runtime, { requested, body });
  const target = chooseTarget(virtual, x, body.value);
  if (virtual.failover === undefined) return callModel(x, runtime, { requested, body, target });
  return callInTurn(x, runtime, { requested, body, target }, virtual.failover);
}

/** What a client asked for, and which model is to answer it. */
interface Wanted {
  readonly requested: string;
  readonly body: LlmBody;
  /** The target of a virtual model. */
  readonly target?: VirtualTarget;
}

/** Goes on to the next target as long as none was reached: whatever was reached may have acted. */
async function callInTurn(
  x: Exchange,
  runtime: LlmRuntime,
  wanted: Wanted & { readonly target: VirtualTarget },
  failover: Failover,
): Promise<Reply> {
  const tried = new Set<VirtualTarget>();
  let { target } = wanted;
  const told = x.trace === undefined ? undefined : new Set<VirtualTarget>();
  for (;;) {
    if (told !== undefined) traceLeftAlone(x, failover.leftAlone(target), { chosen: target, tried, told });
    try {
      return await callModel(x, runtime, { ...wanted, body: wanted.body.unchanged(), target });
    } catch (error) {
      tried.add(target);
      const next = neverReached(error) && !x.isAbandoned ? failover.choose(tried) : undefined;
      if (next === undefined) throw error;
      x.trace?.emit(
        { type: 'policyEvent', kind: 'llm_failover', details: { failed: target.model, next: next.model } },
        { severity: 'warn' },
      );
      target = next;
    }
  }
}

async function callModel(
  x: Exchange,
  runtime: LlmRuntime,
  { requested, body, target }: Wanted,
): Promise<Reply> {
  const model = chooseModel(x, runtime, target?.model ?? requested, target !== undefined);
  const providerModel = model.model ?? target?.model;
  const call: LlmCall = {
    operation: operationOf(x.path),
    provider: model.provider.telemetryName,
    requestModel: requested,
    ...(providerModel === undefined ? {} : { providerModel }),
    streaming: body.value['stream'] === true,
    request: body.value,
  };
  x.llm = call;
  if (x.trace !== undefined) traceLlmRequest(x.trace, call, body.toString());
  changeFields(body, model.fields, lookupIn(x));
  // What the client asked for is settled; what the provider is asked for is configuration.
  if (providerModel !== undefined) body.set('model', providerModel);
  await guardRequest(x, call, [...runtime.requestGuardrails, ...(model.guardrails?.request ?? [])], body);
  const responseGuardrails = [...runtime.responseGuardrails, ...(model.guardrails?.response ?? [])];
  if (body.get('stream') === true) requireGuardable(call, responseGuardrails);
  const stripsUsage = askForUsage(call, body);
  const reply = await callProvider(x, model, { call, body, stats: target?.stats ?? model.stats });
  if (x.trace !== undefined) traceLlmReply(x.trace, call, reply);
  model.changeResponseHeaders?.(reply.headers);
  return answerOf(x, call, reply, { guardrails: responseGuardrails, stripsUsage, keyForms: model.keyForms });
}

function operationOf(path: string): LlmCall['operation'] {
  if (path.endsWith('/chat/completions')) return 'chat';
  if (path.endsWith('/completions')) return 'text_completion';
  if (path.endsWith('/embeddings')) return 'embeddings';
  return path.endsWith('/responses') ? 'responses' : 'other';
}

async function readRequest(x: Exchange): Promise<LlmBody> {
  try {
    return LlmBody.parse(await x.body.read(LIMITS.requestBodyBytes));
  } catch (error) {
    if (error instanceof AppError && error.code === 'body_too_large') {
      throw llmError(
        'body_too_large',
        'request_body_too_large',
        'LLM request body exceeded the buffer limit',
      );
    }
    throw error;
  }
}

function requireAllowed(x: Exchange, requested: string): void {
  const { allowedModels } = x;
  if (allowedModels !== undefined && !allowedModels.some((pattern) => matchesModel(pattern, requested)))
    throw forbiddenModel(x, requested, allowedModels);
}

/** The most specific model entry of that name. Internal ones are for virtual models alone. */
function chooseModel(x: Exchange, { models, listed }: LlmRuntime, wanted: string, isTarget: boolean): Model {
  const model = models.find(({ name, isPublic }) => (isPublic || isTarget) && matchesModel(name, wanted));
  if (model === undefined) throw unknownModel(x, wanted, listed);
  return model;
}

function listModels(x: Exchange, { listed, startedAt }: LlmRuntime): Reply {
  const { allowedModels } = x;
  const data = listed
    .filter(
      (name) => allowedModels === undefined || allowedModels.some((pattern) => matchesModel(pattern, name)),
    )
    .map((name) => ({ id: name, object: 'model', created: startedAt, owned_by: 'openai' }));
  return textReply(200, JSON.stringify({ object: 'list', data }), 'application/json');
}

async function guardRequest(
  x: Exchange,
  call: LlmCall,
  webhooks: readonly Webhook[],
  body: LlmBody,
): Promise<void> {
  if (webhooks.length === 0) return;
  const media = countMedia(body.get('messages')) + countMedia(body.get('input'));
  if (media > 0) call.unseenMedia = media;
  const { texts, replace } = requestTexts(body);
  const checked = await checkMessages(webhooks, texts, lookupIn(x), x.signal);
  const isMasked =
    checked.length !== texts.length ||
    checked.some(({ content }, index) => content !== texts[index]?.content);
  if (isMasked) replace(checked);
}

/** Streams only report their tokens when asked to. Returns whether the report must be taken out again. */
function askForUsage(call: LlmCall, body: LlmBody): boolean {
  // As it goes out: the configuration may have set the field or taken it away.
  const isStream =
    body.get('stream') === true && (call.operation === 'chat' || call.operation === 'text_completion');
  if (!isStream || body.has('stream_options')) return false;
  body.set('stream_options', { include_usage: true });
  return true;
}

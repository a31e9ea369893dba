import { z } from 'zod';
import { AppError } from '../../core/errors.ts';
import { LIMITS } from '../../core/limits.ts';
import { defineBackend } from '../backend.ts';
import type { CompileContext } from '../compile-context.ts';
import type { Exchange, Reply } from '../http/exchange.ts';
import { endToEnd, HeaderList } from '../http/header-list.ts';
import { textReply } from '../http/respond.ts';
import { traceLlmReply, traceLlmRequest } from '../observe/trace/llm.ts';
import { traceSending } from '../observe/trace/sending.ts';
import { lookupIn } from '../variables.ts';
import { LlmBody } from './body.ts';
import { llmError } from './errors.ts';
import { checkMessages } from './guardrails/check.ts';
import { compileGuardrails, guardrailsSchema } from './guardrails/guardrails.ts';
import { requestTexts } from './guardrails/request-texts.ts';
import type { Webhook } from './guardrails/webhook.ts';
import type { LlmCall } from './log-fields.ts';
import { compileModel, type Model, modelSchema, providerEntrySchema } from './model.ts';
import { bySpecificity, matchesModel } from './models.ts';
import { answerOf, requireGuardable } from './response.ts';
import { countMedia } from './texts.ts';
import { changeFields } from './transform.ts';
import {
  compileVirtualModels,
  resolveVirtual,
  type VirtualModels,
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
  if (/^(?:\/v1)?\/models(?:\/|$)/.test(x.path)) return listModels(x, runtime);
  // The OpenAI API has no other call without a body whose model we could choose by.
  if (x.method === 'GET' || x.method === 'HEAD') throw noSuchCall(x);
  const operation = operationOf(x.path);
  const body = await readRequest(x);
  const requested = body.get('model');
  if (typeof requested !== 'string' || requested === '') {
    throw llmError('llm_invalid', 'missing_model', "LLM request body is missing string field 'model'");
  }
  requireAllowed(x, requested);
  const target = resolveVirtual(runtime.virtual, requested, x, body.value);
  const model = chooseModel(runtime, target ?? requested, target !== undefined);
  const providerModel = model.model ?? target;
  const call: LlmCall = {
    operation,
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
  const reply = await callProvider(x, model, call, body);
  if (x.trace !== undefined) traceLlmReply(x.trace, call, reply);
  model.changeResponseHeaders?.(reply.headers);
  return answerOf(x, call, reply, { guardrails: responseGuardrails, stripsUsage, apiKey: model.apiKey });
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

function requireAllowed({ allowedModels }: Exchange, requested: string): void {
  if (allowedModels !== undefined && !allowedModels.some((pattern) => matchesModel(pattern, requested))) {
    throw llmError('llm_forbidden', 'model_not_allowed', 'Model is not allowed for this API key');
  }
}

/** The most specific model entry of that name. Internal ones are for virtual models alone. */
function chooseModel({ models }: LlmRuntime, wanted: string, isTarget: boolean): Model {
  const model = models.find(({ name, isPublic }) => (isPublic || isTarget) && matchesModel(name, wanted));
  if (model === undefined) throw llmError('llm_not_found', 'model_not_found', 'Model not found');
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

const NOT_FORWARDED = new Set([
  'host',
  'content-length',
  'content-encoding',
  'expect',
  'accept-encoding',
  'cookie',
]);

// With a key of ours the client's own is not the provider's business.
const NOT_FORWARDED_WITH_KEY = new Set([...NOT_FORWARDED, 'authorization']);

// The client's cookies do not go to the provider, so the provider's would never come back.
const NOT_RETURNED = new Set(['set-cookie']);

/** Calls the provider and notes how that went. */
async function callProvider(x: Exchange, model: Model, call: LlmCall, body: LlmBody): Promise<Reply> {
  const began = model.stats.began();
  let status = 0;
  try {
    const reply = await askProvider(x, model, call, body);
    status = reply.status;
    return reply;
  } finally {
    // A client that left says nothing of the provider.
    model.stats.ended(began, x.isAbandoned && status === 0 ? 499 : status);
  }
}

async function askProvider(x: Exchange, model: Model, call: LlmCall, body: LlmBody): Promise<Reply> {
  const text = body.toString();
  if (model.provider.answer !== undefined) {
    const answer = model.provider.answer(x, call, JSON.parse(text) as Record<string, unknown>);
    return x.trace === undefined ? answer : x.trace.call(model.provider.key, Promise.resolve(answer));
  }
  if (model.upstream === undefined) throw new AppError('no_backend');
  x.endpoint = model.upstream.address;
  const { apiKey } = model;
  const headers = new HeaderList(
    endToEnd(x.headers.raw, apiKey === undefined ? NOT_FORWARDED : NOT_FORWARDED_WITH_KEY),
  );
  headers.append('host', model.upstream.authority);
  // Compressed answers could not be counted, guarded or freed of an echoed key.
  headers.append('accept-encoding', 'identity');
  if (apiKey !== undefined) headers.append('authorization', `Bearer ${apiKey}`);
  model.changeRequestHeaders?.(headers);
  call.progress = 'asked';
  const path = providerPath(x, model);
  x.trace?.hide(model.apiKey, true);
  if (x.trace !== undefined)
    traceSending(x.trace, { headers: headers.raw, path, upstream: model.upstream, body: text });
  const sent = model.upstream.relay({
    method: x.method,
    path,
    headers: headers.raw,
    body: text,
    client: x,
    // Streams have a clock of their own, which ends them with an event.
    ...(body.get('stream') === true ? {} : { bodyIdle: LIMITS.streamIdle }),
    ...(x.backendTimeout === undefined ? {} : { timeout: x.backendTimeout }),
  });
  const {
    status,
    headers: received,
    body: answer,
  } = await (x.trace === undefined ? sent : x.trace.call(model.upstream.address, sent));
  x.reason = 'Upstream';
  return { status, headers: new HeaderList(endToEnd(received.raw, NOT_RETURNED)), body: answer };
}

/** `/v1/chat/completions` of the client is `/chat/completions` below the provider's own prefix. */
function providerPath(x: Exchange, { basePath }: Model): string {
  return basePath + x.path.replace(/^\/v1(?=\/)/, '') + x.query;
}

import { callBudget } from '../../budgets/call-budget.ts';
import { resolverFor } from '../../expressions/variable.ts';
import type { Reply, RequestContext } from '../../kernel/request/request-context.ts';
import { logReads, originalWithheld } from '../../kernel/request/shared-slots.ts';
import { countBatch } from '../batches/count-batch.ts';
import { promptOf } from '../chat/prompt.ts';
import { gatewayCredential } from '../credentials.ts';
import { defaultsFor } from '../formats/default-fields.ts';
import type { WireFormat } from '../formats/format.ts';
import { clientFormatOf } from '../formats/index.ts';
import { promptFields } from '../formats/text-fields.ts';
import { runGuards } from '../guardrails/guardrails.ts';
import { requestTexts } from '../guardrails/request-texts.ts';
import { type LlmCall, llmCall } from '../llm-call.ts';
import { type CallBody, changeFields, type FieldChanges } from '../request/call-body.ts';
import { markCached } from '../request/prompt-caching.ts';
import { countMedia } from '../texts.ts';
import { type Translation, translateCall } from '../translation/translation.ts';
import { reserveBudget } from './budget.ts';
import { callProvider } from './call-provider.ts';
import { chargedReply } from './charged-reply.ts';
import type { LlmRuntime } from './llm-runtime.ts';
import { isStream, type ModelRequest, type PlannedCall, planCall } from './planned-call.ts';
import { processResponse, requireGuardable } from './response.ts';
import { LlmStream } from './stream.ts';
import { tokenCountResponse } from './token-estimate.ts';
import { chargeEarly } from './token-limits.ts';
import { traceLlmReply, traceLlmRequest, traceRequestBody } from './trace-events.ts';

/** Calls one model, from the client's request to its response. Throws an `AppError` for what the client gets as an error. */
export async function callModel(
  ctx: RequestContext,
  runtime: LlmRuntime,
  request: ModelRequest,
): Promise<Reply> {
  const plan = planCall(ctx, runtime, request);
  const { call, body, guardrails } = plan;
  begin(ctx, plan);
  changeRequest(ctx, plan);
  // The texts go nowhere, so no guardrail needs to see them.
  if (plan.countsTokens) return tokenCountResponse(ctx, call, body);
  if (guardrails.request.length > 0) await guardRequest(ctx, plan);
  keepPrompt(ctx, plan);
  const isStreamed = request.endpoint.target?.stream ?? isStream(body.get('stream'));
  if (isStreamed) requireGuardable(call, guardrails.response);
  const stripsUsage = askForUsage(call, body);
  const sent = requestForProvider(ctx, plan, isStreamed);
  const reserving = callBudget.get(ctx) === undefined ? undefined : reserveBudget(ctx, call, body);
  if (reserving !== undefined) await reserving;
  if (plan.model.chargesEarly) chargeEarly(ctx, call);
  const { cache } = plan.model;
  const reply = await (cache === undefined
    ? answerOf(ctx, plan, sent, isStreamed)
    : cache.answer(ctx, plan, sent.body, () => answerOf(ctx, plan, sent, isStreamed)));
  if (call.batch !== undefined) await countBatch(ctx, call, reply, runtime.countedBatches);
  const response = responseFor(ctx, plan, reply, stripsUsage);
  const processed = request.awaitsOutput === true && isHeld(plan) ? heldReply(response) : response;
  return callBudget.get(ctx) === undefined ? processed : chargedReply(ctx, call, await processed);
}

/** Makes the call known to logs, traces and expressions. */
function begin(ctx: RequestContext, { call, model, guardrails, body }: PlannedCall): void {
  llmCall.set(ctx, call);
  ctx.backend = model.backend ?? ctx.backend;
  const isGuarded = guardrails.request.length > 0;
  if (ctx.observer !== undefined) traceLlmRequest(ctx.observer, call, isGuarded ? undefined : body);
}

/** Changes the request as the policy `ai` and the model say. */
function changeRequest(
  ctx: RequestContext,
  { body, endpoint, model, policy, providerModel, nameAtProvider, isModelFilledIn }: PlannedCall,
): void {
  const format = clientFormatOf(endpoint.format);
  if (policy !== undefined) changeByDefault(ctx, body, format, policy.fields);
  changeByDefault(ctx, body, format, model.fields);
  // The requested model is already authorized; the provider's model name comes from the configuration.
  if (providerModel !== undefined && (body.value['model'] !== undefined || isModelFilledIn === true))
    body.set('model', providerModel);
  format?.modelInItems?.write(body, nameAtProvider);
  if (policy?.prompts !== undefined) format?.addMessages?.(body, policy.prompts);
}

function changeByDefault(
  ctx: RequestContext,
  body: CallBody,
  format: WireFormat | undefined,
  fields: FieldChanges,
): void {
  changeFields(body, fields, resolverFor(ctx), format && defaultsFor(format, fields.defaults));
}

async function guardRequest(ctx: RequestContext, { call, body, guardrails }: PlannedCall): Promise<void> {
  const guards = guardrails.request;
  const media = MAY_HAVE_MEDIA.reduce((sum, field) => sum + countMedia(body.get(field)), body.files);
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
  if (ctx.observer !== undefined) traceRequestBody(ctx.observer, body);
}

const MAY_HAVE_MEDIA = promptFields.flatMap(({ name, isConversation }) => (isConversation ? name : []));

/** Keeps the prompt for the log, as sent: a guardrail may have masked the client's texts. */
function keepPrompt(ctx: RequestContext, { call, body }: PlannedCall): void {
  if (logReads.get(ctx)?.reads('llm.prompt') === true)
    call.prompt = promptOf((field) => body.get(field), promptFields);
}

/** Requests the usage report of a stream. Returns whether it must be removed from the response. */
function askForUsage(call: LlmCall, body: CallBody): boolean {
  // The field as sent: the configuration may have changed it.
  const option = clientFormatOf(call.format)?.usageOption;
  if (option === undefined || body.get('stream') !== true || body.has(option.field)) return false;
  body.set(option.field, option.value);
  return true;
}

interface SentRequest {
  readonly body: CallBody;
  /** If the formats differ. */
  readonly translation?: Translation;
}

/** The request in the format of the provider, with marks of what it caches, and changed as `finalTransformation` says. */
function requestForProvider(
  ctx: RequestContext,
  { body, model, policy, chosen, endpoint, nameAtProvider }: PlannedCall,
  stream: boolean,
): SentRequest {
  if (chosen !== undefined && chosen.translation === undefined)
    clientFormatOf(endpoint.format)?.adapt?.(body, nameAtProvider);
  const sent: SentRequest =
    chosen?.translation === undefined
      ? { body }
      : translateCall(chosen.translation, body, { model: nameAtProvider, stream });
  const caching = model.promptCaching ?? policy?.promptCaching;
  if (caching !== undefined && model.provider.hasPromptCaching === true)
    markCached(sent.body, { format: chosen?.provider.type, model: nameAtProvider }, caching);
  if (policy?.finalFields !== undefined) changeFields(sent.body, policy.finalFields, resolverFor(ctx));
  if (model.finalFields !== undefined) changeFields(sent.body, model.finalFields, resolverFor(ctx));
  return sent;
}

/** The answer of the provider; of a stream that another target may follow, once it has output. */
function answerOf(
  ctx: RequestContext,
  { call, model, stats, target, chosen, endpoint, awaitsOutput = false }: PlannedCall,
  { body, translation }: SentRequest,
  isStreamed: boolean,
): Promise<Reply> {
  return callProvider(ctx, model, {
    call,
    body,
    stats: stats ?? target?.stats ?? model.stats,
    format: chosen?.provider,
    path: endpoint.path,
    // A stream that is silent from the start is as good as one that fails before its first output.
    headersTimeout: awaitsOutput && isStreamed ? call.limits.streamIdle : undefined,
    translation,
    awaitsOutput,
  });
}

/** Whether guardrails hold back the beginning of a stream. */
const isHeld = ({ guardrails }: PlannedCall): boolean =>
  guardrails.response.some(({ checksStreams }) => checksStreams);

/** The response, once guardrails have let something of it through: another target can be called until then. */
async function heldReply(response: Reply | Promise<Reply>): Promise<Reply> {
  const reply = await response;
  if (reply.body instanceof LlmStream) await reply.body.started();
  return reply;
}

/** The response for the client: metered, and as guardrails leave it. */
function responseFor(
  ctx: RequestContext,
  { call, body, model, guardrails }: PlannedCall,
  reply: Reply,
  stripsUsage: boolean,
): Reply | Promise<Reply> {
  if (ctx.observer !== undefined) traceLlmReply(ctx.observer, call, reply, guardrails.response.length > 0);
  model.changeResponseHeaders?.(reply.headers);
  // Nothing of it is counted, checked or kept.
  if (
    call.isCacheHit === true &&
    guardrails.response.length === 0 &&
    !stripsUsage &&
    call.keepsCompletion !== true
  ) {
    call.progress = 'complete';
    return reply;
  }
  return processResponse(ctx, call, reply, {
    guardrails: guardrails.response,
    request: () => body.toString(),
    stripsUsage,
    keyEncodings: gatewayCredential(ctx, model).encodings,
  });
}

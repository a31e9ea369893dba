import { AppError } from '../../../core/errors.ts';
import { membersOf, parseJson } from '../../../core/foreign.ts';
import { backendTimeouts } from '../../kernel/backend.ts';
import {
  FieldNames,
  HeaderList,
  OVERRIDES,
  removeFields,
  withoutFields,
} from '../../kernel/request/header-list.ts';
import type { Reply, RequestContext } from '../../kernel/request/request-context.ts';
import { DecodedBody, isDecodable } from '../../transport/upstream/decoded-body.ts';
import type { UpstreamBody } from '../../transport/upstream/upstream-body.ts';
import type { UpstreamResponse } from '../../transport/upstream/upstream-request.ts';
import { collectBody } from '../collect-body.ts';
import {
  dropCredentials,
  dropForeignHeaders,
  type GatewayCredential,
  gatewayCredential,
  redactKey,
  sendClientKey,
  withoutCredentials,
} from '../credentials.ts';
import { errorInBody, isProviderFault, llmError } from '../errors.ts';
import type { LlmCall } from '../llm-call.ts';
import type { EndpointStats, Outcome } from '../models/health.ts';
import type { Model } from '../models/model.ts';
import { addProviderHeaders, type OutgoingRequest, type ProviderFormat } from '../providers/provider.ts';
import type { CallBody } from '../request/call-body.ts';
import { pathAtProvider, withModel } from '../request/endpoints.ts';
import { translateEmbeddings } from '../translation/translated-embeddings.ts';
import { translateReply } from '../translation/translated-reply.ts';
import type { Translation } from '../translation/translation.ts';
import { correctContentType, inAskedForm, isEventStream } from './answer-form.ts';
import { withStatusOfError } from './error-in-answer.ts';
import { credentialRefused, refusesCredential } from './refused-credential.ts';
import { startedReply } from './stream-start.ts';
import { traceEviction } from './trace-events.ts';

const NOT_FORWARDED = new FieldNames([
  'host',
  'content-length',
  'content-encoding',
  'expect',
  'accept-encoding',
  'cookie',
  ...OVERRIDES,
]);

/** Headers of a provider that clients do not get. */
export const NOT_RETURNED = new FieldNames([
  // The client's cookies are not forwarded, so the provider would never get its own back.
  'set-cookie',
  // Addresses at the provider: a client that followed them would send its own key there.
  'location',
  'refresh',
  // These describe the provider's origin, but the client would apply them to the gateway's.
  'alt-svc',
  'strict-transport-security',
  'clear-site-data',
]);

export interface ProviderCall {
  readonly call: LlmCall;
  readonly body: CallBody;
  readonly stats: EndpointStats;
  /** Wire format for the provider; undefined for that of the client at the client's path. */
  readonly format?: ProviderFormat | undefined;
  /** Path of the call in the provider's API, without `/v1`; that of the client by default. */
  readonly path?: string | undefined;
  /** Milliseconds until the response headers, if the configuration does not limit them. */
  readonly headersTimeout?: number | undefined;
  /** If the formats differ. */
  readonly translation?: Translation | undefined;
  /** Whether a stream that fails before its first output rejects, so that another target can be called. */
  readonly awaitsOutput: boolean;
}

/**
 * Calls the provider and records the outcome in the statistics of the model and, if different, of the virtual model's
 * target (`stats`). A stream that is awaited has failed if it ends before its first output.
 */
export async function callProvider(ctx: RequestContext, model: Model, request: ProviderCall): Promise<Reply> {
  const { call, stats } = request;
  const affected = stats === model.stats ? [stats] : [stats, model.stats];
  const startedAt = performance.now();
  for (const each of affected) each.callStarted();
  let outcome: Outcome = { status: 0, isFailure: true };
  let answeredAt: number | undefined;
  try {
    const reply = await sendToProvider(ctx, model, request);
    answeredAt = performance.now();
    const started = request.awaitsOutput ? await startedStream(ctx, model, call, reply) : reply;
    outcome = model.health.judge(ctx, started);
    // An answer that says itself that it failed.
    if (call.providerError !== undefined && isProviderFault(call.providerError))
      outcome = { ...outcome, isFailure: true };
    return started;
  } finally {
    call.failed = outcome.isFailure;
    const isOver = ctx.response.destroyed || ctx.abortedWith !== undefined;
    const isAbandoned = outcome.status === 0 && ctx.isAbandoned && isOver;
    const latency = outcome.isFailure || answeredAt === undefined ? undefined : answeredAt - startedAt;
    for (const each of affected) each.callAnswered(latency);
    // The client's next call, at another worker, already avoids the model.
    if (outcome.isFailure && !isAbandoned) await Promise.all(affected.map((each) => each.callEnded(outcome)));
    // A stream may still break, which is a failure however much of it came.
    else if (!isAbandoned)
      call.settle = (isFailure) => {
        call.settle = undefined;
        for (const each of affected) void each.callEnded(isFailure ? { ...outcome, isFailure } : outcome);
      };
    if (ctx.observer !== undefined && outcome.isFailure) traceEviction(ctx.observer, call, stats);
  }
}

/** `startedReply`; an error in place of the stream may also say that the provider did not accept the gateway's key. */
async function startedStream(ctx: RequestContext, model: Model, call: LlmCall, reply: Reply): Promise<Reply> {
  const { isReplaced, encodings } = gatewayCredential(ctx, model);
  const started = await startedReply(ctx, call, reply, encodings);
  if ((isReplaced || model.setsCredential) && refusesCredential(started.status, started.headers))
    throw credentialRefused(ctx, call, started.status);
  return started;
}

async function sendToProvider(
  ctx: RequestContext,
  model: Model,
  { call, body, format, path, headersTimeout, translation }: ProviderCall,
): Promise<Reply> {
  if (model.provider.answer !== undefined) {
    const answer = model.provider.answer(ctx, call, membersOf(parseJson(body.toString())));
    return ctx.observer === undefined
      ? answer
      : ctx.observer.call(model.provider.key, Promise.resolve(answer));
  }
  if (model.upstream === undefined) throw new AppError('no_backend');
  const upstream = model.upstream.for(ctx);
  ctx.endpoint = upstream.address;
  const { provider } = model;
  const credential = gatewayCredential(ctx, model);
  const { apiKey, isReplaced, sign } = credential;
  const headers = new HeaderList(withoutFields(ctx.headers.raw, NOT_FORWARDED));
  if (isReplaced) dropCredentials(headers, ctx.request);
  // Results that a client reads in ranges would never be counted.
  if (call.batch !== undefined) headers.delete('range');
  if (translation !== undefined) dropForeignHeaders(headers, ctx.request);
  headers.append('host', upstream.authority);
  // Responses are inspected here (usage, guardrails, echoed key), so compression would only add work on both sides.
  headers.append('accept-encoding', 'identity');
  if (body.contentType !== undefined) headers.set('content-type', body.contentType);
  const type = format?.type ?? call.format;
  if (translation !== undefined && !isReplaced) sendClientKey(headers, provider, type);
  addProviderHeaders(headers, provider, apiKey, type);
  const needed = translation?.kind === 'chat' ? translation.provider.headers : undefined;
  for (const [name, value] of Object.entries(needed ?? {}))
    if (!headers.has(name)) headers.append(name, value);
  model.changeRequestHeaders?.(headers);
  const request: OutgoingRequest = {
    method: ctx.method,
    model: call.providerModel ?? call.requestModel,
    format: type,
    authority: upstream.authority,
    path: pathOf(ctx, model, { call, format, path, translation, isReplaced }),
    headers,
    body: body.encode(),
    isAuthorized: sign !== undefined,
  };
  const prepared = model.prepare?.(request, ctx.signal);
  if (prepared instanceof Promise) await prepared;
  if (model.auth !== undefined) await model.auth.apply(ctx, request);
  await sign?.({ ...request, aws: model.aws });
  call.progress = 'sent';
  const timeouts = backendTimeouts.get(ctx);
  const timeout = timeouts?.request ?? headersTimeout;
  ctx.observer?.hide(apiKey, true);
  ctx.observer?.sending({ ...request, headers: headers.raw });
  const sent = upstream.relay({
    method: request.method,
    path: request.path,
    headers: headers.raw,
    body: request.body,
    client: ctx,
    // Streams have their own idle timer, which ends them with an event. This one covers other responses to a stream
    // request.
    bodyIdle: (timeouts?.idle ?? call.limits.streamIdle) * (call.streaming ? 2 : 1),
    ...(timeout === undefined ? {} : { timeout }),
  });
  const answered = await (ctx.observer === undefined ? sent : ctx.observer.call(upstream.address, sent));
  const { headers: received, body: answer } = answered;
  rejectRedirect(ctx, answered.status, received, answer);
  if (call.format !== undefined) rejectWebPage(ctx, answered.status, received, answer);
  ctx.reason = 'Upstream';
  removeFields(received.raw, NOT_RETURNED);
  const coding = received.all('content-encoding').join(', ').trim().toLowerCase();
  const isPlain = coding === '' || coding === 'identity';
  const plain = isPlain ? answer : await decodeResponse(ctx, received, answer, coding);
  await correctContentType(ctx, call, type, { ...answered, body: plain });
  const reply = await withStatusOfError(ctx, call, type, { ...answered, body: plain });
  const { status, body: decoded } = reply;
  if ((isReplaced || model.setsCredential) && refusesCredential(status, received)) {
    const refusal = await collectBody(ctx, decoded, undefined);
    call.providerError = errorInBody(redactKey(refusal, credential.encodings));
    throw credentialRefused(ctx, call, status);
  }
  if (translation === undefined) return inAskedForm(ctx, call, reply, credential.encodings);
  return translation.kind === 'chat'
    ? translateReply(ctx, call, translation, reply, credential.encodings)
    : translateEmbeddings(ctx, call, translation, reply, credential.encodings);
}

/** Path and query of a call at the provider. A translated call has no query: that of the client is of another API. */
function pathOf(
  ctx: RequestContext,
  { basePath }: Model,
  {
    call,
    format,
    path = ctx.path,
    translation,
    isReplaced,
  }: Pick<ProviderCall, 'call' | 'format' | 'path' | 'translation'> & Pick<GatewayCredential, 'isReplaced'>,
): string {
  const target = { model: call.providerModel ?? call.requestModel, stream: call.streaming };
  const usual =
    translation === undefined
      ? pathAtProvider(
          basePath,
          call.providerModel === undefined ? path : withModel(path, call.providerModel),
        )
      : basePath + translation.provider.path(target);
  if (typeof format?.path === 'function') return format.path({ basePath, path: usual, ...target });
  if (translation !== undefined) return format?.path ?? usual;
  const forwarded = isReplaced ? withoutCredentials(ctx.query) : ctx.query;
  return (format?.path ?? usual) + forwarded;
}

/**
 * Rejects a redirect with an `AppError` (502). Following it would send the body and the provider's key to another
 * origin; forwarding it would send the client there with its own key. The log names the target origin, to correct
 * `baseUrl`.
 */
function rejectRedirect(
  { endpoint }: RequestContext,
  status: number,
  headers: HeaderList,
  body: UpstreamResponse['body'],
): void {
  if (status < 300 || status > 399 || status === 304) return;
  body.discard();
  const location = headers.get('location') ?? '';
  // Path and query may contain a secret.
  const origin = URL.canParse(location) ? ` to ${new URL(location).origin}` : '';
  throw llmError(
    'upstream_invalid',
    'upstream_failed',
    'upstream call failed: the provider responded with a redirect',
    `${endpoint}: the provider responded with ${status}, a redirect${origin}: \`baseUrl\` must be the final address`,
  );
}

/**
 * Rejects a web page with an `AppError` (502): no API of a model returns one, but a wrong `baseUrl` and sign-in pages of
 * networks do. The client would read an empty answer from it.
 */
function rejectWebPage(
  { endpoint }: RequestContext,
  status: number,
  headers: HeaderList,
  body: UpstreamResponse['body'],
): void {
  const isPage = /^text\/html\b/i.test(headers.get('content-type') ?? '');
  if (status < 200 || status > 299 || !isPage) return;
  body.discard();
  throw llmError(
    'upstream_invalid',
    'upstream_failed',
    'upstream call failed: the provider responded with a web page',
    `${endpoint}: the response is HTML: check the path of \`baseUrl\``,
  );
}

/**
 * Decompresses a provider's response and corrects its headers. Some providers compress despite `accept-encoding:
 * identity`, but metering, guardrails and key redaction need the plain bytes. Throws an `AppError` (502) for an unknown
 * encoding or a body that does not match it.
 */
async function decodeResponse(
  ctx: RequestContext,
  headers: HeaderList,
  body: UpstreamBody,
  coding: string,
): Promise<UpstreamBody> {
  if (!isDecodable(coding)) {
    body.discard();
    throw undecodable(ctx, `the response has the content-encoding \`${coding.slice(0, 100)}\``);
  }
  headers.delete('content-encoding');
  headers.delete('content-length');
  const decoded = new DecodedBody(body, coding);
  // The head of a stream is sent immediately, so the first bytes of the body are not awaited.
  if (!isEventStream({ headers })) await decoded.started;
  if (decoded.failed !== undefined) throw undecodable(ctx, decoded.failed);
  return decoded.body;
}

const undecodable = ({ endpoint }: RequestContext, why: string): Error =>
  llmError(
    'upstream_invalid',
    'upstream_failed',
    'failed to process LLM response: it cannot be decoded',
    `${endpoint}: ${why}`,
  );

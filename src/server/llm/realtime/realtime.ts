import type { WebSocket } from 'ws';
import { messageOf } from '../../../core/errors.ts';
import { jsonIn } from '../../../core/foreign.ts';
import { whileValid } from '../../kernel/admission.ts';
import {
  FieldNames,
  HeaderList,
  OVERRIDES,
  removeFields,
  removeHopByHop,
  withoutFields,
} from '../../kernel/request/header-list.ts';
import type { Reply, RequestContext } from '../../kernel/request/request-context.ts';
import { withoutParameters } from '../../kernel/request/request-target.ts';
import { handshake } from '../../kernel/request/upgrade.ts';
import type { LocalWebSocket } from '../../transport/web-socket/local-web-socket.ts';
import type {
  RelayOptions,
  RelayProblem,
  WebSocketRelay,
  WebSocketTarget,
} from '../../transport/web-socket/web-socket-relay.ts';
import { chargeBudget, reserveBudget } from '../call/budget.ts';
import { NOT_RETURNED } from '../call/call-provider.ts';
import { credentialRefused, refusesCredential } from '../call/refused-credential.ts';
import { chargeSoFar } from '../call/token-limits.ts';
import {
  dropCredentials,
  gatewayCredential,
  redactKey,
  redactReason,
  removeHeadersWithKey,
  withoutCredentials,
} from '../credentials.ts';
import { errorInBody, errorInEvent, llmError } from '../errors.ts';
import type { Guardrails } from '../guardrails/guardrails.ts';
import { membersOf } from '../json-members.ts';
import { type LlmCall, llmCall } from '../llm-call.ts';
import type { EndpointStats, Outcome } from '../models/health.ts';
import { configuredName, type Model } from '../models/model.ts';
import { addProviderHeaders, type OutgoingRequest } from '../providers/provider.ts';
import { pathAtProvider, withoutVersion } from '../request/endpoints.ts';
import { isModelParameter } from '../request/named-models.ts';
import { COUNTS, parseUsage, type Usage } from '../usage.ts';
import { realtimeGuard, realtimeModels } from './request-guard.ts';
import { realtimeResponseGuard } from './response-guard.ts';

/** Whether a request is for OpenAI's Realtime API over WebSocket. */
export function isRealtime({ method, path }: Pick<RequestContext, 'method' | 'path'>): boolean {
  return method === 'GET' && withoutVersion(path) === '/realtime';
}

/**
 * The model that a realtime session names, in the query. Throws an `AppError` (400) unless the request is a WebSocket
 * handshake that names exactly one model.
 */
export function realtimeModel(ctx: RequestContext): string {
  if (handshake.get(ctx) === undefined)
    throw llmError('llm_invalid', 'websocket_required', WEBSOCKET_REQUIRED);
  const named = [...new URLSearchParams(ctx.query)].filter(([name]) => isModelParameter(name));
  const [[key, model] = [], ...others] = named;
  if (key !== 'model' || model === undefined || model === '' || others.length > 0)
    throw llmError('llm_invalid', 'missing_model', 'name one model in the URL: /v1/realtime?model=NAME');
  return model;
}

const WEBSOCKET_REQUIRED =
  'the Realtime API needs a WebSocket handshake (RFC 6455), and Node.js 22.21, 24.9 or later at the gateway';

const NOT_FORWARDED = new FieldNames([
  'host',
  'content-length',
  'expect',
  'cookie',
  'connection',
  'upgrade',
  // The gateway makes a handshake of its own.
  'sec-websocket-key',
  'sec-websocket-version',
  'sec-websocket-extensions',
  'sec-websocket-protocol',
  // That of a page, for which the gateway has its own rules (`cors`, `authorization`).
  'origin',
  ...OVERRIDES,
]);

/** Subprotocols in which browsers, which cannot set headers, send a key and its account. */
const CREDENTIAL_PROTOCOL = /^openai-(?:insecure-api-key|organization|project)\./;

/** A realtime session that was authorized. */
export interface RealtimeSession {
  readonly requested: string;
  readonly providerModel: string | undefined;
  readonly model: Model;
  readonly stats: EndpointStats;
  readonly limits: LlmCall['limits'];
  readonly guardrails: Omit<Guardrails, 'close'>;
}

/**
 * Opens a session at the provider and relays it. The reply has status 101, or the provider's refusal. Throws an
 * `AppError`: 400 if the provider has no Realtime API; or if the provider cannot be reached.
 */
export async function openRealtime(ctx: RequestContext, session: RealtimeSession): Promise<Reply> {
  const { model, stats } = session;
  if (model.provider.openSession !== undefined) return openLocally(ctx, session, model.provider.openSession);
  const hasRealtime = model.formats.some(({ type }) => type === 'realtime');
  if (model.upstream === undefined || !hasRealtime)
    throw llmError(
      'llm_invalid',
      'unsupported_endpoint',
      `provider \`${model.provider.key}\` has no Realtime API`,
    );
  const call = callOf(session);
  llmCall.set(ctx, call);
  ctx.backend = model.backend ?? ctx.backend;
  ctx.endpoint = model.upstream.for(ctx).address;
  await reserveBudget(ctx, call);
  const target = await targetOf(ctx, session);
  // Only a gateway with realtime sessions loads the library.
  const { connectWebSocket, WebSocketRelay } = await import('../../transport/web-socket/web-socket-relay.ts');
  call.progress = 'sent';
  const startedAt = performance.now();
  stats.callStarted();
  let outcome: Outcome | undefined = { status: 0, isFailure: true };
  try {
    const opened = await connectWebSocket(target, ctx.signal);
    ctx.reason = 'Upstream';
    if ('status' in opened) {
      outcome = model.health.judge(ctx, opened);
      return refused(ctx, call, model, opened);
    }
    // The session may still break.
    outcome = undefined;
    const relay = new WebSocketRelay(opened as WebSocket, {
      ...relayOptions(ctx, call, session, (isFailure) => void stats.callEnded({ status: 101, isFailure })),
      redact: redactionOf(gatewayCredential(ctx, model).encodings),
    });
    ctx.running = relay;
    endWhenRefused(ctx, relay);
    call.progress = 'responding';
    return { status: 101, headers: new HeaderList([]), body: relay };
  } finally {
    stats.callAnswered(outcome?.isFailure === true ? undefined : performance.now() - startedAt);
    if (outcome !== undefined) await stats.callEnded(outcome);
  }
}

/** Removes the provider's key from what the provider sends, as from answers over HTTP. Nothing is parsed for it. */
function redactionOf(encodings: readonly string[]): RelayOptions['redact'] {
  if (encodings.length === 0) return undefined;
  return {
    message: (bytes) => redactKey(bytes, encodings),
    reason: (bytes) => redactReason(bytes, encodings),
  };
}

/** A session that the gateway itself answers, of the built-in model. */
async function openLocally(
  ctx: RequestContext,
  session: RealtimeSession,
  openSession: NonNullable<Model['provider']['openSession']>,
): Promise<Reply> {
  const { model, requested, providerModel = requested } = session;
  const call = callOf(session);
  llmCall.set(ctx, call);
  ctx.backend = model.backend ?? ctx.backend;
  ctx.reason = 'DirectResponse';
  await reserveBudget(ctx, call);
  const { LocalWebSocket } = await import('../../transport/web-socket/local-web-socket.ts');
  const local = new LocalWebSocket(openSession(providerModel), relayOptions(ctx, call, session));
  ctx.running = local;
  endWhenRefused(ctx, local);
  call.progress = 'responding';
  return { status: 101, headers: new HeaderList([]), body: local };
}

/** Ends a session once the credential of its caller is no longer accepted. */
function endWhenRefused(ctx: RequestContext, session: WebSocketRelay | LocalWebSocket): void {
  session.onEnd = whileValid(ctx, (why) => {
    ctx.errorDetail ??= why;
    session.refuse('the credential is no longer accepted');
  });
}

function callOf({ requested, providerModel, model, limits }: RealtimeSession): LlmCall {
  return {
    limits,
    format: 'realtime',
    operation: 'other',
    provider: model.provider.telemetryName,
    requestModel: requested,
    configuredModel: configuredName(model, requested),
    ...(providerModel === undefined ? {} : { providerModel }),
    streaming: true,
    hasNoText: true,
    request: {},
    // Of a session without a response.
    usage: { input: 0, output: 0 },
  };
}

async function targetOf(ctx: RequestContext, session: RealtimeSession): Promise<WebSocketTarget> {
  const { model, requested, providerModel = requested } = session;
  const { upstream, provider } = model;
  const { apiKey, isReplaced, sign } = gatewayCredential(ctx, model);
  const headers = new HeaderList(withoutFields(ctx.headers.raw, NOT_FORWARDED));
  if (isReplaced) dropCredentials(headers, ctx.request);
  addProviderHeaders(headers, provider, apiKey, 'realtime');
  model.changeRequestHeaders?.(headers);
  const { authority = '', isTls = false, tls } = upstream?.for(ctx) ?? {};
  const { basePath, formats } = model;
  const format = formats.find(({ type }) => type === 'realtime');
  const usual = pathAtProvider(basePath, ctx.path);
  const path =
    typeof format?.path === 'string'
      ? format.path
      : (format?.path?.({ basePath, path: usual, model: providerModel, stream: true }) ?? usual);
  const query = withoutParameters(isReplaced ? withoutCredentials(ctx.query) : ctx.query, MODEL);
  const outgoing: OutgoingRequest = {
    method: 'GET',
    format: 'realtime',
    authority,
    path: `${path}${query === '' ? '?' : `${query}&`}model=${encodeURIComponent(providerModel)}`,
    headers,
    body: null,
    isAuthorized: sign !== undefined,
  };
  await model.prepare?.(outgoing, ctx.signal);
  await model.auth?.apply(ctx, outgoing);
  await sign?.(outgoing);
  ctx.observer?.hide(apiKey, true);
  ctx.observer?.sending({ ...outgoing, headers: headers.raw });
  const offered = (ctx.headers.get('sec-websocket-protocol') ?? '').split(',').map((name) => name.trim());
  return {
    url: new URL(`${isTls ? 'wss' : 'ws'}://${authority}${outgoing.path}`),
    headers: headers.raw,
    protocols: offered.filter((name) => name !== '' && !(isReplaced && CREDENTIAL_PROTOCOL.test(name))),
    maxMessage: session.limits.realtimeMessageBytes,
    ...(tls !== undefined && { tls }),
  };
}

const MODEL: ReadonlySet<string> = new Set(['model']);

/** The provider's error response. Throws an `AppError` (502) if it is about the gateway's credential. */
function refused(
  ctx: RequestContext,
  call: LlmCall,
  model: Model,
  { status, headers, body }: { status: number; headers: HeaderList; body: Buffer },
): Reply {
  const { encodings, isReplaced } = gatewayCredential(ctx, model);
  const cleaned = redactKey(body, encodings);
  call.progress = 'rejected';
  call.providerError = errorInBody(cleaned);
  if ((isReplaced || model.setsCredential) && refusesCredential(status, headers))
    throw credentialRefused(ctx, call, status);
  removeHeadersWithKey(headers, encodings);
  removeHopByHop(headers);
  removeFields(headers.raw, NOT_RETURNED);
  // Only the beginning of the body was read.
  headers.delete('content-length');
  if (!headers.has('content-type')) headers.append('content-type', 'application/json');
  // A 3xx would send the client elsewhere, with its own key.
  return { status: status < 400 ? 502 : status, headers, body: cleaned };
}

function relayOptions(
  ctx: RequestContext,
  call: LlmCall,
  { guardrails: { request, response }, requested }: RealtimeSession,
  settle?: (isFailure: boolean) => void,
): RelayOptions {
  const streamed = response.filter(({ checksStreams }) => checksStreams);
  const models = realtimeModels(ctx, requested);
  const texts = request.length === 0 ? undefined : realtimeGuard(ctx, call, request);
  return {
    check: models === undefined || texts === undefined ? (models ?? texts) : both(models, texts),
    release: streamed.length === 0 ? undefined : realtimeResponseGuard(ctx, call, streamed),
    maxMessage: call.limits.realtimeMessageBytes,
    received: (message) => readEvent(ctx, call, message),
    ended: (problem) => {
      call.progress = 'complete';
      settle?.(isOfProvider(problem, call));
      if (problem === undefined) return;
      ctx.reason = problem.side === 'upstream' ? 'UpstreamFailure' : 'ClientClosed';
      if (problem.side === 'client') return;
      ctx.error = 'the session ended early';
      ctx.errorDetail = `${ctx.endpoint}: ${problem.why}`;
    },
  };
}

/**
 * Whether a session broke because of its provider. After the first message, only some codes say so: others, such as 1008 and 1009,
 * may be about what the client has sent, and those of applications (from 3000) are often the end of a session's time.
 */
const isOfProvider = (problem: RelayProblem | undefined, { firstTokenAfter }: LlmCall): boolean =>
  problem?.side === 'upstream' &&
  (firstTokenAfter === undefined || problem.code === undefined || OF_SERVER.has(problem.code));

/** Internal error, service restart, try again later, bad gateway (registry of RFC 6455 §11.7). */
const OF_SERVER: ReadonlySet<number> = new Set([1011, 1012, 1013, 1014]);

type Check = NonNullable<RelayOptions['check']>;

/** The second check gets what the first one lets pass. */
const both =
  (first: Check, second: Check): Check =>
  async (message, isBinary) => {
    const checked = await first(message, isBinary);
    return checked.for === 'client' ? checked : second(message, isBinary);
  };

/** Events with token counts: of a response, and of the transcription of the user's speech. */
const COUNTED = ['"response.done"', '"conversation.item.input_audio_transcription.completed"'].map((type) =>
  Buffer.from(type),
);
const ERROR = Buffer.from('"error"');

/** Reads model, token counts and errors from an event of the provider. */
function readEvent(ctx: RequestContext, call: LlmCall, message: Buffer): void {
  call.firstTokenAfter ??= performance.now() - ctx.timings.started;
  call.lastTokenAfter = performance.now() - ctx.timings.started;
  // Nearly all events are pieces of audio.
  const head = message.subarray(0, EVENT_HEAD);
  if (head.includes(ERROR)) call.providerError = errorInEvent(message.toString()) ?? call.providerError;
  if (!COUNTED.some((type) => head.includes(type))) return;
  const event = membersOf(jsonIn(message.toString()));
  const counts = membersOf(event?.['usage'] ?? membersOf(event?.['response'])?.['usage']);
  const usage = parseUsage(counts);
  if (usage === undefined) return;
  call.usage = sum(call.usage, usage);
  chargeSoFar(ctx, call.usage);
  // It fails only with the process that has the budgets, and then the session ends, too.
  chargeBudget(ctx, call)?.catch((error: unknown) => {
    ctx.errorDetail ??= messageOf(error);
  });
}

/** `type` is among the first members of an event, with a few ids. */
const EVENT_HEAD = 1_024;

function sum(before: Usage | undefined, more: Usage): Usage {
  const total: { -readonly [Kind in keyof Usage]: Usage[Kind] } = before ?? { input: 0, output: 0 };
  const added = { ...total };
  for (const kind of COUNTS) {
    const count = more[kind];
    if (count !== undefined) added[kind] = (total[kind] ?? 0) + count;
  }
  return added;
}

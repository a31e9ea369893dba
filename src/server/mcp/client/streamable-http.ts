import { isUtf8 } from 'node:buffer';
import { AppError, messageOf } from '../../../core/errors.ts';
import { membersOf } from '../../../core/foreign.ts';
import { LIMITS } from '../../../core/limits.ts';
import type { EventStream } from '../../../core/sse.ts';
import { endWithCredential } from '../../kernel/admission.ts';
import { emptyReply } from '../../kernel/request/error-response.ts';
import { FieldNames, type HeaderList, OVERRIDES, withoutFields } from '../../kernel/request/header-list.ts';
import type { Reply, RequestContext } from '../../kernel/request/request-context.ts';
import { backendKey, credentialOrigin, placedHeaders, principal } from '../../kernel/request/shared-slots.ts';
import type { ClientHeaders } from '../connection/client-headers.ts';
import { UpstreamStatusError } from '../connection/target-failure.ts';
import { isModern, unsupportedVersion, versionMismatch } from '../protocol/envelope.ts';
import { idOfRequest, parseMessage, type RpcMessage } from '../protocol/message.ts';
import {
  badMessage,
  CLIENT_METHODS,
  CLIENT_NOTIFICATIONS,
  errorMessage,
  META,
  MODERN_REVISION,
  RPC,
  RpcError,
  SESSION_HEADER,
  SESSION_REVISIONS,
  VERSION_HEADER,
} from '../protocol/protocol.ts';
import { mcpFields, messageGuards, shownBundle } from '../request-fields.ts';
import { connectAll, initializeParams, initializeResponse, withInstructions } from '../session/initialize.ts';
import { isOfServerStream } from '../session/resumable-streams.ts';
import { notify, type Session } from '../session/session.ts';
import type { SessionStore } from '../session/session-store.ts';
import { handleModern } from './modern/modern-http.ts';
import { refusedReply } from './refused-reply.ts';
import { eventStreamReply, oneEvent, runCall } from './running-call.ts';
import { answerStateless, statelessInitialize } from './stateless.ts';

/**
 * Answers one HTTP request on an MCP route (transport "Streamable HTTP"). Requests of revision 2026-07-28 are served by
 * `handleModern`, those of 2024-11-05 to 2025-11-25 in sessions.
 */
export function handleHttp(ctx: RequestContext, sessions: SessionStore): Promise<Reply> {
  ctx.protocol = 'mcp';
  if (sessions.isStateless && ctx.method !== 'POST')
    throw new AppError('mcp_method_not_allowed', { headers: ['allow', 'POST'] });
  switch (ctx.method) {
    case 'POST':
      return handlePost(ctx, sessions);
    case 'GET':
      return handleGet(ctx, sessions);
    case 'DELETE':
      return handleDelete(ctx, sessions);
    default:
      throw new AppError('mcp_method_not_allowed', { headers: ['allow', 'GET, POST, DELETE'] });
  }
}

async function handlePost(ctx: RequestContext, sessions: SessionStore): Promise<Reply> {
  requireEventStream(ctx);
  if (!isJson(ctx.headers.get('content-type'))) throw new AppError('mcp_unsupported_media_type');
  const message = messageIn(await ctx.body.read(LIMITS.requestBodyBytes));
  mcpFields.set(ctx, message.method === '' ? {} : { method: message.method });
  if (isModern(ctx, message)) return handleModern(ctx, sessions, message, clientHeaders(ctx, sessions));
  checkVersion(ctx, message);
  if (message.kind === 'request' && message.method === 'initialize')
    return initialize(ctx, sessions, message);
  const found = sessions.isStateless ? undefined : findSession(ctx, sessions);
  const session = found instanceof Promise ? await found : found;
  const headers = clientHeaders(ctx, sessions);
  if (message.kind === 'notification') checkNotification(message);
  if (session === undefined) return answerStateless(ctx, sessions, message, headers);
  if (message.kind === 'request') return await runCall(ctx, session, message, headers);
  if (message.kind === 'response') session.answer(message, headers, messageGuards.get(ctx));
  else notify(session, message, headers);
  return emptyReply(202);
}

async function handleGet(ctx: RequestContext, sessions: SessionStore): Promise<Reply> {
  requireEventStream(ctx);
  // Since that revision, notifications come on the response to `subscriptions/listen`.
  if (ctx.headers.get(VERSION_HEADER) === MODERN_REVISION)
    throw new AppError('mcp_method_not_allowed', { headers: ['allow', 'POST'] });
  checkVersion(ctx, undefined);
  const session = await findSession(ctx, sessions);
  const stream = resumedStream(ctx, session) ?? session.openStream(clientHeaders(ctx, sessions));
  endWithCredential(ctx, () => stream.endUntil(session.options.limits.drainRetry));
  return eventStreamReply(stream);
}

/**
 * Resumes the stream of `Last-Event-ID`; undefined without that header, and for a GET stream that cannot be resumed: the
 * client gets another one.
 */
function resumedStream(ctx: RequestContext, session: Session): EventStream | undefined {
  const eventId = ctx.headers.get('last-event-id');
  if (eventId === undefined || eventId === '') return undefined;
  const { owner, after = 0 } = session.resumable.reconnected(eventId) ?? {};
  const stream = owner?.resume(ctx, after);
  if (stream !== undefined || isOfServerStream(eventId)) return stream;
  throw new AppError('mcp_invalid', {
    message: 'mcp: the events after this Last-Event-ID are no longer available',
  });
}

async function handleDelete(ctx: RequestContext, sessions: SessionStore): Promise<Reply> {
  const session = await findSession(ctx, sessions);
  for (const { rpc } of session.connections) rpc?.channel?.ending?.(clientHeaders(ctx, sessions));
  await sessions.end(session);
  return emptyReply(204);
}

export function requireEventStream({ headers }: RequestContext): void {
  if (!acceptsEventStream(headers)) throw new AppError('mcp_not_acceptable');
}

/** `Accept` must contain `text/event-stream` itself (specification); a wildcard is not enough. */
export const acceptsEventStream = (headers: HeaderList): boolean =>
  headers.get('accept') === USUAL_ACCEPT ||
  headers.all('accept').some((value) => value.toLowerCase().includes('text/event-stream'));

/** The value that the official SDKs send. */
const USUAL_ACCEPT = 'application/json, text/event-stream';

export function isJson(contentType: string | undefined): boolean {
  if (contentType === 'application/json') return true;
  return contentType?.split(';')[0]?.trim().toLowerCase() === 'application/json';
}

/** Parses the body of a request. Throws `mcp_invalid` (400) if it is not one JSON-RPC message. */
export function messageIn(bytes: Buffer): RpcMessage {
  try {
    if (!isUtf8(bytes)) throw new RpcError(RPC.parseError, 'the body is not valid UTF-8');
    return parseMessage(bytes.toString('utf8'));
  } catch (error) {
    if (error instanceof RpcError) throw badMessage(error, idOfRefused(bytes, error));
    throw error;
  }
}

/**
 * The id of a request that cannot be accepted, so that its client relates the error to it; `null` "if there was an error in
 * detecting the id" (JSON-RPC 2.0 §5).
 */
const idOfRefused = (bytes: Buffer, { code }: RpcError): string =>
  code === RPC.parseError ? 'null' : (idOfRequest(bytes.toString('utf8')) ?? 'null');

/**
 * Rejects unsupported protocol revisions with the error that makes clients of revision 2026-07-28 fall back to
 * `initialize`. The header may be absent: old clients do not send it. Header and `_meta` must agree (2026-07-28, "Standard
 * request headers"): otherwise a server that reads the body would use another revision than the gateway.
 */
function checkVersion(ctx: RequestContext, message: RpcMessage | undefined): void {
  const inHeader = ctx.headers.get(VERSION_HEADER);
  const inBody = membersOf(message?.params['_meta'])[META.version];
  const id = message?.id ?? 'null';
  if (inHeader !== undefined && inBody !== undefined && inBody !== inHeader) {
    throw badMessage(versionMismatch(inHeader, inBody), id);
  }
  const requested = inHeader ?? inBody;
  if (requested === undefined || SESSION_REVISIONS.some((known) => known === requested)) return;
  throw badMessage(unsupportedVersion(requested), id);
}

/** Rejects unknown notifications: a server may run a request without an id, which authorization rules do not see. */
export function checkNotification({ method }: RpcMessage): void {
  if (CLIENT_NOTIFICATIONS.has(method)) return;
  throw badMessage(
    CLIENT_METHODS.has(method)
      ? new RpcError(RPC.invalidRequest, `${method} is a request: it needs an "id"`)
      : new RpcError(
          RPC.methodNotFound,
          `unknown client notification: ${JSON.stringify(method.slice(0, 64))}`,
        ),
    'null',
  );
}

/** The session that a request names. Returned directly unless another process created it. */
function findSession(ctx: RequestContext, sessions: SessionStore): Session | Promise<Session> {
  const id = ctx.headers.get(SESSION_HEADER);
  if (id === undefined) throw new AppError('mcp_session_missing');
  const found = sessions.find(id, principal.get(ctx));
  const named = (session: Session): Session => {
    mcpFields.ensure(ctx, () => ({})).sessionId = session.shortId;
    sessions.whileAdmitted(ctx, session);
    return session;
  };
  return found instanceof Promise ? found.then(named) : named(found);
}

async function initialize(ctx: RequestContext, sessions: SessionStore, message: RpcMessage): Promise<Reply> {
  let params: string;
  try {
    params = initializeParams(message);
  } catch (error) {
    throw error instanceof RpcError ? badMessage(error, message.id ?? 'null') : error;
  }
  const headers = clientHeaders(ctx, sessions);
  const key = sessions.starting.keyOf(ctx, params, headers);
  const session = sessions.starting.take(key) ?? createSession(ctx, sessions, message, params);
  let hasLeft = false;
  const leave = (): void => {
    hasLeft = true;
    sessions.starting.keep(session, key);
  };
  ctx.signal.addEventListener('abort', leave, { once: true });
  try {
    await connectAll(session, headers, ctx.observer);
    const { text: own, version } = await initializeResponse(session, message);
    const text = withInstructions(own, shownBundle.get(ctx)?.instructions);
    // It may be the session of another request by now.
    if (hasLeft)
      throw new AppError('mcp_session_failed', {
        message: 'mcp: the client left before the session had started',
      });
    ctx.signal.removeEventListener('abort', leave);
    if (sessions.isStateless) {
      void sessions.abandon(session);
      return oneEvent(statelessInitialize(text));
    }
    await sessions.register(session, version);
    sessions.whileAdmitted(ctx, session);
    if (ctx.signal.aborted) await sessions.end(session);
    mcpFields.set(ctx, { ...mcpFields.get(ctx), sessionId: session.shortId });
    const reply = oneEvent(text);
    reply.headers.append(SESSION_HEADER, session.id);
    return reply;
  } catch (error) {
    if (!hasLeft) await sessions.abandon(session);
    // With several targets, all have failed.
    const [only, ...others] = session.connections;
    if (only !== undefined && others.length === 0)
      mcpFields.set(ctx, { ...mcpFields.get(ctx), target: only.target.name });
    if (error instanceof UpstreamStatusError) return refusedReply(ctx, error, message.id ?? 'null');
    throw withRpcBody(error, message);
  } finally {
    ctx.signal.removeEventListener('abort', leave);
  }
}

/** @throws AppError with a JSON-RPC body, if no more sessions are possible */
function createSession(
  ctx: RequestContext,
  sessions: SessionStore,
  message: RpcMessage,
  params: string,
): Session {
  try {
    return sessions.create(principal.get(ctx), params);
  } catch (error) {
    throw withRpcBody(error, message);
  }
}

/** Adds a JSON-RPC error with the reason to a failed `initialize`, because clients show it. The status is unchanged. */
function withRpcBody(error: unknown, message: RpcMessage): unknown {
  if (!(error instanceof AppError)) return error;
  const text = errorMessage(message.id ?? 'null', RPC.internalError, messageOf(error).replace(/^mcp: /, ''));
  return new AppError(error.code, {
    message: error.message,
    ...(error.detail !== undefined && { detail: error.detail }),
    headers: error.headers,
    body: { type: 'application/json', text },
  });
}

const NOT_FORWARDED = new FieldNames([
  'host',
  'content-length',
  'content-type',
  'content-encoding',
  'accept',
  'accept-encoding',
  'expect',
  'origin',
  'cookie',
  'last-event-id',
  SESSION_HEADER,
  VERSION_HEADER,
  // Defined by a later revision than the one used with targets, and they contain the client's names of items.
  'mcp-method',
  'mcp-name',
  ...OVERRIDES,
]);
const NOT_FORWARDED_WITH_KEY = new FieldNames([...NOT_FORWARDED, 'authorization']);

/**
 * Headers of the client's request that HTTP targets receive: end-to-end fields that do not concern this hop, and the
 * credential of `backendAuth` instead of the client's.
 */
function forwardedHeaders(ctx: RequestContext): string[] {
  const key = backendKey.get(ctx);
  if (key === undefined) return withoutFields(ctx.headers.raw, NOT_FORWARDED);
  return [...withoutFields(ctx.headers.raw, NOT_FORWARDED_WITH_KEY), 'authorization', `Bearer ${key}`];
}

/** What targets may get of a request, for credentials that are computed from it. */
export const clientHeaders = (ctx: RequestContext, sessions: SessionStore): ClientHeaders => ({
  list: forwardedHeaders(ctx),
  request: sessions.readsRequests ? ctx : undefined,
  ofRoute: placedHeaders.get(ctx),
  origin: credentialOrigin.get(ctx),
});

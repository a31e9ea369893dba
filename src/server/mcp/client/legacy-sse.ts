import { AppError, messageOf } from '../../../core/errors.ts';
import { LIMITS } from '../../../core/limits.ts';
import { EventStream } from '../../../core/sse.ts';
import { endWithCredential } from '../../kernel/admission.ts';
import { emptyReply } from '../../kernel/request/error-response.ts';
import type { Reply, RequestContext } from '../../kernel/request/request-context.ts';
import { principal } from '../../kernel/request/shared-slots.ts';
import type { ClientHeaders } from '../connection/client-headers.ts';
import { initializing } from '../eras/open-target.ts';
import type { RpcMessage } from '../protocol/message.ts';
import { badMessage, errorMessage, RPC, RpcError, SESSION_HEADER } from '../protocol/protocol.ts';
import { mcpFields, messageGuards, shownBundle } from '../request-fields.ts';
import { connectAll, initializeParams, initializeResponse, withInstructions } from '../session/initialize.ts';
import { notify, type Session } from '../session/session.ts';
import type { SessionStore } from '../session/session-store.ts';
import { SESSION_PARAMETER } from './placement.ts';
import { eventStreamReply, RunningCall, rejectDuplicateId, startCall } from './running-call.ts';
import {
  acceptsEventStream,
  checkNotification,
  clientHeaders,
  isJson,
  messageIn,
  requireEventStream,
} from './streamable-http.ts';

/** A client of the transport HTTP+SSE. */
interface LegacyClient {
  /** Carries all messages to the client; the session ends with it. */
  readonly stream: EventStream;
  state: 'new' | 'initializing' | 'ready';
}

const clients = new WeakMap<Session, LegacyClient>();

/**
 * Whether the request belongs to the transport "HTTP+SSE" (MCP 2024-11-05): a GET on a path that ends in `/sse`, or a POST
 * that has a session id in its query or accepts no event stream. Other requests on such a path are Streamable HTTP.
 */
export function isLegacySse({ path, method, headers, query }: RequestContext): boolean {
  if (!path.endsWith('/sse') || headers.has(SESSION_HEADER)) return false;
  if (method !== 'POST') return method === 'GET';
  return new URLSearchParams(query).has(SESSION_PARAMETER) || !acceptsEventStream(headers);
}

/** Answers one request of the transport "HTTP+SSE". */
export function handleLegacySse(ctx: RequestContext, sessions: SessionStore): Promise<Reply> {
  ctx.protocol = 'mcp';
  return ctx.method === 'GET' ? openStream(ctx, sessions) : receive(ctx, sessions);
}

/** Creates a session with its stream. The first event has the URL for POSTs, whose session id only this caller can use. */
async function openStream(ctx: RequestContext, sessions: SessionStore): Promise<Reply> {
  requireEventStream(ctx);
  const session = sessions.create(principal.get(ctx), '');
  // Only this process has the stream.
  await sessions.register(session, '', false);
  sessions.whileAdmitted(ctx, session);
  mcpFields.set(ctx, { sessionId: session.shortId });
  const stream = session.openStream(clientHeaders(ctx, sessions));
  endWithCredential(ctx, () => stream.end());
  const client: LegacyClient = { stream, state: 'new' };
  clients.set(session, client);
  const end = (): void => {
    if (!session.closed) void sessions.end(session);
  };
  const unused = setTimeout(() => {
    if (client.state === 'new') end();
  }, session.options.limits.sessionStartTimeout).unref();
  const { owner } = stream;
  stream.owner = {
    closed: () => {
      clearTimeout(unused);
      owner?.closed?.();
      end();
    },
    // The stream carries the messages of all targets.
    pressure: (paused) => {
      for (const { rpc } of session.connections) rpc?.channel?.pause(paused);
    },
  };
  stream.send(postUrl(ctx, session.id), 'endpoint');
  return eventStreamReply(stream);
}

/**
 * Path and query for POSTs: those of the GET as the client sent them, which may have a key that a policy checks, with the
 * session id. A path that begins with `//` would name another host.
 */
function postUrl({ request, path, query }: RequestContext, id: string): string {
  const sent = /^\/(?!\/)[^?#]*/.exec(request.url ?? '')?.[0] ?? path.replace(/^\/+/, '/');
  const rest = query
    .slice(1)
    .split('&')
    .filter((pair) => pair !== '' && !new URLSearchParams(pair).has(SESSION_PARAMETER));
  return `${sent}?${[...rest, `${SESSION_PARAMETER}=${id}`].join('&')}`;
}

/** Receives a message of the client. Whatever answers it is sent on the stream. */
async function receive(ctx: RequestContext, sessions: SessionStore): Promise<Reply> {
  const [id, another] = new URLSearchParams(ctx.query).getAll(SESSION_PARAMETER);
  if (id === undefined || another !== undefined)
    throw new AppError('mcp_invalid', { message: `mcp: expected ${SESSION_PARAMETER} once in the query` });
  if (!isJson(ctx.headers.get('content-type'))) throw new AppError('mcp_unsupported_media_type');
  const message = messageIn(await ctx.body.read(LIMITS.requestBodyBytes));
  mcpFields.set(ctx, message.method === '' ? {} : { method: message.method });
  const session = await sessions.find(id, principal.get(ctx));
  const client = clients.get(session);
  if (client === undefined)
    throw new AppError('mcp_session_not_found', { detail: 'it belongs to the transport Streamable HTTP' });
  mcpFields.set(ctx, { ...mcpFields.get(ctx), sessionId: session.shortId });
  const headers = clientHeaders(ctx, sessions);
  if (message.kind === 'notification') checkNotification(message);
  if (message.kind === 'response') session.answer(message, headers, messageGuards.get(ctx));
  else if (message.kind === 'notification') notify(session, message, headers);
  else if (message.method === 'initialize')
    initialize(ctx, sessions, session, client, message).catch((error: unknown) =>
      session.options.log.internalError('mcp', error),
    );
  else run(ctx, session, client, message, headers);
  return emptyReply(202);
}

function run(
  ctx: RequestContext,
  session: Session,
  client: LegacyClient,
  message: RpcMessage,
  headers: ClientHeaders,
): void {
  if (client.state !== 'ready')
    throw badMessage(
      new RpcError(RPC.invalidRequest, 'the session is not initialized yet'),
      message.id ?? 'null',
    );
  rejectDuplicateId(session, message);
  const call = new RunningCall(ctx, session, message, headers, new CallStream(client.stream));
  // The call ends with the stream, not with this request, which cannot get the status of a target any more.
  ctx.running = undefined;
  call.answerWith(emptyReply(202));
  startCall(call);
}

async function initialize(
  ctx: RequestContext,
  sessions: SessionStore,
  session: Session,
  client: LegacyClient,
  message: RpcMessage,
): Promise<void> {
  const id = message.id ?? 'null';
  const { stream } = client;
  if (client.state !== 'new') {
    stream.send(errorMessage(id, RPC.invalidRequest, 'the session is already initialized'));
    return;
  }
  try {
    const params = initializeParams(message);
    client.state = 'initializing';
    session.initializeParams = params;
    for (const connection of session.connections) connection.open = initializing(params, session.options.log);
    await connectAll(session, clientHeaders(ctx, sessions), ctx.observer);
    const { text: own, version } = await initializeResponse(session, message);
    const text = withInstructions(own, shownBundle.get(ctx)?.instructions);
    session.version = version;
    client.state = 'ready';
    stream.send(text);
  } catch (error) {
    const code = error instanceof RpcError ? error.code : RPC.internalError;
    stream.send(errorMessage(id, code, messageOf(error).replace(/^mcp: /, '')));
    if (client.state === 'initializing' && !session.closed) await sessions.end(session);
  }
}

/** The stream of one call: a part of the stream of its session. */
class CallStream extends EventStream {
  readonly #carrier: EventStream;

  constructor(carrier: EventStream) {
    super();
    this.#carrier = carrier;
  }

  override send(data: string): void {
    if (this.isOpen) this.#carrier.send(data);
  }

  override end(data?: string): void {
    if (!this.isOpen) return;
    if (data !== undefined) this.#carrier.send(data);
    this.giveUp();
  }
}

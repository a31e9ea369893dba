import { ERRORS } from '../../../core/errors.ts';
import { LIMITS } from '../../../core/limits.ts';
import { DENIED } from '../../../core/outcome.ts';
import { EVENT_STREAM_HEADERS, EventStream, type EventStreamOwner } from '../../../core/sse.ts';
import { backendTimeouts } from '../../kernel/backend.ts';
import { stringOf } from '../../kernel/json/json-text.ts';
import type { RequestObserver } from '../../kernel/observer.ts';
import { HeaderList } from '../../kernel/request/header-list.ts';
import type { Reply, RequestContext } from '../../kernel/request/request-context.ts';
import { logReads } from '../../kernel/request/shared-slots.ts';
import type { ClientHeaders } from '../connection/client-headers.ts';
import type { JsonRpcConnection } from '../connection/json-rpc-connection.ts';
import type { Target } from '../connection/target.ts';
import type { UpstreamStatusError } from '../connection/target-failure.ts';
import { answerError, type ClientCall, recordArguments } from '../federation/call.ts';
import { dispatch } from '../federation/federation.ts';
import { canonicalId, type RpcMessage } from '../protocol/message.ts';
import { badMessage, RPC, RpcError } from '../protocol/protocol.ts';
import type { ItemAccess, McpFields, MessageGuards, ShownBundle } from '../request-fields.ts';
import { itemAccess, mcpFields, messageGuards, shownBundle } from '../request-fields.ts';
import type { ResumableStream } from '../session/resumable-streams.ts';
import type { Session } from '../session/session.ts';
import { refusedReply } from './refused-reply.ts';

/**
 * Runs a request of a client; the reply is its stream. Over `LIMITS.inFlightPerSession` requests in flight, it is answered
 * with a JSON-RPC error. Its id may be in use: each request has a response stream of its own.
 */
export function runCall(
  ctx: RequestContext,
  session: Session,
  message: RpcMessage,
  headers: ClientHeaders,
): Promise<Reply> {
  const call = new RunningCall(ctx, session, message, headers);
  startCall(call);
  return call.reply();
}

/** Runs a call; its stream gets the response. */
export function startCall(call: RunningCall): void {
  const { session } = call;
  if (session.inFlight >= LIMITS.inFlightPerSession) {
    answerError(
      call,
      new RpcError(
        RPC.internalError,
        `more than ${LIMITS.inFlightPerSession} requests of this session are in flight`,
      ),
    );
    return;
  }
  call.key = session.track(call);
  dispatch(call);
}

/** Rejects a request with the id of a request in flight whose response comes on the same stream. */
export function rejectDuplicateId(session: Session, { id = 'null' }: RpcMessage): void {
  if (session.runningUnder(id).length === 0) return;
  const text = `a request with the id ${id.slice(0, 64)} is in flight in this session: give each request its own id`;
  // Without the id: clients would take the error for the response to the other request.
  throw badMessage(new RpcError(RPC.invalidRequest, text), 'null');
}

/**
 * One call in flight. The reply with its stream is sent with the first event, or after a short time. Until then, a status
 * of the target, such as 401 with a challenge, can become the status of the reply.
 */
export class RunningCall implements ClientCall, EventStreamOwner, ResumableStream {
  readonly session: Session;
  message: RpcMessage;
  headers: ClientHeaders;
  readonly headTimeout: number | undefined;
  readonly log: McpFields;
  readonly keepsArguments: boolean;
  readonly keepsResult: boolean;
  readonly access: ItemAccess | undefined;
  readonly bundle: ShownBundle | undefined;
  readonly guards: MessageGuards | undefined;
  readonly span: RequestContext['span'];
  readonly observer: RequestObserver | undefined;
  readonly stream: EventStream;
  readonly clientId: string;
  /** The key in `Session.running`; 0 before. */
  key = 0;
  readonly #ctx: RequestContext;
  #rpc: JsonRpcConnection | undefined;
  #id = 0;
  #streamId: string | undefined;
  #answer: Reply | undefined;
  #resolve: ((reply: Reply) => void) | undefined;
  #timer: NodeJS.Timeout | undefined;
  #abort: AbortController | undefined;

  constructor(
    ctx: RequestContext,
    session: Session,
    message: RpcMessage,
    headers: ClientHeaders,
    stream = new EventStream(),
  ) {
    this.#ctx = ctx;
    this.stream = stream;
    this.session = session;
    this.message = message;
    this.clientId = canonicalId(message.id ?? 'null');
    this.headers = headers;
    this.headTimeout = backendTimeouts.get(ctx)?.request;
    this.log = mcpFields.ensure(ctx, () => ({}));
    this.keepsArguments = logReads.get(ctx)?.reads('mcp.tool.arguments') === true;
    this.keepsResult = logReads.get(ctx)?.reads('mcp.tool.result', 'mcp.tool.error') === true;
    this.access = itemAccess.get(ctx);
    this.bundle = shownBundle.get(ctx);
    this.guards = messageGuards.get(ctx);
    if (this.guards?.checksRequest(message.method) !== true) recordArguments(this, message);
    this.span = ctx.span;
    if (message.id !== undefined && message.id !== 'null')
      this.span?.setAttribute('jsonrpc.request.id', idText(message.id).slice(0, LIMITS.logFieldLength));
    this.observer = ctx.observer;
    this.stream.owner = this;
    // The call, not the stream: the client may disconnect before the stream is the reply.
    ctx.running = this;
  }

  reply(): Promise<Reply> {
    if (this.#answer !== undefined) return Promise.resolve(this.#answer);
    return new Promise((resolve) => {
      this.#resolve = resolve;
      const isSoon = this.session.canResume && this.#rpc !== undefined && this.#ctx.endpoint === undefined;
      const { responseHeadAfter, resumableHeadAfter } = this.session.options.limits;
      this.#timer = setTimeout(open, isSoon ? resumableHeadAfter : responseHeadAfter, this);
    });
  }

  /** Makes the stream resumable, because it has several events or takes longer: a disconnected client can reconnect. */
  opening(): void {
    if (!this.session.canResume || this.stream.isResumable) return;
    this.#streamId = this.session.resumable.add(this, true);
    const { resumeRetry: retry, replayBytes: maxBytes } = this.session.options.limits;
    if (this.#streamId !== undefined) this.stream.makeResumable(this.#streamId, { retry, maxBytes });
  }

  /** Unless the response follows soon, the client gets a stream that it can resume. */
  streaming(): void {
    if (this.#timer === undefined || this.#answer !== undefined || !this.session.canResume) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(open, this.session.options.limits.resumableHeadAfter, this);
  }

  /** The response is delayed: the client gets its stream now. */
  suspended(): void {
    this.opening();
    this.first();
  }

  detached(): void {
    if (this.#streamId !== undefined) this.session.resumable.disconnected(this.#streamId);
  }

  /** Resumes the stream after event `after` for a client that reconnected. Undefined if later events were discarded. */
  resume(ctx: RequestContext, after: number): EventStream | undefined {
    if (!this.stream.resume(after)) {
      // The client may request it again with another event id.
      if (!this.stream.hasReader) this.detached();
      return undefined;
    }
    ctx.running = this;
    return this.stream;
  }

  get isOver(): boolean {
    return !this.stream.isOpen;
  }

  giveUp(): void {
    if (this.isOver) return;
    this.#rpc?.cancel(this.#id, 'the client disconnected');
    this.stream.giveUp();
  }

  first(): void {
    this.answerWith(eventStreamReply(this.stream));
  }

  // Created on first use: few calls need it.
  get signal(): AbortSignal {
    this.#abort ??= new AbortController();
    if (!this.stream.isOpen) this.#abort.abort();
    return this.#abort.signal;
  }

  closed(): void {
    this.#abort?.abort();
    // The client may have missed the response.
    if (this.#streamId !== undefined) this.session.resumable.finished(this.#streamId, this.stream);
    this.session.running.delete(this.key);
    this.session.callEnded();
  }

  get rpc(): JsonRpcConnection | undefined {
    return this.#rpc;
  }

  pressure(paused: boolean): void {
    this.#rpc?.channel?.pause(paused);
  }

  runsAt({ endpoint }: Target, rpc: JsonRpcConnection, id: number): void {
    this.#ctx.endpoint = endpoint;
    this.#rpc = rpc;
    this.#id = id;
  }

  denied(): void {
    this.#ctx.reason = DENIED;
  }

  refused(error: UpstreamStatusError): void {
    if (this.#answer === undefined) {
      this.closed();
      this.answerWith(refusedReply(this.#ctx, error, this.message.id ?? 'null'));
      return;
    }
    // The reply with the stream was sent: too late for a status.
    answerError(this, new RpcError(RPC.internalError, `${error.message}: ${error.body.slice(0, 200)}`));
  }

  answerWith(reply: Reply): void {
    if (this.#answer !== undefined) return;
    clearTimeout(this.#timer);
    this.#answer = reply;
    this.#resolve?.(reply);
  }

  expired(): boolean {
    if (!this.stream.isOpen) return false;
    const { text } = ERRORS.gateway_closing;
    answerError(this, new RpcError(RPC.internalError, text));
    this.#rpc?.cancel(this.#id, text);
    return true;
  }

  abandoned(): void {
    // A client that knows the id of the stream may reconnect.
    if (this.stream.isResumable && this.stream.isAttached) return;
    this.cancel('the client disconnected');
  }

  cancel(reason: string): void {
    this.#rpc?.cancel(this.#id, reason);
    // Also if the call was not sent to a target yet, or has ended there.
    this.stream.end();
  }
}

const open = (call: RunningCall): void => call.suspended();

export function eventStreamReply(stream: EventStream): Reply {
  return {
    status: 200,
    headers: new HeaderList(Object.entries(EVENT_STREAM_HEADERS).flat()),
    body: stream,
  };
}

/** A reply with a single event. */
export function oneEvent(text: string): Reply {
  const stream = new EventStream();
  stream.end(text);
  return eventStreamReply(stream);
}

/** A JSON-RPC id for display: strings without quotes. */
const idText = (id: string): string => (id.startsWith('"') ? stringOf(id) : id);

import { ERRORS, messageOf } from '../../core/errors.ts';
import { LIMITS } from '../../core/limits.ts';
import { EventStream, type EventStreamOwner } from '../../core/sse.ts';
import { HeaderList } from '../kernel/header-list.ts';
import type { RequestObserver } from '../kernel/observer.ts';
import type { Reply, RequestContext } from '../kernel/request-context.ts';
import { badMessage } from './bad-message.ts';
import { answerError, type ClientCall } from './call.ts';
import { dispatch } from './federation.ts';
import type { JsonRpcConnection } from './json-rpc-connection.ts';
import { canonicalId, type RpcMessage } from './message.ts';
import { RPC, RpcError } from './protocol.ts';
import type { ItemAccess, McpFields } from './request-fields.ts';
import { itemAccess, mcpFields } from './request-fields.ts';
import type { ResumableCall } from './resumable-calls.ts';
import type { Session } from './session.ts';
import type { Target } from './target.ts';
import type { UpstreamStatusError } from './targets/http-body.ts';

/** How long a call may take before its response head goes out without an event, in ms. */
const RESPONSE_HEAD_AFTER = 2_000;

/**
 * The same of a call that no target can refuse with a status, such as one to a child process: a client should be able to
 * resume its stream soon, but a short call leaves as one event in one write.
 */
const RESUMABLE_HEAD_AFTER = 25;

/** Starts a call of a client and answers with its stream. */
export function runCall(
  ctx: RequestContext,
  session: Session,
  message: RpcMessage,
  headers: readonly string[],
): Promise<Reply> {
  const fields = mcpFields.ensure(ctx, () => ({}));
  refuseEqualId(session, message);
  const call = new RunningCall(ctx, session, message, headers, fields);
  if (session.inFlight >= LIMITS.inFlightPerSession) {
    answerError(
      call,
      new RpcError(
        RPC.internalError,
        `more than ${LIMITS.inFlightPerSession} requests of this session are in flight`,
      ),
    );
  } else {
    session.began(call.key, call);
    void dispatch(call).catch((error: unknown) =>
      session.options.log.error('mcp', 'a call failed inside the gateway', { problem: messageOf(error) }),
    );
  }
  return call.reply();
}

/** Refuses a request whose id is that of one in flight: nobody could say which of them a cancellation means. */
function refuseEqualId({ running }: Session, { id = 'null' }: RpcMessage): void {
  if (running.get(canonicalId(id))?.stream.hasReader !== true) return;
  const text = `a request with the id ${id.slice(0, 64)} is in flight in this session: give each request its own id`;
  // With the id, clients would take it for the answer to the other one.
  throw badMessage(new RpcError(RPC.invalidRequest, text), 'null');
}

/**
 * One call under way. It is answered with its stream as soon as there is something to say, or after a short while:
 * until then a target's own refusal, such as a 401 with its challenge, can still become our status.
 */
export class RunningCall implements ClientCall, EventStreamOwner, ResumableCall {
  readonly session: Session;
  readonly message: RpcMessage;
  readonly headers: readonly string[];
  readonly log: McpFields;
  readonly keepsResult: boolean;
  readonly access: ItemAccess | undefined;
  readonly span: RequestContext['span'];
  readonly observer: RequestObserver | undefined;
  readonly stream = new EventStream();
  /** Under which the session knows it. */
  readonly key: string;
  readonly #ctx: RequestContext;
  #peer: JsonRpcConnection | undefined;
  #id = 0;
  #streamId: string | undefined;
  #answer: Reply | undefined;
  #resolve: ((reply: Reply) => void) | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(
    ctx: RequestContext,
    session: Session,
    message: RpcMessage,
    headers: readonly string[],
    log: McpFields,
  ) {
    this.#ctx = ctx;
    this.session = session;
    this.message = message;
    this.key = canonicalId(message.id ?? 'null');
    this.headers = headers;
    this.log = log;
    this.keepsResult = ctx.logReads?.reads('mcp.tool.result', 'mcp.tool.error') === true;
    if (ctx.logReads?.reads('mcp.tool.arguments') === true && message.method === 'tools/call')
      log.toolArguments = message.params['arguments'] ?? {};
    this.access = itemAccess.get(ctx);
    this.span = ctx.span;
    if (message.id !== undefined && message.id !== 'null')
      this.span?.setAttribute('jsonrpc.request.id', idText(message.id).slice(0, LIMITS.logFieldLength));
    this.observer = ctx.observer;
    this.stream.owner = this;
    // The response, not the stream: the client may leave before the stream is its answer.
    ctx.running = this;
  }

  reply(): Promise<Reply> {
    if (this.#answer !== undefined) return Promise.resolve(this.#answer);
    return new Promise((resolve) => {
      this.#resolve = resolve;
      const isSoon = this.session.canResume && this.#peer !== undefined && this.#ctx.endpoint === undefined;
      this.#timer = setTimeout(open, isSoon ? RESUMABLE_HEAD_AFTER : RESPONSE_HEAD_AFTER, this);
    });
  }

  /** There will be more than one event, or none for a while: a client that loses its connection can come back. */
  opening(): void {
    if (!this.session.canResume || this.stream.isResumable) return;
    this.#streamId = this.session.resumable.add(this);
    if (this.#streamId !== undefined) this.stream.makeResumable(this.#streamId, LIMITS.resumeRetry);
  }

  /** The target makes the client wait: it gets its stream now. */
  suspended(): void {
    this.opening();
    this.first();
  }

  detached(): void {
    if (this.#streamId !== undefined) this.session.resumable.left(this.#streamId);
  }

  /** The client is back and has got the events up to that one. Undefined when later ones are not kept any more. */
  resume(ctx: RequestContext, after: number): Reply | undefined {
    if (!this.stream.resume(after)) {
      // It may ask for another one.
      if (!this.stream.hasReader) this.detached();
      return undefined;
    }
    ctx.running = this;
    return eventStreamReply(this.stream);
  }

  get isOver(): boolean {
    return !this.stream.isOpen;
  }

  giveUp(): void {
    if (this.isOver) return;
    this.#peer?.cancel(this.#id, 'the client disconnected');
    this.stream.giveUp();
  }

  first(): void {
    this.answerWith(eventStreamReply(this.stream));
  }

  closed(): void {
    // The client may have missed the answer.
    this.detached();
    const { running } = this.session;
    // The next request with this id may have begun: it is free as soon as the answer is written.
    if (running.get(this.key) === this) running.delete(this.key);
    // It is idle from now on, not from when a long call began.
    this.session.lastUsed = performance.now();
  }

  get peer(): JsonRpcConnection | undefined {
    return this.#peer;
  }

  pressure(paused: boolean): void {
    this.#peer?.channel?.pause(paused);
  }

  runsAt({ endpoint }: Target, peer: JsonRpcConnection, id: number): void {
    this.#ctx.endpoint = endpoint;
    this.#peer = peer;
    this.#id = id;
  }

  refused(error: UpstreamStatusError): void {
    if (this.#answer === undefined) {
      this.closed();
      this.answerWith(upstreamReply(error));
      return;
    }
    // Too late for a status: the stream is the answer already.
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
    this.#peer?.cancel(this.#id, text);
    return true;
  }

  abandoned(): void {
    // Whoever has got the id of the stream may come back.
    if (this.stream.isResumable && this.stream.isAttached) return;
    this.cancel('the client disconnected');
  }

  cancel(reason: string): void {
    this.#peer?.cancel(this.#id, reason);
    // It may not run anywhere yet, or not any more.
    this.stream.end();
  }
}

const open = (call: RunningCall): void => call.suspended();

export function eventStreamReply(stream: EventStream): Reply {
  return {
    status: 200,
    headers: new HeaderList(['content-type', 'text/event-stream', 'cache-control', 'no-cache']),
    body: stream,
  };
}

/** A single target's refusal, as it came: its challenge tells the client how to sign in there. */
export function upstreamReply({ status, headers, body }: UpstreamStatusError): Reply {
  const kept = ['content-type', 'www-authenticate', 'retry-after'].flatMap((name) => {
    const value = headers[name];
    return typeof value === 'string' ? [name, value] : [];
  });
  return { status, headers: new HeaderList(kept), body };
}

/** A JSON-RPC id, for people: a text without its quotes. */
const idText = (id: string): string => (id.startsWith('"') ? (JSON.parse(id) as string) : id);

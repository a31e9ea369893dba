import { ERRORS, errorType } from '../../core/errors.ts';
import { LIMITS } from '../../core/limits.ts';
import { mcpProblem } from '../../core/outcome.ts';
import type { EventStream } from '../../core/sse.ts';
import { withTraceparent } from '../kernel/header-changes.ts';
import type { CallSpan, RequestObserver, RequestSpan } from '../kernel/observer.ts';
import type { Connection, Ready } from './connection.ts';
import type { CallHandler, JsonRpcConnection } from './json-rpc-connection.ts';
import type { RpcMessage } from './message.ts';
import { errorMessage, RPC, RpcError } from './protocol.ts';
import type { ItemAccess, McpFields } from './request-fields.ts';
import type { Session } from './session.ts';
import type { Target } from './target.ts';
import { publicProblem, TargetFailure } from './target-failure.ts';
import { UpstreamStatusError } from './targets/http-body.ts';
import { UpstreamSessionLost } from './targets/http-channel.ts';
import { callSpan, failSpan, withTraceMeta } from './trace-context.ts';
import { statusOf, traced, traceName } from './traced.ts';

/** One request of a client on its way through a session. */
export interface ClientCall {
  readonly session: Session;
  readonly message: RpcMessage;
  readonly headers: readonly string[];
  readonly stream: EventStream;
  readonly log: McpFields;
  /** An expression of the log reads what a tool gives. */
  readonly keepsResult: boolean;
  readonly access: ItemAccess | undefined;
  /** The request is recorded. */
  readonly span: RequestSpan | undefined;
  /** Somebody watches the request. */
  readonly observer: RequestObserver | undefined;
  /** The call runs at that target, under that id of the peer's. */
  runsAt(target: Target, peer: JsonRpcConnection, id: number): void;
  /** The response will take a while. */
  suspended(): void;
  /** A target answered with a status of its own, such as 401. */
  refused(error: UpstreamStatusError): void;
}

/** Changes a response of a target before the client gets it. */
export type Rewrite = (text: string, message: RpcMessage) => string;

/**
 * Passes a call on to one target and streams back whatever comes. `message` is the client's, with names as the
 * target knows them. A session that the target has forgotten is begun again once: it did not run the call.
 */
export async function forward(
  call: ClientCall,
  connection: Connection,
  message: RpcMessage,
  rewrite?: Rewrite,
  isRetry = false,
): Promise<void> {
  const { stream, headers, log } = call;
  log.target = connection.target.name;
  let peer: JsonRpcConnection;
  try {
    peer = connection.peer ?? (await begun(call, connection)).peer;
  } catch (error) {
    fail(call, connection, error);
    return;
  }
  if (!stream.isOpen) return;
  const handler = new ForwardedCall(call, connection, peer, message, rewrite, isRetry);
  const { span } = handler;
  const id =
    span === undefined
      ? peer.forward(message, headers, handler)
      : peer.forward(withTraceMeta(message, span), withTraceparent(headers, span), handler);
  span?.setAttribute('jsonrpc.request.id', String(id));
  call.runsAt(connection.target, peer, id);
}

/** Connects to a target that is not connected. */
function begun({ observer, headers }: ClientCall, connection: Connection): Promise<Ready> {
  const ready = connection.readySoon(headers);
  return observer === undefined ? ready : traced(observer, connection.target, ready);
}

/** What comes of a call that was passed on. */
class ForwardedCall implements CallHandler {
  readonly #call: ClientCall;
  readonly #connection: Connection;
  readonly #peer: JsonRpcConnection;
  readonly #message: RpcMessage;
  readonly #rewrite: Rewrite | undefined;
  readonly #isRetry: boolean;
  readonly span: CallSpan | undefined;
  readonly #since: number;

  constructor(
    call: ClientCall,
    connection: Connection,
    peer: JsonRpcConnection,
    message: RpcMessage,
    rewrite: Rewrite | undefined,
    isRetry: boolean,
  ) {
    this.#call = call;
    this.#connection = connection;
    this.#peer = peer;
    this.#message = message;
    this.#rewrite = rewrite;
    this.#isRetry = isRetry;
    this.span = callSpan(call, connection.target, message);
    this.#since = call.observer?.callStarted(traceName(connection.target), 'mcp') ?? 0;
  }

  related(message: RpcMessage): void {
    this.#call.session.deliver(this.#connection, this.#peer, message, this.#call.stream);
  }

  response(text: string, response: RpcMessage): void {
    const { log, observer } = this.#call;
    noteError(this.#call, response.error);
    noteResult(this.#call, response);
    if (isToolError(this.#message.method, response)) log.isToolError = true;
    const problem = mcpProblem(log);
    if (problem === undefined) this.span?.end();
    else failSpan(this.span, problem, response.error);
    const { target } = this.#connection;
    observer?.callEnded(traceName(target), this.#since, statusOf(target), 'mcp', problem);
    const { session, stream } = this.#call;
    session.requests.end(stream, this.#rewrite === undefined ? text : this.#rewrite(text, response));
  }

  suspended(): void {
    this.#call.suspended();
  }

  cancelled(): void {
    this.span?.fail('cancelled', 'cancelled');
    const { target } = this.#connection;
    this.#call.observer?.callFailed(traceName(target), this.#since, new Error('cancelled'), 'mcp');
    this.#call.stream.end();
  }

  failure(error: Error): void {
    this.span?.fail(error.message, errorType(error));
    const call = this.#call;
    call.observer?.callFailed(traceName(this.#connection.target), this.#since, error, 'mcp');
    const isLost = error instanceof UpstreamSessionLost;
    if (isLost && call.session.isResumed) {
      // Only the client can begin again: what it is able to do was said to the other process.
      call.refused(
        new UpstreamStatusError(
          404,
          { 'content-type': 'text/plain; charset=utf-8' },
          ERRORS.mcp_session_not_found.text,
        ),
      );
    } else if (isLost && !this.#isRetry) {
      this.#connection.lost(this.#peer);
      void forward(call, this.#connection, this.#message, this.#rewrite, true);
    } else fail(call, this.#connection, error);
  }
}

function fail(call: ClientCall, connection: Connection, error: unknown): void {
  if (error instanceof UpstreamStatusError && call.session.connections.length === 1) {
    call.refused(error);
    return;
  }
  if (error instanceof TargetFailure) call.log.errorDetail = error.detail;
  const text = publicProblem(connection.target.name, error, ' is not available:');
  answerError(call, new RpcError(RPC.internalError, text));
}

/** Ends a call with a JSON-RPC error. */
export function answerError(call: ClientCall, error: RpcError): void {
  noteError(call, error);
  call.stream.end(errorMessage(call.message.id ?? 'null', error.code, error.message, error.data));
}

/** The result of a tool that says that it failed: no JSON-RPC error, so that the model reads why. */
function isToolError(method: string, { result }: RpcMessage): boolean {
  return method === 'tools/call' && (result as { isError?: unknown } | null | undefined)?.isError === true;
}

/** What a tool gave, for expressions of the log. One over the bound is left out: half of it would mean something else. */
function noteResult({ log, keepsResult, message }: ClientCall, { result, text }: RpcMessage): void {
  if (keepsResult && message.method === 'tools/call' && text.length <= LIMITS.loggedPayload)
    log.toolResult = result;
}

function noteError(
  { log, keepsResult, message }: ClientCall,
  error: { readonly code: number; readonly message: string } | undefined,
): void {
  if (error === undefined) return;
  if (keepsResult && message.method === 'tools/call')
    log.toolError = { code: error.code, message: error.message };
  log.errorCode = error.code;
  log.errorMessage = error.message;
}

import { ERRORS, errorType, messageOf } from '../../../core/errors.ts';
import { membersOf, parseJson } from '../../../core/foreign.ts';
import { LIMITS } from '../../../core/limits.ts';
import { mcpProblem } from '../../../core/outcome.ts';
import type { EventStream } from '../../../core/sse.ts';
import type { CallSpan, RequestObserver, RequestSpan } from '../../kernel/observer.ts';
import { withTraceparent } from '../../kernel/request/header-changes.ts';
import { challengeIn } from '../../user-tokens/discovery.ts';
import { callSpan, failSpan, statusOf, traced, traceName, withTraceMeta } from '../connection/call-trace.ts';
import type { ClientHeaders } from '../connection/client-headers.ts';
import type { Connection, Ready } from '../connection/connection.ts';
import type { CallHandler, JsonRpcConnection } from '../connection/json-rpc-connection.ts';
import type { Target } from '../connection/target.ts';
import { publicProblem, signInOf, TargetFailure, UpstreamStatusError } from '../connection/target-failure.ts';
import { LIST_METHODS, UnknownItemError } from '../names/names.ts';
import { withoutNulls } from '../protocol/absent-members.ts';
import { parseMessage, type RpcMessage, TARGET_BOUNDS } from '../protocol/message.ts';
import { errorMessage, RPC, RpcError } from '../protocol/protocol.ts';
import { readableResult } from '../protocol/readable-result.ts';
import type { ItemAccess, McpFields, MessageGuards, ShownBundle } from '../request-fields.ts';
import type { Session } from '../session/session.ts';
import { UpstreamSessionLost } from '../targets/http/session-loss.ts';
import { SEARCH_TOOL } from '../tool-search/meta-tools.ts';
import { limitedResult } from './limited-result.ts';
import { answerSignIn } from './sign-in.ts';

/** One request of a client that is handled by a session. */
export interface ClientCall {
  readonly session: Session;
  /** What the client asks for; tool search replaces a call of `call_tool` by the call that it stands for. */
  message: RpcMessage;
  /** Whether it was replaced: the client could not send headers for the arguments. */
  isReplaced?: boolean;
  /** Headers for HTTP targets, which guardrails may replace. */
  headers: ClientHeaders;
  /** Maximum time until the response headers of an HTTP target, in ms, from the policy `timeout`. */
  readonly headTimeout: number | undefined;
  readonly stream: EventStream;
  /** Members of `_meta` for the gateway's own requests in the name of the caller, since revision 2026-07-28. */
  readonly meta?: Readonly<Record<string, unknown>>;
  readonly log: McpFields;
  /** Whether an expression of the log reads arguments of tools. */
  readonly keepsArguments: boolean;
  /** Whether an expression of the log reads results of tools. */
  readonly keepsResult: boolean;
  readonly access: ItemAccess | undefined;
  /** Set if the request is for a bundle. */
  readonly bundle: ShownBundle | undefined;
  /** Set if the route has `mcpGuardrails`. */
  readonly guards: MessageGuards | undefined;
  /** Aborted when the stream has closed. */
  readonly signal: AbortSignal;
  /** Set if the request is sampled. */
  readonly span: RequestSpan | undefined;
  /** Set if the request is observed. */
  readonly observer: RequestObserver | undefined;
  /**
   * Headers for a call of a tool at this target. Rejects with `RpcError` for headers that contradict the arguments. Absent if
   * the client's headers are sent unchanged.
   */
  prepare?(connection: Connection, message: RpcMessage): Promise<ClientHeaders>;
  /** The call was sent to that target; `id` is its id on the connection. */
  runsAt(target: Target, rpc: JsonRpcConnection, id: number): void;
  /** The target can no longer reject the call with a status: the client may get the head of its response. */
  streaming?(): void;
  /** The response is delayed, so the client should get the head of its response now. */
  suspended(): void;
  /** Rules do not allow the call, which the error for the client does not tell. */
  denied(): void;
  /** A target rejected the call with an HTTP status, such as 401. */
  refused(error: UpstreamStatusError): void;
}

/** Changes the text of a target's response before it is sent to the client. */
export type Rewrite = (text: string, message: RpcMessage) => string;

/**
 * Forwards a call to one target; responses and failures go to the call's stream. `message` is the client's, with the
 * target's names. If the target no longer knows the session, it did not run the call: a new session is initialized and the
 * call is sent once more. Sent at once if nothing has to be awaited. Never rejects for a failure of the target.
 */
export function forward(
  call: ClientCall,
  connection: Connection,
  message: RpcMessage,
  rewrite?: Rewrite,
  isRetry = false,
): Promise<void> | undefined {
  call.log.target = connection.target.name;
  const forwarded = new ForwardedCall(call, connection, message, rewrite, isRetry);
  const { rpc } = connection;
  const isPrepared = call.prepare !== undefined && message.method === 'tools/call';
  if (rpc === undefined || isPrepared) return prepareAndSend(forwarded, call, connection, message);
  forwarded.send(rpc, call.headers);
  return undefined;
}

async function prepareAndSend(
  forwarded: ForwardedCall,
  call: ClientCall,
  connection: Connection,
  message: RpcMessage,
): Promise<void> {
  let { headers } = call;
  let rpc: JsonRpcConnection;
  try {
    rpc = connection.rpc ?? (await connect(call, connection)).rpc;
    if (call.prepare !== undefined && message.method === 'tools/call')
      headers = await call.prepare(connection, message);
  } catch (error) {
    if (error instanceof RpcError) answerError(call, error);
    else fail(call, connection, error);
    return;
  }
  forwarded.send(rpc, headers);
}

/** Connects to a target that is not connected. */
function connect({ observer, headers }: ClientCall, connection: Connection): Promise<Ready> {
  const ready = connection.readySoon(headers);
  return observer === undefined ? ready : traced(observer, connection.target, ready);
}

/** Sends a call to a target and handles the target's messages for it. */
class ForwardedCall implements CallHandler {
  readonly #call: ClientCall;
  readonly #connection: Connection;
  readonly #message: RpcMessage;
  readonly #rewrite: Rewrite | undefined;
  readonly #isRetry: boolean;
  /** Set once the call is sent. */
  #rpc: JsonRpcConnection | undefined;
  #span: CallSpan | undefined;
  #since = 0;

  constructor(
    call: ClientCall,
    connection: Connection,
    message: RpcMessage,
    rewrite: Rewrite | undefined,
    isRetry: boolean,
  ) {
    this.#call = call;
    this.#connection = connection;
    this.#message = message;
    this.#rewrite = rewrite;
    this.#isRetry = isRetry;
  }

  /** Sends the call, unless the client has left meanwhile. */
  send(rpc: JsonRpcConnection, headers: ClientHeaders): void {
    const call = this.#call;
    if (!call.stream.isOpen) return;
    const { target } = this.#connection;
    this.#rpc = rpc;
    const span = callSpan(call, target, this.#message);
    this.#span = span;
    this.#since = call.observer?.callStarted(traceName(target), 'mcp') ?? 0;
    const id =
      span === undefined
        ? rpc.forward(this.#message, headers, this, call.headTimeout)
        : rpc.forward(
            withTraceMeta(this.#message, span),
            { ...headers, list: withTraceparent(headers.list, span) },
            this,
            call.headTimeout,
          );
    span?.setAttribute('jsonrpc.request.id', String(id));
    call.runsAt(target, rpc, id);
  }

  get isChecked(): boolean {
    return isChecked(this.#call);
  }

  related(message: RpcMessage): void {
    const { session, stream } = this.#call;
    if (this.#rpc !== undefined) session.deliver(this.#connection, this.#rpc, message, stream);
  }

  response(text: string, sent: RpcMessage): void {
    const { guards, signal, meta } = this.#call;
    const { method } = this.#message;
    // Guardrails check what the client gets: what becomes text in a readable result, too, and lists after pins and rules.
    const isList = LIST_METHODS[method] !== undefined;
    const listed = isList ? (this.#rewrite?.(text, sent) ?? text) : text;
    const listing = changed(sent, text, listed);
    const shown = readableResult(listed, method, listing.result, meta !== undefined);
    const response = changed(listing, listed, shown);
    const checked = guards?.response(shown, this.#message, [this.#connection.target.name], signal);
    const end = (other?: RpcMessage): void =>
      this.#end(other?.text ?? shown, other ?? response, isList ? undefined : this.#rewrite);
    if (checked === undefined) end();
    else checked.then(end).catch((error: unknown) => this.failure(new Error(messageOf(error))));
  }

  /** Ends the call with a response, as the client may see it except for names. */
  #end(text: string, response: RpcMessage, rewrite: Rewrite | undefined): void {
    const { log, observer } = this.#call;
    recordError(this.#call, response.error);
    recordResult(this.#call, response);
    if (isToolError(this.#message.method, response)) log.isToolError = true;
    const problem = mcpProblem(log);
    if (problem === undefined) this.#span?.end();
    else failSpan(this.#span, problem, response.error);
    const { target } = this.#connection;
    observer?.callEnded(traceName(target), this.#since, statusOf(target), 'mcp', problem);
    const { session, stream } = this.#call;
    const own = rewrite === undefined ? text : rewrite(text, response);
    const { limitsResults } = session.options;
    session.requests.end(stream, limitsResults ? limitedResult(this.#call, target, this.#message, own) : own);
  }

  streaming(): void {
    this.#call.streaming?.();
  }

  suspended(): void {
    this.#call.suspended();
  }

  cancelled(): void {
    this.#span?.fail('cancelled', 'cancelled');
    const { target } = this.#connection;
    this.#call.observer?.callFailed(traceName(target), this.#since, new Error('cancelled'), 'mcp');
    this.#call.stream.end();
  }

  failure(original: Error): void {
    const call = this.#call;
    const error = checkable(call, original);
    this.#span?.fail(error.message, errorType(error));
    call.observer?.callFailed(traceName(this.#connection.target), this.#since, error, 'mcp');
    const isLost = error instanceof UpstreamSessionLost;
    if (isLost && call.session.isClientUnknown) {
      // Only the client can initialize a new session: its capabilities were sent to the process that created this one.
      call.refused(
        new UpstreamStatusError(
          404,
          { 'content-type': 'text/plain; charset=utf-8' },
          ERRORS.mcp_session_not_found.text,
        ),
      );
    } else if (isLost && !this.#isRetry) {
      if (this.#rpc !== undefined) this.#connection.dropSession(this.#rpc);
      forward(call, this.#connection, this.#message, this.#rewrite, true)?.catch((thrown: unknown) =>
        answerFailure(call, thrown),
      );
    } else fail(call, this.#connection, error);
  }
}

/** Answers a call that has failed inside the gateway, or with an error of the protocol. */
export function answerFailure(call: ClientCall, error: unknown): void {
  const isOfProtocol = error instanceof RpcError;
  answerError(call, isOfProtocol ? hinting(call, error) : new RpcError(RPC.internalError, 'internal error'));
  if (!isOfProtocol) call.session.options.log.internalError('mcp', error, { method: call.message.method });
}

/** The error of a call, with what a model can do that has called an unknown tool through `call_tool`. */
const hinting = ({ isReplaced }: ClientCall, error: RpcError): RpcError =>
  isReplaced === true && error instanceof UnknownItemError
    ? new RpcError(error.code, `${error.message}. Use ${SEARCH_TOOL} to find tools.`)
    : error;

/** Whether guardrails check the response to a call. */
const isChecked = ({ guards, message }: ClientCall): boolean =>
  guards?.checksResponse(message.method) === true;

/** The failure without words of the server, if guardrails check its results: these may be in any format. */
function checkable<T>(call: ClientCall, error: T): T | Error {
  if (!isChecked(call)) return error;
  if (error instanceof TargetFailure) return error.unquoted ?? error;
  if (error instanceof UpstreamSessionLost) return new UpstreamSessionLost();
  if (!(error instanceof UpstreamStatusError)) return error;
  const plain = { ...error.headers, 'content-type': 'text/plain; charset=utf-8' };
  return new UpstreamStatusError(error.status, plain, error.message);
}

/** Answers a call whose target failed. */
export function fail(call: ClientCall, connection: Connection, original: unknown): void {
  const error = checkable(call, original);
  if (error instanceof UpstreamStatusError && call.session.connections.length === 1) {
    call.refused(error);
    return;
  }
  const link = signInOf(error);
  if (link !== undefined) {
    answerSignIn(call, connection.target.name, link, messageOf(error));
    return;
  }
  if (error instanceof TargetFailure) call.log.errorDetail = error.detail;
  const text = publicProblem(connection.target.name, error, ' is not available:');
  const scopes = error instanceof UpstreamStatusError ? scopesRequired(error, text) : undefined;
  if (scopes === undefined) answerError(call, new RpcError(RPC.internalError, text));
  else call.refused(scopes);
}

/**
 * The refusal of one of several targets for which the caller's token lacks scopes, so that the client asks for them. Without the
 * server's metadata: tokens for the gateway do not come from where it says.
 */
function scopesRequired(
  { status, headers }: UpstreamStatusError,
  text: string,
): UpstreamStatusError | undefined {
  const { error, scope } = challengeIn(headers['www-authenticate']);
  if (status !== 403 || error !== 'insufficient_scope' || scope === undefined) return undefined;
  const challenge = `Bearer error="${error}", scope="${scope}"`;
  return new UpstreamStatusError(
    status,
    { 'www-authenticate': challenge, 'content-type': 'application/json' },
    errorMessage('null', RPC.internalError, text),
  );
}

/** The message of a text that may have been changed from `before`, that of `message`. */
const changed = (message: RpcMessage, before: string, text: string): RpcMessage =>
  text === before ? message : parseMessage(text, TARGET_BOUNDS);

/** Ends the stream of a list request of several targets, after guardrails have checked the list. */
export async function endList(call: ClientCall, text: string): Promise<void> {
  const targets = call.session.connections.map(({ target }) => target.name);
  const shown = text.includes('null')
    ? withoutNulls(text, 'result', membersOf(parseJson(text))['result'])
    : text;
  const checked = call.guards && (await call.guards.response(shown, call.message, targets, call.signal));
  recordError(call, checked?.error);
  call.stream.end(checked?.text ?? shown);
}

/** Ends the stream of a call with a JSON-RPC error. */
export function answerError(call: ClientCall, error: RpcError): void {
  recordError(call, error);
  call.stream.end(errorMessage(call.message.id ?? 'null', error.code, error.message, error.data));
}

/** Whether the result of a tool has `isError`: tools report failures in the result so that the model can read them. */
function isToolError(method: string, { result }: RpcMessage): boolean {
  return method === 'tools/call' && membersOf(result)['isError'] === true;
}

/**
 * Records the arguments of a tool for expressions of the log, as they are sent to it: once guardrails have checked them.
 * What they reject is not recorded.
 */
export function recordArguments(
  { keepsArguments, log }: Pick<ClientCall, 'keepsArguments' | 'log'>,
  { method, params }: RpcMessage,
): void {
  if (keepsArguments && method === 'tools/call') log.toolArguments = params['arguments'] ?? {};
}

/** Records the result of a tool for expressions of the log. Omitted over `LIMITS.loggedPayload` characters, never cut. */
function recordResult({ log, keepsResult, message }: ClientCall, { result, text }: RpcMessage): void {
  if (keepsResult && message.method === 'tools/call' && text.length <= LIMITS.loggedPayload)
    log.toolResult = result;
}

function recordError(
  { log, keepsResult, message }: ClientCall,
  error: { readonly code: number; readonly message: string } | undefined,
): void {
  if (error === undefined) return;
  // What is logged is cut further, once it has no secrets.
  const text = error.message.slice(0, LIMITS.loggedErrorMessage);
  if (keepsResult && message.method === 'tools/call') log.toolError = { code: error.code, message: text };
  log.errorCode = error.code;
  log.errorMessage = text;
}

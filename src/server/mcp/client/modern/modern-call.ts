import { ERRORS } from '../../../../core/errors.ts';
import { DENIED } from '../../../../core/outcome.ts';
import { EventStream, type EventStreamOwner } from '../../../../core/sse.ts';
import { backendTimeouts } from '../../../kernel/backend.ts';
import type { RequestObserver } from '../../../kernel/observer.ts';
import { HeaderList } from '../../../kernel/request/header-list.ts';
import type { Reply, RequestContext } from '../../../kernel/request/request-context.ts';
import { logReads } from '../../../kernel/request/shared-slots.ts';
import type { ClientHeaders } from '../../connection/client-headers.ts';
import type { Connection } from '../../connection/connection.ts';
import type { JsonRpcConnection } from '../../connection/json-rpc-connection.ts';
import type { Target } from '../../connection/target.ts';
import type { UpstreamStatusError } from '../../connection/target-failure.ts';
import { answerError, type ClientCall, recordArguments } from '../../federation/call.ts';
import { type Envelope, envelopeMeta } from '../../protocol/envelope.ts';
import type { RpcMessage } from '../../protocol/message.ts';
import { RPC, RpcError } from '../../protocol/protocol.ts';
import { privateResult } from '../../protocol/results.ts';
import {
  type ItemAccess,
  itemAccess,
  type McpFields,
  type MessageGuards,
  messageGuards,
  type ShownBundle,
  shownBundle,
} from '../../request-fields.ts';
import type { CallerSession } from '../../session/caller-session.ts';
import { refusedReply } from '../refused-reply.ts';
import { eventStreamReply } from '../running-call.ts';
import { preparedHeaders } from './param-check.ts';

/** Status of a response with that error ("Protocol Version Header", "Server Validation"); 200 for any other error. */
const STATUS: Readonly<Record<number, number>> = {
  [RPC.methodNotFound]: 404,
  [RPC.headerMismatch]: 400,
  [RPC.missingCapability]: 400,
  [RPC.unsupportedVersion]: 400,
};

/**
 * One request of revision 2026-07-28. It is answered with JSON if the response is its first message, and otherwise with an
 * event stream. It is cancelled when the client closes the connection.
 */
export class ModernCall implements ClientCall, EventStreamOwner {
  readonly session: CallerSession;
  message: RpcMessage;
  headers: ClientHeaders;
  readonly headTimeout: number | undefined;
  readonly stream = new EventStream();
  readonly log: McpFields;
  readonly keepsArguments: boolean;
  readonly keepsResult: boolean;
  readonly access: ItemAccess | undefined;
  readonly bundle: ShownBundle | undefined;
  readonly guards: MessageGuards | undefined;
  readonly span: RequestContext['span'];
  readonly observer: RequestObserver | undefined;
  isReplaced?: boolean;
  readonly meta: Readonly<Record<string, unknown>>;
  readonly #ctx: RequestContext;
  // Closing the connection cancels a request of this revision.
  readonly clientId = undefined;
  readonly #key: number;
  #rpc: JsonRpcConnection | undefined;
  #id = 0;
  #reply: Reply | undefined;
  #resolve: ((reply: Reply) => void) | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isOver = false;
  #abort: AbortController | undefined;
  /** Called when the client has closed the connection, or the request is aborted. */
  onCancelled: (() => void) | undefined;
  /** Called before the request is aborted. Returns true if it was answered. */
  onExpired: (() => boolean) | undefined;

  constructor(
    ctx: RequestContext,
    session: CallerSession,
    message: RpcMessage,
    envelope: Envelope,
    headers: ClientHeaders,
    log: McpFields,
  ) {
    this.#ctx = ctx;
    this.session = session;
    this.message = message;
    this.headers = headers;
    this.headTimeout = backendTimeouts.get(ctx)?.request;
    this.log = log;
    this.meta = envelopeMeta(envelope);
    this.keepsArguments = logReads.get(ctx)?.reads('mcp.tool.arguments') === true;
    this.keepsResult = logReads.get(ctx)?.reads('mcp.tool.result', 'mcp.tool.error') === true;
    this.access = itemAccess.get(ctx);
    this.bundle = shownBundle.get(ctx);
    this.guards = messageGuards.get(ctx);
    if (this.guards?.checksRequest(message.method) !== true) recordArguments(this, message);
    this.span = ctx.span;
    this.observer = ctx.observer;
    this.stream.owner = this;
    this.#key = session.track(this);
    ctx.running = this;
  }

  reply(): Promise<Reply> {
    if (this.#reply !== undefined) return Promise.resolve(this.#reply);
    return new Promise((resolve) => {
      this.#resolve = resolve;
      this.#timer = setTimeout(() => this.first(), this.session.options.limits.responseHeadAfter);
    });
  }

  only(text: string): boolean {
    if (this.#reply !== undefined) return false;
    this.#over();
    const status = STATUS[this.log.errorCode ?? 0] ?? 200;
    const headers = new HeaderList(['content-type', 'application/json']);
    const body = this.access === undefined ? text : privateResult(text, this.message.method);
    this.#answer({ status, headers, body });
    return true;
  }

  first(): void {
    this.#answer(eventStreamReply(this.stream));
  }

  closed(): void {
    this.#over();
  }

  suspended(): void {
    this.first();
  }

  pressure(paused: boolean): void {
    // Only of an own response stream: other calls share the pipe of a child process.
    if (this.#ctx.endpoint !== undefined) this.#rpc?.channel?.pause(paused);
  }

  prepare(connection: Connection, message: RpcMessage): Promise<ClientHeaders> {
    return preparedHeaders(this, connection, message, this.#ctx.headers);
  }

  runsAt({ endpoint }: Target, rpc: JsonRpcConnection, id: number): void {
    this.#ctx.endpoint = endpoint;
    this.#rpc = rpc;
    this.#id = id;
  }

  // Created on first use: few calls need it.
  get signal(): AbortSignal {
    this.#abort ??= new AbortController();
    if (this.#isOver) this.#abort.abort();
    return this.#abort.signal;
  }

  get rpc(): JsonRpcConnection | undefined {
    return this.#rpc;
  }

  denied(): void {
    this.#ctx.reason = DENIED;
  }

  refused(error: UpstreamStatusError): void {
    // A client that gets 400 without an error of this revision may take the gateway for an older server ("Backward Compatibility").
    if (this.#reply === undefined && error.status !== 400) {
      this.#over();
      this.#answer(refusedReply(this.#ctx, error, this.message.id ?? 'null'));
      return;
    }
    answerError(this, new RpcError(RPC.internalError, `${error.message}: ${error.body.slice(0, 200)}`));
  }

  expired(): boolean {
    if (!this.stream.isOpen) return false;
    if (this.onExpired?.() === true) return true;
    const { text } = ERRORS.gateway_closing;
    answerError(this, new RpcError(RPC.internalError, text));
    this.#rpc?.cancel(this.#id, text);
    return true;
  }

  abandoned(): void {
    this.cancel('the client disconnected');
  }

  cancel(reason: string): void {
    this.onCancelled?.();
    this.#rpc?.cancel(this.#id, reason);
    this.#over();
    this.stream.end();
  }

  #answer(reply: Reply): void {
    if (this.#reply !== undefined) return;
    clearTimeout(this.#timer);
    this.#reply = reply;
    this.#resolve?.(reply);
  }

  #over(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#abort?.abort();
    clearTimeout(this.#timer);
    this.session.running.delete(this.#key);
    this.session.release(this.message.method);
  }
}

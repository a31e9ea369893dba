import { messageOf } from '../../../core/errors.ts';
import { membersOf } from '../../../core/foreign.ts';
import type { Log } from '../../../core/log.ts';
import { edit, valueAt } from '../../kernel/json/json-text.ts';
import { TransientMap } from '../../kernel/transient-map.ts';
import { mirroredName } from '../protocol/envelope.ts';
import {
  answeredRequest,
  idOfInvalid,
  idOfInvalidRequest,
  numberOfId,
  parseMessage,
  type RpcMessage,
  requestNumber,
  TARGET_BOUNDS,
  withId,
} from '../protocol/message.ts';
import {
  errorMessage,
  META,
  notificationMessage,
  RPC,
  RpcError,
  requestMessage,
  resultMessage,
} from '../protocol/protocol.ts';
import type { ClientHeaders } from './client-headers.ts';
import type { Channel, ChannelEvents, SendOptions, Target } from './target.ts';
import { SessionEnded, timeoutMessage } from './target-failure.ts';
import { logInvalidMessage, logUnknownResponse } from './target-warnings.ts';

/** Callbacks for a forwarded request. Exactly one of `response`, `failure` and `cancelled` is called, once. */
export interface CallHandler {
  /** Whether guardrails check the response: what they could not read is not logged. */
  readonly isChecked?: boolean;
  /** A notification or request of the server that belongs to this call. */
  related(message: RpcMessage): void;
  /** The response; `text` has the id that the caller used. */
  response(text: string, message: RpcMessage): void;
  /** There will be no response. */
  failure(error: Error): void;
  /** The server began the response stream: it can no longer reject the request with a status. */
  streaming?(): void;
  /** The server ended the response stream; the response will be requested later. */
  suspended?(): void;
  /** The call was cancelled: neither `response` nor `failure` follows. */
  cancelled?(): void;
}

interface PendingCall {
  readonly id: number;
  readonly originalId: string;
  readonly progressToken: unknown;
  /** The caller's progress token as JSON text, if it was replaced. */
  readonly ownToken: string | undefined;
  readonly handler: CallHandler;
}

type ServerOfConnection = Pick<Target, 'name' | 'clean' | 'limits' | 'relatesMessages'>;

/** Called with messages of a server that belong to no call in flight. */
export type OnUnrelated = (message: RpcMessage) => void;

/**
 * Both directions of JSON-RPC with one MCP server. Replaces the ids of requests, so that those of several callers cannot
 * collide, and passes each response to its caller with the original id.
 */
export class JsonRpcConnection {
  readonly #target: ServerOfConnection;
  readonly #log: Log;
  readonly #pending = new TransientMap<number, PendingCall>();
  readonly #onUnrelated: OnUnrelated;
  readonly #firstId: number;
  #channel: Channel | undefined;
  #nextId: number;
  #closed: Error | undefined;
  #retired = false;
  /** Replaces all progress tokens, which several callers may have chosen alike; otherwise, those of a call in flight. */
  hasSeveralCallers = false;
  /** Called once when the connection is closed, after all calls in flight have failed. */
  onClosed: ((error: Error) => void) | undefined;
  /** Called when the server reports on its GET stream that it no longer knows the session. */
  onSessionLost: (() => void) | undefined;

  /** `firstId`: where the ids of requests start, for a connection that shares its channel with another. */
  constructor(target: ServerOfConnection, log: Log, onUnrelated: OnUnrelated, firstId = 1) {
    this.#target = target;
    this.#log = log;
    this.#onUnrelated = onUnrelated;
    this.#firstId = firstId;
    this.#nextId = firstId;
  }

  /** Callbacks for the channel. */
  readonly events: ChannelEvents = {
    message: (text, inReplyTo) => this.#receive(text, inReplyTo),
    invalid: (text, problem, id) => this.#invalid(text, problem, id),
    failed: (id, error) => this.#fail(this.#take(id), error),
    awaits: (id) => this.#pending.has(id),
    onlyRequest: () => this.#onlyCall,
    streaming: (id) => this.#pending.get(id)?.handler.streaming?.(),
    suspended: (id) => this.#pending.get(id)?.handler.suspended?.(),
    sessionLost: () => this.onSessionLost?.(),
    closed: (error) => this.#close(error),
  };

  get targetName(): string {
    return this.#target.name;
  }

  /** Sets the channel that messages are sent on. */
  bind(channel: Channel): void {
    this.#channel = channel;
  }

  /** The channel; undefined before `bind` and after the connection was closed. */
  get channel(): Channel | undefined {
    return this.#closed === undefined ? this.#channel : undefined;
  }

  /** Number of requests without a response. */
  get inFlight(): number {
    return this.#pending.size;
  }

  /** Sends a client's request. `headTimeout`: see `SendOptions`. Returns its id at the server, for `cancel`. */
  forward(message: RpcMessage, headers: ClientHeaders, handler: CallHandler, headTimeout?: number): number {
    const id = this.#nextId++;
    const { progressToken } = membersOf(message.params['_meta']);
    const isReplaced =
      progressToken !== undefined && (this.hasSeveralCallers || this.#hasToken(progressToken));
    const token = isReplaced ? valueAt(message.text, TOKEN_OF_REQUEST) : undefined;
    // A number could be the token of another call, unless all are replaced.
    const replacement = this.hasSeveralCallers ? id : `agctl-${id}`;
    this.#pending.set(id, {
      id,
      originalId: message.id ?? 'null',
      progressToken: token === undefined ? progressToken : replacement,
      ownToken: token && message.text.slice(token.start, token.end),
      handler,
    });
    const own = token && parseMessage(edit(message.text, [{ ...token, text: JSON.stringify(replacement) }]));
    this.#send(withId(own ?? message, String(id)), {
      id,
      method: message.method,
      message: own ?? message,
      name: mirroredName(message),
      headers,
      headTimeout,
    });
    return id;
  }

  /**
   * Sends a request of the gateway. `params` is JSON text. `within` is a timeout in ms, unlimited by default, after which
   * the request is cancelled. Rejects with `RpcError` for an error response, and with `Error` after a failure or timeout.
   */
  call(
    method: string,
    params: string | undefined,
    headers: ClientHeaders,
    within?: number,
    headTimeout?: number,
  ): Promise<RpcMessage> {
    let id = 0;
    const answer = new Promise<RpcMessage>((resolve, reject) => {
      const text =
        params === undefined
          ? requestMessage('0', method)
          : `{"jsonrpc":"2.0","id":0,"method":${JSON.stringify(method)},"params":${params}}`;
      const handler: CallHandler = {
        related: (message) => this.#onUnrelated(message),
        response: (_text, message) => {
          if (message.error)
            reject(new RpcError(message.error.code, message.error.message, message.error.data));
          else resolve(message);
        },
        failure: reject,
        cancelled: () => reject(new Error(timeoutMessage(within ?? 0))),
      };
      id = this.forward(parseMessage(text), headers, handler, headTimeout);
    });
    if (within === undefined) return answer;
    const timer = setTimeout(() => this.cancel(id, 'no answer'), within);
    return answer.finally(() => clearTimeout(timer));
  }

  /** Sends `notifications/cancelled` and forgets the call. A late response is dropped. */
  cancel(id: number, reason: string): void {
    const call = this.#take(id);
    if (call === undefined) return;
    this.#send(notificationMessage('notifications/cancelled', { requestId: id, reason }), {});
    this.#channel?.abandon(id);
    call.handler.cancelled?.();
  }

  /** Sends a notification or response of the client. Does nothing if the connection is closed. */
  send(text: string, headers: ClientHeaders): void {
    this.#send(text, { headers });
  }

  /** Closes the connection once all calls in flight have ended. Called when no new calls will be sent. */
  async retire(): Promise<void> {
    if (this.#pending.size === 0) await this.close();
    else this.#retired = true;
  }

  /** Closes the connection. Calls in flight fail with `why`. */
  async close(why: Error = new SessionEnded()): Promise<void> {
    const channel = this.#channel;
    this.#close(why);
    await channel?.close();
  }

  #send(text: string, options: SendOptions): void {
    if (this.#closed !== undefined || this.#channel === undefined) {
      if (options.id !== undefined)
        this.#fail(this.#take(options.id), this.#closed ?? new Error('not connected'));
      return;
    }
    this.#channel.send(text, options);
  }

  #receive(text: string, inReplyTo: number | undefined): void {
    let message: RpcMessage;
    try {
      message = parseMessage(text, TARGET_BOUNDS);
    } catch (error) {
      this.#invalid(text, messageOf(error), requestNumber(idOfInvalid(text)));
      const request = idOfInvalidRequest(text);
      // Otherwise the server waits for a response.
      if (request !== undefined) this.#send(errorMessage(request, RPC.invalidRequest, messageOf(error)), {});
      return;
    }
    if (message.kind === 'request' && message.method === 'ping') {
      // It tests the connection, whose other end is the gateway. A client may have no stream to get it on.
      this.#send(resultMessage(message.id ?? 'null', '{}'), {});
      return;
    }
    const call =
      message.kind === 'response'
        ? this.#take(answeredRequest(message, inReplyTo, this.#onlyCall))
        : this.#related(message, inReplyTo);
    try {
      if (message.kind === 'response') this.#respond(call, message);
      else if (call === undefined) this.#onUnrelated(message);
      else call.handler.related(withToken(message, call));
    } catch (error) {
      // One message must not end the process. Most likely it has a member whose type nobody has checked.
      this.#log.internalError('mcp', error, { target: this.#target.name });
      if (message.kind === 'response')
        this.#fail(call, new Error("the gateway cannot handle the server's answer"));
    }
  }

  #respond(call: PendingCall | undefined, message: RpcMessage): void {
    const { idSpan, text, id } = message;
    if (call !== undefined) {
      call.handler.response(idSpan === undefined ? text : withId(message, call.originalId), message);
      return;
    }
    const known = requestNumber(id);
    // A response to a cancelled request is late, and those of a probe may be.
    if (known !== undefined && ((known >= this.#firstId && known < this.#nextId) || known >= FIRST_PROBE_ID))
      this.#log.debug('mcp', 'response to a cancelled request was dropped', {
        target: this.#target.name,
        id: known,
      });
    else logUnknownResponse(this.#target, this.#log, id);
  }

  /** The only call in flight, over one pipe for all messages. */
  get #onlyCall(): number | undefined {
    if (this.#target.relatesMessages === true || this.#pending.size !== 1) return undefined;
    return this.#pending.values()[0]?.id;
  }

  #invalid(text: string, problem: string, id: number | undefined): void {
    // It may be the response to any of them.
    const isChecked = this.#pending.values().some(({ handler }) => handler.isChecked === true);
    logInvalidMessage(this.#target, this.#log, problem, () => (isChecked ? undefined : this.#start(text)));
    if (id === undefined) return;
    this.#fail(this.#take(id), new Error(`the server's answer cannot be used: ${problem}`));
  }

  /** The first 120 characters of a message for the log. Secrets are removed before it is cut: a part would not be found. */
  #start(text: string): string {
    const start = text.slice(0, 4_096);
    return (this.#target.clean?.(start) ?? start).slice(0, 120);
  }

  /**
   * The call that a message belongs to. Stdio has one pipe for all messages, so the call is known for progress (by its
   * token) and while only one call is in flight. Other messages are sent on the session's GET stream.
   */
  #related(message: RpcMessage, inReplyTo: number | undefined): PendingCall | undefined {
    const isProgress = message.method === PROGRESS;
    if (inReplyTo !== undefined) {
      const call = this.#pending.get(inReplyTo);
      return isProgress && call?.progressToken === undefined ? undefined : call;
    }
    // Over stdio, notifications of revision 2026-07-28 name the request that subscribed to them.
    const subscription = membersOf(message.params['_meta'])[META.subscription];
    if (subscription !== undefined) return this.#pendingOf(numberOfId(subscription));
    if (isProgress) {
      const token = message.params['progressToken'];
      const calls = this.#pending.values();
      return (
        calls.find(({ progressToken }) => progressToken !== undefined && progressToken === token) ??
        calls.find(({ progressToken }) => isSameToken(progressToken, token))
      );
    }
    if (ABOUT_SERVER.test(message.method) || this.#pending.size !== 1) return undefined;
    return this.#pending.values()[0];
  }

  /** Clients that use an id several times also use its progress token several times: the official SDKs derive it. */
  #hasToken(token: unknown): boolean {
    return this.#pending.values().some(({ progressToken }) => isSameToken(progressToken, token));
  }

  #pendingOf(id: number | undefined): PendingCall | undefined {
    return id === undefined ? undefined : this.#pending.get(id);
  }

  #take(id: number | undefined): PendingCall | undefined {
    if (id === undefined) return undefined;
    const call = this.#pending.get(id);
    this.#pending.delete(id);
    if (this.#retired && this.#pending.size === 0) void this.close();
    return call;
  }

  /** Fails a call. An exception must neither keep other calls waiting nor end the process. */
  #fail(call: PendingCall | undefined, error: Error): void {
    try {
      call?.handler.failure(error);
    } catch (thrown) {
      this.#log.internalError('mcp', thrown, { target: this.#target.name });
    }
  }

  #close(error: Error): void {
    if (this.#closed !== undefined) return;
    this.#closed = error;
    const pending = this.#pending.values();
    this.#pending.clear();
    for (const call of pending) this.#fail(call, error);
    this.onClosed?.(error);
  }
}

/** The method of progress, which names its request by a token. */
export const PROGRESS = 'notifications/progress';

const TOKEN_OF_REQUEST = ['params', '_meta', 'progressToken'];
const TOKEN_OF_PROGRESS = ['params', 'progressToken'];

/** Whether a token that a server sent is the one that it received: some return `"1"` for `1`, as with ids. */
const isSameToken = (sent: unknown, received: unknown): boolean =>
  (typeof sent === 'number' || typeof sent === 'string') &&
  (typeof received === 'number' || typeof received === 'string') &&
  String(sent) === String(received);

/** A progress notification with the token that the caller used, also if the server has made up another one (twentyhq/twenty#24559). */
function withToken(message: RpcMessage, { ownToken, progressToken }: PendingCall): RpcMessage {
  if (message.method !== PROGRESS) return message;
  const isOwn = progressToken === message.params['progressToken'];
  const token = ownToken ?? (isOwn ? undefined : JSON.stringify(progressToken));
  const span = token === undefined ? undefined : valueAt(message.text, TOKEN_OF_PROGRESS);
  return token === undefined || span === undefined
    ? message
    : parseMessage(edit(message.text, [{ ...span, text: token }]), TARGET_BOUNDS);
}

/**
 * Ids of a probe's requests start here: more than a session reaches, so that what arrives late for the probe, such as the end
 * of a response stream, is not taken for an answer to a request that follows on the channel. They fit into 32 bits.
 */
export const FIRST_PROBE_ID = 2_000_000_000;

/** Notifications about the server, which belong to the session and not to a call. */
const ABOUT_SERVER = /^notifications\/(?:resources\/updated|[a-z]+\/list_changed)$/;

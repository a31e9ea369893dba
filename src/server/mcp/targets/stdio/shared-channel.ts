import { membersOf, stringIn, textIn } from '../../../../core/foreign.ts';
import type { Limits } from '../../../../core/limits.ts';
import { edit, valueAt } from '../../../kernel/json/json-text.ts';
import { NO_HEADERS } from '../../connection/client-headers.ts';
import type { CallHandler, JsonRpcConnection } from '../../connection/json-rpc-connection.ts';
import { SubscribedResources } from '../../connection/subscribed-resources.ts';
import type { Channel, ChannelEvents, SendOptions } from '../../connection/target.ts';
import { lowestRevision } from '../../protocol/initialize-result.ts';
import { numberOfId, parseMessage, type RpcMessage, TARGET_BOUNDS, withId } from '../../protocol/message.ts';
import { withSubscription } from '../../protocol/meta-text.ts';
import { errorMessage, META, MODERN_REVISION, RPC, resultMessage } from '../../protocol/protocol.ts';

/** Methods that affect or show the state of all sessions of the server: they are refused. */
const PER_CLIENT = /^(?:logging\/|tasks\/)/;
/** Capabilities for these methods, which are hidden from clients. */
const NOT_SHARED = ['logging', 'tasks'];

const TOKEN_IN_CALL = ['params', '_meta', 'progressToken'];
const TOKEN_IN_PROGRESS = ['params', 'progressToken'];

/** What the process has answered when it was started. */
export interface Answered {
  /** Its response to `initialize`, or to `server/discover`. */
  readonly message: RpcMessage;
  /** Whether it speaks revision 2026-07-28, and no other. */
  readonly isModern: boolean;
}

/** A process that several sessions use. */
export interface SharedProcess {
  readonly rpc: JsonRpcConnection;
  readonly channel: Channel;
  readonly answered: Promise<Answered>;
  readonly members: Set<SharedChannel>;
  /** The process has exited or is being stopped. */
  isOver: boolean;
}

/** The interface of the shared server for its channels. */
interface Server {
  readonly limits: Limits;
  leave(member: SharedChannel, running: SharedProcess): Promise<void>;
  /** Returns a progress token that no other call of the process uses. */
  nextToken(): string;
  /** Handles a message of the process that belongs to no call. */
  unrelated(running: SharedProcess, message: RpcMessage): void;
}

/** The channel of one session to a shared process. */
export class SharedChannel implements Channel {
  readonly sessionId = undefined;
  readonly events: ChannelEvents;
  readonly #server: Server;
  readonly #process: SharedProcess;
  /** Ids at the process of calls in flight, by the session's id. */
  readonly #calls = new Map<number, number>();
  readonly #subscriptions: SubscribedResources;
  #isSlow = false;
  #isClosed = false;

  constructor(server: Server, running: SharedProcess, events: ChannelEvents) {
    this.#server = server;
    this.#process = running;
    this.#subscriptions = new SubscribedResources(server.limits);
    this.events = events;
  }

  send(text: string, { id, method = '' }: SendOptions): void {
    if (this.#isClosed) return;
    if (id === undefined) this.#notify(text);
    else if (method === 'initialize' || method === 'server/discover') this.#answerOpening(text, id, method);
    else if (PER_CLIENT.test(method)) this.#refuse(id, `method not found: ${method} (the server is shared)`);
    else this.#request(parseMessage(text, TARGET_BOUNDS), id);
  }

  /** Whether the session subscribed to this resource or to one that contains it. */
  isSubscribed(uri: string): boolean {
    // "This could be a sub-resource of the one that the client actually subscribed to" (MCP schema, resources/updated).
    return [...this.#subscriptions].some(
      (own) => uri === own || (uri.startsWith(own) && /[/?#]/.test(own.slice(-1) + uri.charAt(own.length))),
    );
  }

  /** Closes the channel after the process has exited. */
  processExited(error: Error): void {
    this.#isClosed = true;
    this.events.closed(error);
  }

  agreed(): void {}
  abandon(): void {}
  listen(): void {}

  /** Drops progress while the client reads slowly. The pipe itself is not paused, because other sessions use it. */
  pause(paused: boolean): void {
    this.#isSlow = paused;
  }

  diagnosis(isStarting?: boolean): string {
    return this.#process.channel.diagnosis?.(isStarting) ?? '';
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const { rpc, members } = this.#process;
    for (const id of this.#calls.values()) rpc.cancel(id, 'the session ended');
    members.delete(this);
    for (const uri of this.#subscriptions) {
      if (this.#hasOtherSubscriber(uri)) continue;
      const params = JSON.stringify({ uri });
      const { targetResponseWait } = this.#server.limits;
      rpc.call('resources/unsubscribe', params, NO_HEADERS, targetResponseWait).catch(() => undefined);
    }
    await this.#server.leave(this, this.#process);
  }

  #request(message: RpcMessage, id: number): void {
    // A client that sends a request is reading again.
    this.#isSlow = false;
    if (this.#answerSubscription(message, id)) return;
    const span = valueAt(message.text, TOKEN_IN_CALL);
    const token = span && message.text.slice(span.start, span.end);
    const text = span && edit(message.text, [{ ...span, text: this.#server.nextToken() }]);
    const outward = text === undefined ? message : parseMessage(text, TARGET_BOUNDS);
    const { rpc } = this.#process;
    // Set before the call, which may fail synchronously.
    this.#calls.set(id, Number.NaN);
    const own = rpc.forward(outward, NO_HEADERS, this.#handler(message, id, token));
    if (this.#calls.has(id)) this.#calls.set(id, own);
  }

  /**
   * Tracks subscriptions of sessions, because the server sees a single subscriber, which must stay subscribed while any session
   * is. Returns true if the request was answered without the server.
   */
  #answerSubscription({ method, params: { uri } }: RpcMessage, id: number): boolean {
    if (typeof uri !== 'string') return false;
    if (method === 'resources/subscribe') {
      const problem = this.#subscriptions.add(uri);
      if (problem !== undefined) this.#refuse(id, problem, RPC.internalError);
      return problem !== undefined;
    }
    if (method !== 'resources/unsubscribe') return false;
    this.#subscriptions.delete(uri);
    const isKept = this.#hasOtherSubscriber(uri);
    if (isKept) this.events.message(resultMessage(String(id), '{}'), id);
    return isKept;
  }

  #handler({ method, params }: RpcMessage, id: number, token: string | undefined): CallHandler {
    return {
      related: (message) => {
        if (isOfSubscription(message)) this.events.message(withSubscription(message.text, String(id)), id);
        else if (message.method !== 'notifications/progress') this.#server.unrelated(this.#process, message);
        else if (!this.#isSlow && token !== undefined) {
          const span = valueAt(message.text, TOKEN_IN_PROGRESS);
          if (span !== undefined) this.events.message(edit(message.text, [{ ...span, text: token }]), id);
        }
      },
      response: (text, { error }) => {
        this.#calls.delete(id);
        if (error !== undefined && method === 'resources/subscribe')
          this.#subscriptions.delete(textIn(params['uri']));
        this.events.message(text, id);
      },
      failure: (error) => {
        this.#calls.delete(id);
        this.events.failed(id, error);
      },
      cancelled: () => void this.#calls.delete(id),
    };
  }

  /** Forwards cancellations. Other notifications of a client do not concern a shared server. */
  #notify(text: string): void {
    const { kind, method, params } = parseMessage(text, TARGET_BOUNDS);
    if (kind !== 'notification' || method !== 'notifications/cancelled') return;
    const id = numberOfId(params['requestId']);
    const own = id === undefined ? undefined : this.#calls.get(id);
    if (own !== undefined) this.#process.rpc.cancel(own, stringIn(params['reason']) ?? 'cancelled');
  }

  #hasOtherSubscriber(uri: string): boolean {
    return [...this.#process.members].some((member) => member !== this && member.#subscriptions.has(uri));
  }

  #refuse(id: number, text: string, code: number = RPC.methodNotFound): void {
    this.events.message(errorMessage(String(id), code, text), id);
  }

  /**
   * Answers `initialize` or `server/discover` with what the process has answered to the gateway. The one that it does not
   * support is refused, so that the session's messages are converted by a view.
   */
  #answerOpening(text: string, id: number, method: string): void {
    const requested = textIn(parseMessage(text, TARGET_BOUNDS).params['protocolVersion']);
    this.#process.answered.then(
      ({ message, isModern }) => {
        if (this.#isClosed) return;
        if (isModern !== (method === 'server/discover'))
          this.events.message(isModern ? unsupportedVersion(id, requested) : notFound(id, method), id);
        else this.events.message(withId(forSession(message, requested), String(id)), id);
      },
      // `processExited` has already reported the failure.
      () => undefined,
    );
  }
}

const notFound = (id: number, method: string): string =>
  errorMessage(String(id), RPC.methodNotFound, `method not found: ${method}`);

const unsupportedVersion = (id: number, requested: string): string =>
  errorMessage(String(id), RPC.unsupportedVersion, 'the server only speaks a newer protocol revision', {
    supported: [MODERN_REVISION],
    requested,
  });

/** Whether a notification of revision 2026-07-28 names the `subscriptions/listen` request that it belongs to. */
function isOfSubscription({ params }: RpcMessage): boolean {
  return membersOf(params['_meta'])[META.subscription] !== undefined;
}

/** The response to `initialize` or `server/discover` for one session: negotiated revision, without hidden capabilities. */
function forSession(message: RpcMessage, requested: string): RpcMessage {
  const { text } = message;
  const result = membersOf(message.result);
  const version = valueAt(text, ['result', 'protocolVersion']);
  const capabilities = valueAt(text, ['result', 'capabilities']);
  const kept = Object.entries(membersOf(result['capabilities'])).filter(
    ([name]) => !NOT_SHARED.includes(name),
  );
  return parseMessage(
    edit(text, [
      ...(version === undefined
        ? []
        : [
            {
              ...version,
              text: JSON.stringify(lowestRevision([requested, textIn(result['protocolVersion'])])),
            },
          ]),
      ...(capabilities === undefined
        ? []
        : [{ ...capabilities, text: JSON.stringify(Object.fromEntries(kept)) }]),
    ]),
    TARGET_BOUNDS,
  );
}

import { LIMITS } from '../../../core/limits.ts';
import { edit, valueAt } from '../../kernel/json-text.ts';
import { lowestRevision } from '../initialize.ts';
import type { CallHandler, JsonRpcConnection } from '../json-rpc-connection.ts';
import { parseMessage, type RpcMessage, TARGET_BOUNDS, withId } from '../message.ts';
import { errorMessage, RPC, resultMessage } from '../protocol.ts';
import type { Channel, ChannelEvents, SendOptions } from '../target.ts';

/** What acts on the whole server, or shows what others do there: one session must not do it for the others. */
const PER_CLIENT = /^(?:logging\/|tasks\/)/;
/** The capabilities that stand for it. */
const NOT_SHARED = ['logging', 'tasks'];

const TOKEN_IN_CALL = ['params', '_meta', 'progressToken'];
const TOKEN_IN_PROGRESS = ['params', 'progressToken'];

/** A process that several sessions use. */
export interface SharedProcess {
  readonly peer: JsonRpcConnection;
  readonly channel: Channel;
  /** The server's answer to `initialize`. */
  readonly initialized: Promise<RpcMessage>;
  readonly members: Set<SharedChannel>;
  /** It has ended, or is being ended. */
  isOver: boolean;
}

/** The server as its channels see it. */
interface Server {
  leave(member: SharedChannel, running: SharedProcess): Promise<void>;
  /** A progress token that no other call of the process uses. */
  nextToken(): string;
  /** A message of the process that belongs to no call. */
  unrelated(running: SharedProcess, message: RpcMessage): void;
}

/** One session's way to a shared process. */
export class SharedChannel implements Channel {
  readonly sessionId = undefined;
  readonly events: ChannelEvents;
  readonly #server: Server;
  readonly #process: SharedProcess;
  /** The ids of calls in flight at the process, by the session's own. */
  readonly #calls = new Map<number, number>();
  readonly #subscriptions = new Set<string>();
  #isSlow = false;
  #isClosed = false;

  constructor(server: Server, running: SharedProcess, events: ChannelEvents) {
    this.#server = server;
    this.#process = running;
    this.events = events;
  }

  send(text: string, { id, method = '' }: SendOptions): void {
    if (this.#isClosed) return;
    if (id === undefined) this.#notify(text);
    else if (method === 'initialize') this.#answerInitialize(text, id);
    else if (PER_CLIENT.test(method)) this.#refuse(id, `method not found: ${method} (the server is shared)`);
    else this.#request(parseMessage(text, TARGET_BOUNDS), id);
  }

  isSubscribed(uri: string): boolean {
    // "This could be a sub-resource of the one that the client actually subscribed to" (MCP schema, resources/updated).
    return [...this.#subscriptions].some(
      (own) => uri === own || (uri.startsWith(own) && /[/?#]/.test(own.slice(-1) + uri.charAt(own.length))),
    );
  }

  /** The process has ended. */
  gone(error: Error): void {
    this.#isClosed = true;
    this.events.closed(error);
  }

  agreed(): void {}
  abandon(): void {}
  listen(): void {}

  /** Others use the same pipe. What this session may miss is left out while it is slow: its progress. */
  pause(paused: boolean): void {
    this.#isSlow = paused;
  }

  diagnosis(): string {
    return this.#process.channel.diagnosis?.() ?? '';
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const { peer, members } = this.#process;
    for (const id of this.#calls.values()) peer.cancel(id, 'the session ended');
    members.delete(this);
    for (const uri of this.#subscriptions) {
      if (this.#hasOtherSubscriber(uri)) continue;
      const params = JSON.stringify({ uri });
      peer.call('resources/unsubscribe', params, [], LIMITS.slowTarget).catch(() => undefined);
    }
    await this.#server.leave(this, this.#process);
  }

  #request(message: RpcMessage, id: number): void {
    // A client that asks again reads again.
    this.#isSlow = false;
    if (this.#isAnsweredHere(message, id)) return;
    const span = valueAt(message.text, TOKEN_IN_CALL);
    const token = span && message.text.slice(span.start, span.end);
    const text = span && edit(message.text, [{ ...span, text: this.#server.nextToken() }]);
    const outward = text === undefined ? message : parseMessage(text, TARGET_BOUNDS);
    const { peer } = this.#process;
    // First the id, since a call may fail at once.
    this.#calls.set(id, Number.NaN);
    const own = peer.forward(outward, [], this.#handler(message, id, token));
    if (this.#calls.has(id)) this.#calls.set(id, own);
  }

  /** Keeps account of subscriptions: the server knows one subscriber, and must not lose it while another session stays. */
  #isAnsweredHere({ method, params: { uri } }: RpcMessage, id: number): boolean {
    if (typeof uri !== 'string') return false;
    if (method === 'resources/subscribe') {
      const isFull = this.#subscriptions.size >= LIMITS.sharedSubscriptions;
      if (isFull)
        this.#refuse(id, `more than ${LIMITS.sharedSubscriptions} subscriptions`, RPC.internalError);
      else this.#subscriptions.add(uri);
      return isFull;
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
        if (message.method !== 'notifications/progress') this.#server.unrelated(this.#process, message);
        else if (!this.#isSlow && token !== undefined) {
          const span = valueAt(message.text, TOKEN_IN_PROGRESS);
          if (span !== undefined) this.events.message(edit(message.text, [{ ...span, text: token }]), id);
        }
      },
      response: (text, { error }) => {
        this.#calls.delete(id);
        if (error !== undefined && method === 'resources/subscribe')
          this.#subscriptions.delete(String(params['uri']));
        this.events.message(text, id);
      },
      failure: (error) => {
        this.#calls.delete(id);
        this.events.failed(id, error);
      },
      cancelled: () => void this.#calls.delete(id),
    };
  }

  /** Of what a client may notify, only the end of a call concerns a server that others use as well. */
  #notify(text: string): void {
    const { kind, method, params } = parseMessage(text, TARGET_BOUNDS);
    if (kind !== 'notification' || method !== 'notifications/cancelled') return;
    const own = this.#calls.get(Number(params['requestId']));
    if (own !== undefined) this.#process.peer.cancel(own, String(params['reason'] ?? 'cancelled'));
  }

  #hasOtherSubscriber(uri: string): boolean {
    return [...this.#process.members].some((member) => member !== this && member.#subscriptions.has(uri));
  }

  #refuse(id: number, text: string, code: number = RPC.methodNotFound): void {
    this.events.message(errorMessage(String(id), code, text), id);
  }

  /** The server was initialized once, by the gateway: each session gets its answer, in a revision that its client asked for. */
  #answerInitialize(text: string, id: number): void {
    const asked = String(parseMessage(text, TARGET_BOUNDS).params['protocolVersion']);
    this.#process.initialized.then(
      (message) => {
        if (!this.#isClosed) this.events.message(withId(forSession(message, asked), String(id)), id);
      },
      // The end of the process has told the session already.
      () => undefined,
    );
  }
}

function forSession(message: RpcMessage, asked: string): RpcMessage {
  const { text } = message;
  const result = message.result as { protocolVersion: string; capabilities?: Record<string, unknown> };
  const version = valueAt(text, ['result', 'protocolVersion']);
  const capabilities = valueAt(text, ['result', 'capabilities']);
  const kept = Object.entries(result.capabilities ?? {}).filter(([name]) => !NOT_SHARED.includes(name));
  return parseMessage(
    edit(text, [
      ...(version === undefined
        ? []
        : [{ ...version, text: JSON.stringify(lowestRevision([asked, result.protocolVersion])) }]),
      ...(capabilities === undefined
        ? []
        : [{ ...capabilities, text: JSON.stringify(Object.fromEntries(kept)) }]),
    ]),
    TARGET_BOUNDS,
  );
}

import { messageOf } from '../../core/errors.ts';
import type { Log } from '../../core/log.ts';
import { edit, members } from '../kernel/json-text.ts';
import { parseMessage, type RpcMessage, TARGET_BOUNDS, withId } from './message.ts';
import { noteNoise } from './noise.ts';
import { notificationMessage, RpcError, requestMessage } from './protocol.ts';
import type { Channel, ChannelEvents, SendOptions, Target } from './target.ts';
import { timeoutMessage } from './timeouts.ts';

/** What happens to a request that was passed on. Exactly one of its last three is called, once. */
export interface CallHandler {
  /** A notification or request of the server that belongs to this call. */
  related(message: RpcMessage): void;
  /** The response; `text` carries the id that the caller used. */
  response(text: string, message: RpcMessage): void;
  failure(error: Error): void;
  /** The server makes the caller wait. */
  suspended?(): void;
  /** The call was cancelled: there will be neither. */
  cancelled?(): void;
}

interface PendingCall {
  readonly originalId: string;
  readonly progressToken: unknown;
  readonly handler: CallHandler;
}

/** Messages of a server that belong to no call in flight. */
export type Unrelated = (message: RpcMessage) => void;

/**
 * Both directions of JSON-RPC with one MCP server: gives requests ids of our own, so that those of several
 * callers never meet, and finds the caller of each response again.
 */
export class JsonRpcConnection {
  readonly #target: Pick<Target, 'name' | 'clean'>;
  readonly #log: Log;
  readonly #pending = new Map<number, PendingCall>();
  readonly #unrelated: Unrelated;
  #channel: Channel | undefined;
  #nextId = 1;
  #closed: Error | undefined;
  #retired = false;
  onClosed: ((error: Error) => void) | undefined;
  onSessionLost: (() => void) | undefined;

  constructor(target: Pick<Target, 'name' | 'clean'>, log: Log, unrelated: Unrelated) {
    this.#target = target;
    this.#log = log;
    this.#unrelated = unrelated;
  }

  /** What the channel must call. */
  readonly events: ChannelEvents = {
    message: (text, inReplyTo) => this.#receive(text, inReplyTo),
    failed: (id, error) => this.#take(id)?.handler.failure(error),
    awaits: (id) => this.#pending.has(id),
    suspended: (id) => this.#pending.get(id)?.handler.suspended?.(),
    sessionLost: () => this.onSessionLost?.(),
    closed: (error) => this.#close(error),
  };

  get targetName(): string {
    return this.#target.name;
  }

  bind(channel: Channel): void {
    this.#channel = channel;
  }

  get channel(): Channel | undefined {
    return this.#closed === undefined ? this.#channel : undefined;
  }

  get inFlight(): number {
    return this.#pending.size;
  }

  /** Passes a client's request on. Returns a handle for `cancel`. */
  forward(message: RpcMessage, headers: readonly string[], handler: CallHandler): number {
    const id = this.#nextId++;
    const meta = message.params['_meta'] as { progressToken?: unknown } | undefined;
    this.#pending.set(id, { originalId: message.id ?? 'null', progressToken: meta?.progressToken, handler });
    this.#send(withId(message, String(id)), { id, method: message.method, headers });
    return id;
  }

  /**
   * A request of the gateway's own. Rejects with `RpcError` for an error response. `params` is JSON text. It is
   * cancelled when there is no answer within that many ms.
   */
  call(
    method: string,
    params: string | undefined,
    headers: readonly string[],
    within?: number,
  ): Promise<RpcMessage> {
    let id = 0;
    const answer = new Promise<RpcMessage>((resolve, reject) => {
      const text =
        params === undefined
          ? requestMessage('0', method)
          : `{"jsonrpc":"2.0","id":0,"method":${JSON.stringify(method)},"params":${params}}`;
      id = this.forward(parseMessage(text), headers, {
        related: (message) => this.#unrelated(message),
        response: (_text, message) => {
          if (message.error) reject(new RpcError(message.error.code, message.error.message));
          else resolve(message);
        },
        failure: reject,
        cancelled: () => reject(new Error(timeoutMessage(within ?? 0))),
      });
    });
    if (within === undefined) return answer;
    const timer = setTimeout(() => this.cancel(id, 'no answer'), within);
    return answer.finally(() => clearTimeout(timer));
  }

  /** Tells the server that nobody waits any more, and forgets the call; a late response is dropped. */
  cancel(id: number, reason: string): void {
    const call = this.#take(id);
    if (call === undefined) return;
    this.#send(notificationMessage('notifications/cancelled', { requestId: id, reason }), {});
    this.#channel?.abandon(id);
    call.handler.cancelled?.();
  }

  /** Sends a notification or a response of the client. */
  send(text: string, headers: readonly string[]): void {
    this.#send(text, { headers });
  }

  /** No new calls come: closes once those in flight have ended. */
  async retire(): Promise<void> {
    if (this.#pending.size === 0) await this.close();
    else this.#retired = true;
  }

  async close(): Promise<void> {
    const channel = this.#channel;
    this.#close(new Error('the session ended'));
    await channel?.close();
  }

  #send(text: string, options: SendOptions): void {
    if (this.#closed !== undefined || this.#channel === undefined) {
      if (options.id !== undefined)
        this.#take(options.id)?.handler.failure(this.#closed ?? new Error('not connected'));
      return;
    }
    this.#channel.send(text, options);
  }

  #receive(text: string, inReplyTo: number | undefined): void {
    let message: RpcMessage;
    try {
      message = parseMessage(text, TARGET_BOUNDS);
    } catch (error) {
      noteNoise(this.#target, this.#log, messageOf(error), () => this.#start(text));
      const id = Number(idIn(text));
      this.#take(id)?.handler.failure(new Error(`the server's answer cannot be used: ${messageOf(error)}`));
      return;
    }
    if (message.kind !== 'response') {
      const call = this.#related(message, inReplyTo);
      if (call === undefined) this.#unrelated(message);
      else call.handler.related(message);
      return;
    }
    const call = this.#take(Number(message.id));
    if (call === undefined) {
      this.#log.debug('mcp', 'response to an unknown or cancelled request was dropped', {
        target: this.#target.name,
        id: message.id,
      });
      return;
    }
    const { idSpan } = message;
    call.handler.response(
      idSpan === undefined ? text : edit(text, [{ ...idSpan, text: call.originalId }]),
      message,
    );
  }

  /** The beginning of a message for the log. Secrets go first: a part of one would not be found any more. */
  #start(text: string): string {
    const start = text.slice(0, 4_096);
    return (this.#target.clean?.(start) ?? start).slice(0, 120);
  }

  /**
   * Stdio has one pipe for everything, so which call a message belongs to is known for progress (by its token)
   * and when only one call is in flight; otherwise the session's own stream takes it.
   */
  #related(message: RpcMessage, inReplyTo: number | undefined): PendingCall | undefined {
    if (inReplyTo !== undefined) return this.#pending.get(inReplyTo);
    if (message.method === 'notifications/progress') {
      const token = message.params['progressToken'];
      for (const call of this.#pending.values()) if (call.progressToken === token) return call;
      return undefined;
    }
    if (UNRELATED.test(message.method) || this.#pending.size !== 1) return undefined;
    return this.#pending.values().next().value;
  }

  #take(id: number): PendingCall | undefined {
    const call = this.#pending.get(id);
    this.#pending.delete(id);
    if (this.#retired && this.#pending.size === 0) void this.close();
    return call;
  }

  #close(error: Error): void {
    if (this.#closed !== undefined) return;
    this.#closed = error;
    const pending = [...this.#pending.values()];
    this.#pending.clear();
    for (const call of pending) call.handler.failure(error);
    this.onClosed?.(error);
  }
}

/** The id of a message that was refused, so that its caller does not wait for nothing. */
function idIn(text: string): string | undefined {
  if (!text.startsWith('{')) return undefined;
  try {
    const span = members(text).find(([key]) => key === 'id')?.[1];
    return span && text.slice(span.start, span.end);
  } catch {
    return undefined;
  }
}

/** Changes of the server itself: they concern the session, whatever call is running. */
const UNRELATED = /^notifications\/(?:resources\/updated|[a-z]+\/list_changed)$/;

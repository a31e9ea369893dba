import { LIMITS } from '../../../core/limits.ts';
import type { Log } from '../../../core/log.ts';
import type { EventStream } from '../../../core/sse.ts';
import { type Edit, edit, valueAt } from '../../kernel/json/json-text.ts';
import { type ClientHeaders, NO_HEADERS } from '../connection/client-headers.ts';
import type { JsonRpcConnection } from '../connection/json-rpc-connection.ts';
import { inwardMessage } from '../names/names.ts';
import { canonicalId, type RpcMessage } from '../protocol/message.ts';
import { errorMessage, RPC } from '../protocol/protocol.ts';
import type { MessageGuards } from '../request-fields.ts';

/** A request of a server that was sent to the client and has no response yet. */
interface SentRequest {
  /** The connection that it came from. A restarted server has another one and does not receive the response. */
  readonly rpc: JsonRpcConnection;
  readonly method: string;
  /** The server's id and progress token, as JSON texts. */
  readonly id: string;
  readonly token: string | undefined;
  /** The stream that it was sent on. */
  readonly stream: EventStream;
  /** Whether it is assumed to belong to the call of that stream, and not to another one. */
  readonly isRelated: boolean;
  /** Until when the response of another call is held back for it, in ms of `performance.now()`. */
  readonly holdsUntil: number;
}

/** A response of a target that is held back, because it would end its stream. */
interface HeldResponse {
  readonly text: string;
  readonly timer: NodeJS.Timeout;
}

/** A request of a server that waits for the client to open a stream. */
interface QueuedRequest {
  readonly rpc: JsonRpcConnection;
  readonly message: RpcMessage;
}

const NO_STREAM = 'the client has no open stream on which this request could reach it';

/**
 * Requests of the servers of one session to its client, with ids that are unique in the session. Each request is sent to
 * the client or answered with an error; none is dropped.
 */
export class ServerRequests {
  /** Requests without a response, by the id that the client sees, as JSON text. */
  readonly #sent = new Map<string, SentRequest>();
  /** With several servers, progress tokens are replaced and ids of tasks contain the name of their target. */
  readonly #isFederated: boolean;
  #waiting: QueuedRequest[] = [];
  #timer: NodeJS.Timeout | undefined;
  readonly #held = new Map<EventStream, HeldResponse>();
  #nextId = 1;

  readonly #log: Log;

  constructor({ isFederated, log }: { isFederated: boolean; log: Log }) {
    this.#log = log;
    this.#isFederated = isFederated;
  }

  /** Number of requests that were sent to the client and have no response. */
  get unanswered(): number {
    return this.#sent.size;
  }

  /** Number of requests that wait for a stream. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Returns the stream with the fewest unanswered requests, preferring those without a held response; the first if equal. */
  leastBusy(streams: readonly EventStream[]): EventStream | undefined {
    const carried = new Map<EventStream, number>();
    for (const { stream } of this.#sent.values()) carried.set(stream, (carried.get(stream) ?? 0) + 1);
    const load = (stream: EventStream): number =>
      this.#held.has(stream) ? Number.POSITIVE_INFINITY : (carried.get(stream) ?? 0);
    return streams.reduce<EventStream | undefined>(
      (least, stream) => (least === undefined || load(stream) < load(least) ? stream : least),
      undefined,
    );
  }

  /**
   * Sends a request to the client. `isRelated`: it belongs to the call of that stream. `hold`: how long the response of another
   * call is held back for it. With `LIMITS.inFlightPerSession` unanswered requests, the oldest is answered with an error.
   */
  send(
    rpc: JsonRpcConnection,
    message: RpcMessage,
    stream: EventStream,
    isRelated = false,
    hold: number = message.method === 'roots/list' ? LIMITS.heldForRootsTimeout : LIMITS.heldResponseTimeout,
  ): void {
    this.#evictOldest();
    const { text } = message;
    const id = JSON.stringify(`agctl-${this.#nextId++}`);
    const tokenSpan = valueAt(text, ['params', '_meta', 'progressToken']);
    this.#sent.set(id, {
      rpc,
      method: message.method,
      id: message.id ?? 'null',
      token: tokenSpan && text.slice(tokenSpan.start, tokenSpan.end),
      stream,
      isRelated,
      holdsUntil: performance.now() + hold,
    });
    const edits: Edit[] = message.idSpan === undefined ? [] : [{ ...message.idSpan, text: id }];
    if (tokenSpan !== undefined && this.#isFederated) edits.push({ ...tokenSpan, text: id });
    stream.send(edit(text, edits));
  }

  /**
   * Queues a request until the client opens a stream, for at most `wait` ms, or with others that were queued before it. If
   * `LIMITS.queuedMessages` requests are queued, it is answered with an error.
   */
  queue(rpc: JsonRpcConnection, message: RpcMessage, wait: number): void {
    if (this.#waiting.length >= LIMITS.queuedMessages) {
      refuse(rpc, message.id, `more than ${LIMITS.queuedMessages} requests wait for the client`);
      return;
    }
    this.#waiting.push({ rpc, message });
    this.#timer ??= setTimeout(() => this.#expire(), wait);
  }

  /** Sends queued requests on a stream that the client has opened. */
  opened(stream: EventStream): void {
    if (this.#waiting.length === 0) return;
    // They belong to no call: the first one of the client must not wait until a user has answered them.
    for (const { rpc, message } of this.#takeWaiting())
      this.send(rpc, message, stream, false, LIMITS.heldForRootsTimeout);
  }

  /** Answers a request that cannot reach the client with an error. */
  unreachable(rpc: JsonRpcConnection, message: RpcMessage): void {
    refuse(rpc, message.id, NO_STREAM);
  }

  /**
   * Passes a response of the client to the server that sent the request, as guardrails leave it. Returns false for an
   * unknown id.
   */
  answer(message: RpcMessage, headers: ClientHeaders, guards?: MessageGuards): boolean {
    const sent = this.#take(canonicalId(message.id ?? 'null'));
    if (sent === undefined || message.idSpan === undefined) return false;
    const { rpc, method } = sent;
    const pass = ({ text, idSpan }: RpcMessage, own: ClientHeaders): void => {
      const answer = idSpan === undefined ? text : edit(text, [{ ...idSpan, text: sent.id }]);
      rpc.send(this.#isFederated ? inwardMessage(answer, rpc.targetName) : answer, own);
    };
    const checked = guards?.answer(message, method, rpc.targetName);
    if (checked === undefined) pass(message, headers);
    else
      checked
        .then(({ message: left, headers: change }) =>
          pass(left, change === undefined ? headers : { ...headers, list: change(headers.list) }),
        )
        .catch((error: unknown) => {
          this.#log.internalError('mcp', error, { target: rpc.targetName });
          refuse(rpc, sent.id, 'the response of the client could not be checked');
        });
    return true;
  }

  /**
   * Cancels a request for a server. Returns the notification for the client and its stream, or undefined if the request was
   * not sent to the client or was answered.
   */
  cancel(rpc: JsonRpcConnection, { text }: RpcMessage): { text: string; stream: EventStream } | undefined {
    const span = valueAt(text, ['params', 'requestId']);
    if (span === undefined) return undefined;
    const id = canonicalId(text.slice(span.start, span.end));
    const isIt = (other: { readonly rpc: JsonRpcConnection }, otherId: string | undefined): boolean =>
      other.rpc === rpc && canonicalId(otherId ?? 'null') === id;
    this.#waiting = this.#waiting.filter((waiting) => !isIt(waiting, waiting.message.id));
    for (const [outward, sent] of this.#sent) {
      if (!isIt(sent, sent.id)) continue;
      this.#take(outward);
      return { text: edit(text, [{ ...span, text: outward }]), stream: sent.stream };
    }
    return undefined;
  }

  /** Passes progress of the client to the server that sent the request. Returns false for an unknown token. */
  progress({ text }: RpcMessage, headers: ClientHeaders): boolean {
    const span = valueAt(text, ['params', 'progressToken']);
    if (span === undefined) return false;
    const sent = this.#sent.get(canonicalId(text.slice(span.start, span.end)));
    if (sent?.token === undefined) return false;
    sent.rpc.send(edit(text, [{ ...span, text: sent.token }]), headers);
    return true;
  }

  /**
   * Ends the stream of a call with its response. If the client has not answered requests of other calls on that stream, the
   * response is held back for at most `LIMITS.heldResponseTimeout`: some clients drop such requests when the stream ends (mcp-go 1.2).
   */
  end(stream: EventStream, text: string): void {
    const wait = this.#holdsUntil(stream) - performance.now();
    if (wait <= 0) stream.end(text);
    else this.#held.set(stream, { text, timer: setTimeout(() => this.#endHeld(stream), wait) });
  }

  /** Forgets all requests and sends held responses, at the end of the session. */
  close(): void {
    this.#takeWaiting();
    this.#sent.clear();
    for (const stream of this.#held.keys()) this.#endHeld(stream);
  }

  /** Until when unanswered requests that do not belong to its call hold the response of a stream back; 0 without any. */
  #holdsUntil(stream: EventStream): number {
    let latest = 0;
    for (const sent of this.#sent.values())
      if (sent.stream === stream && !sent.isRelated) latest = Math.max(latest, sent.holdsUntil);
    return latest;
  }

  #endHeld(stream: EventStream): void {
    const held = this.#held.get(stream);
    if (held === undefined) return;
    clearTimeout(held.timer);
    this.#held.delete(stream);
    stream.end(held.text);
  }

  #take(outward: string): SentRequest | undefined {
    const sent = this.#sent.get(outward);
    if (sent === undefined) return undefined;
    this.#sent.delete(outward);
    // Later, so that the reply to the client's POST is written first.
    if (this.#held.has(sent.stream) && this.#holdsUntil(sent.stream) === 0)
      setImmediate(() => this.#endHeld(sent.stream));
    return sent;
  }

  #takeWaiting(): QueuedRequest[] {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    return this.#waiting.splice(0);
  }

  #expire(): void {
    for (const { rpc, message } of this.#takeWaiting()) this.unreachable(rpc, message);
  }

  /** At the limit, answers the oldest request with an error, since the client is likely never to answer it. */
  #evictOldest(): void {
    const [oldest] = this.#sent;
    if (oldest === undefined || this.#sent.size < LIMITS.inFlightPerSession) return;
    const [outward, { rpc, id }] = oldest;
    this.#take(outward);
    refuse(
      rpc,
      id,
      `the client has not answered, and ${LIMITS.inFlightPerSession} later requests wait for it`,
    );
  }
}

function refuse(rpc: JsonRpcConnection, id: string | undefined, why: string): void {
  rpc.send(errorMessage(id ?? 'null', RPC.internalError, why), NO_HEADERS);
}

import { LIMITS } from '../../core/limits.ts';
import type { EventStream } from '../../core/sse.ts';
import { type Edit, edit, valueAt } from '../kernel/json-text.ts';
import type { JsonRpcConnection } from './json-rpc-connection.ts';
import { canonicalId, type RpcMessage } from './message.ts';
import { errorMessage, RPC, resultMessage } from './protocol.ts';
import { inwardMessage } from './task-ids.ts';

/** A request of a server that the client has got and has yet to answer. */
interface Asked {
  /** Who asked: a server that was started in its place never gets the answer. */
  readonly peer: JsonRpcConnection;
  /** The server's id and progress token, as JSON texts. */
  readonly id: string;
  readonly token: string | undefined;
  /** What carried it to the client. */
  readonly stream: EventStream;
  /** It belongs to the call of that stream as far as we know, and not to another one. */
  readonly isRelated: boolean;
}

/** A response that must not end its stream yet. */
interface Held {
  readonly text: string;
  readonly timer: NodeJS.Timeout;
}

/** A request of a server that waits for the client to open a stream. */
interface Waiting {
  readonly peer: JsonRpcConnection;
  readonly message: RpcMessage;
}

const NO_STREAM = 'the client has no open stream on which this request could reach it';

/**
 * Requests of the servers of one session to its client, under ids that no two servers share. Every one of them is
 * passed on or answered with an error; none is dropped.
 */
export class ServerRequests {
  /** By the id that the client sees, as JSON text. */
  readonly #asked = new Map<string, Asked>();
  /** Several servers may use the same progress token, and ids of tasks carry the name of their target. */
  readonly #isFederated: boolean;
  #waiting: Waiting[] = [];
  #timer: NodeJS.Timeout | undefined;
  readonly #held = new Map<EventStream, Held>();
  #nextId = 1;

  constructor({ isFederated }: { isFederated: boolean }) {
    this.#isFederated = isFederated;
  }

  /** Requests that the client has got and has yet to answer. */
  get unanswered(): number {
    return this.#asked.size;
  }

  /** Requests that wait for a stream. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** The stream that carries the fewest requests, and whose call has no response yet; the first of equal ones. */
  leastBusy(streams: readonly EventStream[]): EventStream | undefined {
    const carried = new Map<EventStream, number>();
    for (const { stream } of this.#asked.values()) carried.set(stream, (carried.get(stream) ?? 0) + 1);
    const load = (stream: EventStream): number =>
      this.#held.has(stream) ? Number.POSITIVE_INFINITY : (carried.get(stream) ?? 0);
    return streams.reduce<EventStream | undefined>(
      (least, stream) => (least === undefined || load(stream) < load(least) ? stream : least),
      undefined,
    );
  }

  /** Sends a request to the client. `isRelated`: it belongs to the call of that stream. */
  send(peer: JsonRpcConnection, message: RpcMessage, stream: EventStream, isRelated = false): void {
    this.#makeRoom();
    const { text } = message;
    const id = JSON.stringify(`agctl-${this.#nextId++}`);
    const tokenSpan = valueAt(text, ['params', '_meta', 'progressToken']);
    this.#asked.set(id, {
      peer,
      id: message.id ?? 'null',
      token: tokenSpan && text.slice(tokenSpan.start, tokenSpan.end),
      stream,
      isRelated,
    });
    const edits: Edit[] = message.idSpan === undefined ? [] : [{ ...message.idSpan, text: id }];
    if (tokenSpan !== undefined && this.#isFederated) edits.push({ ...tokenSpan, text: id });
    stream.send(edit(text, edits));
  }

  /** Keeps a request for `LIMITS.streamOpening`: the client is about to open a stream. */
  wait(peer: JsonRpcConnection, message: RpcMessage): void {
    if (this.#waiting.length >= LIMITS.queuedMessages) {
      refuse(peer, message.id, `more than ${LIMITS.queuedMessages} requests wait for the client`);
      return;
    }
    this.#waiting.push({ peer, message });
    this.#timer ??= setTimeout(() => this.#expire(), LIMITS.streamOpening);
  }

  /** The client has opened a stream: what waits for one goes out on it. */
  opened(stream: EventStream): void {
    if (this.#waiting.length === 0) return;
    for (const { peer, message } of this.#takeWaiting()) this.send(peer, message, stream);
  }

  /** Answers a request that cannot reach the client. A ping asks about the connection, which is there. */
  unreachable(peer: JsonRpcConnection, message: RpcMessage): void {
    if (message.method === 'ping') peer.send(resultMessage(message.id ?? 'null', '{}'), []);
    else refuse(peer, message.id, NO_STREAM);
  }

  /** Hands an answer of the client to the server that asked. Whether there was one. */
  answer({ id, idSpan, text }: RpcMessage, headers: readonly string[]): boolean {
    const key = canonicalId(id ?? 'null');
    const asked = this.#take(key);
    if (asked === undefined || idSpan === undefined) return false;
    const own = edit(text, [{ ...idSpan, text: asked.id }]);
    asked.peer.send(this.#isFederated ? inwardMessage(own, asked.peer.targetName) : own, headers);
    return true;
  }

  /**
   * A server takes a request back. What the client must be told, and on which stream; undefined when the client has not
   * got the request, or has answered it.
   */
  cancel(peer: JsonRpcConnection, { text }: RpcMessage): { text: string; stream: EventStream } | undefined {
    const span = valueAt(text, ['params', 'requestId']);
    if (span === undefined) return undefined;
    const id = canonicalId(text.slice(span.start, span.end));
    const isIt = (other: { readonly peer: JsonRpcConnection }, otherId: string | undefined): boolean =>
      other.peer === peer && canonicalId(otherId ?? 'null') === id;
    this.#waiting = this.#waiting.filter((waiting) => !isIt(waiting, waiting.message.id));
    for (const [outward, asked] of this.#asked) {
      if (!isIt(asked, asked.id)) continue;
      this.#take(outward);
      return { text: edit(text, [{ ...span, text: outward }]), stream: asked.stream };
    }
    return undefined;
  }

  /** Passes progress of the client on to the server whose request it is about. Whether there is one. */
  progress({ text }: RpcMessage, headers: readonly string[]): boolean {
    const span = valueAt(text, ['params', 'progressToken']);
    if (span === undefined) return false;
    const asked = this.#asked.get(canonicalId(text.slice(span.start, span.end)));
    if (asked?.token === undefined) return false;
    asked.peer.send(edit(text, [{ ...span, text: asked.token }]), headers);
    return true;
  }

  /**
   * Ends the stream of a call with its response, once the client has answered the requests of other calls on it: clients
   * may give up on what a stream has brought when the response of its call comes (mcp-go 1.2 does).
   */
  end(stream: EventStream, text: string): void {
    if (!this.#isInUse(stream)) stream.end(text);
    else
      this.#held.set(stream, { text, timer: setTimeout(() => this.#endHeld(stream), LIMITS.heldResponse) });
  }

  /** The session is over, and with it its servers. */
  close(): void {
    this.#takeWaiting();
    this.#asked.clear();
    for (const stream of this.#held.keys()) this.#endHeld(stream);
  }

  #isInUse(stream: EventStream): boolean {
    for (const asked of this.#asked.values()) if (asked.stream === stream && !asked.isRelated) return true;
    return false;
  }

  #endHeld(stream: EventStream): void {
    const held = this.#held.get(stream);
    if (held === undefined) return;
    clearTimeout(held.timer);
    this.#held.delete(stream);
    stream.end(held.text);
  }

  #take(outward: string): Asked | undefined {
    const asked = this.#asked.get(outward);
    if (asked === undefined) return undefined;
    this.#asked.delete(outward);
    // Later: the client should see first that its answer has arrived.
    if (this.#held.has(asked.stream) && !this.#isInUse(asked.stream))
      setImmediate(() => this.#endHeld(asked.stream));
    return asked;
  }

  #takeWaiting(): Waiting[] {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    return this.#waiting.splice(0);
  }

  #expire(): void {
    for (const { peer, message } of this.#takeWaiting()) this.unreachable(peer, message);
  }

  /** What the client never answered makes room for what it may still answer. */
  #makeRoom(): void {
    if (this.#asked.size < LIMITS.inFlightPerSession) return;
    const [outward, { peer, id }] = this.#asked.entries().next().value as [string, Asked];
    this.#take(outward);
    refuse(
      peer,
      id,
      `the client has not answered, and ${LIMITS.inFlightPerSession} later requests wait for it`,
    );
  }
}

function refuse(peer: JsonRpcConnection, id: string | undefined, why: string): void {
  peer.send(errorMessage(id ?? 'null', RPC.internalError, why), []);
}

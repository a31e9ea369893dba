import { LIMITS } from '../../core/limits.ts';
import type { Log } from '../../core/log.ts';
import { EventStream } from '../../core/sse.ts';
import { edit, valueAt } from '../kernel/json-text.ts';
import { Connection } from './connection.ts';
import type { JsonRpcConnection } from './json-rpc-connection.ts';
import { parseMessage, type RpcMessage, TARGET_BOUNDS } from './message.ts';
import { NameIndex } from './name-index.ts';
import { outwardName } from './names.ts';
import { ResumableCalls } from './resumable-calls.ts';
import { ServerRequests } from './server-requests.ts';
import type { Target } from './target.ts';
import { outwardMessage } from './task-ids.ts';

/** Revisions are dates. */
const RESUMABLE_SINCE = '2025-11-25';

/** What every session of one MCP backend shares. */
export interface SessionOptions {
  readonly backend: string;
  readonly targets: readonly Target[];
  /** Whether names carry their target's name. */
  readonly prefixed: boolean;
  /** Whether one target that fails makes the session fail. */
  readonly failClosed: boolean;
  readonly log: Log;
}

/** A request of the client in flight. */
interface Running {
  readonly stream: EventStream;
  /** Where it runs, once that is known. */
  readonly peer: JsonRpcConnection | undefined;
  /** Nobody waits for its response any more. */
  cancel(reason: string): void;
}

/** One client's conversation, with a connection to every target. */
export class Session {
  readonly options: SessionOptions;
  /** Hash of the authenticated caller it is bound to, if there was one. */
  readonly owner: string | undefined;
  readonly connections: readonly Connection[];
  readonly nameIndex = new NameIndex();
  readonly resumable = new ResumableCalls();
  /** The revision agreed on with the client. */
  version = '';
  id = '';
  readonly begun = performance.now();
  lastUsed = performance.now();
  /** Requests of the client in flight, by id (`canonicalId`), oldest first. */
  readonly running = new Map<string, Running>();
  closed = false;
  #stream: EventStream | undefined;
  #queue: string[] = [];
  /** When the client said that it is initialized; it opens a stream of its own after that, if at all. */
  #initializedAt: number | undefined;
  #hasHadStream = false;
  readonly requests: ServerRequests;

  /** Begun by another process: what the client said of itself is not known here. */
  readonly isResumed: boolean;

  constructor(
    options: SessionOptions,
    owner: string | undefined,
    initializeParams: string,
    isResumed = false,
  ) {
    this.options = options;
    this.isResumed = isResumed;
    this.owner = owner;
    this.connections = options.targets.map(
      (target) =>
        new Connection(target, options.log, initializeParams, (connection, message, peer) =>
          this.deliver(connection, peer, message),
        ),
    );
    this.requests = new ServerRequests({ isFederated: this.isFederated });
  }

  /** Whether messages are routed by names and ids; a single target without prefix gets everything as it is. */
  get isFederated(): boolean {
    return this.connections.length > 1 || this.options.prefixed;
  }

  /** Whether the client takes events without data, which older revisions do not know. */
  get canResume(): boolean {
    return this.version >= RESUMABLE_SINCE;
  }

  /** Enough to follow a session through the log; the id itself is a credential. */
  get shortId(): string {
    return this.id.slice(0, 12);
  }

  get inFlight(): number {
    return this.running.size;
  }

  /** Messages that wait for the client to open a stream. */
  get queued(): number {
    return this.#queue.length + this.requests.waiting;
  }

  /** Requests of servers that the client has yet to answer. */
  get unanswered(): number {
    return this.requests.unanswered;
  }

  get hasOpenStream(): boolean {
    return this.#stream?.isOpen === true;
  }

  /** Takes over as the stream for what servers send on their own; an earlier one ends. */
  openStream(headers: readonly string[]): EventStream {
    const stream = new EventStream();
    this.#stream?.end();
    this.#stream = stream;
    this.#hasHadStream = true;
    this.requests.opened(stream);
    for (const text of this.#queue.splice(0)) stream.send(text);
    for (const connection of this.connections) connection.listen(headers);
    stream.owner = {
      closed: () => {
        if (this.#stream === stream) this.#stream = undefined;
        // A client that lost its stream is about to open another.
        this.lastUsed = performance.now();
      },
    };
    return stream;
  }

  /** A request of the client begins to run. */
  began(id: string, call: Running): void {
    this.running.set(id, call);
    this.requests.opened(call.stream);
  }

  /** The client has confirmed the session. */
  initialized(): void {
    this.#initializedAt ??= performance.now();
  }

  /** Sends a server's notification or request to the client; `stream` is that of the call that it belongs to. */
  deliver(connection: Connection, peer: JsonRpcConnection, received: RpcMessage, stream?: EventStream): void {
    const message = this.isFederated ? withOutwardTasks(received, connection.target.name) : received;
    if (message.kind === 'request') {
      this.#ask(peer, message, stream);
      return;
    }
    if (message.method === 'notifications/cancelled') {
      const cancelled = this.requests.cancel(peer, message);
      if (cancelled !== undefined) this.#taker(peer, cancelled.stream)?.send(cancelled.text);
      return;
    }
    const isChange = message.method.endsWith('/list_changed');
    if (isChange) {
      connection.lateLists.changed();
      this.nameIndex.changed(connection, message.method);
    }
    const text = this.#renamed(connection, message);
    const taker = stream?.isOpen ? stream : this.#stream;
    if (taker?.isOpen) {
      taker.send(text);
      return;
    }
    // Once is enough, and a target that comes and goes must not push out what others have to say.
    if (isChange && this.#queue.includes(text)) return;
    if (this.#queue.length >= LIMITS.queuedMessages) this.#queue.shift();
    this.#queue.push(text);
  }

  #ask(peer: JsonRpcConnection, message: RpcMessage, stream: EventStream | undefined): void {
    const taker = this.#taker(peer, stream);
    // The session's own stream outlasts every call: nothing ends with it.
    if (taker !== undefined)
      this.requests.send(peer, message, taker, taker === stream || taker === this.#stream);
    else if (this.#isAboutToListen) this.requests.wait(peer, message);
    else this.requests.unreachable(peer, message);
  }

  /**
   * What can carry a request to the client: the stream of the call that it belongs to, the session's own, or that of any
   * call in flight, one at the same server first, and the oldest that carries none yet: servers mostly run calls in order.
   * Many clients never open the session's own (`GET`), and over stdio a server does not say to which of its calls a
   * request belongs. At last the stream of its call, although its client is away: it may come back for what it missed.
   */
  #taker(peer: JsonRpcConnection, stream: EventStream | undefined): EventStream | undefined {
    if (stream?.hasReader) return stream;
    if (this.#stream?.isOpen) return this.#stream;
    const calls = [...this.running.values()].filter((call) => call.stream.hasReader);
    const own = calls.filter((call) => call.peer === peer);
    const other = this.requests.leastBusy((own.length > 0 ? own : calls).map((call) => call.stream));
    return other ?? (stream?.isOpen ? stream : undefined);
  }

  /** Servers ask for roots as soon as they are initialized, which is before the client can have opened its stream. */
  get #isAboutToListen(): boolean {
    if (this.#hasHadStream) return false;
    return (
      this.#initializedAt === undefined || performance.now() - this.#initializedAt < LIMITS.streamOpening
    );
  }

  /** Hands the client's answer to the server that asked. Answers to nothing are dropped. */
  answer(message: RpcMessage, headers: readonly string[]): void {
    if (this.requests.answer(message, headers)) return;
    this.options.log.debug('mcp', 'an answer to a request that was never made was dropped', {
      id: message.id,
    });
  }

  /** Ends the session's own stream; the client may open another. */
  endStream(): void {
    this.#stream?.end();
  }

  async close(): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    this.#stream?.end();
    this.#queue = [];
    this.requests.close();
    this.resumable.close();
    await Promise.all(this.connections.map((connection) => connection.close()));
  }

  #renamed(connection: Connection, message: RpcMessage): string {
    const { text, params, method } = message;
    if (!this.options.prefixed || method !== 'notifications/resources/updated') return text;
    const span = valueAt(text, ['params', 'uri']);
    const { uri } = params;
    if (span === undefined || typeof uri !== 'string') return text;
    return edit(text, [
      { ...span, text: JSON.stringify(outwardName('resource', connection.target.name, uri)) },
    ]);
  }
}

function withOutwardTasks(message: RpcMessage, target: string): RpcMessage {
  const text = outwardMessage(message.text, target, message.method);
  return text === message.text ? message : parseMessage(text, TARGET_BOUNDS);
}

import { LIMITS } from '../../core/limits.ts';
import type { Log } from '../../core/log.ts';
import { EventStream } from '../../core/sse.ts';
import { Connection } from './connection.ts';
import { edit, valueAt } from './json-text.ts';
import { type RpcMessage, withId } from './message.ts';
import { outwardName } from './names.ts';
import type { Target } from './target.ts';

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

/** One client's conversation, with a connection to every target. */
export class Session {
  readonly options: SessionOptions;
  /** Hash of the authenticated caller it is bound to, if there was one. */
  readonly owner: string | undefined;
  readonly connections: readonly Connection[];
  id = '';
  readonly begun = performance.now();
  lastUsed = performance.now();
  /** Requests in flight, over all connections. */
  inFlight = 0;
  closed = false;
  #stream: EventStream | undefined;
  #queue: string[] = [];
  /** Requests of servers that the client has yet to answer, by the id that the client sees. */
  readonly #asked = new Map<string, { readonly connection: Connection; readonly id: string }>();
  #nextAsked = 1;

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
        new Connection(target, options.log, initializeParams, (connection, message) =>
          this.deliver(connection, message),
        ),
    );
  }

  /** Enough to follow a session through the log; the id itself is a credential. */
  get shortId(): string {
    return this.id.slice(0, 12);
  }

  /** Messages that wait for the client to open a stream, and requests of servers that it has yet to answer. */
  get queued(): number {
    return this.#queue.length;
  }

  get unanswered(): number {
    return this.#asked.size;
  }

  get hasOpenStream(): boolean {
    return this.#stream?.isOpen === true;
  }

  /** Takes over as the stream for what servers send on their own; an earlier one ends. */
  openStream(headers: readonly string[]): EventStream {
    const stream = new EventStream();
    this.#stream?.end();
    this.#stream = stream;
    for (const text of this.#queue.splice(0)) stream.send(text);
    for (const connection of this.connections) connection.listen(headers);
    stream.owner = {
      closed: () => {
        if (this.#stream === stream) this.#stream = undefined;
      },
    };
    return stream;
  }

  /** Sends a server's notification or request to the client: on the stream of its call, else on the session's own. */
  deliver(connection: Connection, message: RpcMessage, stream?: EventStream): void {
    const isChange = message.method.endsWith('/list_changed');
    if (isChange) connection.lateLists.changed();
    const text =
      message.kind === 'request' ? this.#ask(connection, message) : this.#renamed(connection, message);
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

  /** Hands the client's answer to the server that asked. Answers to nothing are dropped. */
  answer(message: RpcMessage, headers: readonly string[]): void {
    const asked = this.#asked.get(message.id ?? '');
    if (asked === undefined) {
      this.options.log.debug('mcp', 'an answer to a request that was never made was dropped', {
        id: message.id,
      });
      return;
    }
    this.#asked.delete(message.id ?? '');
    asked.connection.peer?.send(withId(message, asked.id), headers);
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
    this.#asked.clear();
    await Promise.all(this.connections.map((connection) => connection.close()));
  }

  /** A server's request, under an id that no other server of the session uses. */
  #ask(connection: Connection, message: RpcMessage): string {
    // What the client never answered makes room for what it may still answer.
    if (this.#asked.size >= LIMITS.inFlightPerSession)
      this.#asked.delete(this.#asked.keys().next().value as string);
    const id = JSON.stringify(`agctl-${this.#nextAsked++}`);
    this.#asked.set(id, { connection, id: message.id ?? 'null' });
    return withId(message, id);
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

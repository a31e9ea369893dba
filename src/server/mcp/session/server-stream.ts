import { LIMITS, type Limits } from '../../../core/limits.ts';
import { EventStream, type EventStreamOwner } from '../../../core/sse.ts';
import type { RequestContext } from '../../kernel/request/request-context.ts';
import type { ResumableStream, ResumableStreams } from './resumable-streams.ts';

/** What a GET stream needs of its session. */
interface StreamSession {
  readonly resumable: ResumableStreams;
  /** Whether the client accepts events without data. */
  readonly canResume: boolean;
  readonly options: { readonly limits: Limits };
  lastUsed: number;
  /** The client reads a stream again. */
  streamOpened(stream: EventStream): void;
}

/**
 * The GET stream of one session, which carries messages that servers send outside a response. Without a reader,
 * notifications are queued for the next one: at most `LIMITS.queuedMessages`, the oldest is dropped first. A client that
 * lost the stream can resume it for `LIMITS.resumeTimeout`; after that it opens another, which begins with the queue.
 */
export class ServerStream implements EventStreamOwner, ResumableStream {
  readonly #session: StreamSession;
  #stream: EventStream | undefined;
  /** Notifications without a reader. While the client is disconnected, the stream keeps them for resuming, too. */
  #queue: string[] = [];
  #id: string | undefined;
  /** Whether the client has opened a stream before. */
  hasBeenOpen = false;

  constructor(session: StreamSession) {
    this.#session = session;
  }

  /** The stream if a client reads it. */
  get reader(): EventStream | undefined {
    return this.#stream?.hasReader ? this.#stream : undefined;
  }

  /** Whether a client reads the stream, or has just lost it. */
  get isOpen(): boolean {
    return this.#stream?.isOpen === true;
  }

  /** Whether the client has lost the stream and is likely to resume it. */
  get isInterrupted(): boolean {
    return this.isOpen && this.reader === undefined;
  }

  /** Number of notifications that wait for a stream. */
  get queued(): number {
    return this.#queue.length;
  }

  get isOver(): boolean {
    return !this.isOpen;
  }

  /** Opens a stream, which begins with the queued notifications. An earlier one ends. */
  open(): EventStream {
    this.#end();
    const { resumable, canResume, options } = this.#session;
    const stream = new EventStream();
    this.#stream = stream;
    this.hasBeenOpen = true;
    stream.owner = this;
    this.#id = canResume ? resumable.add(this, false) : undefined;
    const { resumeRetry: retry, serverReplayBytes: maxBytes } = options.limits;
    if (this.#id !== undefined) stream.makeResumable(this.#id, { retry, maxBytes, isEndless: true });
    for (const text of this.#queue.splice(0)) stream.send(text);
    this.#session.streamOpened(stream);
    return stream;
  }

  /** Continues the stream after event `after` for a client that reconnected. Undefined if later events were discarded. */
  resume(_ctx: RequestContext, after: number): EventStream | undefined {
    const stream = this.#stream;
    if (stream?.resume(after) !== true) {
      if (this.isInterrupted) this.detached();
      return undefined;
    }
    // The stream has kept them, too.
    this.#queue = [];
    this.#session.streamOpened(stream);
    return stream;
  }

  /** Sends a notification, or queues it. `isRepeatable`: one copy is enough. */
  send(text: string, isRepeatable: boolean): void {
    // A target that keeps restarting must not displace messages of other targets.
    if (isRepeatable && this.#queue.includes(text)) return;
    this.#stream?.send(text);
    if (this.reader !== undefined) return;
    if (this.#queue.length >= LIMITS.queuedMessages) this.#queue.shift();
    this.#queue.push(text);
  }

  /** Ends the stream; the client may open another, and is told to do so after `retry` ms. */
  end(retry: number): void {
    this.#stream?.endUntil(retry);
  }

  /** Ends the stream and forgets the queue, at the end of the session. */
  close(): void {
    this.#end();
    this.#queue = [];
  }

  detached(): void {
    this.#session.lastUsed = performance.now();
    if (this.#id !== undefined) this.#session.resumable.disconnected(this.#id);
  }

  closed(): void {
    this.#stream = undefined;
    // A client that lost its stream is likely to open another.
    this.#session.lastUsed = performance.now();
    if (this.#id !== undefined) this.#session.resumable.remove(this.#id);
  }

  giveUp(): void {
    this.#stream?.giveUp();
  }

  #end(): void {
    const stream = this.#stream;
    if (stream === undefined) return;
    this.closed();
    stream.owner = undefined;
    stream.end();
  }
}

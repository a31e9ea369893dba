import type { BodyWriter } from './body-writer.ts';
import { LIMITS } from './limits.ts';

/**
 * One server-sent event as text. A line break in `data`, which is JSON, is white space: as several `data:` lines, which a reader has to
 * join (HTML standard, "Server-sent events" §9.2.6), simple clients read each as a message (profullstack/sh1pt#705, FellouAI/eko#287).
 */
function formatEvent(data: string, event = 'message', id?: string): string {
  const frame = `event: ${event}\ndata: ${/[\r\n]/.test(data) ? data.replaceAll(/[\r\n]+/g, ' ') : data}\n\n`;
  return id === undefined ? frame : `id: ${id}\n${frame}`;
}

/**
 * Response headers of an event stream. `no-transform`: proxies must not compress it, which holds events back. `X-Accel-Buffering`:
 * nginx collects what a server sends before it passes it on, unless it is told not to (2026-07-28, "Receiving Messages").
 */
export const EVENT_STREAM_HEADERS = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
} as const;

/**
 * Produces the events of a stream. An object with methods rather than functions stored in fields: closures over a
 * request that one of its objects holds keep whole requests alive until the next full garbage collection (measured: 57
 * µs per call, against 38).
 */
export interface EventStreamOwner {
  /** Called before an event is sent that is not the only one: the last chance to make the stream resumable. */
  opening?(): void;
  /**
   * Called instead of all others if the stream ends with its first event before it is a response: the request can be
   * answered with that event alone, as JSON. Returns false if it was answered with the stream.
   */
  only?(data: string): boolean;
  /** Called once, with the first event: the request can now be answered with the stream. */
  first?(): void;
  /**
   * Called once: the stream has ended and its response has closed or was written at once, or the client has left for good.
   * A resumable stream can still be resumed.
   */
  closed?(): void;
  /** The client of a resumable stream left before the stream has ended and may reconnect. */
  detached?(): void;
  /** Backpressure: the reader has become slow (true) or has caught up (false), so the source may pause. */
  pressure?(paused: boolean): void;
}

/** A response body of server-sent events. Events that are sent before the response exists are queued. */
export class EventStream {
  #response: BodyWriter | undefined;
  #waiting: string[] = [];
  #ended = false;
  #closed = false;
  #stalledSince = 0;
  /** Events that a reconnecting client can request again. */
  #replay: EventReplay | undefined;
  /** The client of a resumable stream has disconnected. */
  #isDetached = false;
  #hasBegun = false;
  #wasAttached = false;
  owner: EventStreamOwner | undefined;

  /** Whether the stream is the body of a response yet. */
  get isAttached(): boolean {
    return this.#response !== undefined;
  }

  /** Whether events are accepted, which includes a resumable stream while its client is disconnected. */
  get isOpen(): boolean {
    return !this.#ended && !this.#closed;
  }

  /** Whether a client currently reads the events. */
  get hasReader(): boolean {
    return this.isOpen && !this.#isDetached;
  }

  /** Whether the client reads more slowly than events are sent. */
  get isStalled(): boolean {
    return this.#stalledSince !== 0;
  }

  /** Bytes of a stream that has ended before it is attached; undefined otherwise. */
  get size(): number | undefined {
    return this.#ended && !this.#wasAttached ? Buffer.byteLength(this.#waiting.join('')) : undefined;
  }

  get isResumable(): boolean {
    return this.#replay !== undefined;
  }

  /** Characters of events that are kept for a client that reconnects. */
  get replaySize(): number {
    return this.#replay?.size ?? 0;
  }

  /**
   * Makes the stream resumable; call it before the first event. Events get ids that begin with `id`. An initial event
   * without data informs the client that it can reconnect after `retry` ms (MCP 2025-11-25, "Sending Messages").
   */
  makeResumable(id: string, { retry, ...bounds }: ReplayBounds & { readonly retry: number }): void {
    if (this.#wasAttached || this.#waiting.length > 0 || this.#replay !== undefined) return;
    this.#replay = new EventReplay(id, bounds);
    this.#waiting.push(this.#replay.first(retry));
  }

  send(data: string, event?: string): void {
    if (!this.isOpen) return;
    if (!this.#wasAttached && this.#waiting.length === 0) this.owner?.opening?.();
    this.#write(this.#frame(data, event));
  }

  /** Ends the response; the reader of a resumable stream is told to reconnect after `retry` ms. */
  endUntil(retry: number): void {
    if (this.hasReader && this.#replay !== undefined) this.#write(this.#replay.first(retry));
    this.end();
  }

  /** Sends a last event, if given, and ends the response. */
  end(data?: string): void {
    if (!this.isOpen) return;
    this.#ended = true;
    if (data !== undefined && !this.#wasAttached && !this.#hasBegun && this.owner?.only?.(data) === true) {
      this.#closed = true;
      return;
    }
    const frame = data === undefined ? undefined : this.#frame(data);
    if (this.#isDetached) {
      this.#close();
      return;
    }
    if (this.#response === undefined) {
      this.#hold(frame ?? '');
      return;
    }
    // Head and body of a response with a single event leave in the same packet.
    this.#response.end(frame);
  }

  /** Called by the listener after `writeHead`. Sends the head immediately, together with the queued events. */
  attach(response: BodyWriter): void {
    this.#response = response;
    this.#wasAttached = true;
    const waiting = this.#waiting.join('');
    this.#waiting = [];
    // Text with a byte per character is ASCII, which needs no conversion.
    if (this.#ended) response.end(waiting, Buffer.byteLength(waiting) === waiting.length ? 'latin1' : 'utf8');
    // A small one needs no notice of its end: the listener costs more than the rest. A large one counts until it is read.
    if (this.#ended && this.#replay === undefined && waiting.length <= LIMITS.streamHighWaterBytes) {
      this.#closed = true;
      this.owner?.closed?.();
      return;
    }
    response.once('close', () => this.#left(response));
    if (this.#ended) return;
    joinHeartbeat(this);
    if (waiting !== '') this.#write(waiting);
    else response.flushHeaders();
  }

  /**
   * Resumes in another response, which is attached next, with the events after number `after`. Returns false if some of
   * them are no longer kept.
   */
  resume(after: number): boolean {
    const frames = this.#replay?.after(after);
    if (frames === undefined) return false;
    const earlier = this.#response;
    this.#response = undefined;
    this.#isDetached = false;
    this.#waiting = frames;
    // The client may leave before the other response is attached.
    leaveHeartbeat(this);
    this.#caughtUp();
    earlier?.end();
    return true;
  }

  /** The client disconnected before there was a response. */
  discard(): void {
    if (this.#wasAttached && this.#replay !== undefined && !this.#closed) this.#detach();
    else this.giveUp();
  }

  /** The client has disconnected for good. */
  giveUp(): void {
    this.#waiting = [];
    this.#close();
  }

  /**
   * Destroys the connection without a regular end, so that the client does not mistake a partial response for a
   * complete one.
   */
  destroy(): void {
    this.#response?.destroy();
  }

  /** @internal Heartbeat: sends a comment on an idle stream, and ends a stream whose reader accepts no data. */
  beat(now: number): void {
    this.#replay?.beat();
    if (this.#stalledSince !== 0) {
      if (now - this.#stalledSince > LIMITS.writeStall) this.destroy();
      return;
    }
    this.#write(': keep-alive\n\n');
  }

  #frame(data: string, event?: string): string {
    return this.#replay === undefined ? formatEvent(data, event) : this.#replay.keep(data, event);
  }

  #left(response: BodyWriter): void {
    // Another response has replaced this one.
    if (this.#response !== response) return;
    leaveHeartbeat(this);
    if (this.#replay !== undefined && !this.#ended && !response.writableFinished) {
      this.#detach();
      return;
    }
    this.#response = undefined;
    this.#caughtUp();
    this.#close();
  }

  #close(): void {
    this.#closed = true;
    this.owner?.closed?.();
  }

  #detach(): void {
    this.#response = undefined;
    this.#isDetached = true;
    this.#waiting = [];
    this.#caughtUp();
    this.owner?.detached?.();
  }

  /** Ends backpressure when a reader disconnects. */
  #caughtUp(): void {
    if (this.#stalledSince === 0) return;
    this.#stalledSince = 0;
    this.owner?.pressure?.(false);
  }

  #hold(text: string): void {
    // Kept for a client that reconnects.
    if (this.#isDetached) return;
    this.#waiting.push(text);
    if (this.#hasBegun) return;
    this.#hasBegun = true;
    this.owner?.first?.();
  }

  #write(text: string): void {
    const response = this.#response;
    if (response === undefined) {
      this.#hold(text);
      return;
    }
    response.write(text);
    if (response.writableLength <= LIMITS.streamHighWaterBytes || this.#stalledSince !== 0) return;
    this.#stalledSince = Date.now();
    this.owner?.pressure?.(true);
    response.once('drain', () => {
      if (this.#response === response) this.#caughtUp();
    });
  }
}

/** Open streams share one timer: one timer per stream would cost more than the stream itself. */
const OPEN = new Set<EventStream>();
let heartbeat: NodeJS.Timeout | undefined;

function joinHeartbeat(stream: EventStream): void {
  OPEN.add(stream);
  heartbeat ??= setInterval(() => {
    const now = Date.now();
    for (const each of OPEN) each.beat(now);
  }, LIMITS.heartbeat).unref();
}

function leaveHeartbeat(stream: EventStream): void {
  OPEN.delete(stream);
  if (OPEN.size > 0) return;
  clearInterval(heartbeat);
  heartbeat = undefined;
}

/** How much of a stream is kept for a client that reconnects. */
interface ReplayBounds {
  /** Characters of events. Older events are dropped first. */
  readonly maxBytes: number;
  /**
   * The stream has no end, so its events are dropped after one to two heartbeats, and an event over `maxBytes` is not
   * kept. Otherwise the last event is always kept, because it may be the response.
   */
  readonly isEndless?: boolean;
}

/** Buffers the events of one stream so that a client that lost its connection can request them again (`Last-Event-ID`). */
class EventReplay {
  readonly #id: string;
  readonly #bounds: ReplayBounds;
  #next = 0;
  #kept: { readonly number: number; readonly frame: string }[] = [];
  #bytes = 0;
  /** Number of the first event since the last heartbeat. */
  #sinceBeat = 0;

  constructor(id: string, bounds: ReplayBounds) {
    this.#id = id;
    this.#bounds = bounds;
  }

  /** Characters of the kept events. */
  get size(): number {
    return this.#bytes;
  }

  /**
   * An event that carries only an id, so that a client that has received nothing else can still resume. `retry` is in
   * ms.
   */
  first(retry: number): string {
    return `id: ${this.#nextId()}\nretry: ${retry}\ndata: \n\n`;
  }

  /** Formats an event with the next id and adds it to the buffer. */
  keep(data: string, event?: string): string {
    const { maxBytes, isEndless = false } = this.#bounds;
    const number = this.#next;
    const frame = formatEvent(data, event, this.#nextId());
    this.#kept.push({ number, frame });
    this.#bytes += frame.length;
    while (this.#kept.length > (isEndless ? 0 : 1) && this.#bytes > maxBytes) this.#drop();
    return frame;
  }

  /** Drops the events of an endless stream that were sent before the last heartbeat. */
  beat(): void {
    if (this.#bounds.isEndless !== true) return;
    while (this.#kept[0] !== undefined && this.#kept[0].number < this.#sinceBeat) this.#drop();
    this.#sinceBeat = this.#next;
  }

  /** The events after event `number`, or undefined when some of them have been dropped. */
  after(number: number): string[] | undefined {
    const first = this.#kept[0]?.number ?? this.#next;
    if (number < 0 || number >= this.#next || number + 1 < first) return undefined;
    return this.#kept.filter((event) => event.number > number).map(({ frame }) => frame);
  }

  #drop(): void {
    this.#bytes -= this.#kept.shift()?.frame.length ?? 0;
  }

  #nextId(): string {
    return `${this.#id}.${this.#next++}`;
  }
}

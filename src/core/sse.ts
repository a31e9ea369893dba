import type { ServerResponse } from 'node:http';
import { EventReplay } from './event-replay.ts';
import { LIMITS } from './limits.ts';
import { formatEvent } from './sse-format.ts';

/**
 * Who fills an event stream. An object with methods, not functions stored in fields: closures over a request that hang
 * on one of its objects keep whole requests alive until the next full collection (measured: 57 µs a call, against 38).
 */
export interface EventStreamOwner {
  /** An event is about to be sent that is not the only one: the moment to make the stream resumable. */
  opening?(): void;
  /** There is something to send: the moment to answer the request with the stream. Called once. */
  first?(): void;
  /** The response has closed; `completed` is false when the client left before its end. Called once. */
  closed?(completed: boolean): void;
  /** The client of a resumable stream left before its end, and may come back. */
  detached?(): void;
  /** The reader is slow (true) or has caught up (false): a source may pause meanwhile. */
  pressure?(paused: boolean): void;
}

/** A response body of server-sent events. Events sent before the response is there wait. */
export class EventStream {
  #response: ServerResponse | undefined;
  #waiting: string[] = [];
  #ended = false;
  #closed = false;
  #stalledSince = 0;
  /** What a client that lost its connection can ask for again. */
  #replay: EventReplay | undefined;
  /** The client of a resumable stream has left. */
  #isDetached = false;
  #hasBegun = false;
  #wasAttached = false;
  owner: EventStreamOwner | undefined;

  /** Whether it is the answer to a request already. */
  get isAttached(): boolean {
    return this.#response !== undefined;
  }

  /** Whether events are taken; those of a resumable stream also while its client is away. */
  get isOpen(): boolean {
    return !this.#ended && !this.#closed;
  }

  /** Whether somebody reads what is sent now. */
  get hasReader(): boolean {
    return this.isOpen && !this.#isDetached;
  }

  get isResumable(): boolean {
    return this.#replay !== undefined;
  }

  /**
   * Makes the stream resumable, before its first event: events get ids that begin with `id`. An event without data goes
   * first and tells the client that it can come back, and after how many ms (MCP 2025-11-25, "Sending Messages").
   */
  makeResumable(id: string, retry: number): void {
    if (this.#wasAttached || this.#waiting.length > 0 || this.#replay !== undefined) return;
    this.#replay = new EventReplay(id);
    this.#waiting.push(this.#replay.first(retry));
  }

  send(data: string, event?: string): void {
    if (!this.isOpen) return;
    if (!this.#wasAttached && this.#waiting.length === 0) this.owner?.opening?.();
    this.#write(this.#frame(data, event));
  }

  /** Sends a last event, if any, and ends the response. */
  end(data?: string): void {
    if (!this.isOpen) return;
    this.#ended = true;
    const frame = data === undefined ? undefined : this.#frame(data);
    if (this.#response === undefined) {
      this.#hold(frame ?? '');
      return;
    }
    // One write for a response of one event: head and body leave in the same packet.
    this.#response.end(frame);
  }

  /** Called by the listener after `writeHead`. The head leaves at once, with what is waiting. */
  attach(response: ServerResponse): void {
    this.#response = response;
    this.#wasAttached = true;
    const waiting = this.#waiting.join('');
    this.#waiting = [];
    response.once('close', () => this.#left(response));
    if (this.#ended) {
      response.end(waiting);
      return;
    }
    OPEN.add(this);
    startHeartbeat();
    if (waiting !== '') this.#write(waiting);
    else response.flushHeaders();
  }

  /**
   * Goes on in another response, which is attached next, with what came after that event. False when that is not kept
   * any more.
   */
  resume(after: number): boolean {
    const frames = this.#replay?.after(after);
    if (frames === undefined) return false;
    const earlier = this.#response;
    this.#response = undefined;
    this.#isDetached = false;
    this.#waiting = frames;
    this.#caughtUp();
    earlier?.end();
    return true;
  }

  /** The client left before there was a response. */
  discard(): void {
    if (this.#wasAttached && this.#replay !== undefined && !this.#closed) this.#detach();
    else this.giveUp();
  }

  /** Nobody reads it, and nobody will. */
  giveUp(): void {
    this.#closed = true;
    this.#waiting = [];
    this.owner?.closed?.(false);
  }

  /** Ends the connection without an orderly end, so that the client does not take a part for the whole. */
  destroy(): void {
    this.#response?.destroy();
  }

  /** @internal Heartbeat: a comment when idle, the end of a reader that takes nothing. */
  beat(now: number): void {
    if (this.#stalledSince !== 0) {
      if (now - this.#stalledSince > LIMITS.writeStall) this.destroy();
      return;
    }
    this.#write(': keep-alive\n\n');
  }

  #frame(data: string, event?: string): string {
    return this.#replay === undefined ? formatEvent(data, event) : this.#replay.keep(data, event);
  }

  #left(response: ServerResponse): void {
    // Another response has taken over.
    if (this.#response !== response) return;
    OPEN.delete(this);
    if (this.#replay !== undefined && !response.writableFinished) {
      this.#detach();
      return;
    }
    this.#closed = true;
    this.#caughtUp();
    this.owner?.closed?.(response.writableFinished);
  }

  #detach(): void {
    this.#response = undefined;
    this.#isDetached = true;
    this.#waiting = [];
    this.#caughtUp();
    this.owner?.detached?.();
  }

  /** A reader that left is not slow any more. */
  #caughtUp(): void {
    if (this.#stalledSince === 0) return;
    this.#stalledSince = 0;
    this.owner?.pressure?.(false);
  }

  #hold(text: string): void {
    // It is kept for whoever comes back.
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

/** Open streams share one timer: a timer a stream would cost more than the stream. */
const OPEN = new Set<EventStream>();
let heartbeat: NodeJS.Timeout | undefined;

function startHeartbeat(): void {
  heartbeat ??= setInterval(() => {
    if (OPEN.size === 0) {
      clearInterval(heartbeat);
      heartbeat = undefined;
      return;
    }
    const now = Date.now();
    for (const stream of OPEN) stream.beat(now);
  }, LIMITS.heartbeat).unref();
}

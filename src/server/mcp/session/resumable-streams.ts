import { randomBytes } from 'node:crypto';
import type { Limits } from '../../../core/limits.ts';
import type { EventStream, EventStreamOwner } from '../../../core/sse.ts';
import type { RequestContext } from '../../kernel/request/request-context.ts';

/** The owner of an event stream that can be resumed: a call, or the GET stream of a session. */
export interface ResumableStream {
  /** The stream has ended: the client may only have missed its last events. */
  readonly isOver: boolean;
  /** Called when the client has not reconnected within `LIMITS.resumeTimeout`. */
  giveUp(): void;
  /** Resumes the stream after event number `after`. Undefined if later events were discarded. */
  resume(ctx: RequestContext, after: number): EventStream | undefined;
}

/** Part of stream ids, so that ids of other processes, or from before a restart, are unknown here. */
let processId: string | undefined;
/** Marks ids of GET streams: a client may always open another one, but not another response stream. */
const OF_SESSION = 's';
let streams = 0;

/** Whether an event id is that of a GET stream, of whatever session and process. */
export const isOfServerStream = (eventId: string): boolean => /-s\d{1,15}\.\d{1,15}$/.test(eventId);

/** The events of a stream that has ended. Its call is not kept: its request and connection are several KiB. */
class FinishedStream implements ResumableStream, EventStreamOwner {
  readonly stream: EventStream;
  readonly isOver = true;
  /** The client has disconnected, or has received the last event. */
  readonly closed: () => void;

  constructor(stream: EventStream, closed: () => void) {
    this.stream = stream;
    this.closed = closed;
    stream.owner = this;
  }

  giveUp(): void {
    // There is nothing to cancel.
  }

  resume(_ctx: RequestContext, after: number): EventStream | undefined {
    if (this.stream.resume(after)) return this.stream;
    // The client may request it again with another event id.
    this.closed();
    return undefined;
  }
}

/** The streams of one session that can be resumed. */
export class ResumableStreams {
  readonly #streams = new Map<
    string,
    { readonly owner: ResumableStream; timer: NodeJS.Timeout | undefined }
  >();

  readonly #limits: Limits;

  constructor(limits: Limits) {
    this.#limits = limits;
  }

  /**
   * Assigns an id to a stream; `isCall` is false for a GET stream. Undefined if `LIMITS.resumableStreams` streams that
   * have not ended have one.
   */
  add(owner: ResumableStream, isCall: boolean): string | undefined {
    if (this.#streams.size >= this.#limits.resumableStreams && !this.#removeOldest()) return undefined;
    streams += 1;
    processId ??= randomBytes(6).toString('base64url');
    const id = `${processId}-${isCall ? '' : OF_SESSION}${streams}`;
    this.#streams.set(id, { owner, timer: undefined });
    return id;
  }

  /** The client has disconnected. After `LIMITS.resumeTimeout`, the stream is given up. */
  disconnected(id: string): void {
    const entry = this.#streams.get(id);
    if (entry === undefined) return;
    clearTimeout(entry.timer);
    entry.timer = setTimeout(() => {
      this.#streams.delete(id);
      entry.owner.giveUp();
    }, this.#limits.resumeTimeout).unref();
  }

  /**
   * The call of a stream has ended, and the client may have missed its last events. Only these events are kept, not the call:
   * for `LIMITS.resumeTimeout`, and at most `LIMITS.resumableStreams` × `LIMITS.replayBytes` characters beside the newest stream.
   */
  finished(id: string, stream: EventStream): void {
    const entry = this.#streams.get(id);
    if (entry === undefined) return;
    clearTimeout(entry.timer);
    this.#streams.delete(id);
    const { resumableStreams, replayBytes } = this.#limits;
    while (this.#finishedSize() + stream.replaySize > resumableStreams * replayBytes && this.#removeOldest());
    const owner = new FinishedStream(stream, () => this.disconnected(id));
    this.#streams.set(id, { owner, timer: undefined });
    this.disconnected(id);
  }

  /** Characters of the events of all streams that have ended. */
  #finishedSize(): number {
    let size = 0;
    for (const { owner } of this.#streams.values())
      if (owner instanceof FinishedStream) size += owner.stream.replaySize;
    return size;
  }

  /** The stream cannot be resumed any more. */
  remove(id: string): void {
    clearTimeout(this.#streams.get(id)?.timer);
    this.#streams.delete(id);
  }

  /** Returns the stream of an event id and the number of the event, for a client that reconnected. Undefined if unknown. */
  reconnected(eventId: string): { readonly owner: ResumableStream; readonly after: number } | undefined {
    const [, id = '', after = ''] = /^([\w-]{1,64})\.(\d{1,15})$/.exec(eventId) ?? [];
    const entry = this.#streams.get(id);
    if (entry === undefined) return undefined;
    clearTimeout(entry.timer);
    return { owner: entry.owner, after: Number(after) };
  }

  /** Removes the oldest stream that has ended. Returns whether there was one. */
  #removeOldest(): boolean {
    for (const [id, { owner, timer }] of this.#streams) {
      if (!owner.isOver) continue;
      clearTimeout(timer);
      return this.#streams.delete(id);
    }
    return false;
  }

  /** Forgets all streams, at the end of the session. */
  close(): void {
    for (const { timer } of this.#streams.values()) clearTimeout(timer);
    this.#streams.clear();
  }
}

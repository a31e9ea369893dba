import { Readable } from 'node:stream';
import { LIMITS } from '../../core/limits.ts';
import type { TraceEvent } from '../../core/trace/event.ts';
import { endFrame, eventFrame, KEEPALIVE_FRAME, READY_FRAME } from '../../core/trace/frames.ts';
import { compileTraceFilter, type Watch, type Watchers } from './watchers.ts';

export interface TraceStreamOptions {
  /** CEL over the raw request; empty or undefined for any request. */
  readonly expression?: string | undefined;
  /** Many requests, not one; each event carries `requestId`. */
  readonly follow?: boolean | undefined;
  /** So many requests, as text; more than one carry `requestId`, too. The stream ends after the last. */
  readonly count?: string | undefined;
}

/** Headers of the answer to `/debug/trace`. */
export const TRACE_HEADERS = { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' } as const;

/** What waits for the reader of a stream. */
export interface Queued {
  readonly events: number;
  readonly bytes: number;
}

export type TraceOpening =
  | { readonly stream: Readable & { readonly queued: Queued } }
  /** Refused: `text` is plain and ends with a line break. */
  | { readonly status: 400 | 503; readonly text: string };

/**
 * Opens the stream behind `/debug/trace`: `: ready`, one `data:` frame an event, `: keepalive` every second, and its
 * end after the traced request is over, body and access log included. The watcher is registered before this returns.
 *
 * To mount it with fastify (a client that leaves destroys the stream, which takes the watcher back):
 *
 *     const opened = openTraceStream(gateway.watchers, { expression: query.expression, count: query.count });
 *     if ('text' in opened) return reply.code(opened.status).type('text/plain').send(opened.text);
 *     return reply.headers(TRACE_HEADERS).send(opened.stream);
 *
 * With `node:http`: `response.writeHead(200, TRACE_HEADERS)` and `pipeline(opened.stream, response, () => {})`.
 * A reader that is slow loses events beyond `LIMITS.traceQueueEvents` and `traceQueueBytes`; a `message` event says
 * where, and how many.
 */
export function openTraceStream(
  watchers: Watchers,
  { expression, follow, count }: TraceStreamOptions,
): TraceOpening {
  const compiled = expression === undefined || expression === '' ? undefined : compileTraceFilter(expression);
  if (compiled !== undefined && 'problem' in compiled)
    return { status: 400, text: `invalid expression: ${compiled.problem}\n` };
  if (count !== undefined && !/^[1-9]\d{0,5}$/.test(count))
    return { status: 400, text: 'invalid count: a number from 1 to 999999\n' };
  const stream = new TraceStream(follow === true && count === undefined);
  const watch = watchers.watch({
    filter: compiled?.filter,
    follow: follow === true,
    count: count === undefined ? undefined : Number(count),
    sink: (event) => stream.event(event),
    requestEnded: (requestId) => stream.requestEnded(requestId),
    ended: () => stream.finish(),
  });
  if (watch === undefined) {
    stream.destroy();
    return { status: 503, text: `${LIMITS.traceWatchers} traces are open already: close one of them\n` };
  }
  stream.begin(watch);
  return { stream };
}

/** Frames that wait for the reader: bounded, whatever the reader does. */
class TraceStream extends Readable {
  readonly #follows: boolean;
  #frames: string[] = [];
  #length = 0;
  #dropped = 0;
  #watch: Watch | undefined;
  #isDone = false;
  #wantsMore = false;
  #isPassing = false;
  #keepalive: NodeJS.Timeout | undefined;
  #end: NodeJS.Timeout | undefined;

  constructor(follows: boolean) {
    // Texts go through as they are; what waits is counted here, in characters.
    super({ encoding: 'utf8', highWaterMark: LIMITS.streamHighWaterBytes });
    this.#follows = follows;
  }

  get queued(): Queued {
    return { events: this.#frames.length, bytes: this.#length };
  }

  begin(watch: Watch): void {
    this.#watch = watch;
    this.#add(READY_FRAME);
    this.#keepalive = setInterval(() => {
      // A reader that has yet to take what waits for it needs no sign of life on top.
      if (this.#frames.length === 0) this.#add(KEEPALIVE_FRAME);
    }, LIMITS.traceKeepalive);
    if (this.#follows) this.#end = setTimeout(() => this.#timeIsUp(), LIMITS.traceFollowTime);
  }

  event(event: TraceEvent): void {
    if (this.#isDone) return;
    const frame = eventFrame(event);
    const isFull =
      this.#frames.length >= LIMITS.traceQueueEvents || this.#length + frame.length > LIMITS.traceQueueBytes;
    if (isFull) {
      this.#dropped += 1;
      return;
    }
    this.#noteDropped(event.eventEnd);
    this.#add(frame);
  }

  requestEnded(requestId: string): void {
    if (this.#isDone) return;
    this.#noteDropped(0);
    this.#add(endFrame(requestId));
  }

  /** The traced request is over, or the last of several. */
  finish(): void {
    if (this.#isDone) return;
    this.#noteDropped(0);
    this.#isDone = true;
    this.#stop();
    this.#pass();
  }

  override _read(): void {
    this.#wantsMore = true;
    this.#pass();
  }

  override _destroy(error: Error | null, callback: (error: Error | null) => void): void {
    this.#isDone = true;
    this.#stop();
    this.#frames = [];
    callback(error);
  }

  #noteDropped(eventEnd: number): void {
    if (this.#dropped === 0) return;
    const dropped = this.#dropped;
    this.#dropped = 0;
    const message = `${dropped} ${dropped === 1 ? 'event is' : 'events are'} missing here: the reader was too slow`;
    this.#add(
      eventFrame({
        eventStart: null,
        eventEnd,
        severity: 'warn',
        message: { type: 'message', message, dropped },
      }),
    );
  }

  #timeIsUp(): void {
    this.#watch?.cancel();
    this.finish();
  }

  #stop(): void {
    clearInterval(this.#keepalive);
    clearTimeout(this.#end);
    this.#watch?.cancel();
  }

  #add(frame: string): void {
    this.#frames.push(frame);
    this.#length += frame.length;
    this.#pass();
  }

  #pass(): void {
    // A push may ask for more before it returns.
    if (this.#isPassing) return;
    this.#isPassing = true;
    while (this.#wantsMore && this.#frames.length > 0) {
      this.#wantsMore = false;
      const frame = this.#frames.shift() as string;
      this.#length -= frame.length;
      if (this.push(frame)) this.#wantsMore = true;
    }
    this.#isPassing = false;
    if (this.#isDone && this.#frames.length === 0 && !this.destroyed) this.push(null);
  }
}

import { Readable } from 'node:stream';
import { LIMITS } from '../../core/limits.ts';
import type { TraceEvent } from '../../core/trace/event.ts';
import { endFrame, eventFrame, KEEPALIVE_FRAME, READY_FRAME } from './trace/frames.ts';
import { compileTraceFilter, type TraceSubscribers, type TraceSubscription } from './trace-subscribers.ts';

export interface TraceStreamOptions {
  /** CEL condition on the raw request. Empty or undefined: any request. */
  readonly expression?: string | undefined;
  /** Whether to trace requests until the client leaves. Default: one request. Events then carry `requestId`. */
  readonly follow?: boolean | undefined;
  /** Number of requests to trace, 1 to 999999, as text. Events carry `requestId` if it is more than 1. */
  readonly count?: string | undefined;
}

/** Frames not yet read by the client. */
export interface Queued {
  readonly events: number;
  readonly bytes: number;
}

export type TraceOpening =
  | { readonly stream: Readable & { readonly queued: Queued } }
  /** Rejected: 400 for an invalid option, 503 at the subscriber limit. `text` is plain text and ends with a newline. */
  | { readonly status: 400 | 503; readonly text: string };

/**
 * Opens the stream behind `/debug/trace`: `: ready`, one `data:` frame per event, and `: keepalive` every
 * `LIMITS.traceKeepalive` ms while nothing is queued. It ends after the traced request, including its body and
 * access-log line. The subscriber is registered before this function returns.
 *
 * Usage with fastify (a client that disconnects destroys the stream, which cancels the subscription):
 *
 *     const opened = openTraceStream(gateway.traceSubscribers, { expression, count });
 *     if ('text' in opened) return reply.code(opened.status).type('text/plain').send(opened.text);
 *     return reply.headers(EVENT_STREAM_HEADERS).send(opened.stream);
 *
 * With `node:http`: `response.writeHead(200, EVENT_STREAM_HEADERS)` and `pipeline(opened.stream, response, () => {})`.
 * Events beyond `LIMITS.traceQueueEvents` or `LIMITS.traceQueueBytes` are dropped; a `message` event reports where and
 * how many.
 */
export function openTraceStream(
  subscribers: Pick<TraceSubscribers, 'subscribe'>,
  { expression, follow, count }: TraceStreamOptions,
): TraceOpening {
  const compiled = expression === undefined || expression === '' ? undefined : compileTraceFilter(expression);
  if (compiled !== undefined && 'problem' in compiled)
    return { status: 400, text: `invalid expression: ${compiled.problem}\n` };
  if (count !== undefined && !/^[1-9]\d{0,5}$/.test(count))
    return { status: 400, text: 'invalid count: a number from 1 to 999999\n' };
  const stream = new TraceStream(follow === true && count === undefined);
  const subscription = subscribers.subscribe({
    filter: compiled?.filter,
    expression: expression === '' ? undefined : expression,
    follow: follow === true,
    count: count === undefined ? undefined : Number(count),
    sink: (event) => stream.event(event),
    requestEnded: (requestId) => stream.requestEnded(requestId),
    ended: () => stream.finish(),
  });
  if (subscription === undefined) {
    stream.destroy();
    return { status: 503, text: `${LIMITS.traceWatchers} traces are open already: close one of them\n` };
  }
  stream.begin(subscription);
  return { stream };
}

/** A bounded queue of frames for one reader. */
class TraceStream extends Readable {
  readonly #follows: boolean;
  #frames: string[] = [];
  #length = 0;
  #dropped = 0;
  #subscription: TraceSubscription | undefined;
  #isDone = false;
  #wantsMore = false;
  #isPassing = false;
  #keepalive: NodeJS.Timeout | undefined;
  #end: NodeJS.Timeout | undefined;

  constructor(follows: boolean) {
    // Frames are passed on unchanged; the queue is counted here, in characters.
    super({ encoding: 'utf8', highWaterMark: LIMITS.streamHighWaterBytes });
    this.#follows = follows;
  }

  get queued(): Queued {
    return { events: this.#frames.length, bytes: this.#length };
  }

  begin(subscription: TraceSubscription): void {
    this.#subscription = subscription;
    if (subscription.ready === undefined) this.#add(READY_FRAME);
    else void subscription.ready.then(() => this.#add(READY_FRAME));
    this.#keepalive = setInterval(() => {
      // Queued frames already keep the connection alive.
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

  /** Ends the stream after the queued frames. Called after the last traced request. */
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
    this.#subscription?.cancel();
    this.finish();
  }

  #stop(): void {
    clearInterval(this.#keepalive);
    clearTimeout(this.#end);
    this.#subscription?.cancel();
  }

  #add(frame: string): void {
    this.#frames.push(frame);
    this.#length += frame.length;
    this.#pass();
  }

  #pass(): void {
    // `push` may call `_read` before it returns.
    if (this.#isPassing) return;
    this.#isPassing = true;
    while (this.#wantsMore && this.#frames.length > 0) {
      this.#wantsMore = false;
      const frame = this.#frames.shift() ?? '';
      this.#length -= frame.length;
      if (this.push(frame)) this.#wantsMore = true;
    }
    this.#isPassing = false;
    if (this.#isDone && this.#frames.length === 0 && !this.destroyed) this.push(null);
  }
}

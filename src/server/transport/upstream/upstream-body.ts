import type { Dispatcher } from 'undici';
import type { BodyWriter } from '../../../core/body-writer.ts';
import { AppError } from '../../../core/errors.ts';
import { LIMITS } from '../../../core/limits.ts';

/** Receives a body as it arrives. */
export interface BodySink {
  /** Returns false to pause the body until `UpstreamBody.resume` is called. */
  push(chunk: Buffer): boolean;
  end(): void;
  /** The upstream ended the body early, or was silent for too long (`isTimeout`). */
  fail(why: string, isTimeout: boolean): void;
  /** Whether it also gets what a body had received that failed before it was consumed. */
  readonly takesRest?: true;
}

/** Changes a body as it arrives. It may hold back bytes until the next chunk, or the end. */
export interface BodyFilter {
  push(chunk: Buffer): Buffer;
  end(): Buffer;
}

/** What a body asks of where it comes from, such as a response of undici. */
export type BodyController = Pick<Dispatcher.DispatchController, 'pause' | 'resume' | 'abort'>;

/**
 * A response body that is forwarded from an upstream to a client without a stream object between them, which halves the
 * cost of a small response. Applies back-pressure to the upstream. If the upstream ends the body early, the response is
 * aborted too, so that the client does not mistake it for complete.
 */
export class UpstreamBody {
  readonly #controller: BodyController;
  readonly #held: Buffer[] = [];
  #heldBytes = 0;
  #sink: BodySink | undefined;
  #filter: BodyFilter | undefined;
  #ended = false;
  /** Bytes that are held before the upstream is paused. */
  #holdBytes: number = LIMITS.streamHighWaterBytes;
  /** Called when the body has ended, failed, or is larger than `#holdBytes`. */
  #onHeld: (() => void) | undefined;
  /** Whether the sink has paused the body. */
  #isPaused = false;
  #failed: { readonly why: string; readonly isTimeout: boolean } | undefined;
  /** Called with every chunk that is sent to the client, for token counts and the access log. Add them before `attach`. */
  readonly observers: { see(chunk: Buffer): void }[] = [];

  /** Called when the whole body was sent, before its end: the response ends when that has settled. */
  beforeEnd: (() => void | Promise<void>) | undefined;

  /** Notified if the upstream ends the body early. */
  watcher: { bodyFailed(why: string, isTimeout: boolean): void } | undefined;

  constructor(controller: BodyController) {
    this.#controller = controller;
  }

  /** Changes what is held, and what follows. */
  changeWith(filter: BodyFilter): void {
    const held = this.#held.splice(0).map((chunk) => filter.push(chunk));
    if (this.#ended) held.push(filter.end());
    else this.#filter = filter;
    this.#held.push(...held.filter(({ length }) => length > 0));
    this.#heldBytes = this.#held.reduce((sum, { length }) => sum + length, 0);
  }

  push(received: Buffer): void {
    const chunk = this.#filter?.push(received) ?? received;
    // undici gives an empty chunk at once when it resumes. A sink that pauses again would be resumed without end.
    if (chunk.length === 0) return;
    if (this.#sink === undefined || this.#isPaused) {
      this.#held.push(chunk);
      this.#heldBytes += chunk.length;
      // A small body is complete before the response headers are written, and is sent together with them.
      if (this.#heldBytes > this.#holdBytes) {
        this.#controller.pause();
        this.#onHeld?.();
      }
      return;
    }
    this.#give(chunk, this.#sink);
  }

  end(): void {
    const filter = this.#filter;
    this.#filter = undefined;
    if (filter !== undefined) this.push(filter.end());
    this.#ended = true;
    this.#onHeld?.();
    this.#finish();
  }

  /** Whether the body has already ended, without a byte. */
  get isEmpty(): boolean {
    return this.#ended && this.#failed === undefined && this.#heldBytes === 0;
  }

  /**
   * Waits for the whole body, up to `limit` bytes; more of it stays at the upstream. Resolves to the bytes received, and
   * whether these are all of it. The body can still be attached or consumed afterwards.
   *
   * @throws AppError if the body ends early
   */
  async hold(limit: number): Promise<{ readonly bytes: Buffer; readonly isComplete: boolean }> {
    this.#holdBytes = limit;
    if (!this.#ended && this.#failed === undefined && this.#heldBytes <= limit) {
      await new Promise<void>((resolve) => {
        this.#onHeld = resolve;
        this.#controller.resume();
      });
      this.#onHeld = undefined;
    }
    this.#holdBytes = LIMITS.streamHighWaterBytes;
    if (this.#failed !== undefined) {
      const { why, isTimeout } = this.#failed;
      throw new AppError(isTimeout ? 'upstream_timeout' : 'upstream_invalid', {
        message: `upstream call failed: ${why}`,
      });
    }
    return { bytes: Buffer.concat(this.#held), isComplete: this.#ended && this.#heldBytes <= limit };
  }

  fail(why: string, isTimeout = false): void {
    // Of a body that was discarded or cut, this is only the end of its request.
    if (this.#ended || this.#failed !== undefined) return;
    this.#failed = { why, isTimeout };
    this.#onHeld?.();
    this.watcher?.bodyFailed(why, isTimeout);
    this.#sink?.fail(why, isTimeout);
  }

  /** Passes the received and all further chunks to `sink`. */
  consume(sink: BodySink): void {
    this.#sink = sink;
    if (this.#failed === undefined) this.resume();
    else {
      if (sink.takesRest === true)
        for (const chunk of this.#held.splice(0)) {
          this.#observe(chunk);
          sink.push(chunk);
        }
      sink.fail(this.#failed.why, this.#failed.isTimeout);
    }
  }

  /** Continues after the sink has paused the body. */
  resume(): void {
    const sink = this.#sink;
    if (sink === undefined || this.#failed !== undefined) return;
    this.#isPaused = false;
    for (let chunk = this.#held.shift(); chunk !== undefined; chunk = this.#held.shift()) {
      this.#heldBytes -= chunk.length;
      this.#give(chunk, sink);
      // undici may still deliver chunks after `pause`: these are held here.
      if (this.#isPaused) return;
    }
    if (this.#ended) this.#finish();
    else this.#controller.resume();
  }

  #give(chunk: Buffer, sink: BodySink): void {
    this.#observe(chunk);
    if (sink.push(chunk)) return;
    this.#isPaused = true;
    if (!this.#ended) this.#controller.pause();
  }

  #finish(): void {
    this.watcher = undefined;
    const sink = this.#sink;
    if (sink === undefined || this.#isPaused || this.#held.length > 0) return;
    this.#sink = undefined;
    const settled = this.beforeEnd?.();
    if (settled === undefined) sink.end();
    else
      settled.then(
        () => sink.end(),
        () => sink.end(),
      );
  }

  #observe(chunk: Buffer): void {
    for (const observer of this.observers) observer.see(chunk);
  }

  /** Called by the listener after `writeHead`. */
  attach(response: BodyWriter): void {
    if (this.#ended && this.#failed === undefined && this.beforeEnd === undefined) {
      // Complete already: one write, so that headers and body are sent in the same packet.
      for (const chunk of this.#held) this.#observe(chunk);
      response.end(this.#held.length === 1 ? this.#held[0] : Buffer.concat(this.#held));
      return;
    }
    // An event stream may be silent for a long time after its headers, which the client is waiting for.
    if (this.#held.length === 0) response.flushHeaders();
    this.consume(responseSink(response, this));
  }

  /** Ends the body here, as if the upstream had: for streams of events, each of which is complete. */
  cut(): void {
    if (this.#ended || this.#failed !== undefined) return;
    this.#held.length = 0;
    this.#isPaused = false;
    this.#ended = true;
    this.#finish();
    this.#controller.abort(new Error('the stream was ended'));
  }

  /** Another body is sent instead: observers see what was held, and the rest is not read. */
  replaced(): void {
    for (const chunk of this.#held) this.#observe(chunk);
    this.watcher = undefined;
    if (this.#ended || this.#failed !== undefined) return;
    this.#failed = { why: 'another body is sent instead', isTimeout: false };
    this.#controller.abort(new Error('another body is sent instead'));
  }

  /**
   * Discards the rest of the body and aborts the request to the upstream. Whoever does so knows why: neither the sink nor the
   * watcher is told, because the upstream has not failed.
   */
  discard(): void {
    if (this.#ended || this.#failed !== undefined) return;
    this.#failed = { why: DISCARDED, isTimeout: false };
    this.#controller.abort(new Error(DISCARDED));
  }
}

const DISCARDED = 'the rest of the response is not needed';

/** The source of a body that is written to a client. */
interface BodySource {
  /** The client can receive more. */
  resume(): void;
  /** The client has disconnected. */
  discard(): void;
}

/** Writes a body to a client. If the client does not read for `LIMITS.writeStall` (30 s), the connection is destroyed. */
export function responseSink(response: BodyWriter, source: BodySource): BodySink {
  const sink = new ResponseSink(response, source);
  (response as ResponseWithSink)[SINK] = sink;
  response.once('close', onClose);
  return sink;
}

/**
 * The sink is a property of its response, not the value of a `WeakMap` entry. V8 treats the values in a map that has
 * reached the old generation as roots of every scavenge, and a sink refers to its response: each request would stay until
 * the next full collection.
 */
const SINK = Symbol('sink');

interface ResponseWithSink extends BodyWriter {
  [SINK]?: ResponseSink;
}

// The same two functions for all responses: closures would keep whole requests alive until a full collection.
function onClose(this: ResponseWithSink): void {
  this[SINK]?.closed();
}

function onDrain(this: ResponseWithSink): void {
  this[SINK]?.drained();
}

class ResponseSink implements BodySink {
  readonly #response: BodyWriter;
  readonly #source: BodySource;
  #stall: NodeJS.Timeout | undefined;

  constructor(response: BodyWriter, source: BodySource) {
    this.#response = response;
    this.#source = source;
  }

  push(chunk: Buffer): boolean {
    if (this.#response.write(chunk)) return true;
    // Only one timer, although a paused upstream may still deliver chunks.
    if (this.#stall === undefined) {
      this.#stall = setTimeout(destroy, LIMITS.writeStall, this.#response);
      this.#response.once('drain', onDrain);
    }
    return false;
  }

  end(): void {
    this.#response.end();
  }

  fail(): void {
    this.#response.destroy();
  }

  drained(): void {
    clearTimeout(this.#stall);
    this.#stall = undefined;
    this.#source.resume();
  }

  closed(): void {
    clearTimeout(this.#stall);
    this.#source.discard();
  }
}

const destroy = (response: BodyWriter): unknown => response.destroy();

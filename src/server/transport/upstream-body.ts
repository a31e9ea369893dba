import type { ServerResponse } from 'node:http';
import type { Dispatcher } from 'undici';
import { LIMITS } from '../../core/limits.ts';

/** Takes a body in as it arrives. */
export interface BodySink {
  /** Returns false to be given no more until `UpstreamBody.resume` is called. */
  push(chunk: Buffer): boolean;
  end(): void;
  /** The upstream broke off, or sent nothing for too long. */
  fail(why: string, isTimeout: boolean): void;
}

/**
 * A response body on its way from an upstream to a client, without a stream object between the two: that halves
 * the cost of a small response. Back-pressure goes through, and an upstream that breaks off breaks the
 * response off, so that a client never takes a part for the whole.
 */
export class UpstreamBody {
  readonly #controller: Dispatcher.DispatchController;
  readonly #held: Buffer[] = [];
  #heldBytes = 0;
  #sink: BodySink | undefined;
  #ended = false;
  /** The sink wants no more for a while. */
  #isPaused = false;
  #failed: { readonly why: string; readonly isTimeout: boolean } | undefined;
  /** See every chunk when it goes to the client: the token count, the access log. Added before that begins. */
  readonly observers: { see(chunk: Buffer): void }[] = [];

  /** The body did not reach its end: the upstream broke off, or the client left. */
  watcher: { bodyBroken(why: string, isTimeout: boolean): void } | undefined;

  constructor(controller: Dispatcher.DispatchController) {
    this.#controller = controller;
  }

  push(chunk: Buffer): void {
    if (this.#sink === undefined || this.#isPaused) {
      this.#held.push(chunk);
      this.#heldBytes += chunk.length;
      // A small body is whole before its head is written, and then leaves with it.
      if (this.#heldBytes > LIMITS.streamHighWaterBytes) this.#controller.pause();
      return;
    }
    this.#give(chunk, this.#sink);
  }

  end(): void {
    this.#ended = true;
    this.#finish();
  }

  fail(why: string, isTimeout = false): void {
    this.#failed = { why, isTimeout };
    this.watcher?.bodyBroken(why, isTimeout);
    this.#sink?.fail(why, isTimeout);
  }

  /** Hands over what has arrived and what still will. */
  consume(sink: BodySink): void {
    this.#sink = sink;
    if (this.#failed !== undefined) sink.fail(this.#failed.why, this.#failed.isTimeout);
    else this.resume();
  }

  /** Goes on after the sink wanted no more for a while. */
  resume(): void {
    const sink = this.#sink;
    if (sink === undefined || this.#failed !== undefined) return;
    this.#isPaused = false;
    while (this.#held.length > 0) {
      const chunk = this.#held.shift() as Buffer;
      this.#heldBytes -= chunk.length;
      this.#give(chunk, sink);
      // An upstream may hand over some more after it was asked to wait: that waits here.
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
    sink.end();
  }

  #observe(chunk: Buffer): void {
    for (const observer of this.observers) observer.see(chunk);
  }

  /** Called by the listener after `writeHead`. */
  attach(response: ServerResponse): void {
    if (this.#ended && this.#failed === undefined) {
      // Whole already: one write, so that head and body leave in the same packet.
      for (const chunk of this.#held) this.#observe(chunk);
      response.end(this.#held.length === 1 ? this.#held[0] : Buffer.concat(this.#held));
      return;
    }
    // An event stream may stay silent for long after its head, which its reader waits for.
    if (this.#held.length === 0) response.flushHeaders();
    this.consume(responseSink(response, this));
  }

  /** Nobody wants the rest: the connection to the upstream is given up. */
  discard(): void {
    if (this.#ended || this.#failed !== undefined) return;
    this.#failed = { why: 'the client left before the end of the response', isTimeout: false };
    this.watcher?.bodyBroken(this.#failed.why, false);
    this.#controller.abort(new Error('the client left'));
  }
}

/** Where a body comes from. */
interface BodySource {
  /** The client has caught up. */
  resume(): void;
  /** The client has left. */
  discard(): void;
}

/** Writes to a client. One that takes nothing for long is cut off. */
export function responseSink(response: ServerResponse, source: BodySource): BodySink {
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

interface ResponseWithSink extends ServerResponse {
  [SINK]?: ResponseSink;
}

// The same two functions for all responses: closures would keep whole requests alive.
function onClose(this: ResponseWithSink): void {
  this[SINK]?.closed();
}

function onDrain(this: ResponseWithSink): void {
  this[SINK]?.drained();
}

class ResponseSink implements BodySink {
  readonly #response: ServerResponse;
  readonly #source: BodySource;
  #stall: NodeJS.Timeout | undefined;

  constructor(response: ServerResponse, source: BodySource) {
    this.#response = response;
    this.#source = source;
  }

  push(chunk: Buffer): boolean {
    if (this.#response.write(chunk)) return true;
    // One timer, although a paused upstream may still hand over what it has.
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

const destroy = (response: ServerResponse): unknown => response.destroy();

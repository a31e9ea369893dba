import type { ServerResponse } from 'node:http';
import type { Dispatcher } from 'undici';
import { LIMITS } from '../../core/limits.ts';

/** Takes a body in as it arrives. */
export interface BodySink {
  /** Returns false to be given no more until `UpstreamBody.resume` is called. */
  push(chunk: Buffer): boolean;
  end(): void;
  /** The upstream broke off. */
  fail(): void;
}

/**
 * A response body on its way from an upstream to a client, without a stream object between the two: that halves
 * the cost of a small response. Back-pressure goes through, and an upstream that breaks off breaks the
 * response off, so that a client never takes a part for the whole.
 */
export class UpstreamBody {
  readonly #controller: Dispatcher.DispatchController;
  readonly #held: Buffer[] = [];
  #sink: BodySink | undefined;
  #ended = false;
  #failed = false;
  /** See every chunk when it goes to the client: the token count, the access log. Added before that begins. */
  readonly observers: ((chunk: Buffer) => void)[] = [];

  /** The body did not reach its end: the upstream broke off, or the client left. */
  onBroken: ((why: string) => void) | undefined;

  constructor(controller: Dispatcher.DispatchController) {
    this.#controller = controller;
  }

  push(chunk: Buffer): void {
    if (this.#sink === undefined) {
      this.#held.push(chunk);
      this.#controller.pause();
    } else {
      this.#observe(chunk);
      if (!this.#sink.push(chunk)) this.#controller.pause();
    }
  }

  #observe(chunk: Buffer): void {
    for (const observer of this.observers) observer(chunk);
  }

  end(): void {
    this.#ended = true;
    this.#sink?.end();
  }

  fail(why: string): void {
    this.#failed = true;
    this.onBroken?.(why);
    this.#sink?.fail();
  }

  /** Hands over what has arrived and what still will. */
  consume(sink: BodySink): void {
    this.#sink = sink;
    let wantsMore = true;
    for (const chunk of this.#held.splice(0)) {
      this.#observe(chunk);
      wantsMore = sink.push(chunk);
    }
    if (this.#failed) sink.fail();
    else if (this.#ended) sink.end();
    else if (wantsMore) this.#controller.resume();
  }

  resume(): void {
    if (!this.#ended && !this.#failed) this.#controller.resume();
  }

  /** Called by the listener after `writeHead`. */
  attach(response: ServerResponse): void {
    if (this.#ended && !this.#failed) {
      // Whole already: one write, so that head and body leave in the same packet.
      for (const chunk of this.#held) this.#observe(chunk);
      response.end(this.#held.length === 1 ? this.#held[0] : Buffer.concat(this.#held));
      return;
    }
    response.once('close', () => this.discard());
    // An event stream may stay silent for long after its head, which its reader waits for.
    if (this.#held.length === 0) response.flushHeaders();
    this.consume(responseSink(response, () => this.resume()));
  }

  /** Nobody wants the rest: the connection to the upstream is given up. */
  discard(): void {
    if (this.#ended || this.#failed) return;
    this.#failed = true;
    this.onBroken?.('the client left before the end of the response');
    this.#controller.abort(new Error('the client left'));
  }
}

/** Writes to a client. `resume` is called when the client has caught up; one that takes nothing for long is cut off. */
export function responseSink(response: ServerResponse, resume: () => void): BodySink {
  let stall: NodeJS.Timeout | undefined;
  response.once('close', () => clearTimeout(stall));
  response.on('drain', () => {
    clearTimeout(stall);
    stall = undefined;
    resume();
  });
  return {
    push(chunk) {
      if (response.write(chunk)) return true;
      // One timer, although a paused upstream may still hand over what it has.
      stall ??= setTimeout(() => response.destroy(), LIMITS.writeStall);
      return false;
    },
    end: () => void response.end(),
    fail: () => void response.destroy(),
  };
}

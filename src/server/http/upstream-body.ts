import type { ServerResponse } from 'node:http';
import type { Dispatcher } from 'undici';
import { LIMITS } from '../../core/limits.ts';

/**
 * A response body on its way from an upstream to a client, without a stream object between the two: that halves
 * the cost of a small response. Back-pressure goes through, and an upstream that breaks off breaks the
 * response off, so that a client never takes a part for the whole.
 */
export class UpstreamBody {
  readonly #controller: Dispatcher.DispatchController;
  readonly #held: Buffer[] = [];
  #response: ServerResponse | undefined;
  #stall: NodeJS.Timeout | undefined;
  #ended = false;
  #failed = false;
  /** Sees every chunk on its way, for what an expression reads of the body later. */
  onChunk: ((chunk: Buffer) => void) | undefined;

  constructor(controller: Dispatcher.DispatchController) {
    this.#controller = controller;
  }

  push(chunk: Buffer): void {
    this.onChunk?.(chunk);
    const response = this.#response;
    if (response === undefined) {
      this.#held.push(chunk);
      this.#controller.pause();
      return;
    }
    if (!response.write(chunk)) this.#wait(response);
  }

  end(): void {
    this.#ended = true;
    this.#response?.end();
  }

  fail(): void {
    this.#failed = true;
    this.#response?.destroy();
  }

  /** Called by the listener after `writeHead`. */
  attach(response: ServerResponse): void {
    this.#response = response;
    if (this.#failed) {
      response.destroy();
      return;
    }
    response.once('close', () => {
      clearTimeout(this.#stall);
      if (!this.#ended) this.discard();
    });
    if (this.#ended) {
      response.end(this.#held.length === 1 ? this.#held[0] : Buffer.concat(this.#held));
      return;
    }
    for (const chunk of this.#held.splice(0)) response.write(chunk);
    this.#controller.resume();
  }

  /** Nobody wants the rest: the connection to the upstream is given up. */
  discard(): void {
    if (!this.#ended && !this.#failed) this.#controller.abort(new Error('the client left'));
  }

  #wait(response: ServerResponse): void {
    this.#controller.pause();
    this.#stall = setTimeout(() => response.destroy(), LIMITS.writeStall);
    response.once('drain', () => {
      clearTimeout(this.#stall);
      this.#controller.resume();
    });
  }
}

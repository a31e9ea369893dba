import type { Queued } from '../server/observe/trace-stream.ts';

/** An open stream. `queued`: data that its reader has not read yet, if that is bounded. */
export interface AdminStream {
  end(): void;
  queued?(): Queued;
}

/** How often open streams are checked, in ms. */
const INTERVAL = 1000;

/**
 * The open streams of an admin server. Each ends soon after its caller would be refused, or shown less, by a configuration that was
 * reloaded meanwhile. They are looked at together: a stream has no timer of its own.
 */
export class OpenStreams implements Iterable<AdminStream> {
  readonly #streams = new Map<AdminStream, () => boolean>();
  #timer: NodeJS.Timeout | undefined;

  get size(): number {
    return this.#streams.size;
  }

  [Symbol.iterator](): Iterator<AdminStream> {
    return this.#streams.keys();
  }

  /** Adds a stream until the returned function is called. `isAllowed`: whether its caller would still get the same. */
  add(stream: AdminStream, isAllowed: () => boolean): () => void {
    this.#streams.set(stream, isAllowed);
    this.#timer ??= setInterval(() => this.#check(), INTERVAL).unref();
    return () => {
      this.#streams.delete(stream);
      if (this.#streams.size === 0) this.#stop();
    };
  }

  /** Ends all of them. */
  end(): void {
    for (const stream of [...this.#streams.keys()]) stream.end();
    this.#stop();
  }

  #check(): void {
    for (const [stream, isAllowed] of [...this.#streams]) if (!isAllowed()) stream.end();
  }

  #stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

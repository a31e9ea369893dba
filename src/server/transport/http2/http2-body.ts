import type { ServerHttp2Stream } from 'node:http2';
import { Readable } from 'node:stream';

/**
 * The body of a request over HTTP/2. A stream of its own, because readers destroy what they have read, such as undici, and
 * the stream of HTTP/2 also carries the response.
 */
export class Http2Body extends Readable {
  readonly #stream: ServerHttp2Stream;
  #isReading = false;
  #isOver = false;

  constructor(stream: ServerHttp2Stream) {
    super();
    this.#stream = stream;
  }

  override _read(): void {
    if (this.#isReading) this.#stream.resume();
    else this.#start();
  }

  #start(): void {
    this.#isReading = true;
    const stream = this.#stream;
    // Node.js reads the end of an empty body before anybody has asked for it.
    if (stream.readableEnded) {
      this.#end();
      return;
    }
    stream.on('data', (chunk: Buffer) => {
      if (!this.push(chunk)) stream.pause();
    });
    stream.once('end', () => this.#end());
    stream.once('close', () => {
      if (!this.#isOver) this.destroy(new Error('the client has ended the request early'));
    });
  }

  #end(): void {
    this.#isOver = true;
    this.push(null);
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#stream.pause();
    done(error);
  }
}

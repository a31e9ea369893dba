import { EventEmitter } from 'node:events';
import { Readable } from 'node:stream';
import type { BodyWriter } from '../../../core/body-writer.ts';
import type { StreamingBody } from '../../kernel/request/request-context.ts';
import { type BodySink, UpstreamBody } from '../../transport/upstream/upstream-body.ts';

/** A body that is read as it arrives. */
export interface BodySource {
  /** Called once. */
  consume(sink: BodySink): void;
  /** Continues after the sink has returned false. */
  resume(): void;
  /** The rest is not needed. */
  discard(): void;
}

/** A body that is complete. */
export function bytesSource(bytes: Buffer): BodySource {
  return {
    consume(sink) {
      sink.push(bytes);
      sink.end();
    },
    resume: () => undefined,
    discard: () => undefined,
  };
}

/** The body of a request. Its rest is read and dropped when it is discarded: the client is still sending it. */
export function streamSource(stream: Readable): BodySource {
  return {
    consume(sink) {
      let isOver = false;
      const fail = (): void => {
        if (!isOver) sink.fail('the request body ended early', false);
        isOver = true;
      };
      stream
        .on('data', (chunk: Buffer) => {
          if (!sink.push(chunk)) stream.pause();
        })
        .on('end', () => {
          isOver = true;
          sink.end();
        })
        .on('error', fail)
        .on('close', fail);
    },
    resume: () => void stream.resume(),
    discard: () => void stream.resume(),
  };
}

/** The body of a response. */
export function replySource(body: string | Uint8Array | StreamingBody): BodySource {
  if (body instanceof UpstreamBody) return body;
  if (typeof body === 'string') return bytesSource(Buffer.from(body));
  if (body instanceof Uint8Array)
    return bytesSource(Buffer.from(body.buffer, body.byteOffset, body.byteLength));
  return new WrittenBody(body);
}

/** Reads a body that writes itself to a response. */
class WrittenBody extends EventEmitter implements BodySource, BodyWriter {
  readonly headersSent = true;
  destroyed = false;
  writableFinished = false;
  readonly #body: StreamingBody;
  #sink: BodySink | undefined;
  /** What was written while the sink was paused. */
  readonly #held: Buffer[] = [];
  #isPaused = false;
  #isEnded = false;

  constructor(body: StreamingBody) {
    super();
    this.#body = body;
  }

  consume(sink: BodySink): void {
    this.#sink = sink;
    this.#body.attach(this);
  }

  resume(): void {
    this.#isPaused = false;
    while (this.#held.length > 0 && !this.#isPaused) this.#give(this.#held.shift());
    if (this.#isPaused) return;
    if (this.#isEnded) this.#finish();
    else this.emit('drain');
  }

  discard(): void {
    if (this.#sink === undefined) this.#body.discard();
    else this.#close();
  }

  get writableLength(): number {
    return this.#held.reduce((sum, { length }) => sum + length, 0);
  }

  write(chunk: string | Uint8Array): boolean {
    if (this.destroyed || this.#isEnded || chunk.length === 0) return !this.#isPaused;
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : Buffer.from(chunk);
    if (this.#isPaused) this.#held.push(bytes);
    else this.#give(bytes);
    return !this.#isPaused;
  }

  end(chunk?: string | Uint8Array): void {
    if (chunk !== undefined) this.write(chunk);
    if (this.#isEnded || this.destroyed) return;
    this.#isEnded = true;
    if (!this.#isPaused) this.#finish();
  }

  flushHeaders(): void {}

  destroy(): void {
    if (this.destroyed || this.writableFinished) return;
    this.#sink?.fail('the response ended early', false);
    this.#close();
  }

  #give(bytes: Buffer | undefined): void {
    if (bytes !== undefined && this.#sink?.push(bytes) === false) this.#isPaused = true;
  }

  #finish(): void {
    if (this.destroyed || this.writableFinished) return;
    this.writableFinished = true;
    this.#sink?.end();
    this.emit('finish');
    this.#close();
  }

  #close(): void {
    if (this.destroyed) return;
    this.destroyed = true;
    this.emit('close');
  }
}

/** What the reader of a body asks for. */
export interface OutputControl {
  pause(): void;
  resume(): void;
  /** The reader needs no more. */
  discard(): void;
}

/** A body that is written as it arrives. */
export interface BodyOutput<Body = unknown> {
  readonly body: Body;
  /** Bytes that its reader has not taken, of a request. */
  readonly held?: number;
  push(chunk: Buffer): void;
  end(): void;
  fail(why: string): void;
}

/** A body for the backend. */
export function requestOutput(control: OutputControl): BodyOutput<Readable> {
  const body = new Readable({
    read: () => control.resume(),
    destroy(error, done) {
      control.discard();
      done(error);
    },
  });
  // Its reader has listeners of its own; without a reader, an error is of no interest.
  body.on('error', () => undefined);
  return {
    body,
    get held() {
      return body.readableLength;
    },
    push: (chunk) => void (body.push(chunk) || control.pause()),
    end: () => void body.push(null),
    fail: (why) => void body.destroy(new Error(why)),
  };
}

/** A body for the client. */
export function replyOutput({ pause, resume, discard }: OutputControl): BodyOutput<UpstreamBody> {
  const body = new UpstreamBody({ pause, resume, abort: discard });
  return {
    body,
    push: (chunk) => body.push(chunk),
    end: () => body.end(),
    fail: (why) => body.fail(why),
  };
}

import type { BodyWriter } from '../../core/body-writer.ts';
import type { StreamingBody } from '../../server/kernel/request/request-context.ts';

/** Sees the chunks of a body when they are written. */
type See = (chunk: Uint8Array) => void;

/** A body that writes itself as it would, and shows what it writes. */
export class RecordedBody implements StreamingBody {
  readonly #body: StreamingBody;
  readonly #see: See;

  constructor(body: StreamingBody, see: See) {
    this.#body = body;
    this.#see = see;
  }

  get size(): number | undefined {
    return this.#body.size;
  }

  attach(response: BodyWriter): void {
    this.#body.attach(new RecordedWriter(response, this.#see));
  }

  discard(): void {
    this.#body.discard();
  }

  expired(): boolean {
    return this.#body.expired?.() ?? false;
  }
}

class RecordedWriter implements BodyWriter {
  readonly #response: BodyWriter;
  readonly #see: See;

  constructor(response: BodyWriter, see: See) {
    this.#response = response;
    this.#see = see;
  }

  get headersSent(): boolean {
    return this.#response.headersSent;
  }

  get destroyed(): boolean {
    return this.#response.destroyed;
  }

  get writableFinished(): boolean {
    return this.#response.writableFinished;
  }

  get writableLength(): number {
    return this.#response.writableLength;
  }

  write(chunk: string | Uint8Array): boolean {
    this.#sent(bytesOf(chunk, 'utf8'));
    return this.#response.write(chunk);
  }

  end(chunk?: string | Uint8Array, encoding?: BufferEncoding): unknown {
    if (chunk !== undefined) this.#sent(bytesOf(chunk, encoding ?? 'utf8'));
    return this.#response.end(chunk, encoding);
  }

  /** A client that has left does not get what is written now. */
  #sent(chunk: Uint8Array): void {
    if (!this.#response.destroyed) this.#see(chunk);
  }

  flushHeaders(): void {
    this.#response.flushHeaders();
  }

  destroy(): unknown {
    return this.#response.destroy();
  }

  once(event: 'close' | 'drain' | 'finish', listener: () => void): unknown {
    return this.#response.once(event, () => listener.call(this));
  }
}

const bytesOf = (chunk: string | Uint8Array, encoding: BufferEncoding): Uint8Array =>
  typeof chunk === 'string' ? Buffer.from(chunk, encoding) : chunk;

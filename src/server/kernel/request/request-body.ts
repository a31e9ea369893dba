import type { IncomingHttpHeaders } from 'node:http';
import { Readable } from 'node:stream';
import { AppError } from '../../../core/errors.ts';
import { DecodedSizeError, decoderOf } from './content-decoding.ts';

const CLOSE = ['connection', 'close'] as const;

/** The received part of a request body: all of it, or the beginning of one that is over the limit. */
interface Received {
  readonly bytes: Buffer;
  readonly complete: boolean;
}

/** The body of one request. It is read on demand; what was read is kept and can still be forwarded. */
export class RequestBody {
  #headers: IncomingHttpHeaders;
  #stream: Readable | undefined;
  #onRead: (() => void) | undefined;
  #received: Promise<void> | undefined;
  #captured: Received | undefined;
  #isReplaced = false;

  /** `stream` is undefined if there is no body. `onRead` is called before the first byte is read: the moment to send `100 Continue` to a client that expects it. */
  constructor(headers: IncomingHttpHeaders, stream: Readable | undefined, onRead?: () => void) {
    this.#headers = headers;
    this.#stream = stream;
    this.#onRead = onRead;
  }

  /** Buffers up to `limit` bytes so that expressions can read them. The rest of a larger body remains a stream. */
  capture(limit: number): Promise<void> {
    const stream = this.#stream;
    if (this.#received === undefined && stream === undefined) {
      this.#captured = { bytes: Buffer.alloc(0), complete: true };
      this.#received = Promise.resolve();
    }
    // A limit above that of an earlier call: more of the body is buffered.
    if (this.#captured !== undefined && !this.#captured.complete && this.#captured.bytes.length <= limit)
      this.#received = undefined;
    if (stream !== undefined) this.#received ??= this.#collect(stream, limit, this.#captured?.bytes);
    return this.#received ?? Promise.resolve();
  }

  /** Replaces the body, whether or not it was read. The new one has no content coding. */
  replace(bytes: Buffer): void {
    // What the client is still sending must not stay in its connection. A client that waits for `100 Continue` sends nothing.
    if (this.#received === undefined && this.#onRead === undefined) this.#stream?.resume();
    this.#captured = { bytes, complete: true };
    this.#received = Promise.resolve();
    this.#isReplaced = true;
  }

  /**
   * Replaces the body, all of which was taken by `forUpstream`, by bytes or a stream with the content coding `coding`. Bytes
   * that were captured are then those of the new body.
   */
  substitute(body: Buffer | Readable, coding: string | undefined): void {
    this.#headers = coding === undefined ? {} : { 'content-encoding': coding };
    this.#isReplaced = false;
    const bytes = Buffer.isBuffer(body) ? body : undefined;
    this.#stream = Buffer.isBuffer(body) ? undefined : body;
    this.#captured = bytes && { bytes, complete: true };
    this.#received = bytes && Promise.resolve();
  }

  /** Whether the request has a body, which may turn out to be empty. */
  get isPresent(): boolean {
    return this.#captured?.complete ? this.#captured.bytes.length > 0 : this.#stream !== undefined;
  }

  /** The captured body as sent, or undefined if it is over the limit or was not captured. */
  get captured(): Buffer | undefined {
    return this.#captured?.complete ? this.#captured.bytes : undefined;
  }

  /** The captured beginning of the body. */
  get prefix(): Buffer | undefined {
    return this.#captured?.bytes;
  }

  /**
   * Returns the whole body, decompressed if it has one content coding. `limit` in bytes applies before and after
   * decompression.
   *
   * @throws AppError `body_too_large` (also if it decompresses to far more than its size), `encoding_not_supported`, or `bad_request` if the body ends early or is not valid
   * in its encoding.
   */
  async read(limit: number): Promise<Buffer> {
    if (this.#isReplaced && this.#captured !== undefined) {
      const { bytes } = this.#captured;
      if (bytes.length > limit) throw tooLarge(limit);
      return bytes;
    }
    if (Number(this.#headers['content-length'] ?? 0) > limit) throw tooLarge(limit);
    const encoding = (this.#headers['content-encoding'] ?? 'identity').trim().toLowerCase();
    const decode = decoderOf(encoding);
    if (decode === undefined && encoding !== 'identity' && encoding !== '')
      throw new AppError('encoding_not_supported', { headers: CLOSE });
    await this.capture(limit);
    const bytes = this.captured;
    if (bytes === undefined || bytes.length > limit) throw tooLarge(limit);
    if (decode === undefined || bytes.length === 0) return bytes;
    try {
      return await decode(bytes, limit);
    } catch (error) {
      if (error instanceof DecodedSizeError) throw tooLarge(limit, error);
      throw new AppError('bad_request', {
        message: `the request body is not valid ${encoding}`,
        cause: error,
      });
    }
  }

  /** The body to forward: null if there is none, the captured bytes, or a stream of the captured beginning and the rest. */
  forUpstream(): null | Buffer | Readable {
    if (this.#isReplaced) return this.#captured?.bytes.length === 0 ? null : (this.captured ?? null);
    if (this.#stream === undefined) return this.#captured?.bytes.length ? this.#captured.bytes : null;
    if (this.#captured === undefined) {
      this.#startReading();
      return this.#stream;
    }
    if (this.#captured.complete) return this.#captured.bytes;
    return Readable.from(rest(this.#captured.bytes, this.#stream));
  }

  #collect(request: Readable, limit: number, beginning: Buffer | undefined): Promise<void> {
    this.#startReading();
    return new Promise((resolve, reject) => {
      const chunks: Buffer[] = beginning === undefined ? [] : [beginning];
      let size = beginning?.length ?? 0;
      let isOver = false;
      const received = (complete: boolean): void => {
        isOver = true;
        const [first] = chunks;
        const bytes = chunks.length === 1 && first !== undefined ? first : Buffer.concat(chunks, size);
        this.#captured = { bytes, complete };
        resolve();
      };
      const onData = (chunk: Buffer): void => {
        size += chunk.length;
        chunks.push(chunk);
        if (size <= limit) return;
        request.pause();
        // The rest has another reader.
        request.off('data', onData).off('end', onEnd).off('error', onError).off('close', onError);
        received(false);
      };
      const onEnd = (): void => received(true);
      // `close` follows `end` too. Listeners stay, because removing four of them costs more than the rest.
      const onError = (): void => {
        if (!isOver) reject(new AppError('bad_request', { message: 'the request body ended early' }));
        isOver = true;
      };
      request.on('data', onData).on('end', onEnd).on('error', onError).on('close', onError);
      // Paused by the earlier call.
      if (beginning !== undefined) request.resume();
    });
  }

  /** RFC 9110 §10.1.1: `100 Continue` announces that the body will be read. */
  #startReading(): void {
    this.#onRead?.();
    this.#onRead = undefined;
  }
}

async function* rest(beginning: Buffer, stream: Readable): AsyncGenerator<Buffer> {
  yield beginning;
  yield* stream as AsyncIterable<Buffer>;
}

function tooLarge(limit: number, decoded?: DecodedSizeError): AppError {
  return new AppError('body_too_large', {
    message: decoded?.isRatio
      ? `the request body is too large: ${decoded.message}`
      : `request body is larger than ${limit} bytes${decoded === undefined ? '' : ' when it is decompressed'}`,
    headers: CLOSE,
  });
}

/** Parsed values by the bytes of their JSON text. Parsing is most of the cost of `json(request.body)`. */
const parsed = new WeakMap<Uint8Array, object>();

/** Remembers the parsed value of JSON bytes while the bytes are referenced. The value must not be modified. */
export function rememberJson(bytes: Uint8Array, value: object): void {
  parsed.set(bytes, value);
}

/** The remembered value of these bytes, or undefined. */
export function knownJson(bytes: Uint8Array): object | undefined {
  return parsed.get(bytes);
}

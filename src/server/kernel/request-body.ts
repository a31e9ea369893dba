import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { promisify } from 'node:util';
import { brotliDecompress, gunzip, inflate } from 'node:zlib';
import { AppError } from '../../core/errors.ts';

const DECODERS: ReadonlyMap<
  string,
  (bytes: Buffer, options: { maxOutputLength: number }) => Promise<Buffer>
> = new Map([
  ['gzip', promisify(gunzip)],
  ['x-gzip', promisify(gunzip)],
  ['deflate', promisify(inflate)],
  ['br', promisify(brotliDecompress)],
]);

const CLOSE = ['connection', 'close'] as const;

/** What has been taken of a request body: all of it, or the beginning of one that is over the limit. */
interface Received {
  readonly bytes: Buffer;
  readonly complete: boolean;
}

/** The body of one request. Nothing is read until somebody asks; what was read is kept and can be sent on. */
export class RequestBody {
  readonly #request: IncomingMessage;
  #onRead: (() => void) | undefined;
  #received: Promise<Received> | undefined;
  #taken: Received | undefined;

  /** `onRead` is called before the first byte is taken: the moment to tell a client to go on that waits for that. */
  constructor(request: IncomingMessage, onRead?: () => void) {
    this.#request = request;
    this.#onRead = onRead;
  }

  /** Takes in up to `limit` bytes, so that expressions can read them; a larger body stays a stream behind them. */
  async capture(limit: number): Promise<void> {
    this.#received ??= this.#isEmpty()
      ? Promise.resolve({ bytes: Buffer.alloc(0), complete: true })
      : this.#collect(limit);
    this.#taken = await this.#received;
  }

  /** The captured body as sent, or undefined when it is over the limit or was not captured. */
  get captured(): Buffer | undefined {
    return this.#taken?.complete ? this.#taken.bytes : undefined;
  }

  /** The captured beginning of the body. */
  get prefix(): Buffer | undefined {
    return this.#taken?.bytes;
  }

  /**
   * The whole body, decompressed (one layer), at most `limit` bytes before and after. Throws `body_too_large` as
   * soon as that is known, `encoding_not_supported`, or `bad_request` when the body breaks off or does not decode.
   */
  async read(limit: number): Promise<Buffer> {
    if (Number(this.#request.headers['content-length'] ?? 0) > limit) throw tooLarge(limit);
    const encoding = (this.#request.headers['content-encoding'] ?? 'identity').trim().toLowerCase();
    const decode = DECODERS.get(encoding);
    if (decode === undefined && encoding !== 'identity' && encoding !== '')
      throw new AppError('encoding_not_supported', { headers: CLOSE });
    await this.capture(limit);
    const bytes = this.captured;
    if (bytes === undefined || bytes.length > limit) throw tooLarge(limit);
    if (decode === undefined || bytes.length === 0) return bytes;
    try {
      return await decode(bytes, { maxOutputLength: limit });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') throw tooLarge(limit);
      throw new AppError('bad_request', {
        message: `the request body is not valid ${encoding}`,
        cause: error,
      });
    }
  }

  /** What to send on: nothing, the bytes, or a stream of what was captured and what is still to come. */
  forUpstream(): null | Buffer | Readable {
    if (this.#isEmpty()) return null;
    if (this.#taken === undefined) {
      this.#goOn();
      return this.#request;
    }
    return this.#taken.complete ? this.#taken.bytes : Readable.from(this.#rest(this.#taken.bytes));
  }

  #collect(limit: number): Promise<Received> {
    this.#goOn();
    return collect(this.#request, limit);
  }

  /** RFC 9110 §10.1.1: `100 Continue` is for a body that will be read. */
  #goOn(): void {
    this.#onRead?.();
    this.#onRead = undefined;
  }

  async *#rest(beginning: Buffer): AsyncGenerator<Buffer> {
    yield beginning;
    yield* this.#request as AsyncIterable<Buffer>;
  }

  /** RFC 9112 §6.3: a request has a body when it says its length or its encoding. */
  #isEmpty(): boolean {
    const { headers } = this.#request;
    return headers['transfer-encoding'] === undefined && (headers['content-length'] ?? '0') === '0';
  }
}

function collect(request: IncomingMessage, limit: number): Promise<Received> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const settle = (action: () => void): void => {
      request.off('data', onData).off('end', onEnd).off('error', onError).off('close', onError);
      action();
    };
    const finish = (complete: boolean): void =>
      settle(() =>
        resolve({
          bytes: chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks, size),
          complete,
        }),
      );
    const onData = (chunk: Buffer): void => {
      size += chunk.length;
      chunks.push(chunk);
      if (size <= limit) return;
      request.pause();
      finish(false);
    };
    const onEnd = (): void => finish(true);
    const onError = (): void =>
      settle(() => reject(new AppError('bad_request', { message: 'the request body broke off' })));
    request.on('data', onData).on('end', onEnd).on('error', onError).on('close', onError);
  });
}

function tooLarge(limit: number): AppError {
  return new AppError('body_too_large', {
    message: `request body is larger than ${limit} bytes`,
    headers: CLOSE,
  });
}

import { constants, createBrotliDecompress, createGunzip, createInflate, createInflateRaw } from 'node:zlib';
import type { Dispatcher } from 'undici';
import { LIMITS } from '../../../core/limits.ts';
import { type BodySink, UpstreamBody } from './upstream-body.ts';

type Decompress = ReturnType<typeof createGunzip> | ReturnType<typeof createBrotliDecompress>;

// Decoded data is emitted as it arrives, not only once a block is complete.
const flushed = (): { flush: number } => ({ flush: constants.Z_SYNC_FLUSH });

const gunzip = (): Decompress => createGunzip(flushed());

/** By content coding (RFC 9110 §8.4.1). Each function gets the first byte of the body. */
const DECODERS: ReadonlyMap<string, (first: number) => Decompress> = new Map<
  string,
  (first: number) => Decompress
>([
  ['gzip', gunzip],
  ['x-gzip', gunzip],
  // RFC 9110 §8.4.1.2: some servers omit the zlib header (RFC 1950), whose first byte ends in 8.
  [
    'deflate',
    (first: number) => ((first & 0x0f) === 8 ? createInflate(flushed()) : createInflateRaw(flushed())),
  ],
  ['br', () => createBrotliDecompress({ flush: constants.BROTLI_OPERATION_FLUSH })],
]);

/** Whether a body with this content coding can be decoded. */
export function isDecodable(coding: string): boolean {
  return DECODERS.has(coding);
}

/**
 * Decompresses a body as it arrives, with back-pressure to the upstream. A body over `LIMITS.responseBodyBytes` that also
 * exceeds `LIMITS.decodedRatio` times its compressed size is aborted.
 */
export class DecodedBody implements BodySink {
  readonly body: UpstreamBody;
  readonly #source: UpstreamBody;
  readonly #coding: string;
  #decompress: Decompress | undefined;
  #received = 0;
  #decoded = 0;
  #isOver = false;
  #resolveStarted: (() => void) | undefined;

  /** Resolves when the first decoded bytes have arrived, or the body has ended or failed without any. */
  readonly started: Promise<void>;

  /** Error message, if the body could not be read or decoded. */
  failed: string | undefined;

  constructor(source: UpstreamBody, coding: string) {
    this.#source = source;
    this.#coding = coding;
    const controller = {
      pause: () => this.#decompress?.pause(),
      resume: () => this.#decompress?.resume(),
      abort: () => this.#stop(),
    };
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- `UpstreamBody` uses these methods only.
    this.body = new UpstreamBody(controller as unknown as Dispatcher.DispatchController);
    this.started = new Promise((resolve) => {
      this.#resolveStarted = resolve;
    });
    source.consume(this);
  }

  push(chunk: Buffer): boolean {
    if (this.#isOver || chunk.length === 0) return true;
    this.#received += chunk.length;
    this.#decompress ??= this.#start(chunk.readUInt8());
    if (this.#decompress.write(chunk)) return true;
    this.#decompress.once('drain', () => this.#source.resume());
    return false;
  }

  end(): void {
    if (this.#isOver) return;
    if (this.#decompress !== undefined) this.#decompress.end();
    else this.#finish();
  }

  fail(why: string, isTimeout: boolean): void {
    this.#fail(why, isTimeout);
  }

  #start(first: number): Decompress {
    const decompress = (DECODERS.get(this.#coding) ?? gunzip)(first);
    decompress.on('data', (chunk: Buffer) => this.#take(chunk));
    decompress.on('end', () => this.#finish());
    decompress.on('error', () => this.#fail(`the response is not valid ${this.#coding}`, false));
    return decompress;
  }

  #take(chunk: Buffer): void {
    if (this.#isOver) return;
    this.#decoded += chunk.length;
    const limit = Math.max(LIMITS.responseBodyBytes, this.#received * LIMITS.decodedRatio);
    if (this.#decoded > limit) {
      this.#fail(`the response decompresses to more than ${LIMITS.decodedRatio} times its size`, false);
      return;
    }
    this.body.push(chunk);
    this.#resolveStarted?.();
  }

  #finish(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.body.end();
    this.#resolveStarted?.();
  }

  #fail(why: string, isTimeout: boolean): void {
    if (this.#isOver) return;
    this.failed = why;
    this.#stop();
    this.body.fail(why, isTimeout);
  }

  /** Stops reading from the upstream. */
  #stop(): void {
    this.#isOver = true;
    this.#source.discard();
    this.#decompress?.destroy();
    this.#resolveStarted?.();
  }
}

import { promisify } from 'node:util';
import { brotliDecompress, gunzip, inflate } from 'node:zlib';
import { errorCode } from '../../../core/foreign.ts';
import { LIMITS } from '../../../core/limits.ts';

/** A body decompresses to more than it may. `isRatio`: to more than `LIMITS.decodedRatio` times its size, as no useful body does. */
export class DecodedSizeError extends Error {
  readonly isRatio: boolean;

  constructor(isRatio: boolean) {
    super(
      isRatio
        ? `it decompresses to more than ${LIMITS.decodedRatio} times its size`
        : 'it decompresses to too much',
    );
    this.isRatio = isRatio;
  }
}

/** Decompresses a whole body. Rejects with `DecodedSizeError` if the result is larger than `limit` bytes, or far larger than the body. */
type Decode = (bytes: Buffer, limit: number) => Promise<Buffer>;

type Zlib = (bytes: Buffer, options: { maxOutputLength: number }) => Promise<Buffer>;

const bounded =
  (decode: Zlib): Decode =>
  async (bytes, limit) => {
    const most = Math.max(LIMITS.requestBodyBytes, bytes.length * LIMITS.decodedRatio);
    try {
      return await decode(bytes, { maxOutputLength: Math.min(limit, most) });
    } catch (error) {
      throw errorCode(error) === 'ERR_BUFFER_TOO_LARGE' ? new DecodedSizeError(most < limit) : error;
    }
  };

/** By content coding (RFC 9110 §8.4.1). */
const DECODERS: ReadonlyMap<string, Decode> = new Map([
  ['gzip', bounded(promisify(gunzip))],
  ['x-gzip', bounded(promisify(gunzip))],
  ['deflate', bounded(promisify(inflate))],
  ['br', bounded(promisify(brotliDecompress))],
]);

/** The decoder of a content coding in lower case; undefined for `identity` and unknown codings. */
export function decoderOf(coding: string): Decode | undefined {
  return DECODERS.get(coding);
}

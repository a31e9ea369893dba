import { promisify } from 'node:util';
import { brotliDecompress, gunzip, inflate } from 'node:zlib';

/** Decompresses a whole body. Rejects with `ERR_BUFFER_TOO_LARGE` if the result is larger than `limit` bytes. */
type Decode = (bytes: Buffer, limit: number) => Promise<Buffer>;

type Zlib = (bytes: Buffer, options: { maxOutputLength: number }) => Promise<Buffer>;

const bounded =
  (decode: Zlib): Decode =>
  (bytes, maxOutputLength) =>
    decode(bytes, { maxOutputLength });

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

import { Socket } from 'node:net';
import { LIMITS } from '../../core/limits.ts';

interface Piece {
  readonly chunk: Buffer | string;
  readonly encoding: BufferEncoding;
}

/**
 * Joins the small pieces that are written to a socket at once (headers and body, or the three parts of a chunk) into one
 * Latin-1 string with a character per byte. Node.js would otherwise pass them to `writev` one by one, which takes 3 to
 * 7 µs longer: a tenth of the cost of a small response in `node:http`.
 */
export function coalesceSmallWrites(socket: Socket): void {
  socket._writev = writeCoalesced;
}

function writeCoalesced(this: Socket, pieces: Piece[], written: (error?: Error | null) => void): void {
  let length = 0;
  for (const { chunk } of pieces) length += chunk.length;
  if (length > LIMITS.coalescedWriteBytes) {
    Socket.prototype._writev?.call(this, pieces, written);
    return;
  }
  let text = '';
  for (const piece of pieces) text += inLatin1(piece);
  this._write(text, 'latin1', written);
}

function inLatin1({ chunk, encoding }: Piece): string {
  if (typeof chunk !== 'string') return chunk.toString('latin1');
  // ASCII, which most text is, has the same bytes in both encodings.
  const isSame = encoding === 'latin1' || (encoding === 'utf8' && Buffer.byteLength(chunk) === chunk.length);
  return isSame ? chunk : Buffer.from(chunk, encoding).toString('latin1');
}

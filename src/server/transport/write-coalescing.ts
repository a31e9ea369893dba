import { Socket } from 'node:net';
import { LIMITS } from '../../core/limits.ts';

interface Piece {
  readonly chunk: Buffer | string;
  readonly encoding: BufferEncoding;
}

/**
 * Makes the small pieces that a socket is given at once (a head and its body, or the three parts of a chunk) leave as
 * one string, a character for each byte. Node.js hands them to `writev` one by one otherwise, which costs 3 to 7 µs more,
 * a tenth of what a small answer costs `node:http` as a whole.
 */
export function coalesceSmallWrites(socket: Socket): void {
  socket._writev = writeJoined;
}

function writeJoined(this: Socket, pieces: Piece[], written: (error?: Error | null) => void): void {
  let length = 0;
  for (const { chunk } of pieces) length += chunk.length;
  if (length > LIMITS.joinedWriteBytes) {
    Socket.prototype._writev?.call(this, pieces, written);
    return;
  }
  let text = '';
  for (const piece of pieces) text += inLatin1(piece);
  this._write(text, 'latin1', written);
}

function inLatin1({ chunk, encoding }: Piece): string {
  if (typeof chunk !== 'string') return chunk.toString('latin1');
  return encoding === 'latin1' ? chunk : Buffer.from(chunk, encoding).toString('latin1');
}

import type { Socket } from 'node:net';
import { LIMITS } from '../../../core/limits.ts';

/** A complete response with an error, for what never becomes a request. */
export function rawError(status: string, text: string): string {
  return `HTTP/1.1 ${status}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: ${text.length}\r\nconnection: close\r\n\r\n${text}`;
}

/**
 * Sends a final response and closes the connection. After `LIMITS.linger`, it is destroyed even if the client has not
 * closed its side. Not at once, because a client that is still sending would lose the response (RFC 9112 §9.6).
 */
export function endWith(socket: Socket, text: string): void {
  const timer = setTimeout(() => socket.destroy(), LIMITS.linger);
  socket.once('close', () => clearTimeout(timer));
  // Node.js has removed its own listener from the connection of a CONNECT request: a reset would be thrown.
  socket.on('error', () => socket.destroy());
  socket.end(text);
  socket.resume();
}

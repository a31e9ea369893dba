import type { Socket } from 'node:net';

/**
 * Watches a connection that Node.js has detached from its parser, by a WebSocket handshake or CONNECT, until something else reads from
 * it: closes it when its client ends it. What the client sends meanwhile stays in the connection. Returns what stops that.
 */
export function closeAtEnd(socket: Socket): () => void {
  const read = (): void => {
    // Without data, this tells the end.
    if (socket.readableLength === 0) socket.read();
  };
  const close = (): void => void socket.destroy();
  socket.on('readable', read).once('end', close);
  return () => void socket.off('readable', read).off('end', close);
}

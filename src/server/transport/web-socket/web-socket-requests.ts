import { createServer, type IncomingMessage, type Server, type ServerOptions } from 'node:http';
import type { Socket } from 'node:net';

/**
 * Whether a request is a WebSocket handshake (RFC 6455 §4.2.1), and not another protocol such as Java's `h2c`. One with a body is an
 * ordinary request: where its body ends and the WebSocket begins, servers disagree.
 */
const isHandshake = ({ method, headers }: IncomingMessage): boolean =>
  method === 'GET' &&
  headers.upgrade?.toLowerCase() === 'websocket' &&
  'sec-websocket-key' in headers &&
  headers['transfer-encoding'] === undefined &&
  (headers['content-length'] ?? '0') === '0';

/**
 * Whether Node.js can be told which requests to treat as upgrades (22.21 and 24.9 can). Otherwise it would take all of
 * them from its HTTP parser, including POST requests that merely offer `h2c`, so WebSockets are not served.
 */
const servesWebSockets = ((): boolean => {
  try {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- not a function, to be refused.
    createServer({ shouldUpgradeCallback: 'unsupported' } as unknown as ServerOptions);
    return false;
  } catch {
    return true;
  }
})();

/** Options of an HTTP server that passes WebSocket handshakes to `onHandshake`. */
export const webSocketOptions = (
  servesWebSockets ? { shouldUpgradeCallback: isHandshake } : {}
) as ServerOptions;

/**
 * Calls `onHandshake` with each WebSocket handshake, whose socket Node.js has detached from its parser. Returns the
 * sockets that are open: the server no longer closes them itself.
 */
export function onWebSocketHandshake(
  server: Server,
  onHandshake: (request: IncomingMessage, socket: Socket, head: Buffer) => void,
): ReadonlySet<Socket> {
  const open = new Set<Socket>();
  if (!servesWebSockets) return open;
  server.on('upgrade', (request, duplex, head) => {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the server has no other connections.
    const socket = duplex as Socket;
    open.add(socket);
    socket.once('close', () => open.delete(socket));
    // Without a listener, an error of the connection would be thrown.
    socket.on('error', () => socket.destroy());
    onHandshake(request, socket, head);
  });
  return open;
}

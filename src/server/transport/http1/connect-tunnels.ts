import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';
import { throughTunnel } from '../../kernel/request/client-connection.ts';
import { closeAtEnd } from './detached-socket.ts';
import { endWith, rawError } from './raw-error.ts';

/** Takes a connection that has come through a tunnel. */
export type AcceptTunnel = (socket: Socket) => void;

/** `host:port` (RFC 9112 §3.2.3). */
const AUTHORITY = /^(?:\[[0-9A-Fa-f:.]+\]|[\w.-]+):(\d{1,5})$/;

/**
 * Answers CONNECT requests (RFC 9110 §9.3.6). What a client sends through its tunnel is for one of the ports of this gateway:
 * `find` returns what takes it, by the port that the client names. `afterPending` waits for the responses to earlier requests of a
 * connection. Returns the tunnels that are open, of which the server no longer knows.
 */
export function onConnect(
  server: Server,
  find: ((port: number) => AcceptTunnel | undefined) | undefined,
  afterPending: (socket: Socket, action: () => void) => void,
): ReadonlySet<Socket> {
  const open = new Set<Socket>();
  const connect = (url: string, socket: Socket, head: Buffer): void => {
    if (find === undefined) {
      endWith(socket, rawError('405 Method Not Allowed', 'method not allowed'));
      return;
    }
    const port = Number(AUTHORITY.exec(url)?.[1]);
    if (!Number.isInteger(port)) {
      endWith(socket, rawError('400 Bad Request', 'bad request'));
      return;
    }
    const accept = find(port);
    if (accept === undefined) {
      endWith(socket, rawError('404 Not Found', 'no port of this gateway for the tunnel'));
      return;
    }
    open.add(socket);
    socket.once('close', () => open.delete(socket));
    throughTunnel(socket, port);
    socket.write('HTTP/1.1 200 OK\r\n\r\n');
    if (head.length > 0) socket.unshift(head);
    accept(socket);
  };
  server.on('connect', ({ url = '' }: IncomingMessage, socket: Socket, head: Buffer) => {
    // Node.js has removed its own listener: a reset would be thrown.
    socket.on('error', () => socket.destroy());
    const stopWatching = closeAtEnd(socket);
    afterPending(socket, () => {
      stopWatching();
      // The connection has ended with an earlier request.
      if (socket.writable) connect(url, socket, head);
    });
  });
  return open;
}

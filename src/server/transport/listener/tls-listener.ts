import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { messageOf } from '../../../core/errors.ts';
import { listening } from '../../../core/listening-server.ts';
import { enteredBy } from '../../kernel/request/client-connection.ts';
import { forwardedClient } from '../forward.ts';
import { createHttp1 } from '../http1/http1.ts';
import { Http2Connections } from '../http2/http2.ts';
import { readServerName } from '../tls/server-name.ts';
import { type ServerTls, TlsEntrance } from '../tls/tls-entrance.ts';
import { openSource } from './connection-source.ts';
import { drain, draining } from './drain.ts';
import { type Entrance, entranceFor } from './entrance.ts';
import { HeldConnections } from './held-connections.ts';
import type { Listener, ListenerOptions } from './listener-options.ts';

/**
 * Opens a port whose clients begin with TLS. The name that a client asks for (SNI) selects the listener, which ends TLS and
 * serves HTTP/1.1 or HTTP/2, as the client chooses (ALPN, RFC 7301), or passes the bytes on. Rejects with Node's error if
 * that fails.
 */
export async function openTls(options: ListenerOptions): Promise<Listener> {
  const { acceptor, limits } = options;
  const http2 = new Http2Connections(options);
  const http1 = createHttp1(options, (headers, request) =>
    'encrypted' in request.socket ? undefined : forwardedClient(headers, request),
  );
  const held = new HeldConnections(options);
  const secured = (socket: TLSSocket, entrance: Entrance): void => {
    enteredBy(socket, entrance.name, {
      serverName: socket.servername || undefined,
      certificate: socket.authorized ? socket.getPeerX509Certificate() : undefined,
    });
    held.admit(socket, () => serve(socket, entrance));
  };
  const serve = (socket: TLSSocket, { relay }: Entrance): void => {
    if (relay !== undefined) {
      relay(socket, socket.servername || undefined, options.relayed);
      return;
    }
    if (socket.alpnProtocol === 'h2') http2.accept(socket);
    else http1.server.emit('connection', socket);
  };
  const ends = new WeakMap<ServerTls, TlsEntrance>();
  const enter = (socket: Socket, entrance: Entrance, serverName?: string): void => {
    const { tls, relay } = entrance;
    if (tls === undefined) {
      held.admit(socket, () => relay?.(socket, serverName, options.relayed));
      return;
    }
    let end = ends.get(tls);
    if (end === undefined) {
      end = new TlsEntrance(tls, limits, (socket) => secured(socket, entrance));
      ends.set(tls, end);
    }
    end.accept(socket);
  };
  const accept = async (socket: Socket): Promise<void> => {
    const entrances = options.entrances?.() ?? [];
    const [only] = entrances;
    try {
      // The usual case needs no look at the name.
      if (entrances.length === 1 && only?.tls !== undefined && only.hostname === undefined) {
        enter(socket, only);
        return;
      }
      const name = await readServerName(socket, limits.tlsHandshakeTimeout);
      const entrance = entranceFor(entrances, name);
      if (entrance === undefined) throw new Error(`no listener for ${name ?? 'a client that names no host'}`);
      enter(socket, entrance, name);
    } catch (error) {
      socket.destroy();
      options.unserved?.(messageOf(error));
    }
  };
  const source = await openSource(options, (socket) => void accept(socket));
  // Node.js checks the timeouts of requests from the event `listening` on.
  if (acceptor === undefined) http1.server.emit('listening');
  else await listening(http1.server, { path: acceptor.socketPath });
  return {
    port: source.port,
    inject: (socket) => source.inject(socket),
    connections: () => source.connections(),
    close: (deadline, beforeAbort) => {
      held.close();
      http2.drain();
      const { closed, closeIdle } = draining(http1, source.stop());
      const closeAll = (): void => {
        http2.destroy();
        http1.destroy();
        source.destroyAll();
      };
      return drain({ closed, closeIdle, closeAll }, deadline, beforeAbort);
    },
  };
}

import type { TLSSocket } from 'node:tls';
import { listen, openSource } from './connection-source.ts';
import { drain, draining } from './drain.ts';
import { forwardedClient } from './forward.ts';
import { createHttp1 } from './http1.ts';
import { Http2Connections } from './http2.ts';
import type { Listener, ListenerOptions } from './listener-options.ts';
import { TlsEntrance } from './tls-entrance.ts';

/**
 * Opens a port for HTTP/1.1 and HTTP/2 over TLS, which clients select with ALPN (RFC 7301). Rejects with Node's error if
 * that fails.
 */
export async function openHttps(
  options: ListenerOptions & Required<Pick<ListenerOptions, 'tls'>>,
): Promise<Listener> {
  const { acceptor, limits, tls } = options;
  const http2 = new Http2Connections(options);
  const http1 = createHttp1(options, (headers, request) =>
    'encrypted' in request.socket ? undefined : forwardedClient(headers, request),
  );
  const secured = (socket: TLSSocket): void => {
    if (socket.alpnProtocol === 'h2') http2.accept(socket);
    else http1.server.emit('connection', socket);
  };
  const entrance = new TlsEntrance(tls, limits, secured);
  const source = await openSource(options, (socket) => entrance.accept(socket));
  // Node.js checks the timeouts of requests from the event `listening` on.
  if (acceptor === undefined) http1.server.emit('listening');
  else await listen(http1.server, { path: acceptor.socketPath });
  return {
    port: source.port,
    connections: () => source.connections(),
    close: (deadline, beforeAbort) => {
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

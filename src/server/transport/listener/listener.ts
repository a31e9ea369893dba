import type { AddressInfo, Socket } from 'node:net';
import { promisify } from 'node:util';
import { listening } from '../../../core/listening-server.ts';
import { forwardedClient } from '../forward.ts';
import { createHttp1 } from '../http1/http1.ts';
import { isAdmitted, openSource, type SourceOptions } from './connection-source.ts';
import { drain, draining } from './drain.ts';
import { HeldConnections } from './held-connections.ts';
import { InjectedConnections } from './injected-connections.ts';
import type { Listener, ListenerOptions } from './listener-options.ts';

/** Opens a port. Rejects with Node's error (`EADDRINUSE`, `EACCES`, …) if that fails. */
export async function openListener(options: ListenerOptions): Promise<Listener> {
  if (options.transport === 'TLS') {
    // Loaded on demand together with `node:http2`: most gateways are behind something that ends TLS.
    const { openTls } = await import('./tls-listener.ts');
    return openTls(options);
  }
  if (options.transport === 'TCP') return openTcp(options);
  if (options.isInternal === true) return openInternalHttp(options);
  return options.acceptor === undefined ? openHttp(options) : openInjectedHttp(options, options.acceptor);
}

/** Bytes are passed on, and nothing of them is understood. */
async function openTcp(options: ListenerOptions): Promise<Listener> {
  const held = new HeldConnections(options);
  const source = await openSource({ ...options, isRelay: true }, (socket) =>
    held.admit(socket, () => {
      const [entrance] = options.entrances?.() ?? [];
      entrance?.relay?.(socket, undefined, options.relayed);
    }),
  );
  return {
    port: source.port,
    inject: (socket) => source.inject(socket),
    connections: () => source.connections(),
    close: (deadline) => {
      held.close();
      return drain({ closed: source.stop(), closeAll: () => source.destroyAll() }, deadline);
    },
  };
}

/** The server of `node:http` accepts the connections itself. */
async function openHttp(options: ListenerOptions): Promise<Listener> {
  const http1 = createHttp1(options);
  const { server } = http1;
  server.maxConnections = options.limits.connections;
  const held = new HeldConnections(options);
  // A connection is served once it is allowed; Node.js reads from it at once otherwise.
  const served = server.listeners('connection');
  server.removeAllListeners('connection');
  server.on('connection', (socket) => {
    if (!isAdmitted(socket, options)) return;
    counted(socket, options);
    held.admit(socket, () => {
      for (const serve of served) Reflect.apply(serve, server, [socket]);
    });
  });
  await listening(server, { port: options.port, host: options.address });
  return {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the server listens on a port.
    port: (server.address() as AddressInfo).port,
    inject: (socket) => void server.emit('connection', socket),
    connections: promisify(server.getConnections.bind(server)),
    close: (deadline, beforeAbort) => {
      held.close();
      return drain(draining(http1), deadline, beforeAbort);
    },
  };
}

/** The server gets its connections from the tunnels of other ports. */
function openInternalHttp(options: ListenerOptions): Listener {
  const injected = new InjectedConnections(options.limits.connections);
  const held = new HeldConnections(options);
  const http1 = createHttp1(options);
  // Node.js checks the timeouts of requests from this event on.
  http1.server.emit('listening');
  return {
    port: options.port,
    inject: (socket) => {
      if (!injected.add(socket) || !isAdmitted(socket, options)) return;
      counted(socket, options);
      held.admit(socket, () => http1.server.emit('connection', socket));
    },
    connections: () => Promise.resolve(injected.count),
    close: (deadline, beforeAbort) => {
      held.close();
      return drain(draining(http1, injected.closed()), deadline, beforeAbort);
    },
  };
}

/** The server listens on a Unix socket, to which other workers forward requests, and gets its clients from `acceptor`. */
async function openInjectedHttp(
  options: ListenerOptions,
  acceptor: NonNullable<SourceOptions['acceptor']>,
): Promise<Listener> {
  const injected = new InjectedConnections(options.limits.connections);
  const http1 = createHttp1(options, (headers, request) =>
    injected.has(request.socket) ? undefined : forwardedClient(headers, request),
  );
  const held = new HeldConnections(options);
  await listening(http1.server, { path: acceptor.socketPath });
  const stop = acceptor.connections((socket) => {
    if (!injected.add(socket) || !isAdmitted(socket, options)) return;
    counted(socket, options);
    // As Node's HTTP server does: a client may close its side once it has sent its request.
    socket.allowHalfOpen = true;
    held.admit(socket, () => http1.server.emit('connection', socket));
  });
  return {
    port: acceptor.port,
    connections: () => Promise.resolve(injected.count),
    close: (deadline, beforeAbort) => {
      stop();
      held.close();
      return drain(draining(http1, injected.closed()), deadline, beforeAbort);
    },
  };
}

function counted(socket: Socket, { connected, disconnected }: SourceOptions): void {
  if (connected === undefined) return;
  connected();
  socket.once('close', () => disconnected?.(socket.bytesRead, socket.bytesWritten));
}

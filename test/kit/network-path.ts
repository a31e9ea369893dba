import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A TCP relay in front of a server of a test, which can do what networks and failing servers do. */
export interface NetworkPath extends AsyncDisposable {
  /** On 127.0.0.1. */
  readonly port: number;
  /** Connections so far. */
  readonly connections: number;
  /** Nothing passes in either direction; connections stay open, and new ones are accepted. */
  hang(): void;
  resume(): void;
  /** Bytes to the server pass this many ms later. */
  delay(ms: number): void;
  /** New connections go to this port; existing ones stay where they are. */
  pointTo(port: number): void;
  /** Closes all connections. */
  cut(): void;
}

export async function networkPath(to: number): Promise<NetworkPath> {
  let target = to;
  let wait = 0;
  let isHanging = false;
  let connections = 0;
  const sockets = new Set<Socket>();
  const relay = (from: Socket, into: Socket, isRequest: boolean): void => {
    if (isHanging) from.pause();
    from.on('data', (bytes) => {
      if (isRequest && wait > 0) setTimeout(() => into.write(bytes), wait);
      else into.write(bytes);
    });
    from.on('close', () => into.destroy()).on('error', () => undefined);
    sockets.add(from);
    from.on('close', () => sockets.delete(from));
  };
  const server = createServer((client) => {
    connections += 1;
    const upstream = connect(target, '127.0.0.1');
    relay(client, upstream, true);
    relay(upstream, client, false);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    port: (server.address() as AddressInfo).port,
    get connections() {
      return connections;
    },
    hang: () => {
      isHanging = true;
      for (const socket of sockets) socket.pause();
    },
    resume: () => {
      isHanging = false;
      for (const socket of sockets) socket.resume();
    },
    delay: (ms) => {
      wait = ms;
    },
    pointTo: (port) => {
      target = port;
    },
    cut,
    [Symbol.asyncDispose]: async () => {
      cut();
      server.close();
      await once(server, 'close');
    },
  };
}

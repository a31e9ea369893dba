import { type AddressInfo, createServer, type Socket } from 'node:net';
import { promisify } from 'node:util';
import type { Limits } from '../../../core/limits.ts';
import { listening } from '../../../core/listening-server.ts';
import type { ConnectionSettings } from '../connection-settings.ts';
import { type Acceptor, InjectedConnections } from './injected-connections.ts';

export interface SourceOptions {
  /** If absent, the port is opened here. */
  readonly acceptor?: Acceptor | undefined;
  readonly port: number;
  /** IP address; all IPv4 and IPv6 addresses by default. */
  readonly address?: string | undefined;
  readonly limits: Limits;
  /** Whether the port is not opened: its connections are injected. */
  readonly isInternal?: boolean;
  /** Whether bytes are passed on, so that a client may close its side only. */
  readonly isRelay?: boolean;
  /** What `frontendPolicies` says of connections. Read for each one. */
  settings?(): ConnectionSettings;
  /** Returns whether a connection is allowed; all are by default. */
  admits?(socket: Socket): boolean;
  /** Asks whether a connection is allowed, once TLS is established. Undefined: there is nobody to ask. */
  authorizes?(socket: Socket): Promise<boolean> | undefined;
  /** A client connected. */
  connected?(): void;
  /** A client disconnected; `received` and `sent` are the bytes of the connection. */
  disconnected?(received: number, sent: number): void;
}

/** The connections of a port before anything was read from them. */
export interface ConnectionSource {
  readonly port: number;
  /** Takes a connection that was accepted elsewhere. */
  inject(socket: Socket): void;
  /** Number of open connections. */
  connections(): Promise<number>;
  /** Accepts no more connections. Resolves once all are closed. */
  stop(): Promise<void>;
  destroyAll(): void;
}

/** Opens a port, or joins that of another process. Rejects with Node's error (`EADDRINUSE`, …) if that fails. */
export async function openSource(
  options: SourceOptions,
  accept: (socket: Socket) => void,
): Promise<ConnectionSource> {
  const { acceptor, limits, address, port } = options;
  const isRelay = options.isRelay === true;
  const open = new Set<Socket>();
  const take = (socket: Socket): void => {
    if (!isAdmitted(socket, options)) return;
    open.add(socket);
    // A client of a relay may stop sending and still wait for an answer.
    socket.allowHalfOpen = isRelay;
    options.connected?.();
    // A client that resets the connection before a protocol has taken it.
    socket.on('error', () => socket.destroy());
    socket.once('close', () => {
      open.delete(socket);
      options.disconnected?.(socket.bytesRead, socket.bytesWritten);
    });
    accept(socket);
  };
  const destroyAll = (): void => {
    for (const socket of open) socket.destroy();
  };
  if (acceptor !== undefined || options.isInternal === true) {
    const injected = new InjectedConnections(limits.connections);
    const inject = (socket: Socket): void => {
      if (injected.add(socket)) take(socket);
    };
    const stop = acceptor?.connections(inject);
    return {
      port: acceptor?.port ?? port,
      inject,
      connections: () => Promise.resolve(injected.count),
      stop: () => {
        stop?.();
        return injected.closed();
      },
      destroyAll,
    };
  }
  const server = createServer({ noDelay: true }, take);
  server.maxConnections = limits.connections;
  await listening(server, { port, host: address });
  return {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the server listens on a port.
    port: (server.address() as AddressInfo).port,
    inject: take,
    connections: promisify(server.getConnections.bind(server)),
    stop: () => new Promise((resolve) => server.close(() => resolve())),
    destroyAll,
  };
}

/** Prepares a new connection. Returns false, and closes it, if it is not allowed. */
export function isAdmitted(
  socket: Socket,
  { settings, admits }: Pick<SourceOptions, 'settings' | 'admits'>,
): boolean {
  if (admits?.(socket) === false) {
    socket.destroy();
    return false;
  }
  const keepAlive = settings?.().keepAlive;
  if (keepAlive !== undefined) socket.setKeepAlive(keepAlive.enabled, keepAlive.time);
  return true;
}

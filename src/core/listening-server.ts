import { chmodSync, lstatSync, unlinkSync } from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import { type AddressInfo, connect, type ListenOptions, type Server as TcpServer } from 'node:net';
import { messageOf } from './errors.ts';
import { errorCode } from './foreign.ts';
import { LIMITS } from './limits.ts';
import type { ListenAddress } from './listen.ts';

/** An address could not be opened. The message names the address and the reason. */
export class ListenError extends Error {
  readonly code: string;
  /** The address as the user wrote it. */
  readonly address: string;
  /** The reason as a predicate, to be placed after a name for the address: `is already in use`. */
  readonly reason: string;

  constructor(address: string, cause: unknown) {
    const code = errorCode(cause);
    const reason = REASONS[code] ?? `could not be opened: ${messageOf(cause)}`;
    super(`${address} ${reason}`, { cause });
    this.name = 'ListenError';
    this.code = code;
    this.address = address;
    this.reason = reason;
  }
}

const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'is already in use',
  EACCES: 'needs privileges that this process does not have',
  EADDRNOTAVAIL: 'does not exist on this machine',
  ENOENT: 'is in a folder that does not exist',
};

/** One open address. */
export interface OpenAddress {
  readonly server: Server;
  /** The actual address, as `ip:port` or `unix:/path`. */
  readonly text: string;
  /** Undefined for a unix socket. */
  readonly port: number | undefined;
}

/**
 * Opens all hosts of an address, or none; used by every server of the process except the gateway's own ports. With port
 * 0, the first host determines the port of the others. An address family that the machine does not have is skipped if
 * another host is open. A stale socket file is replaced; one with a listening process, and any other file, is left
 * untouched.
 *
 * @param create Creates a server that does not listen yet.
 * @param mode Permissions of a socket file; default: as the process's umask sets.
 * @throws ListenError after closing the servers that were opened
 */
export async function openAddresses(
  address: Exclude<ListenAddress, { kind: 'off' }>,
  create: () => Server,
  mode?: number,
): Promise<OpenAddress[]> {
  if (address.kind === 'unix') return [await openSocket(address.path, create(), mode)];
  const opened: OpenAddress[] = [];
  let { port } = address;
  try {
    for (const [index, host] of address.hosts.entries()) {
      const server = create();
      try {
        await listening(server, { port, host });
      } catch (error) {
        const isCoveredByIpv6 = opened.length > 0 && host === '0.0.0.0';
        if (isOptionalHost(errorCode(error), index, address.hosts.length, isCoveredByIpv6)) continue;
        throw new ListenError(hostAndPort(host, port), error);
      }
      const actual = tcpAddress(server);
      ({ port } = actual);
      opened.push({ server, text: hostAndPort(actual.address, port), port });
    }
    if (opened.length === 0)
      throw new ListenError(hostAndPort(address.hosts[0] ?? '', port), new Error('no address'));
    return opened;
  } catch (error) {
    await closeAll(opened);
    throw error;
  }
}

/** A listening server. */
export interface ListeningServer {
  /** The first address if there are several; for logs and tests. */
  readonly address: string;
  /** The port, undefined for a unix socket. */
  readonly port: number | undefined;
  /** Stops listening and closes open connections. */
  close(): Promise<void>;
}

/**
 * Serves small HTTP responses at an address. Returns undefined for `off`.
 *
 * @throws ListenError
 */
export async function listenOn(
  address: ListenAddress,
  onRequest: RequestListener,
): Promise<ListeningServer | undefined> {
  if (address.kind === 'off') return undefined;
  const opened = await openAddresses(address, () => newServer(onRequest));
  const [first] = opened;
  return { address: first?.text ?? '', port: first?.port, close: () => closeAll(opened) };
}

/** The address of a server that listens on TCP. */
export function tcpAddress(server: Pick<TcpServer, 'address'>): AddressInfo {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the server has no TCP address');
  return address;
}

function newServer(onRequest: RequestListener): Server {
  const server = createServer(
    {
      headersTimeout: LIMITS.operatorServerHeadersTimeout,
      connectionsCheckingInterval: LIMITS.connectionsCheckingInterval,
    },
    onRequest,
  );
  server.maxConnections = LIMITS.operatorServerConnections;
  return server;
}

/**
 * Whether a failed address may be skipped: an address family that the machine does not have, while another host is left
 * or open; and `0.0.0.0` if `::` is open, which usually includes IPv4.
 */
function isOptionalHost(code: string, index: number, hosts: number, isCoveredByIpv6: boolean): boolean {
  if (code === 'EADDRINUSE') return isCoveredByIpv6;
  return (
    (code === 'EAFNOSUPPORT' || code === 'EADDRNOTAVAIL') && hosts > 1 && (index > 0 || hosts > index + 1)
  );
}

async function openSocket(path: string, server: Server, mode: number | undefined): Promise<OpenAddress> {
  const text = `unix:${path}`;
  try {
    await removeStaleSocket(path);
    await listening(server, { path });
    // The file exists once the server listens; no connection has been accepted yet.
    if (mode !== undefined) chmodSync(path, mode);
  } catch (error) {
    throw new ListenError(text, error);
  }
  return { server, text, port: undefined };
}

/** Removes the socket file of a process that was killed. Any other file stays. */
async function removeStaleSocket(path: string): Promise<void> {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (stat === undefined) return;
  if (!stat.isSocket()) throw new Error('the path already exists and is not a socket');
  if (await hasListener(path))
    throw Object.assign(new Error('another process listens on it'), { code: 'EADDRINUSE' });
  unlinkSync(path);
}

/** Only ECONNREFUSED means that no process listens: a listener whose queue is full answers EAGAIN. */
function hasListener(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ path });
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', ({ code }: NodeJS.ErrnoException) => resolve(code !== 'ECONNREFUSED'));
  });
}

/** Opens a port. Rejects with Node's error. */
export function listening(server: TcpServer, options: ListenOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(options, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

async function closeAll(opened: readonly OpenAddress[]): Promise<void> {
  await Promise.all(
    opened.map(
      ({ server }) =>
        new Promise<void>((resolve) => {
          server.close(() => resolve());
          server.closeAllConnections();
        }),
    ),
  );
}

function hostAndPort(host: string, port: number): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

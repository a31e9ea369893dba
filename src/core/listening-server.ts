import { lstatSync, unlinkSync } from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { LIMITS } from './limits.ts';
import type { ListenAddress } from './listen.ts';

/** An address could not be opened. The message says which, and why, in words. */
export class ListenError extends Error {
  readonly code: string;

  constructor(address: string, cause: NodeJS.ErrnoException) {
    super(`${address} ${REASONS[cause.code ?? ''] ?? `could not be opened: ${cause.message}`}`, { cause });
    this.name = 'ListenError';
    this.code = cause.code ?? '';
  }
}

const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'is already in use',
  EACCES: 'needs privileges that this process does not have',
  EADDRNOTAVAIL: 'does not exist on this machine',
};

/** A server that listens. */
export interface ListeningServer {
  /** `ip:port` or `unix:/path` as it came to be, the first one where there are two; for logs and tests. */
  readonly address: string;
  /** The port, undefined for a unix socket. */
  readonly port: number | undefined;
  /** Stops listening and cuts what is open. */
  close(): Promise<void>;
}

/**
 * Serves HTTP at an address; undefined for `off`. A machine without IPv6 listens on IPv4 alone. A socket file that a
 * former process left is replaced; any other file is not touched.
 *
 * @throws ListenError, after closing what was open
 */
export async function listenOn(
  address: ListenAddress,
  onRequest: RequestListener,
): Promise<ListeningServer | undefined> {
  if (address.kind === 'off') return undefined;
  if (address.kind === 'unix') return listenOnSocket(address.path, onRequest);
  const servers: Server[] = [];
  const close = (): Promise<void> => closeAll(servers);
  let { port } = address;
  try {
    for (const [index, host] of address.hosts.entries()) {
      const server = newServer(onRequest);
      try {
        await listening(server, { port, host });
      } catch (error) {
        const isIncluded = servers.length > 0 && host === '0.0.0.0';
        if (isSpare(error as NodeJS.ErrnoException, index, address.hosts.length, isIncluded)) continue;
        throw new ListenError(hostAndPort(host, port), error as NodeJS.ErrnoException);
      }
      servers.push(server);
      // The second address takes the port that the first was given.
      port = (server.address() as AddressInfo).port;
    }
    const [first] = servers;
    if (first === undefined)
      throw new ListenError(hostAndPort(address.hosts[0] as string, port), new Error('no address'));
    return { address: hostAndPort((first.address() as AddressInfo).address, port), port, close };
  } catch (error) {
    await close();
    throw error;
  }
}

function newServer(onRequest: RequestListener): Server {
  const server = createServer(
    {
      headersTimeout: LIMITS.ownServerHeadersTimeout,
      connectionsCheckingInterval: LIMITS.connectionsCheckingInterval,
    },
    onRequest,
  );
  server.maxConnections = LIMITS.ownServerConnections;
  return server;
}

/**
 * Whether an address may be left out: a family that the machine does not have, while another address is left or open;
 * and all of IPv4, which all of IPv6 usually includes.
 */
function isSpare(
  { code }: NodeJS.ErrnoException,
  index: number,
  hosts: number,
  isIncluded: boolean,
): boolean {
  if (code === 'EADDRINUSE') return isIncluded;
  return (
    (code === 'EAFNOSUPPORT' || code === 'EADDRNOTAVAIL') && hosts > 1 && (index > 0 || hosts > index + 1)
  );
}

async function listenOnSocket(path: string, onRequest: RequestListener): Promise<ListeningServer> {
  const shown = `unix:${path}`;
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (stat !== undefined) {
    if (!stat.isSocket()) throw new ListenError(shown, new Error('there is a file that is no socket'));
    unlinkSync(path);
  }
  const server = newServer(onRequest);
  await listening(server, { path }).catch((error: NodeJS.ErrnoException) => {
    throw new ListenError(shown, error);
  });
  return { address: shown, port: undefined, close: () => closeAll([server]) };
}

function listening(server: Server, options: { port?: number; host?: string; path?: string }): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(options, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

async function closeAll(servers: readonly Server[]): Promise<void> {
  await Promise.all(
    servers.map(
      (server) =>
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

import { chmodSync, lstatSync, unlinkSync } from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { messageOf } from '../core/errors.ts';
import { LIMITS } from '../core/limits.ts';
import type { ListenAddress } from '../core/listen.ts';

/** An address of the admin server that could not be opened. The message says which and why. */
export class AdminAddressError extends Error {
  readonly code: string;

  constructor(address: string, cause: unknown) {
    const code = (cause as NodeJS.ErrnoException).code ?? '';
    super(`the admin server cannot listen on ${address}: ${REASONS[code] ?? messageOf(cause)}`, { cause });
    this.name = 'AdminAddressError';
    this.code = code;
  }
}

const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'the address is already in use',
  EACCES: 'this process does not have the privileges',
  EADDRNOTAVAIL: 'the address does not exist on this machine',
  ENOENT: 'the folder of the socket does not exist',
};

/** An address that is open. */
export interface OpenAddress {
  readonly server: Server;
  /** As people write it: `127.0.0.1:15000`, `[::1]:15000`, `unix:/path`. */
  readonly text: string;
  readonly url: string | undefined;
}

/**
 * Opens all of an address, or nothing. After the first of several hosts, one that this machine does not have, such as
 * IPv6 where that is off, is left out.
 *
 * @throws AdminAddressError
 */
export async function openAddress(
  address: Exclude<ListenAddress, { kind: 'off' }>,
  handle: RequestListener,
): Promise<OpenAddress[]> {
  if (address.kind === 'unix') return [await openSocket(address.path, handle)];
  const opened: OpenAddress[] = [];
  try {
    for (const host of address.hosts) {
      // With port 0 the first decides for all.
      const port = opened[0] === undefined ? address.port : portOf(opened[0].server);
      const open = await openPort(host, port, handle, opened.length > 0);
      if (open !== undefined) opened.push(open);
    }
  } catch (error) {
    for (const { server } of opened) server.close();
    throw error;
  }
  return opened;
}

const portOf = (server: Server): number => (server.address() as AddressInfo).port;

async function openPort(
  host: string,
  port: number,
  handle: RequestListener,
  isOptional: boolean,
): Promise<OpenAddress | undefined> {
  const server = createAdminServer(handle);
  const shownHost = host.includes(':') ? `[${host}]` : host;
  try {
    await listening(server, () => server.listen({ host, port, ipv6Only: isOptional }));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (isOptional && (code === 'EADDRNOTAVAIL' || code === 'EAFNOSUPPORT' || code === 'EADDRINUSE'))
      return undefined;
    throw new AdminAddressError(`${shownHost}:${port}`, error);
  }
  const reachable = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : shownHost;
  const actual = portOf(server);
  return { server, text: `${shownHost}:${actual}`, url: `http://${reachable}:${actual}` };
}

/** Only the user of this process may connect (mode 0600): there is no other protection on the path. */
async function openSocket(path: string, handle: RequestListener): Promise<OpenAddress> {
  const text = `unix:${path}`;
  const server = createAdminServer(handle);
  try {
    await removeStale(path);
    const done = listening(server, () => server.listen(path));
    // The socket exists as soon as listen() returns; nobody has been accepted yet.
    await done;
    chmodSync(path, 0o600);
  } catch (error) {
    throw new AdminAddressError(text, error);
  }
  return { server, text, url: undefined };
}

/** A socket that nobody answers on is left over from a process that was killed. Anything else stays. */
async function removeStale(path: string): Promise<void> {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (stat === undefined) return;
  if (!stat.isSocket()) throw new Error('the path is there already, and is not a socket');
  if (await isAnswered(path))
    throw Object.assign(new Error('another process listens on it'), { code: 'EADDRINUSE' });
  unlinkSync(path);
}

function isAnswered(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ path });
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

function createAdminServer(handle: RequestListener): Server {
  const server = createServer(
    {
      headersTimeout: LIMITS.ownServerHeadersTimeout,
      requestTimeout: LIMITS.adminRequestTimeout,
      keepAliveTimeout: LIMITS.adminKeepAlive,
      connectionsCheckingInterval: LIMITS.adminCheckingInterval,
      maxHeaderSize: LIMITS.adminHeaderBytes,
      noDelay: true,
    },
    handle,
  );
  server.maxConnections = LIMITS.ownServerConnections;
  // A reader that takes nothing of its answer.
  server.setTimeout(LIMITS.writeStall);
  return server;
}

function listening(server: Server, listen: () => void): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.once('listening', () => {
      server.off('error', reject);
      resolve();
    });
    listen();
  });
}

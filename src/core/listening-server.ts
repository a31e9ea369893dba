import { chmodSync, lstatSync, unlinkSync } from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { LIMITS } from './limits.ts';
import type { ListenAddress } from './listen.ts';

/** An address could not be opened. The message says which, and why, in words. */
export class ListenError extends Error {
  readonly code: string;
  /** As people write it. */
  readonly address: string;
  /** What is wrong with it, to go after a name for it: `is already in use`. */
  readonly reason: string;

  constructor(address: string, cause: NodeJS.ErrnoException) {
    const reason = REASONS[cause.code ?? ''] ?? `could not be opened: ${cause.message}`;
    super(`${address} ${reason}`, { cause });
    this.name = 'ListenError';
    this.code = cause.code ?? '';
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

/** One address that is open. */
export interface OpenAddress {
  readonly server: Server;
  /** `ip:port` or `unix:/path`, as it came to be. */
  readonly text: string;
  /** Undefined for a unix socket. */
  readonly port: number | undefined;
}

/**
 * Opens all of an address, or nothing; for every server of the process but the gateway's own ports. With port 0 the
 * first address decides for the others. A family that the machine does not have is left out where another is open. A
 * socket file that a former process left is replaced; one that somebody answers on, and any other file, is not touched.
 *
 * @param create A server that does not listen yet.
 * @param mode Of a socket file: who may connect; as the process's umask says when absent.
 * @throws ListenError, after closing what was open
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
        const isIncluded = opened.length > 0 && host === '0.0.0.0';
        if (isSpare(error as NodeJS.ErrnoException, index, address.hosts.length, isIncluded)) continue;
        throw new ListenError(hostAndPort(host, port), error as NodeJS.ErrnoException);
      }
      const actual = server.address() as AddressInfo;
      ({ port } = actual);
      opened.push({ server, text: hostAndPort(actual.address, port), port });
    }
    if (opened.length === 0)
      throw new ListenError(hostAndPort(address.hosts[0] as string, port), new Error('no address'));
    return opened;
  } catch (error) {
    await closeAll(opened);
    throw error;
  }
}

/** A server that listens. */
export interface ListeningServer {
  /** The first address where there are two; for logs and tests. */
  readonly address: string;
  /** The port, undefined for a unix socket. */
  readonly port: number | undefined;
  /** Stops listening and cuts what is open. */
  close(): Promise<void>;
}

/** Serves small answers over HTTP at an address; undefined for `off`. @throws ListenError */
export async function listenOn(
  address: ListenAddress,
  onRequest: RequestListener,
): Promise<ListeningServer | undefined> {
  if (address.kind === 'off') return undefined;
  const opened = await openAddresses(address, () => newServer(onRequest));
  const { text, port } = opened[0] as OpenAddress;
  return { address: text, port, close: () => closeAll(opened) };
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

async function openSocket(path: string, server: Server, mode: number | undefined): Promise<OpenAddress> {
  const text = `unix:${path}`;
  try {
    await removeStale(path);
    await listening(server, { path });
    // The file is there as soon as it listens; nobody has been accepted yet.
    if (mode !== undefined) chmodSync(path, mode);
  } catch (error) {
    throw new ListenError(text, error as NodeJS.ErrnoException);
  }
  return { server, text, port: undefined };
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

/** Only a refusal says that nobody is there: one whose queue is full (EAGAIN) is. */
function isAnswered(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ path });
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', ({ code }: NodeJS.ErrnoException) => resolve(code !== 'ECONNREFUSED'));
  });
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

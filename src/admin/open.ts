import { createServer, type RequestListener, type Server } from 'node:http';
import { LIMITS, type Limits } from '../core/limits.ts';
import type { ListenAddress } from '../core/listen.ts';
import { ListenError, openAddresses } from '../core/listening-server.ts';

/** An address of the admin server could not be opened. The message names the address and the reason. */
export class AdminAddressError extends Error {
  readonly code: string;

  constructor(cause: ListenError) {
    super(`the admin server cannot listen on ${cause.address}: the address ${cause.reason}`, { cause });
    this.name = 'AdminAddressError';
    this.code = cause.code;
  }
}

/** How long the admin server waits for the headers of a request, and for all of it, in ms. */
export type AdminLimits = Pick<Limits, 'operatorServerHeadersTimeout' | 'adminRequestTimeout'>;

/** One open address. */
export interface OpenAddress {
  readonly server: Server;
  /** Formatted for display: `127.0.0.1:15000`, `[::1]:15000`, `unix:/path`. */
  readonly text: string;
  readonly url: string | undefined;
}

/** Mode of a socket file: only the user of this process may connect. There is no other protection. */
const OWNER_ONLY = 0o600;

/**
 * Opens all hosts of an address, or none.
 *
 * @throws AdminAddressError
 */
export async function openAddress(
  address: Exclude<ListenAddress, { kind: 'off' }>,
  handle: RequestListener,
  limits: AdminLimits,
): Promise<OpenAddress[]> {
  try {
    const opened = await openAddresses(address, () => createAdminServer(handle, limits), OWNER_ONLY);
    return opened.map(({ server, text, port }) => ({
      server,
      text,
      url: port === undefined ? undefined : `http://${reachable(text)}`,
    }));
  } catch (error) {
    throw error instanceof ListenError ? new AdminAddressError(error) : error;
  }
}

/** A server on all addresses is also reachable by loopback. */
const reachable = (text: string): string => text.replace(/^(?:0\.0\.0\.0|\[::\])(?=:)/, '127.0.0.1');

function createAdminServer(handle: RequestListener, limits: AdminLimits): Server {
  const server = createServer(
    {
      headersTimeout: limits.operatorServerHeadersTimeout,
      requestTimeout: limits.adminRequestTimeout,
      keepAliveTimeout: LIMITS.adminKeepAlive,
      connectionsCheckingInterval: LIMITS.adminCheckingInterval,
      maxHeaderSize: LIMITS.adminHeaderBytes,
      noDelay: true,
    },
    handle,
  );
  server.maxConnections = LIMITS.operatorServerConnections;
  // Ends the connection of a client that does not read its response.
  server.setTimeout(LIMITS.writeStall);
  return server;
}

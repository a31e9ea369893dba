import type { Socket } from 'node:net';
import type { ServerTls } from '../tls/tls-entrance.ts';

/** How connections reach one of the listeners of a port. */
export interface Entrance {
  /** Name of the listener. */
  readonly name: string;
  /** In lower case, `*.example.com` for all names below it; undefined for any host. */
  readonly hostname: string | undefined;
  /** If the gateway ends the TLS of its connections. */
  readonly tls?: ServerTls | undefined;
  /** Passes the bytes of a connection on, instead of serving HTTP. `serverName` is what its client asked for with SNI. */
  relay?(socket: Socket, serverName: string | undefined, ended?: RelayEnded): void;
}

/** A connection whose bytes were passed on, when it has ended. */
export interface RelayedConnection {
  readonly listener: string;
  /** Undefined if no route takes the connection. */
  readonly route: string | undefined;
  /** Address of the service. */
  readonly endpoint: string | undefined;
  /** Address of the client. */
  readonly client: string;
  readonly serverName: string | undefined;
  /** Bytes from and to the client. */
  readonly received: number;
  readonly sent: number;
  /** In ms. */
  readonly duration: number;
  /** Why it has failed; undefined if one of the sides has ended it. `detail` has the address and the cause. */
  readonly error: string | undefined;
  readonly detail: string | undefined;
}

export type RelayEnded = (connection: RelayedConnection) => void;

/**
 * Returns the entrance for a host name: an exact one first, then the longest wildcard, then the one for any host. Names are
 * case-insensitive (RFC 6066 §3).
 */
export function entranceFor<E extends Pick<Entrance, 'hostname'>>(
  entrances: readonly E[],
  serverName: string | undefined,
): E | undefined {
  const host = serverName?.toLowerCase();
  let best: E | undefined;
  for (const entrance of entrances) {
    const { hostname } = entrance;
    if (hostname === undefined) best ??= entrance;
    else if (host === undefined) continue;
    else if (hostname === host) return entrance;
    else if (
      hostname.startsWith('*.') &&
      host.endsWith(hostname.slice(1)) &&
      hostname.length > (best?.hostname?.length ?? 0)
    )
      best = entrance;
  }
  return best;
}

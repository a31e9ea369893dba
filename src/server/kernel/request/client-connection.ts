import type { X509Certificate } from 'node:crypto';
import type { Socket } from 'node:net';

/** The connection of a client. Only the headers of trusted proxies change it, because any client can send these. */
export interface ClientConnection {
  /** IP address; an IPv4 client of a dual-stack socket has its IPv4 address. */
  readonly address: string;
  readonly port: number;
  readonly scheme: 'http' | 'https';
  /** Over TLS, the listener that the client has selected by its name (SNI), and whose certificates it has seen. */
  tlsListener?: string;
  /** Address and port, for logs. */
  readonly label: string;
  /** The socket. Node removes it from a finished request whose body was read as a stream. */
  readonly connection: object;
  /** What TLS says of the client, read when its connection was established: a closed socket no longer knows it. */
  tls?: ClientTls;
  /** The connection itself, if a trusted proxy has named the client. */
  readonly peer?: ClientConnection;
  /** The gateway's own side of the connection. */
  readonly local: { readonly localAddress?: string | undefined; readonly localPort?: number | undefined };
}

export interface ClientTls {
  /** Host name that the client has asked for (SNI). */
  readonly serverName?: string | undefined;
  /** Its certificate, which an authority of the listener has issued. */
  readonly certificate?: X509Certificate | undefined;
}

/** A property of the socket: all requests of a connection share it. */
const CLIENT = Symbol('client');

/** The port that a client has named, if its connection came through a tunnel. */
const TUNNEL = Symbol('tunnel');

interface Tunnelled {
  [TUNNEL]?: number;
  /** The socket below TLS, which is not in the types of Node.js. */
  readonly _parent?: Tunnelled;
}

/** A client has opened a tunnel to a port over this connection: from now on, it is a connection to that port. */
export function throughTunnel(
  socket: Socket & Tunnelled & { [CLIENT]?: ClientConnection },
  port: number,
): void {
  socket[TUNNEL] = port;
  delete socket[CLIENT];
}

/** The client of a connection. The first call reads its address, which a closed socket no longer has. */
export function clientOf(socket: Socket & { [CLIENT]?: ClientConnection }): ClientConnection {
  socket[CLIENT] ??= newClient(socket);
  return socket[CLIENT];
}

function newClient(socket: Socket & Tunnelled): ClientConnection {
  const { remoteAddress = '', remotePort = 0, localAddress } = socket;
  const localPort = socket[TUNNEL] ?? socket._parent?.[TUNNEL];
  const scheme = 'encrypted' in socket ? 'https' : 'http';
  return clientConnection(canonicalAddress(remoteAddress), remotePort, {
    connection: socket,
    local: localPort === undefined ? socket : { localAddress, localPort },
    scheme,
  });
}

/** Remembers which listener a TLS connection was made to, and what TLS says of its client. */
export function enteredBy(socket: Socket, listener: string, tls: ClientTls): void {
  Object.assign(clientOf(socket), { tlsListener: listener, tls });
}

/** The connection of the client with this address. */
export function clientConnection(
  address: string,
  port: number,
  rest: Pick<ClientConnection, 'connection' | 'local' | 'scheme'> & Partial<ClientConnection>,
): ClientConnection {
  const label = address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`;
  return { ...rest, address, port, label };
}

/** Converts the IPv4-mapped address of a dual-stack socket, `::ffff:a.b.c.d`, to `a.b.c.d`. */
export function canonicalAddress(address: string): string {
  return address.startsWith('::ffff:') ? address.slice(7) : address;
}

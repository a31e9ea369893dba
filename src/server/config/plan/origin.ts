interface Reached {
  /** That of the port; undefined for all addresses of the machine. */
  readonly address: string | undefined;
  /** Of the listener, as in the configuration: `HTTPS`. All listeners of a port speak TLS, or none. */
  readonly protocol: string | undefined;
  /** The number of the open port, which may be any free one in the configuration. */
  readonly port: number;
  /** Host names of a route and its listener, which answer requests to no other. */
  readonly hostnames?: readonly (string | undefined)[];
}

/** Default ports, which an origin leaves out. */
const PORTS: Readonly<Record<string, number>> = { http: 80, https: 443 };

/**
 * Where programs of this machine reach a port, or one of its routes: an origin (RFC 6454) such as `https://127.0.0.1:8443`, or the like for
 * connections without HTTP (`tcp://`, `tls://`). Its host is the first host name without wildcard, if there is one.
 */
export function originOf({ address, protocol = 'HTTP', port, hostnames = [] }: Reached): string {
  const scheme = protocol.toLowerCase();
  const host = hostnames.find((name) => name !== undefined && !name.startsWith('*')) ?? reachable(address);
  const shown = host.includes(':') ? `[${host}]` : host;
  return `${scheme}://${shown}${PORTS[scheme] === port ? '' : `:${port}`}`;
}

/** Where programs of this machine connect to: an address that is all addresses is reached on loopback. */
export const reachable = (address: string | undefined): string =>
  address === undefined || address === '' || address === '0.0.0.0' || /^[0:]+$/.test(address)
    ? '127.0.0.1'
    : address;

import { isIP } from 'node:net';

/**
 * Where a server of the process listens, except the gateway's own ports. `hosts` are IP addresses, opened in order;
 * after the first, a host whose address family the machine does not have is skipped.
 */
export type ListenAddress =
  | { readonly kind: 'off' }
  | { readonly kind: 'unix'; readonly path: string }
  | { readonly kind: 'tcp'; readonly hosts: readonly string[]; readonly port: number };

/** Describes what `parseListenAddress` accepts. */
export const LISTEN_ADDRESS_FORMS = 'expected `ip:port`, `localhost:port`, `:port`, `unix:/path` or `off`';

/**
 * Parses the address of a server: `ip:port` (IPv6 in brackets), `localhost:port` for both loopback families, `:port`
 * for all addresses, `unix:/path`, `off`. Returns undefined for anything else. Host names are not resolved, so a server
 * cannot end up on an unintended address.
 */
export function parseListenAddress(text: string): ListenAddress | undefined {
  if (text.toLowerCase() === 'off') return { kind: 'off' };
  if (text.startsWith('unix:')) {
    const path = text.slice('unix:'.length).replace(/^\/\//, '');
    // sun_path holds 108 bytes including its terminator on Linux, 104 on macOS.
    return path.startsWith('/') && path.length < 104 ? { kind: 'unix', path } : undefined;
  }
  const match = /^(?:\[([^\]]+)\]|([^:]*)):(\d{1,5})$/.exec(text);
  if (match === null) return undefined;
  const [, bracketed, plain = '', digits] = match;
  const port = Number(digits);
  if (port > 65_535) return undefined;
  if (bracketed !== undefined)
    return isIP(bracketed) === 6 ? { kind: 'tcp', hosts: [bracketed], port } : undefined;
  if (plain === '') return { kind: 'tcp', hosts: ['::', '0.0.0.0'], port };
  if (plain.toLowerCase() === 'localhost') return { kind: 'tcp', hosts: ['127.0.0.1', '::1'], port };
  return isIP(plain) === 4 ? { kind: 'tcp', hosts: [plain], port } : undefined;
}

/**
 * Whether a server is not started, with a warning, if its address is in use: at the default `fallback`, or the same port
 * on loopback alone. `agctl init` writes the latter, and a second gateway on the machine must start.
 */
export const isOptionalAddress = (configured: string | undefined, fallback: string): boolean =>
  configured === undefined || configured === `localhost${fallback}`;

/** Hosts and a port of any server. */
export type TcpAddress = Omit<Extract<ListenAddress, { kind: 'tcp' }>, 'kind'>;

/** Whether two servers conflict: the same port on the same address, or one of them on all addresses. */
export function overlap(a: TcpAddress, b: TcpAddress): boolean {
  return a.port === b.port && a.hosts.some((one) => b.hosts.some((other) => covers(one, other)));
}

/** `::` includes IPv4 (Node.js listens on both families); `0.0.0.0` is all of IPv4. */
function covers(one: string, other: string): boolean {
  const hosts = [canonical(one), canonical(other)];
  if (hosts[0] === hosts[1] || hosts.includes('::')) return true;
  return hosts.includes('0.0.0.0') && hosts.every((host) => isIP(host) === 4);
}

/** One spelling for all spellings of an IPv6 address, such as `0:0:0:0:0:0:0:1`. */
function canonical(host: string): string {
  return (isIP(host) === 6 ? URL.parse(`http://[${host}]`)?.hostname.slice(1, -1) : undefined) ?? host;
}

/** Whether only this machine can reach the IP address. */
export function isLoopback(host: string): boolean {
  return host === '::1' || /^(?:::ffff:)?127\./.test(host);
}

import { isIP } from 'node:net';

/**
 * Where a server of the process listens, apart from the gateway's own ports. `hosts` are IP addresses, tried in
 * order; after the first, one whose family the machine does not have is left out.
 */
export type ListenAddress =
  | { readonly kind: 'off' }
  | { readonly kind: 'unix'; readonly path: string }
  | { readonly kind: 'tcp'; readonly hosts: readonly string[]; readonly port: number };

/** What `parseListenAddress` accepts, in words for a person. */
export const LISTEN_ADDRESS_FORMS = 'expected `ip:port`, `localhost:port`, `:port`, `unix:/path` or `off`';

/**
 * Reads the address of a server: `ip:port` (IPv6 in brackets), `localhost:port` for both loopback families, `:port`
 * for all addresses, `unix:/path`, `off`. Undefined for anything else. Host names are not looked up: a server must
 * not end up on another address than the one that was meant.
 */
export function parseListenAddress(text: string): ListenAddress | undefined {
  if (text.toLowerCase() === 'off') return { kind: 'off' };
  if (text.startsWith('unix:')) {
    const path = text.slice('unix:'.length).replace(/^\/\//, '');
    // sun_path holds 108 bytes with its end on Linux, 104 on macOS.
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

/** Hosts and a port, whoever listens there. */
export type TcpAddress = Omit<Extract<ListenAddress, { kind: 'tcp' }>, 'kind'>;

/** Whether two servers cannot both listen: on the same port of the same address, or one of them on all addresses. */
export function overlap(a: TcpAddress, b: TcpAddress): boolean {
  return a.port === b.port && a.hosts.some((one) => b.hosts.some((other) => covers(one, other)));
}

/** `::` takes IPv4 too (Node.js listens on both families); `0.0.0.0` is all of IPv4. */
function covers(one: string, other: string): boolean {
  const hosts = [canonical(one), canonical(other)];
  if (hosts[0] === hosts[1] || hosts.includes('::')) return true;
  return hosts.includes('0.0.0.0') && hosts.every((host) => isIP(host) === 4);
}

/** One text for all spellings of an IPv6 address, such as `0:0:0:0:0:0:0:1`. */
function canonical(host: string): string {
  return (isIP(host) === 6 ? URL.parse(`http://[${host}]`)?.hostname.slice(1, -1) : undefined) ?? host;
}

/** Whether only this machine reaches the address. */
export function isLoopback(host: string): boolean {
  return host === '::1' || /^(?:::ffff:)?127\./.test(host);
}

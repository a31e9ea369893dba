import { isIP } from 'node:net';
import { isLoopback } from './listen.ts';

/**
 * Protection from DNS rebinding, for every server of the process. A web page of an attacker can reach a server on the
 * visitor's machine under the attacker's host name. Therefore a request that arrives on a loopback address must name a
 * loopback host, or an allowed one, in Host and Origin (MCP revision 2025-11-25, "Security Warning").
 */

interface HostClaims {
  /** Address that the connection was accepted on; undefined for a unix socket, which no browser can reach. */
  readonly localAddress: string | undefined;
  /** Host name of the Host header, in lower case and without port; IPv6 addresses in brackets. */
  readonly host: string;
  readonly origin: string | undefined;
}

/**
 * Checks Host and Origin of a request.
 *
 * @param allowedHosts Host names that are allowed in addition to loopback names.
 * @param always Checks connections on other addresses too.
 * @returns the header to refuse, or undefined
 */
export function rebindingHeader(
  { localAddress, host, origin }: HostClaims,
  allowedHosts: ReadonlySet<string>,
  always = false,
): 'Host' | 'Origin' | undefined {
  if (!always && !isLoopback(localAddress ?? '')) return undefined;
  const isAllowed = (name: string): boolean => isLoopbackHost(name) || allowedHosts.has(name);
  if (!isAllowed(host)) return 'Host';
  // A sandboxed page sends "null", which names no host.
  return origin === undefined || isAllowed(hostnameOf(origin)) ? undefined : 'Origin';
}

/** The refusal's message. It does not quote the request. `setting` says how further hosts can be allowed. */
export function rebindingMessage(header: string, setting: string): string {
  return `DNS rebinding protection: the ${header} of a local connection must be localhost, 127.0.0.1, [::1] or ${setting}`;
}

/** Whether a host name can only lead to this machine. `127.evil.example` is a name, not an address. */
export function isLoopbackHost(host: string): boolean {
  const address = withoutBrackets(host);
  return host === 'localhost' || (isIP(address) !== 0 && isLoopback(address));
}

/** An IPv6 address without the brackets that it has in a URL; any other host unchanged. */
export function withoutBrackets(host: string): string {
  return host.startsWith('[') && host.endsWith(']') ? host.slice(1, -1) : host;
}

/** The host name of a URL, in lower case; empty if the text is not a URL. */
export function hostnameOf(url: string): string {
  return URL.parse(url)?.hostname ?? '';
}

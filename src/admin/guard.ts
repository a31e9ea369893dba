import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { isLoopbackHost, withoutBrackets } from '../core/dns-rebinding.ts';
import { isLoopback } from '../core/listen.ts';
import { isForwardedFromTls, isOwnOrigin } from '../core/own-origin.ts';
import { isSentByGateway } from '../core/via.ts';

/** On every response: no page may frame, sniff or cache it, and pages load nothing from other origins. */
export const HEADERS = {
  'cache-control': 'no-store',
  'content-security-policy':
    "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
} as const;

/**
 * Without `config.adminRoles`, whoever can connect may use the admin server. Web pages must not, although they run on a machine
 * that can connect: a page may use its own host name (DNS rebinding), or send a request without reading the response
 * (cross-site request forgery).
 *
 * @param isUnixSocket whether the server has a unix socket, which no browser can reach
 * @returns why the request is refused, or undefined
 */
export function refusal(
  request: IncomingMessage,
  allowedHosts: ReadonlySet<string>,
  isUnixSocket: boolean,
): string | undefined {
  // A client of a `dynamic` backend may name this server, which it could not connect to itself.
  if (isSentByGateway(request.headers.via))
    return 'the admin server answers no request that a gateway has forwarded';
  if (isUnixSocket) return undefined;
  const { localAddress = '' } = request.socket;
  const { host = '' } = request.headers;
  if (!isAllowedHost(hostOf(host), localAddress, allowedHosts))
    return 'protection from DNS rebinding: the Host of a request to the admin server must be localhost, 127.0.0.1, [::1] or a name in config.adminHosts';
  // A page on another port of this machine has another origin and is not trusted.
  if (!isOwnPage(request.headers, host) || (isForeignFetch(request) && !isNavigation(request)))
    return 'the admin server answers only pages of its own origin; to use it under another host name, add that name to config.adminHosts';
  return undefined;
}

function isOwnPage(headers: IncomingHttpHeaders, host: string): boolean {
  return isOwnOrigin(headers.origin, host, isForwardedFromTls(headers['x-forwarded-proto']?.toString()));
}

/** On other addresses than loopback ones, any IP address is allowed, because an address cannot be rebound. */
function isAllowedHost(host: string, localAddress: string, allowedHosts: ReadonlySet<string>): boolean {
  if (isLoopbackHost(host) || allowedHosts.has(host)) return true;
  return !isLoopback(localAddress) && isIP(withoutBrackets(host)) !== 0;
}

/** The host without port, in lower case; empty if it is not a valid host. */
function hostOf(header: string): string {
  return /^(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::\d{1,5})?$/.exec(header)?.[1]?.toLowerCase() ?? '';
}

/** Browsers report the relation to the requesting page (Fetch Metadata); `none` means that there is no page. */
function isForeignFetch({ headers }: IncomingMessage): boolean {
  const site = headers['sec-fetch-site'];
  return site === 'cross-site' || site === 'same-site';
}

/** A link on another site may lead to the user interface. */
function isNavigation({ method, url = '', headers }: IncomingMessage): boolean {
  const isPage = /^\/(?:ui(?:[/?]|$)|\?|$)/.test(url);
  return method === 'GET' && isPage && headers['sec-fetch-mode'] === 'navigate';
}

import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { isLoopback } from '../core/listen.ts';

/**
 * The admin server knows no users: whoever reaches it may use it. Web pages must not, although they run on a machine
 * that does: a page reaches it under its own name (DNS rebinding), or sends a request blindly (cross-site request
 * forgery). Returns why the request is refused, or undefined.
 */
export function refusal(request: IncomingMessage, allowedHosts: ReadonlySet<string>): string | undefined {
  const { localAddress } = request.socket;
  // A unix socket: no browser gets there.
  if (localAddress === undefined) return undefined;
  const { host = '', origin } = request.headers;
  if (!isAllowedHost(nameOf(host), localAddress, allowedHosts))
    return 'protection from DNS rebinding: the Host of a request to the admin server must be localhost, 127.0.0.1, [::1] or a name in config.adminHosts\n';
  // Another port of this machine is another origin: what is served there is not ours.
  const isOwn = origin === undefined || origin === `http://${host}` || origin === `https://${host}`;
  if (!isOwn || (isForeignFetch(request) && !isNavigation(request)))
    return 'the admin server answers pages of its own origin only; to use it under another name, add that name to config.adminHosts\n';
  return undefined;
}

/** An address cannot be rebound; on loopback only its own names make sense. */
function isAllowedHost(name: string, localAddress: string, allowedHosts: ReadonlySet<string>): boolean {
  if (name === 'localhost' || isLoopback(name) || allowedHosts.has(name)) return true;
  return !isLoopback(localAddress) && isIP(name) !== 0;
}

/** The host without port and brackets, lower case; empty when it is not a host. */
function nameOf(host: string): string {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([A-Za-z0-9._-]+))(?::\d{1,5})?$/.exec(host);
  const name = (match?.[1] ?? match?.[2] ?? '').toLowerCase();
  // `127.evil.example` is a name, not an address.
  return isLoopback(name) && isIP(name) === 0 ? '' : name;
}

/** Browsers say where a request comes from (Fetch Metadata); requests without a page behind them say `none`. */
function isForeignFetch({ headers }: IncomingMessage): boolean {
  const site = headers['sec-fetch-site'];
  return site === 'cross-site' || site === 'same-site';
}

/** Following a link from elsewhere to the user interface is fine. */
function isNavigation({ method, url = '', headers }: IncomingMessage): boolean {
  const isPage = /^\/(?:ui(?:[/?]|$)|\?|$)/.test(url);
  return method === 'GET' && isPage && headers['sec-fetch-mode'] === 'navigate';
}

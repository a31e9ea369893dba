import { buildConnector } from 'undici';
import { hostLookup } from './host-lookup.ts';

/**
 * Connects to an HTTP server as an `Upstream` would, with TLS where the URL says so, and hangs up. Resolves to what went
 * wrong, for `explainUpstreamError`, or to undefined. `timeout` in ms, for the lookup of the name and all else.
 */
export function tryConnection(
  { protocol, host, hostname, port }: URL,
  timeout: number,
): Promise<Error | undefined> {
  const connect = buildConnector({ timeout, lookup: hostLookup.forConnect });
  const target = {
    protocol,
    host,
    hostname: hostname.replace(/^\[|\]$/g, ''),
    port: port || (protocol === 'https:' ? '443' : '80'),
  };
  return new Promise((resolve) => {
    connect(target, (error, socket) => {
      socket?.destroy();
      resolve(error ?? undefined);
    });
  });
}

import { type HttpUpstream, httpUpstream, type UpstreamOptions } from './upstream.ts';

export interface Identity {
  readonly node: string;
  readonly login: string;
}

/**
 * An identity daemon of a mesh network: tells who is behind an address, for callers that name its host. Addresses
 * that it does not know give 404.
 */
export function identityDaemon(
  known: Readonly<Record<string, Identity>>,
  options: UpstreamOptions = { socket: true },
): Promise<HttpUpstream> {
  return httpUpstream(({ headers, url }, response) => {
    const { pathname, searchParams } = new URL(url ?? '/', 'http://daemon');
    if (headers.host !== DAEMON_HOST) return response.writeHead(421).end('wrong host');
    if (pathname !== '/localapi/v0/whois') return response.writeHead(404).end('not found');
    const identity = known[searchParams.get('addr') ?? ''];
    if (identity === undefined) return response.writeHead(404).end('no match for address');
    response.setHeader('content-type', 'application/json');
    return response.end(
      JSON.stringify({
        Node: { ID: 4242, Name: identity.node },
        UserProfile: { ID: 77, LoginName: identity.login },
      }),
    );
  }, options);
}

/** The fixed host name that the daemon insists on. */
export const DAEMON_HOST = 'local-daemon.sock';

/** The authorization policy of the specification, which asks the daemon by source address. */
export function whoisPolicy(host: string): object {
  return {
    host,
    protocol: {
      http: {
        path: '"/localapi/v0/whois?addr=" + source.address',
        addRequestHeaders: { ':authority': `"${DAEMON_HOST}"` },
      },
    },
    metadata: {
      node: 'json(response.body).Node.Name',
      login: 'json(response.body).UserProfile.LoginName',
    },
  };
}

/** A policy that asks this service in the simplest way. */
export function askPolicy(host: string, http: object = {}, more: object = {}): object {
  return { extAuthz: { host, protocol: { http }, ...more } };
}

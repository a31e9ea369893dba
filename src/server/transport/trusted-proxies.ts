import { isIP } from 'node:net';
import { list } from '../../core/schema/mapping.ts';
import { type ClientConnection, clientConnection } from '../kernel/request/client-connection.ts';
import { Networks, networkSchema } from '../kernel/request/networks.ts';
import type { RequestContext } from '../kernel/request/request-context.ts';

/** `config.http.trustedProxies`. */
export const trustedProxiesSchema = list(
  'Addresses of proxies in front of the gateway. For connections from them, the client is the last address in `X-Forwarded-For` that is not one of them: in `source.address`, rate limits and logs. By default, no header changes the client.',
  networkSchema,
);

/** Finds the client of a request behind trusted proxies. */
export class TrustedProxies {
  readonly #trusted: Networks;

  /** `networks` are valid by `trustedProxiesSchema`. */
  constructor(networks: readonly string[]) {
    this.#trusted = new Networks(networks);
  }

  /** Replaces the client of a request whose connection comes from a trusted proxy. */
  apply(ctx: RequestContext): void {
    const { client } = ctx;
    // Another worker has done so, and its header is that of the client.
    if (client.local !== client.connection || !this.#trusted.includes(client.address)) return;
    const forwarded = ctx.headers.all('x-forwarded-for').flatMap((line) => line.split(','));
    let found: { readonly address: string; readonly port: number } | undefined;
    // From the right, because each proxy appends who it got the request from: what is further left may be invented.
    for (const entry of forwarded.reverse()) {
      const hop = hopOf(entry.trim());
      // A proxy that cannot say who it was: its own address is the last one that is known.
      if (hop === undefined) break;
      found = hop;
      if (!this.#trusted.includes(hop.address)) break;
    }
    if (found !== undefined) ctx.client = behind(client, found);
  }
}

function behind(
  peer: ClientConnection,
  { address, port }: { readonly address: string; readonly port: number },
): ClientConnection {
  const client = clientConnection(address, port, { ...peer, peer });
  return port === 0 ? { ...client, label: address } : client;
}

/** An entry of X-Forwarded-For: an address, also with a port (0 if it has none), as some proxies write it. */
function hopOf(entry: string): { address: string; port: number } | undefined {
  const [, bracketed, plain, port = '0'] = /^(?:\[([0-9A-Fa-f:.]+)\]|(\d[\d.]*))(?::(\d{1,5}))?$/.exec(
    entry,
  ) ?? [undefined, undefined, entry];
  const address = (bracketed ?? plain ?? '').replace(/^::ffff:(?=\d+\.)/i, '').toLowerCase();
  return isIP(address) === 0 ? undefined : { address, port: Number(port) };
}

import { BlockList, isIP } from 'node:net';
import { z } from 'zod';
import { list } from '../../core/schema/mapping.ts';
import { type ClientConnection, clientConnection } from '../kernel/request/client-connection.ts';
import type { RequestContext } from '../kernel/request/request-context.ts';

/** `config.http.trustedProxies`. */
export const trustedProxiesSchema = list(
  'Addresses of proxies in front of the gateway. For connections from them, the client is the last address in `X-Forwarded-For` that is not one of them: in `source.address`, rate limits and logs. By default, no header changes the client.',
  z.string().refine((text) => subnetOf(text) !== undefined, {
    error: 'expected an address or a network, such as `10.0.0.0/8` or `fd00::/8`',
  }),
);

interface Subnet {
  readonly address: string;
  readonly prefix: number;
  readonly family: 'ipv4' | 'ipv6';
}

function subnetOf(text: string): Subnet | undefined {
  const [address = '', bits, more] = text.split('/');
  const version = isIP(address);
  const longest = version === 4 ? 32 : 128;
  const prefix = bits === undefined ? longest : /^\d{1,3}$/.test(bits) ? Number(bits) : Number.NaN;
  if (version === 0 || more !== undefined || !(prefix <= longest)) return undefined;
  return { address, prefix, family: version === 4 ? 'ipv4' : 'ipv6' };
}

/** Finds the client of a request behind trusted proxies. */
export class TrustedProxies {
  readonly #trusted = new BlockList();

  /** `networks` are valid by `trustedProxiesSchema`. */
  constructor(networks: readonly string[]) {
    for (const { address, prefix, family } of networks.flatMap((text) => subnetOf(text) ?? []))
      this.#trusted.addSubnet(address, prefix, family);
  }

  /** Replaces the client of a request whose connection comes from a trusted proxy. */
  apply(ctx: RequestContext): void {
    const { client } = ctx;
    // Another worker has done so, and its header is that of the client.
    if (client.local !== client.connection || !this.#isTrusted(client.address)) return;
    const forwarded = ctx.headers.all('x-forwarded-for').flatMap((line) => line.split(','));
    let found: { readonly address: string; readonly port: number } | undefined;
    // From the right, because each proxy appends who it got the request from: what is further left may be invented.
    for (const entry of forwarded.reverse()) {
      const hop = hopOf(entry.trim());
      // A proxy that cannot say who it was: its own address is the last one that is known.
      if (hop === undefined) break;
      found = hop;
      if (!this.#isTrusted(hop.address)) break;
    }
    if (found !== undefined) ctx.client = behind(client, found);
  }

  #isTrusted(address: string): boolean {
    const version = isIP(address);
    return version !== 0 && this.#trusted.check(address, version === 4 ? 'ipv4' : 'ipv6');
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

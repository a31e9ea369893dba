import { BlockList, isIP } from 'node:net';
import { z } from 'zod';

/** An IP address, or a network such as `10.0.0.0/8`. */
export const networkSchema = z.string().refine((text) => subnetOf(text) !== undefined, {
  error: 'expected an address or a network, such as `10.0.0.0/8` or `fd00::/8`',
});

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

/** A set of addresses. */
export class Networks {
  readonly #list = new BlockList();

  /** `networks` are valid by `networkSchema`. */
  constructor(networks: readonly string[]) {
    for (const { address, prefix, family } of networks.flatMap((text) => subnetOf(text) ?? []))
      this.#list.addSubnet(address, prefix, family);
  }

  /** Whether an IP address belongs to them. */
  includes(address: string): boolean {
    const version = isIP(address);
    return version !== 0 && this.#list.check(address, version === 4 ? 'ipv4' : 'ipv6');
  }
}

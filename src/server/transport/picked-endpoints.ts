import { BlockList, isIP } from 'node:net';
import { LIMITS } from '../../core/limits.ts';
import { Slot } from '../kernel/slot.ts';

/** The endpoints that a picker has named for a call, in its order. */
export interface PickedEndpoints {
  /** The one that is tried first. */
  readonly first: string;
  /** `ip:port`, those that the backend has not tried yet. */
  readonly remaining: string[];
  /** The one that has answered. */
  served?: string;
}

/** Set by `inferenceRouting` for each call. */
export const pickedEndpoints = new Slot<PickedEndpoints>();

const ENDPOINT = /^(?:\[([0-9A-Fa-f:.]+)\]|([\d.]+)):(\d{1,5})$/;

/** Addresses of no other machine's service: "this network", groups, and the local link, where clouds have their credentials. */
const REFUSED = new BlockList();
REFUSED.addSubnet('0.0.0.0', 8, 'ipv4');
REFUSED.addSubnet('169.254.0.0', 16, 'ipv4');
REFUSED.addSubnet('224.0.0.0', 3, 'ipv4');
REFUSED.addAddress('::', 'ipv6');
REFUSED.addSubnet('fe80::', 10, 'ipv6');
// The local link of IPv4 behind NAT64 (RFC 6052 §2.1), and where AWS has credentials on IPv6.
REFUSED.addSubnet('64:ff9b::a9fe:0', 112, 'ipv6');
REFUSED.addAddress('fd00:ec2::254', 'ipv6');
REFUSED.addSubnet('ff00::', 8, 'ipv6');

/** The endpoints of a list such as `10.0.0.5:8000,[fd00::1]:8000`, without those that cannot be one, and repetitions. */
export function endpointsIn(list: string): string[] {
  const entries = list.split(',', LIMITS.pickedEndpoints).map((entry) => entry.trim());
  return [...new Set(entries.filter(isEndpoint))];
}

function isEndpoint(text: string): boolean {
  const [, v6, v4, port] = ENDPOINT.exec(text) ?? [];
  const address = v6 ?? v4 ?? '';
  const family = isIP(address);
  const number = Number(port);
  if (family !== (v6 === undefined ? 4 : 6) || number === 0 || number > 65_535) return false;
  return !REFUSED.check(address, family === 6 ? 'ipv6' : 'ipv4');
}

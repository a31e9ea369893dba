import { isIP, isIPv4, SocketAddress } from 'node:net';
import { charge } from '../limits.ts';
import { Keyed, type Value } from '../values.ts';
import { asString, type FunctionDefinition, fn, invalid, method } from './define.ts';

type Family = 4 | 6;

const width = (family: Family): number => (family === 4 ? 32 : 128);

/** An IPv4 or IPv6 address. */
class Address extends Keyed {
  readonly typeName = 'net.IP';
  readonly family: Family;
  readonly bits: bigint;

  constructor(family: Family, bits: bigint) {
    super();
    this.family = family;
    this.bits = bits;
  }

  get key(): string {
    return this.family === 4 ? v4Text(this.bits) : v6Text(this.bits);
  }

  /** Whether the first `length` bits are those of `prefix`, an address of the same family. */
  hasPrefix(prefix: string, length: number): boolean {
    const shift = BigInt(width(this.family) - length);
    return this.bits >> shift === parseAddress(prefix).bits >> shift;
  }
}

/** An address with a prefix length; the bits after the prefix are kept as written. */
class Cidr extends Keyed {
  readonly typeName = 'net.CIDR';
  readonly address: Address;
  readonly length: number;

  constructor(address: Address, length: number) {
    super();
    this.address = address;
    this.length = length;
  }

  get key(): string {
    return `${this.address.key}/${this.length}`;
  }

  masked(): Cidr {
    const shift = BigInt(width(this.address.family) - this.length);
    return new Cidr(new Address(this.address.family, (this.address.bits >> shift) << shift), this.length);
  }

  contains(address: Address): boolean {
    const shift = BigInt(width(address.family) - this.length);
    return address.family === this.address.family && address.bits >> shift === this.address.bits >> shift;
  }
}

/** Reads an address without zone or port. Throws `invalid_argument`. */
function parseAddress(source: string): Address {
  const family = source.includes('%') ? 0 : isIP(source);
  if (family === 0) throw invalid('ip() needs an IPv4 or IPv6 address');
  if (family === 4) return new Address(4, v4Bits(source));
  // Measured: 4 µs for an IPv6 address and back, of which the text takes most.
  charge(4);
  // An IPv4 tail stands for the last two groups.
  const tail = source.slice(source.lastIndexOf(':') + 1);
  const hex = isIPv4(tail) ? source.slice(0, -tail.length) + v4Groups(tail) : source;
  const [head = '', rest] = hex.split('::');
  const before = head === '' ? [] : head.split(':');
  const after = rest === undefined || rest === '' ? [] : rest.split(':');
  const groups =
    rest === undefined ? before : [...before, ...Array(8 - before.length - after.length).fill('0'), ...after];
  return new Address(
    6,
    groups.reduce((bits, group) => (bits << 16n) | BigInt(`0x${group}`), 0n),
  );
}

function v4Bits(source: string): bigint {
  return source.split('.').reduce((bits, part) => (bits << 8n) | BigInt(part), 0n);
}

function v4Groups(source: string): string {
  const bits = v4Bits(source);
  return `${(bits >> 16n).toString(16)}:${(bits & 0xffffn).toString(16)}`;
}

function v4Text(bits: bigint): string {
  return [24n, 16n, 8n, 0n].map((shift) => (bits >> shift) & 0xffn).join('.');
}

// The platform prints the canonical form of RFC 5952.
function v6Text(bits: bigint): string {
  charge(6);
  const groups = bits.toString(16).padStart(32, '0').match(/.{4}/g) ?? [];
  return new SocketAddress({ address: groups.join(':'), family: 'ipv6' }).address;
}

/** Reads `address/length`. Throws `invalid_argument`. */
function parseCidr(source: string): Cidr {
  const [, base = '', digits] = /^([^/]+)\/(\d{1,3})$/.exec(source) ?? [];
  const length = Number(digits);
  if (isIP(base) === 0) throw invalid('cidr() needs a block like 10.0.0.0/8');
  const address = parseAddress(base);
  if (length > width(address.family)) throw invalid('cidr() needs a prefix length that fits the address');
  return new Cidr(address, length);
}

function addressOf(value: Value | undefined): Address {
  return value instanceof Address ? value : parseAddress(asString(value));
}

function cidrOf(value: Value | undefined): Cidr {
  return value instanceof Cidr ? value : parseCidr(asString(value));
}

function inFamily(address: Address, v4: readonly [string, number], v6: readonly [string, number]): boolean {
  return address.hasPrefix(...(address.family === 4 ? v4 : v6));
}

const isUnspecified = (address: Address): boolean => address.bits === 0n;
const isLoopback = (address: Address): boolean => inFamily(address, ['127.0.0.0', 8], ['::1', 128]);
const isLinkLocalMulticast = (address: Address): boolean =>
  inFamily(address, ['224.0.0.0', 24], ['ff02::', 16]);
const isLinkLocalUnicast = (address: Address): boolean =>
  inFamily(address, ['169.254.0.0', 16], ['fe80::', 10]);
const isMulticast = (address: Address): boolean => inFamily(address, ['224.0.0.0', 4], ['ff00::', 8]);
const isBroadcast = (address: Address): boolean => address.family === 4 && address.bits === 0xffff_ffffn;

// As Go's net.IP.IsGlobalUnicast, which Kubernetes' library and upstream follow: private ranges count as global.
function isGlobalUnicast(address: Address): boolean {
  return !(
    isUnspecified(address) ||
    isLoopback(address) ||
    isMulticast(address) ||
    isLinkLocalUnicast(address) ||
    isBroadcast(address)
  );
}

const isAddress = (value: Value): value is Address => value instanceof Address;
const isCidr = (value: Value): value is Cidr => value instanceof Cidr;

/** Addresses and blocks, after Kubernetes' IP and CIDR libraries. */
export const network: readonly FunctionDefinition[] = [
  fn('isIP', 1, (value) => !asString(value).includes('%') && isIP(asString(value)) !== 0),
  fn('ip', 1, addressOf),
  fn('cidr', 1, cidrOf),
  method(isAddress, 'family', 0, (address) => BigInt(address.family)),
  method(isAddress, 'isUnspecified', 0, isUnspecified),
  method(isAddress, 'isLoopback', 0, isLoopback),
  method(isAddress, 'isLinkLocalMulticast', 0, isLinkLocalMulticast),
  method(isAddress, 'isLinkLocalUnicast', 0, isLinkLocalUnicast),
  method(isAddress, 'isGlobalUnicast', 0, isGlobalUnicast),
  method(isCidr, 'containsIP', 1, (block, address) => block.contains(addressOf(address))),
  method(isCidr, 'containsCIDR', 1, (block, value) => {
    const inner = cidrOf(value);
    return inner.length >= block.length && block.contains(inner.address);
  }),
  method(isCidr, 'ip', 0, (block) => block.address),
  method(isCidr, 'masked', 0, (block) => block.masked()),
  method(isCidr, 'prefixLength', 0, (block) => BigInt(block.length)),
];

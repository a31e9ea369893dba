import { describe, expect, it } from 'vitest';
import { reason, run } from '../run.ts';

describe('IP addresses', () => {
  it.each([
    [
      '[string(ip("192.168.0.1")), string(ip("2001:DB8:0::68")), string(ip("::ffff:1.2.3.4"))]',
      ['192.168.0.1', '2001:db8::68', '::ffff:1.2.3.4'],
    ],
    ['[ip("1.2.3.4").family(), ip("::1").family()]', [4, 6]],
    [
      'isIP("1.2.3.4") && isIP("::") && !isIP("1.2.3.4.5") && !isIP("2001:db8:::68") && !isIP("fe80::1%eth0")',
      true,
    ],
    ['ip("0.0.0.0").isUnspecified() && ip("::").isUnspecified() && !ip("::1").isUnspecified()', true],
    ['ip("127.9.9.9").isLoopback() && ip("::1").isLoopback() && !ip("::2").isLoopback()', true],
    [
      'ip("224.0.0.1").isLinkLocalMulticast() && ip("ff02::1").isLinkLocalMulticast() && !ip("224.0.1.1").isLinkLocalMulticast()',
      true,
    ],
    [
      'ip("169.254.1.1").isLinkLocalUnicast() && ip("fe80::1").isLinkLocalUnicast() && !ip("fd80::1").isLinkLocalUnicast()',
      true,
    ],
    [
      'ip("192.168.0.1").isGlobalUnicast() && !ip("255.255.255.255").isGlobalUnicast() && !ip("ff00::1").isGlobalUnicast()',
      true,
    ],
    ['ip("2001:db8::1") == ip("2001:0db8:0:0:0:0:0:1") && ip("1.2.3.4") != ip("::ffff:1.2.3.4")', true],
    ['type(ip("::1")) == net.IP', true],
  ])('CEL IP address function gives the expected value: %s', (source, expected) => {
    expect(run(source)).toEqual(expected);
  });

  it.each([
    ['ip("1.2.3.400")', 'invalid_argument'],
    ['ip("")', 'invalid_argument'],
    ['ip("fe80::1%eth0")', 'invalid_argument'],
    ['ip(1)', 'no_such_overload'],
    ['isIP(cidr("1.0.0.0/8"))', 'no_such_overload'],
  ])('CEL IP address function %s fails: %s', (source, expected) => {
    expect(reason(source)).toBe(expected);
  });
});

describe('CIDR blocks', () => {
  it.each([
    ['cidr("10.0.0.0/8").containsIP("10.9.8.7") && cidr("10.0.0.0/8").containsIP(ip("10.0.0.0"))', true],
    ['cidr("10.0.0.0/8").containsIP("11.0.0.0") || cidr("0.0.0.0/0").containsIP("::1")', false],
    [
      'cidr("2001:db8::/32").containsIP("2001:db8:ffff::1") && !cidr("2001:db8::/32").containsIP("2001:db9::")',
      true,
    ],
    [
      'cidr("10.0.0.0/8").containsCIDR("10.1.0.0/16") && !cidr("10.1.0.0/16").containsCIDR(cidr("10.0.0.0/8"))',
      true,
    ],
    ['cidr("0.0.0.0/0").containsIP(source.address)', true],
    [
      '[string(cidr("127.0.7.1/8").masked()), string(cidr("127.0.7.1/8").ip())]',
      ['127.0.0.0/8', '127.0.7.1'],
    ],
    ['cidr("::1/128").prefixLength() + cidr("1.2.3.4/0").prefixLength()', 128],
  ])('CEL CIDR function gives the expected value: %s', (source, expected) => {
    expect(run(source, { source: { address: '203.0.113.9' } })).toEqual(expected);
  });

  it.each(['10.0.0.0', '10.0.0.0/33', '::/129', '10.0.0.0/-1', '10.0.0/8', 'x/8'])(
    'CEL cidr() rejects %s',
    (block) => {
      expect(reason('cidr(block)', { block })).toBe('invalid_argument');
    },
  );
});

describe('URI query functions', () => {
  const request = { pathAndQuery: '/a?b=1&c=x%20y&b=2#f' };

  it.each([
    ['request.pathAndQuery.query("b")', ['1', '2']],
    ['request.pathAndQuery.query("c")[0]', 'x y'],
    ['request.pathAndQuery.addQuery("d", "e f")', '/a?b=1&c=x%20y&b=2&d=e+f#f'],
    ['request.pathAndQuery.setQuery("b", "9")', '/a?b=9&c=x%20y#f'],
    ['"/a".addQuery("x", "1").setQuery("y", "&")', '/a?x=1&y=%26'],
    ['"/a??b=1".query("?b")', ['1']],
  ])('CEL query function gives the expected value: %s', (source, expected) => {
    expect(run(source, { request })).toEqual(expected);
  });

  it('CEL query() of a missing parameter fails with no_such_key', () => {
    expect(reason('request.pathAndQuery.query("z")', { request })).toBe('no_such_key');
    expect(run('default(request.pathAndQuery.query("z")[0], "d")', { request })).toBe('d');
  });
});

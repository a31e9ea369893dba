import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { AT_ONCE } from '../../kit/at-once.ts';
import { chaos } from '../../kit/config.ts';
import { gateway, type TestGateway } from '../../kit/gateway.ts';
import { rawRequest, sendRaw } from '../../kit/raw-http.ts';

const mcp = { targets: [chaos('a')], dnsRebindingProtection: false };
const route = (name: string, match: object | object[] | undefined, more: object = {}) => ({
  name,
  ...(match && { matches: [match].flat() }),
  backends: [{ mcp }],
  ...more,
});

/** A gateway with these routes; `take` returns the route of a request line with these header fields. */
async function router(
  routes: object[],
): Promise<{ gate: TestGateway; take: (line: string, ...fields: string[]) => Promise<string | undefined> }> {
  const gate = await gateway(JSON.stringify({ gateways: { default: { port: 0, routes } } }));
  const take = async (line: string, ...fields: string[]): Promise<string | undefined> => {
    const count = gate.accessLog.length + 1;
    const host = fields.find((field) => /^host:/i.test(field)) ?? 'Host: localhost';
    const others = fields.filter((field) => field !== host);
    const bytes = [`${line} HTTP/1.1`, host, 'Content-Length: 0', ...others, '', ''].join('\r\n');
    await sendRaw(gate.port, bytes, { responses: 1 });
    return (await gate.accessLine(count))['route']?.replace('default/', '');
  };
  return { gate, take };
}

describe('route precedence', () => {
  let gate: TestGateway;
  let take: Awaited<ReturnType<typeof router>>['take'];
  beforeAll(async () => {
    // Ordered from the weakest to the strongest match, so that the order in the file cannot decide.
    ({ gate, take } = await router([
      route('any', undefined),
      route('prefix', { path: { pathPrefix: '/p' } }),
      route('prefix-long', { path: { pathPrefix: '/p/q/' } }),
      route('method', { path: { pathPrefix: '/p' }, method: 'PUT' }),
      route('header', { path: { pathPrefix: '/h' }, headers: [{ name: 'X-A', value: { exact: '1' } }] }),
      route('two-headers', {
        path: { pathPrefix: '/h' },
        headers: [
          { name: 'x-a', value: { exact: '1' } },
          { name: 'x-b', value: { regex: '[0-9]+' } },
        ],
      }),
      route('plain-h', { path: { pathPrefix: '/h' } }),
      route('query', { path: { pathPrefix: '/q' }, query: [{ name: 'a', value: { exact: 'x y' } }] }),
      route('plain-q', { path: { pathPrefix: '/q' } }),
      route('zz-tie', { path: { exact: '/tie' } }),
      route('aa-tie', { path: { exact: '/tie' } }),
      route('exact', { path: { exact: '/p/q/r' } }),
      route('several', [{ path: { exact: '/s1' } }, { path: { exact: '/s2' } }]),
      route('pseudo', {
        path: { exact: '/pseudo' },
        headers: [{ name: ':authority', value: { regex: 'a\\..*' } }],
      }),
    ]));
  });
  afterAll(() => gate.close());

  test.each([
    ['exact before prefix', 'GET /p/q/r', 'exact'],
    ['the longer prefix first', 'GET /p/q/x', 'prefix-long'],
    ['a prefix is whole segments', 'GET /p/qq', 'prefix'],
    ['a trailing slash of a prefix does not count', 'GET /p/q', 'prefix-long'],
    ['a method is worth more than none', 'PUT /p', 'method'],
    ['a method decides only between equal paths', 'PUT /p/q', 'prefix-long'],
    ['a method is compared with its case', 'GET /p', 'prefix'],
    ['equal routes go by the alphabet', 'GET /tie', 'aa-tie'],
    ['each match of a route counts', 'GET /s2', 'several'],
    ['no condition at all takes the rest', 'GET /else', 'any'],
    ['a decoded query value', 'GET /q?a=x%20y&b=1', 'query'],
    ['a plus is a space in a query', 'GET /q?b=&a=x+y', 'query'],
    ['one of several equal query names', 'GET /q?a=1&a=x%20y', 'query'],
    ['another query value', 'GET /q?a=xy', 'plain-q'],
  ])('routing by path and method: %s: %s', async (_why, line, expected) => {
    expect(await take(line)).toBe(expected);
  });

  test('routing prefers more header matches, with case-insensitive names and whole values', async () => {
    expect(await take('GET /h', 'x-A: 1')).toBe('header');
    expect(await take('GET /h', 'X-a: 1', 'X-B: 22')).toBe('two-headers');
    expect(await take('GET /h', 'X-a: 1', 'X-B: 2x')).toBe('header');
    expect(await take('GET /h', 'X-a: 11')).toBe('plain-h');
    // Repeated fields are one list, so that the first value cannot hide a second one.
    expect(await take('GET /h', 'X-A: 1', 'X-A: 1')).toBe('plain-h');
  });

  test('routing matches pseudo-headers', async () => {
    expect(await take('GET /pseudo', 'Host: a.example:99')).toBe('pseudo');
    expect(await take('GET /pseudo', 'Host: b.example')).toBe('any');
  });
});

describe('regular expressions on the path', () => {
  let gate: TestGateway;
  let take: Awaited<ReturnType<typeof router>>['take'];
  beforeAll(async () => {
    ({ gate, take } = await router([
      route('short', { path: { regex: '/r.*' } }),
      route('long', { path: { regex: '/r/[a-z]{3,}.*' } }),
      route('slow', { path: { regex: '/(a+)+b' } }),
      route('prefix', { path: { pathPrefix: '/r/p' } }),
    ]));
  });
  afterAll(() => gate.close());

  test.each([
    ['the longer expression first', '/r/abcd', 'long'],
    ['it must match the whole path', '/x/r', undefined],
    ['case counts', '/R', undefined],
    ['a prefix comes first, however short', '/r/p', 'prefix'],
    ['the other one takes the rest', '/r/1', 'short'],
  ])('routing by a path expression: %s: %s', async (_why, path, expected) => {
    expect(await take(`GET ${path}`)).toBe(expected);
  });

  test('routing by a path expression takes linear time', async () => {
    const started = performance.now();
    expect(await take(`GET /${'a'.repeat(10_000)}`)).toBeUndefined();
    expect(performance.now() - started).toBeLessThan(AT_ONCE);
  });
});

describe('host names', () => {
  let gate: TestGateway;
  let take: Awaited<ReturnType<typeof router>>['take'];
  beforeAll(async () => {
    ({ gate, take } = await router([
      route('any', undefined),
      route('wild', undefined, { hostnames: ['*.example.com'] }),
      route('wilder', undefined, { hostnames: ['*.a.example.com'] }),
      route('exact', { path: { pathPrefix: '/x' } }, { hostnames: ['API.example.com'] }),
    ]));
  });
  afterAll(() => gate.close());

  test.each([
    ['api.example.com', 'GET /x', 'exact'],
    ['Api.Example.COM:8080', 'GET /x', 'exact'],
    ['api.example.com', 'GET /y', 'wild'],
    ['b.example.com', 'GET /', 'wild'],
    ['x.y.example.com', 'GET /', 'wild'],
    ['b.a.example.com', 'GET /', 'wilder'],
    ['example.com', 'GET /', 'any'],
    ['evilexample.com', 'GET /', 'any'],
    ['[::1]:80', 'GET /', 'any'],
  ])('routing by host name: %s, %s', async (host, line, expected) => {
    expect(await take(line, `Host: ${host}`)).toBe(expected);
  });
});

describe('top-level routes', () => {
  test('top-level routes belong to the named gateways, or to `default` without names', async () => {
    const config = {
      gateways: { default: { port: 0 }, second: { port: 0 }, third: { port: 0 } },
      routes: [
        route('everywhere', { path: { exact: '/all' } }, { gateways: ['default', 'second'] }),
        route('one', { path: { exact: '/one' } }, { gateways: 'third' }),
        route('unsaid', { path: { exact: '/unsaid' } }),
      ],
    };
    await using gate = await gateway(JSON.stringify(config));
    const statuses = async (path: string): Promise<number[]> => {
      const line = rawRequest(`PUT ${path} HTTP/1.1`, ['Content-Length: 0']);
      const replies = await Promise.all(gate.ports.map((port) => sendRaw(port, line, { responses: 1 })));
      return replies.map((reply) => reply.statuses[0] as number);
    };
    expect(await statuses('/all')).toEqual([405, 405, 404]);
    expect(await statuses('/one')).toEqual([404, 404, 405]);
    expect(await statuses('/unsaid')).toEqual([405, 404, 404]);
  });

  test('the short `mcp` section takes only the MCP paths of a shared gateway', async () => {
    await using gate = await gateway(
      JSON.stringify({ gateways: { default: { port: 0 } }, mcp: { targets: [chaos('a')] } }),
    );
    const status = async (path: string): Promise<number> =>
      (await fetch(`${gate.url}${path}`, { method: 'PUT' })).status;
    expect(await status('/mcp')).toBe(405);
    expect(await status('/mcp/deeper')).toBe(405);
    expect(await status('/else')).toBe(404);
  });

  test('the short `mcp` section on its own port takes every path', async () => {
    await using gate = await gateway(JSON.stringify({ mcp: { port: 0, targets: [chaos('a')] } }));
    expect((await fetch(`${gate.url}/anything`, { method: 'PUT' })).status).toBe(405);
  });
});

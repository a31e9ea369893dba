import { expect, test } from 'vitest';
import { AUTHORITY } from '../../kit/certificates.ts';
import { serve } from '../../kit/process.ts';
import { sendRaw } from '../../kit/raw-http.ts';
import { proxyGateway, routesConfig } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { type HttpUpstream, httpUpstream } from '../../kit/upstream.ts';

const ASKED = { headers: { host: 'shop.example:8443' } };

/** The `Host` that a service receives from a route with this `urlRewrite.authority`. */
async function hostAt(upstream: HttpUpstream, address: string, authority?: unknown): Promise<unknown> {
  const policies = authority === undefined ? {} : { urlRewrite: { authority } };
  await using gate = await proxyGateway(address, policies);
  await send(gate.url, ASKED);
  // The log has the client's Host regardless of what the service receives.
  expect((await gate.accessLine(1))['http.host']).toBe('shop.example:8443');
  return upstream.received.at(-1)?.headers.host;
}

test("a backend configured by IP address or socket receives the client's Host", async () => {
  await using upstream = await httpUpstream();
  await using socket = await httpUpstream(undefined, { socket: true });
  expect(await hostAt(upstream, upstream.address)).toBe('shop.example:8443');
  expect(await hostAt(socket, socket.address)).toBe('shop.example:8443');
});

test('a backend configured by name receives its own name as Host', async () => {
  await using upstream = await httpUpstream();
  expect(await hostAt(upstream, `localhost:${upstream.port}`)).toBe(`localhost:${upstream.port}`);
});

test('a TLS backend configured by name receives its own name as Host', async () => {
  await using upstream = await httpUpstream(undefined, { certificate: 'good' });
  const route = { backends: [{ host: `https://localhost:${upstream.port}` }] };
  await using running = await serve(routesConfig([route]), { env: { NODE_EXTRA_CA_CERTS: AUTHORITY } });
  expect((await send(running.url, ASKED)).status).toBe(200);
  expect(upstream.received[0]?.headers.host).toBe(`localhost:${upstream.port}`);
});

test('`urlRewrite.authority` sets the Host in part or as a whole, or keeps it', async () => {
  await using upstream = await httpUpstream();
  const named = `localhost:${upstream.port}`;
  expect([
    await hostAt(upstream, named, 'none'),
    await hostAt(upstream, named, 'auto'),
    await hostAt(upstream, upstream.address, 'auto'),
    await hostAt(upstream, named, { full: 'app.internal' }),
    await hostAt(upstream, upstream.address, { full: 'app.internal:9000' }),
    await hostAt(upstream, upstream.address, { host: 'app.internal' }),
    await hostAt(upstream, named, { port: 9000 }),
    await hostAt(upstream, named, { port: 80 }),
  ]).toEqual([
    'shop.example:8443',
    named,
    'shop.example:8443',
    'app.internal',
    'app.internal:9000',
    'app.internal:8443',
    'shop.example:9000',
    'shop.example',
  ]);
});

test.each([
  [{ full: 'a b' }, 'urlRewrite.authority.full: expected a host'],
  [{ full: 'user@host' }, 'urlRewrite.authority.full: expected a host'],
  [{ host: 'app:80' }, 'urlRewrite.authority.host: expected a host without a port'],
  [{ port: 0 }, 'urlRewrite.authority.port: '],
  ['client', 'urlRewrite.authority: '],
])('`urlRewrite.authority: %j` is rejected at load time', async (authority, words) => {
  await expect(proxyGateway('127.0.0.1:1', { urlRewrite: { authority } })).rejects.toThrow(words);
});

test('an HTTP/1.0 request without Host gets the Host of the backend', async () => {
  await using upstream = await httpUpstream();
  await using gate = await proxyGateway(upstream.address);
  await sendRaw(gate.port, 'GET / HTTP/1.0\r\n\r\n');
  expect(upstream.received[0]?.headers.host).toBe(upstream.address);
});

test('an absolute target is logged with its host, also when it is rejected', async () => {
  await using upstream = await httpUpstream();
  await using gate = await proxyGateway(upstream.address);
  for (const target of ['http://one.example/', 'http://two.example/'])
    await sendRaw(gate.port, `GET ${target} HTTP/1.1\r\nHost: one.example\r\n\r\n`, { responses: 1 });
  expect([await gate.accessLine(1), await gate.accessLine(2)].map((line) => line['http.host'])).toEqual([
    'one.example',
    'two.example',
  ]);
  expect(upstream.received.map(({ headers }) => headers.host)).toEqual(['one.example']);
});

import { once } from 'node:events';
import { createSecureServer, createServer, type Http2Server } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { describe, expect, test } from 'vitest';
import { AUTHORITY, certificateOf } from '../../kit/certificates.ts';
import { gateway } from '../../kit/gateway.ts';
import { rawRequest, sendRaw } from '../../kit/raw-http.ts';
import { routesConfig } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { httpUpstream, rawUpstream } from '../../kit/upstream.ts';

const through = (host: string, policies: object, ofRoute: object = {}) =>
  gateway(routesConfig([{ policies: ofRoute, backends: [{ host, policies }] }]));

/** A service that answers with the version of HTTP, and the body that it got. */
async function http2Service(
  server: Http2Server,
): Promise<AsyncDisposable & { readonly port: number; readonly sessions: () => number }> {
  let sessions = 0;
  const open = new Set<{ destroy(): void }>();
  server.on('session', (session) => {
    sessions += 1;
    open.add(session);
  });
  server.on('request', (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      response.setHeader('x-version', request.httpVersion);
      response.setHeader('x-host', request.authority ?? '');
      response.end(Buffer.concat(chunks));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    sessions: () => sessions,
    async [Symbol.asyncDispose]() {
      for (const session of open) session.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

describe('http.version of a backend', () => {
  test('HTTP/2 calls a service without TLS in HTTP/2, with body, headers and status, on one connection', async () => {
    await using service = await http2Service(createServer());
    await using gate = await through(`127.0.0.1:${service.port}`, { http: { version: 'HTTP/2' } });
    for (const body of ['one', 'x'.repeat(100_000)]) {
      const reply = await send(gate.url, { method: 'POST', body });
      expect(reply.status).toBe(200);
      expect(reply.headers['x-version']).toBe('2.0');
      expect(reply.text).toBe(body);
    }
    const replies = await Promise.all(Array.from({ length: 20 }, () => send(`${gate.url}/x`)));
    expect(replies.map(({ status }) => status)).toEqual(Array.from({ length: 20 }, () => 200));
    expect(service.sessions()).toBe(1);
  });

  test.each([
    ['HTTP/2', '2.0'],
    ['HTTP/1.1', '1.1'],
    [undefined, '1.1'],
  ])('version %s is negotiated with a service that speaks both over TLS', async (version, spoken) => {
    const options = { ...certificateOf('good'), allowHTTP1: true };
    await using service = await http2Service(createSecureServer(options) as unknown as Http2Server);
    await using gate = await through(`localhost:${service.port}`, {
      backendTLS: { root: AUTHORITY },
      ...(version !== undefined && { http: { version } }),
    });
    const reply = await send(gate.url, { method: 'POST', body: 'hello' });
    expect(reply.headers['x-version']).toBe(spoken);
    expect(reply.text).toBe('hello');
  });

  test('a service without HTTP/2 is answered with an error, not with a hanging request', async () => {
    await using upstream = await httpUpstream();
    await using gate = await through(upstream.address, { http: { version: 'HTTP/2' } });
    expect((await send(gate.url)).status).toBeGreaterThanOrEqual(500);
  });

  // c2FmZQ/tlsproxy#80
  test('HTTP/2 makes an ordinary request of the handshake of a WebSocket', async () => {
    await using service = await http2Service(createServer());
    await using gate = await through(`127.0.0.1:${service.port}`, { http: { version: 'HTTP/2' } });
    const handshake = [
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    ];
    const { text } = await sendRaw(gate.port, rawRequest('GET / HTTP/1.1', handshake));
    expect(text).toMatch(/^HTTP\/1\.1 200 .*x-version: 2\.0/s);
  });

  test('another version is refused with the known ones', async () => {
    await expect(through('127.0.0.1:9', { http: { version: 'HTTP/3' } })).rejects.toThrow(
      '`HTTP/3` is not an allowed value',
    );
  });
});

describe('times of a backend', () => {
  test('http.requestTimeout ends a call of this backend with 504, in place of backendRequestTimeout', async () => {
    await using upstream = await httpUpstream(() => undefined);
    await using gate = await through(
      upstream.address,
      { http: { requestTimeout: '50ms' } },
      { timeout: { backendRequestTimeout: '1h' } },
    );
    expect((await send(gate.url)).status).toBe(504);
  });

  test('tcp.connectTimeout ends an attempt to connect, with its TLS handshake', async () => {
    // Accepts connections, and says nothing.
    await using silent = await rawUpstream(() => undefined);
    const started = performance.now();
    await using gate = await through(`127.0.0.1:${silent.port}`, {
      backendTLS: { insecure: true },
      tcp: { connectTimeout: '50ms', keepalives: {} },
    });
    expect((await send(gate.url)).status).toBe(504);
    expect((await gate.accessLine(1))['error.detail']).toContain('connect');
    expect(performance.now() - started).toBeLessThan(9_000);
  });

  test('tcp.keepalives can be off, and a backend with both policies answers', async () => {
    await using upstream = await httpUpstream();
    await using gate = await through(upstream.address, {
      http: { requestTimeout: '5s' },
      tcp: { connectTimeout: '5s', keepalives: { enabled: false } },
    });
    expect((await send(gate.url)).text).toBe('ok');
  });
});

test('http and tcp of a route are refused, with the place where they belong', async () => {
  const config = routesConfig([{ policies: { http: {} }, backends: [{ host: '127.0.0.1:9' }] }]);
  await expect(gateway(config)).rejects.toThrow('unknown field `http`');
});

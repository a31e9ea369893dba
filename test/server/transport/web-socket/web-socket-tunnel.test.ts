import { once } from 'node:events';
import { createServer } from 'node:https';
import { type AddressInfo, connect } from 'node:net';
import { describe, expect, test } from 'vitest';
import { WebSocketServer } from 'ws';
import { AUTHORITY, certificateOf } from '../../../kit/certificates.ts';
import { rawRequest, sendRaw } from '../../../kit/raw-http.ts';
import { realtimeClient, realtimeProvider } from '../../../kit/realtime.ts';
import { proxyGateway } from '../../../kit/routes.ts';
import { until } from '../../../kit/until.ts';
import { httpUpstream, rawUpstream } from '../../../kit/upstream.ts';

/** A service that echoes messages, and its address. */
async function echoService() {
  const service = await realtimeProvider(
    (session, text) => session.send(`echo ${text}`),
    undefined,
    () => undefined,
  );
  return { ...service, address: new URL(service.baseUrl).host };
}

const HANDSHAKE = [
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
];
const SWITCHING =
  'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n';
/** An unmasked text frame. */
const frame = (text: string): string => `\x81${String.fromCharCode(text.length)}${text}`;

describe('a WebSocket to a plain HTTP service', () => {
  test('passes messages of any size in both directions, the subprotocol, compression and closing codes', async () => {
    await using service = await echoService();
    await using gate = await proxyGateway(service.address);
    await using client = await realtimeClient(`${gate.url}/a%20b/live?x=%2F`, {
      protocols: ['graphql-ws'],
      headers: { origin: 'https://app.example.com', cookie: 'session=1' },
    });
    const large = Buffer.alloc(1_000_000, 7);
    client.socket.send('ä€😀');
    client.socket.send(large);
    await until(() => client.received.length === 2);
    expect(client.received).toEqual(['echo ä€😀', large]);
    expect(client.socket.protocol).toBe('graphql-ws');
    const [handshake] = service.handshakes;
    expect(handshake?.url).toBe('/a%20b/live?x=%2F');
    expect(handshake?.headers).toMatchObject({
      origin: 'https://app.example.com',
      cookie: 'session=1',
      'sec-websocket-extensions': expect.stringContaining('permessage-deflate'),
    });
    service.sessions[0]?.close(4001, 'done here');
    expect(await client.closed).toEqual([4001, 'done here']);
    expect(await gate.accessLine(1)).toMatchObject({ 'http.status': '101', endpoint: service.address });
  });

  test('reaches a service with TLS', async () => {
    const server = createServer(certificateOf('good'));
    new WebSocketServer({ server }).on('connection', (session) => session.send('hello'));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    await using gate = await proxyGateway(`localhost:${port}`, { backendTLS: { root: AUTHORITY } });
    await using client = await realtimeClient(gate.url);
    await until(() => client.received.length === 1);
    expect(client.received).toEqual(['hello']);
    server.close();
  });

  // Firefox names both options: eclipse-vertx/vertx-http-proxy#106. Frames that come with the handshake: h2o/h2o#1276,
  // hodfords-solutions/nestjs-api-gateway#36.
  test('loses nothing that is sent together with the handshake, by either side', async () => {
    let sent = '';
    await using service = await rawUpstream((socket) => {
      socket.on('data', (chunk) => {
        sent += chunk.toString('latin1');
      });
      socket.write(`${SWITCHING}${frame('welcome')}`, 'latin1');
    });
    await using gate = await proxyGateway(service.address);
    const lines = HANDSHAKE.map((line) =>
      line.replace('Connection: Upgrade', 'Connection: keep-alive, Upgrade'),
    );
    const socket = connect(gate.port, '127.0.0.1');
    let answer = '';
    socket.on('data', (chunk) => {
      answer += chunk.toString('latin1');
    });
    socket.write(`${rawRequest('GET / HTTP/1.1', lines)}${frame('first')}`, 'latin1');
    await until(() => answer.endsWith(frame('welcome')) && sent.endsWith(frame('first')));
    expect(answer.split('\r\n\r\n')[0]?.split('\r\n')).toEqual([
      'HTTP/1.1 101 Switching Protocols',
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=',
    ]);
    socket.destroy();
    // The service is left by its client.
    expect((await gate.accessLine(1))['http.status']).toBe('101');
  });

  // http-party/node-http-proxy#624
  test('that the service refuses has its answer, and the connection to the client ends', async () => {
    await using service = await rawUpstream((socket) =>
      socket.write('HTTP/1.1 403 Forbidden\r\nx-why: tired\r\ncontent-length: 2\r\n\r\nno'),
    );
    await using gate = await proxyGateway(service.address);
    const { text, closed } = await sendRaw(gate.port, rawRequest('GET / HTTP/1.1', HANDSHAKE));
    expect(text).toMatch(/^HTTP\/1\.1 403 .*x-why: tired.*\r\n\r\nno$/s);
    expect(closed).toBe(true);
  });

  test.each([
    ['another protocol', SWITCHING.replace('Upgrade: websocket', 'Upgrade: h2c')],
    ['no protocol', SWITCHING.replace('Upgrade: websocket\r\n', '')],
  ])('that becomes %s at the service is answered with 502', async (_what, answer) => {
    await using service = await rawUpstream((socket) => socket.write(answer));
    await using gate = await proxyGateway(service.address);
    const { statuses } = await sendRaw(gate.port, rawRequest('GET / HTTP/1.1', HANDSHAKE));
    expect(statuses).toEqual([502]);
  });

  test.each([
    ['Content-Length', ['Content-Length: 5'], 'hello'],
    ['Transfer-Encoding', ['Transfer-Encoding: chunked'], '5\r\nhello\r\n0\r\n\r\n'],
  ])('whose handshake has a body (%s) is an ordinary request', async (_field, lines, body) => {
    await using service = await httpUpstream();
    await using gate = await proxyGateway(service.address);
    const { statuses } = await sendRaw(
      gate.port,
      rawRequest('GET / HTTP/1.1', [...HANDSHAKE, ...lines], body),
    );
    expect(statuses).toEqual([200]);
    expect(service.received).toMatchObject([{ body: 'hello' }]);
    expect(service.received[0]?.headers).not.toHaveProperty('upgrade');
  });

  test('that its client gives up before the answer ends at the service', async () => {
    let isClosed = false;
    await using service = await rawUpstream((socket) =>
      socket.on('close', () => {
        isClosed = true;
      }),
    );
    await using gate = await proxyGateway(service.address);
    const socket = connect(gate.port, '127.0.0.1');
    socket.write(rawRequest('GET / HTTP/1.1', HANDSHAKE));
    await until(() => service.heads.length === 1);
    socket.destroy();
    await until(() => isClosed);
    expect((await gate.accessLine(1))['http.status']).toBe('499');
  });

  test('that was sent behind another request is dropped when the connection ends with that', async () => {
    await using service = await httpUpstream(() => undefined);
    await using gate = await proxyGateway(service.address, { timeout: { requestTimeout: '50ms' } });
    const handshake = rawRequest('GET /live HTTP/1.1', HANDSHAKE);
    const socket = connect(gate.port, '127.0.0.1');
    socket.write(rawRequest('GET / HTTP/1.1') + handshake);
    await until(() => service.received.length === 1);
    // Node.js has not detached the first response: a second one for the connection is an error.
    socket.destroy();
    expect((await gate.accessLine(1))['http.status']).toBe('499');
    const closing = rawRequest('GET / HTTP/1.1', ['Connection: close']) + handshake;
    expect((await sendRaw(gate.port, closing)).statuses).toEqual([504]);
    expect(service.received.map(({ target }) => target)).toEqual(['/', '/']);
  });

  test('is refused by the policies of its route, and the service does not hear of it', async () => {
    await using service = await echoService();
    await using gate = await proxyGateway(service.address, {
      csrf: {},
      apiKey: { mode: 'strict', keys: [{ key: 'k-1' }] },
    });
    const open = (headers: Record<string, string>) => realtimeClient(gate.url, { headers });
    await expect(open({})).rejects.toThrow(/^401 /);
    const authorization = 'Bearer k-1';
    // A page of another origin, with the cookies of the user (RFC 6455 §10.2).
    await expect(open({ authorization, origin: 'https://evil.example' })).rejects.toThrow(
      '403 CSRF validation failed',
    );
    expect(service.handshakes).toEqual([]);
    await using client = await open({ authorization, origin: gate.url });
    client.socket.send('a');
    await until(() => client.received.length === 1);
  });

  test('is not read faster than its other side reads', async () => {
    let written = 0;
    await using service = await rawUpstream((socket) => {
      const block = Buffer.alloc(64 * 1024);
      const write = (): void => {
        while (written < 200_000_000 && socket.write(block)) written += block.length;
      };
      socket.write(SWITCHING);
      socket.on('drain', write);
      write();
    });
    await using gate = await proxyGateway(service.address);
    const socket = connect(gate.port, '127.0.0.1');
    socket.write(rawRequest('GET / HTTP/1.1', HANDSHAKE));
    await once(socket, 'readable');
    let before = -1;
    await until(() => {
      const isStill = written === before;
      before = written;
      return isStill;
    });
    expect(written).toBeLessThan(50_000_000);
    socket.destroy();
  });

  test('ends after a time without a byte, and its log line says so', async () => {
    await using service = await echoService();
    await using gate = await proxyGateway(service.address, { timeout: { backendIdleTimeout: '50ms' } });
    await using client = await realtimeClient(gate.url);
    expect((await client.closed)[0]).toBe(1006);
    expect(await gate.accessLine(1)).toMatchObject({
      'http.status': '101',
      error: 'no bytes were passed for too long',
    });
    await until(() => service.closed.length === 1);
  });

  test('ends on both sides when the gateway closes', async () => {
    await using service = await echoService();
    const config = { connectionTerminationDeadline: '10ms' };
    await using gate = await proxyGateway(service.address, {}, { config });
    await using client = await realtimeClient(gate.url);
    await gate.close();
    expect((await client.closed)[0]).toBe(1006);
    await until(() => service.closed.length === 1);
  });
});

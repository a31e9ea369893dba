import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { constants } from 'node:http2';
import { type AddressInfo, connect } from 'node:net';
import { Readable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { GOOD_TLS } from '../../kit/certificates.ts';
import { gateway, type TestGateway, type TestGatewayOptions } from '../../kit/gateway.ts';
import { answerOf, type Http2Client, http2Client } from '../../kit/http2.ts';
import { sendRaw } from '../../kit/raw-http.ts';
import { until } from '../../kit/until.ts';

// Requests that are answered before their body has arrived: haproxy/haproxy#3495 (no window and no reset: the client waits for its own
// timeout), curl/curl#986 and #15316, amphp/http-server#304 (a reset for each frame), JuliaWeb/HTTP.jl#1325; over HTTP/1.1,
// true-async/server#287 and rwf2/Rocket#3004 (the connection is reset before the answer was read).

/** More than all windows and socket buffers. */
const LARGE = Buffer.alloc(24 * 1024 * 1024, 'x');
const FAST = 5_000;

const PATHS = {
  unread: { directResponse: { status: 401, body: 'who are you' } },
  empty: { directResponse: { status: 204 } },
  'partly-read': { buffer: { request: { maxBytes: 100_000 } }, directResponse: { status: 200, body: 'all' } },
};

async function gatewayFor(
  upstream: string,
  tls: object | undefined,
  options: TestGatewayOptions = {},
): Promise<TestGateway> {
  const routes = [
    ...Object.entries(PATHS).map(([name, policies]) => ({
      name,
      matches: [{ path: { exact: `/${name}` } }],
      policies,
    })),
    { name: 'backend', backends: [{ host: upstream }] },
  ];
  return gateway(
    JSON.stringify({ gateways: { default: { port: 0, ...(tls && { tls }), routes } } }),
    options,
  );
}

/** An HTTP server whose handler gets the request before its body. */
async function serverWith(handler: RequestListener): Promise<{ address: string } & AsyncDisposable> {
  const server = createServer(handler);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    address: `127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** Answers before the body is there, and reads no more of it. */
const backend = () =>
  serverWith((request, response) => {
    request.pause();
    if (request.url === '/backend-empty') response.writeHead(204).end();
    else response.writeHead(413, { 'content-length': '9' }).end('too large');
  });

function* pieces(): Generator<Buffer> {
  for (let at = 0; at < LARGE.length; at += 65_536) yield LARGE.subarray(at, at + 65_536);
}

const openStreams = ({ running }: TestGateway): number => running.openRequests.size;

describe('over HTTP/2, a request that is answered before its large body was read', () => {
  const CASES = [
    ['/unread', 401, 'who are you'],
    ['/empty', 204, ''],
    ['/partly-read', 413, undefined],
    ['/backend', 413, 'too large'],
    ['/backend-empty', 204, ''],
  ] as const;

  async function upload({ open }: Http2Client, path: string, method = 'POST') {
    const stream = open({ ':method': method, ':path': path });
    // As it goes out: what waits counts as memory of the client's session.
    Readable.from(pieces()).pipe(stream);
    let status = 0;
    stream.on('response', (headers) => {
      status = Number(headers[':status']);
    });
    const chunks: Buffer[] = [];
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    await once(stream, 'close');
    // A reset with this code says that the rest is not wanted (RFC 9113 §8.1).
    expect(stream.rstCode).toBe(constants.NGHTTP2_NO_ERROR);
    return [status, Buffer.concat(chunks).toString()];
  }

  test.each(CASES)('on %s, ends with its answer, and the connection goes on', async (path, status, text) => {
    await using upstream = await backend();
    await using gate = await gatewayFor(upstream.address, GOOD_TLS);
    await using client = await http2Client(gate.port);
    const started = performance.now();
    for (let count = 0; count < 5; count += 1)
      expect(await upload(client, path)).toEqual([status, text ?? expect.any(String)]);
    expect(performance.now() - started).toBeLessThan(FAST);
    await until(() => openStreams(gate) === 0);
    expect(client.session.destroyed).toBe(false);
  });

  test('leaves nothing open if its body was sent in full, and never read', async () => {
    await using upstream = await backend();
    await using gate = await gatewayFor(upstream.address, GOOD_TLS);
    await using client = await http2Client(gate.port);
    for (const path of ['/unread', '/empty'])
      for (const body of ['', 'x', 'x'.repeat(50_000)])
        await client.send({ ':method': 'POST', ':path': path }, body);
    for (const path of ['/unread', '/empty']) await client.send({ ':method': 'HEAD', ':path': path }, 'x');
    await until(() => openStreams(gate) === 0);
  });

  test('leaves nothing open if it was HEAD', async () => {
    await using upstream = await backend();
    await using gate = await gatewayFor(upstream.address, GOOD_TLS);
    await using client = await http2Client(gate.port);
    expect(await upload(client, '/unread', 'HEAD')).toEqual([401, '']);
    await until(() => openStreams(gate) === 0);
  });

  test('holds up no other stream of its connection, as of many that are refused at once', async () => {
    await using upstream = await serverWith((request, response) => {
      let size = 0;
      request.on('data', (chunk: Buffer) => (size += chunk.length));
      request.on('end', () => response.end(String(size)));
    });
    await using gate = await gatewayFor(upstream.address, GOOD_TLS);
    await using client = await http2Client(gate.port);
    const refused = Array.from({ length: 60 }, (_, index) =>
      upload(client, CASES[index % 3]?.[0] ?? '/unread'),
    );
    const other = client.open({ ':method': 'POST', ':path': '/backend' });
    other.end(Buffer.alloc(5_000_000));
    expect(await answerOf(other)).toMatchObject({ status: 200, text: '5000000' });
    expect((await Promise.all(refused)).map(([status]) => status)).toEqual(
      Array.from({ length: 60 }, (_, index) => CASES[index % 3]?.[1]),
    );
    await until(() => openStreams(gate) === 0);
  });

  test('is reset without an error, so that clients keep the answer', async () => {
    await using upstream = await backend();
    await using gate = await gatewayFor(upstream.address, GOOD_TLS);
    await using client = await http2Client(gate.port);
    for (const path of ['/unread', '/empty']) {
      const stream = client.open({ ':method': 'POST', ':path': path });
      // The body never ends.
      stream.write('x');
      stream.resume();
      await once(stream, 'close');
      expect([path, stream.rstCode]).toEqual([path, constants.NGHTTP2_NO_ERROR]);
    }
  });
});

describe('over HTTP/1.1, a request that is answered before its large body was read', () => {
  /** Sends all before it reads anything, as simple clients do. */
  async function uploadThenRead(port: number, path: string, size: number): Promise<string> {
    const socket = connect({ port, host: '127.0.0.1' });
    socket.pause();
    const errors: Error[] = [];
    socket.on('error', (error) => errors.push(error));
    const head = `POST ${path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: ${size}\r\n\r\n`;
    await new Promise<void>((resolve) =>
      socket.write(Buffer.concat([Buffer.from(head), LARGE.subarray(0, size)]), () => resolve()),
    );
    const chunks: Buffer[] = [];
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    socket.resume();
    await new Promise((resolve) => socket.on('close', resolve));
    return `${Buffer.concat(chunks).toString()}${errors.map(({ message }) => message).join()}`;
  }

  test.each([
    ['/unread', 'HTTP/1.1 401', 'who are you'],
    ['/empty', 'HTTP/1.1 204', 'onnection: close'],
    ['/partly-read', 'HTTP/1.1 413', ''],
  ])(
    'on %s, is read by a client that first sends all, and the connection ends',
    async (path, status, text) => {
      await using upstream = await backend();
      await using gate = await gatewayFor(upstream.address, undefined);
      for (const size of [200_000, 4_000_000]) {
        const answer = await uploadThenRead(gate.port, path, size);
        expect(answer.slice(0, status.length)).toBe(status);
        expect(answer).toContain(text);
        expect(answer).not.toMatch(/ECONNRESET|EPIPE/);
      }
      await until(() => openStreams(gate) === 0);
    },
  );

  test('is answered like its backend did', async () => {
    await using upstream = await backend();
    await using gate = await gatewayFor(upstream.address, undefined);
    const answer = await uploadThenRead(gate.port, '/backend', 4_000_000);
    expect(answer).toMatch(/^HTTP\/1\.1 413.*too large$/s);
  });

  test('is the last of its connection: what comes after its body is not run', async () => {
    const paths: (string | undefined)[] = [];
    await using upstream = await serverWith(({ url }, response) => {
      paths.push(url);
      response.end('ran');
    });
    await using gate = await gatewayFor(upstream.address, undefined);
    const body = 'x'.repeat(300_000);
    const first = `POST /unread HTTP/1.1\r\nhost: localhost\r\ncontent-length: ${body.length}\r\n\r\n`;
    const reply = await sendRaw(gate.port, `${first}${body}GET /second HTTP/1.1\r\nhost: localhost\r\n\r\n`);
    expect([reply.statuses, reply.closed, paths]).toEqual([[401], true, []]);
  });

  test('is not read for ever: a client that does not stop is cut off', async () => {
    await using upstream = await backend();
    await using gate = await gatewayFor(upstream.address, undefined);
    // It does not take the end of the other side for an end.
    const socket = connect({ port: gate.port, host: '127.0.0.1', allowHalfOpen: true });
    socket.on('error', () => undefined);
    socket.write('POST /unread HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n');
    const chunk = `1000\r\n${'x'.repeat(0x1000)}\r\n`;
    const more = setInterval(() => socket.write(chunk), 20);
    const started = performance.now();
    socket.resume();
    await new Promise((resolve) => socket.on('close', resolve));
    clearInterval(more);
    expect(performance.now() - started).toBeLessThan(FAST);
  });
});

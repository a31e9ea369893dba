import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { GOOD_TLS } from '../../kit/certificates.ts';
import { http2Client, sendHttps } from '../../kit/http2.ts';
import { rawUpstream } from '../../kit/upstream.ts';
import { type WorkerGateway, workerGateway } from '../../kit/workers.ts';

// Workers get connections unread: each of them ends TLS itself.

let service: Awaited<ReturnType<typeof rawUpstream>>;
let gate: WorkerGateway;
beforeAll(async () => {
  service = await rawUpstream((socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi'));
  gate = await workerGateway({
    config: { connectionTerminationDeadline: '1s' },
    gateways: {
      default: { port: 0, tls: GOOD_TLS, routes: [{ policies: { directResponse: { body: 'secure' } } }] },
      raw: { port: 0, protocol: 'TCP' },
    },
    tcpRoutes: [{ gateways: 'raw', backends: [{ host: service.address }] }],
  });
});
afterAll(async () => {
  await gate[Symbol.asyncDispose]();
  await service[Symbol.asyncDispose]();
});

const portOf = (name: string): number =>
  gate.pool.listeners.find(({ gateway }) => gateway.plan.name === name)?.port ?? 0;

test('two workers serve HTTP/1.1 and HTTP/2 over TLS on the same port', async () => {
  const answers = await Promise.all(Array.from({ length: 8 }, () => sendHttps(portOf('default'))));
  expect(answers.map(({ text }) => text)).toEqual(Array(8).fill('secure'));
  const clients = await Promise.all(Array.from({ length: 4 }, () => http2Client(portOf('default'))));
  for (const client of clients) {
    expect(await client.send({})).toMatchObject({ status: 200, text: 'secure' });
    await client[Symbol.asyncDispose]();
  }
});

test('two workers pass on the bytes of TCP connections', async () => {
  for (let count = 0; count < 4; count += 1) {
    const socket = connect(portOf('raw'), '127.0.0.1');
    socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    const [answer] = (await once(socket, 'data')) as [Buffer];
    expect(String(answer)).toMatch(/^HTTP\/1.1 200 OK/);
    socket.destroy();
  }
});

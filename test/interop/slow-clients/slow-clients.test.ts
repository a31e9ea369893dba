import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { expect, test } from 'vitest';
import { LIMITS } from '../../../src/core/limits.ts';
import { rawRequest } from '../../kit/raw-http.ts';
import { answeringGateway, proxyGateway } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';
import { httpUpstream } from '../../kit/upstream.ts';

const SECOND = 1000;

/** A client that sends a beginning, then one byte every five seconds. Resolves when the server has ended the connection. */
async function trickle(port: number, beginning: string): Promise<{ status: number; took: number }> {
  const socket = connect({ port, host: '127.0.0.1' });
  let text = '';
  socket.on('data', (chunk) => {
    text += chunk;
  });
  // Writing to a connection that the server has just ended.
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  const started = performance.now();
  socket.write(beginning);
  const drip = setInterval(() => socket.write('a'), 5 * SECOND);
  await once(socket, 'close');
  clearInterval(drip);
  return { status: Number(/HTTP\/1\.1 (\d+)/.exec(text)?.[1]), took: performance.now() - started };
}

test.concurrent('2,000 clients with incomplete headers get 408 while other clients are served', async () => {
  await using gate = await answeringGateway({ directResponse: { status: 200, body: 'here' } });
  const slow = Array.from({ length: 2_000 }, () =>
    trickle(gate.port, 'GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: '),
  );
  const all = Promise.all(slow);
  let served = 0;
  let worst = 0;
  let open = true;
  void all.then(() => {
    open = false;
  });
  while (open) {
    const started = performance.now();
    expect(await send(gate.url)).toMatchObject({ status: 200 });
    worst = Math.max(worst, performance.now() - started);
    served += 1;
  }
  const ends = await all;
  const last = Math.max(...ends.map(({ took }) => took));
  console.info(
    `2,000 slow clients: all gone after ${(last / SECOND).toFixed(1)} s; ${served} others served, slowest ${worst.toFixed(0)} ms`,
  );
  expect(new Set(ends.map(({ status }) => status))).toEqual(new Set([408]));
  expect(last).toBeLessThan(LIMITS.headersTimeout + 3 * LIMITS.connectionsCheckingInterval);
  expect(served).toBeGreaterThan(100);
}, 40_000);

test.concurrent('a request body that arrives too slowly ends with 408, and the backend sees it as incomplete', async () => {
  let cut = false;
  await using upstream = await httpUpstream(
    (request) => {
      request.resume().on('close', () => {
        cut = !request.complete;
      });
    },
    { streaming: true },
  );
  await using gate = await proxyGateway(upstream.address);
  // Too long to be collected before it is passed on.
  const length = 2 * LIMITS.smallBody;
  const request = rawRequest('POST / HTTP/1.1', [`Content-Length: ${length}`]);
  const { status, took } = await trickle(gate.port, `${request}${'x'.repeat(length / 2)}`);
  console.info(`slow body: ${status} after ${(took / SECOND).toFixed(1)} s`);
  expect(status).toBe(408);
  expect(took).toBeLessThan(LIMITS.requestTimeout + 3 * LIMITS.connectionsCheckingInterval);
  await until(() => cut);
}, 90_000);

test.concurrent('a client that stops reading is disconnected after LIMITS.writeStall, and the upstream is paused until then', async () => {
  let sent = 0;
  let ended = false;
  const chunk = Buffer.alloc(64 * 1024);
  await using upstream = await httpUpstream((_, response) => {
    const more = (): void => {
      while (!response.destroyed) {
        sent += chunk.length;
        if (!response.write(chunk)) {
          response.once('drain', more);
          return;
        }
      }
    };
    response.on('close', () => {
      ended = true;
    });
    more();
  });
  await using gate = await proxyGateway(upstream.address);
  const socket: Socket = connect({ port: gate.port, host: '127.0.0.1' });
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  socket.write(rawRequest('GET / HTTP/1.1'));
  await once(socket, 'readable');
  socket.pause();
  const started = performance.now();
  await until(() => ended, LIMITS.writeStall + 10 * SECOND);
  const took = performance.now() - started;
  console.info(
    `slow reader: cut after ${(took / SECOND).toFixed(1)} s; the upstream had sent ${(sent / 2 ** 20).toFixed(1)} MiB`,
  );
  // The rest is in the kernel's buffers of two connections.
  expect(sent).toBeLessThan(32 * 2 ** 20);
  expect(took).toBeLessThan(LIMITS.writeStall + 5 * SECOND);
  socket.destroy();
}, 60_000);

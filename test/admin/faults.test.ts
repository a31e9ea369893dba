import { connect, type Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import { LIMITS } from '../../src/core/limits.ts';
import { gateway, type TestGateway } from '../kit/gateway.ts';
import { sendRaw } from '../kit/raw-http.ts';
import { send } from '../kit/send.ts';
import { until } from '../kit/until.ts';

const YAML = JSON.stringify({
  config: { adminAddr: 'off', connectionTerminationDeadline: '100ms' },
  gateways: { a: { port: 0, routes: [{ policies: { directResponse: { body: 'ok' } } }] } },
});

const portOf = ({ admin }: TestGateway): number => Number(new URL(admin).port);

async function open(port: number): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1' });
  socket.on('error', () => undefined);
  await new Promise((resolve) => {
    socket.once('connect', resolve);
    socket.once('close', resolve);
  });
  return socket;
}

describe('misbehaving admin clients', () => {
  test('an admin connection is closed when its headers do not arrive within two seconds', async () => {
    await using running = await gateway(YAML, { admin: true });
    const started = performance.now();
    const [nothing, some] = await Promise.all([
      sendRaw(portOf(running), ''),
      sendRaw(portOf(running), 'GET /memory HTTP/1.1\r\nHost: localhost\r\nX-A: '),
    ]);
    expect([nothing.closed, some.closed, some.statuses]).toEqual([true, true, [408]]);
    expect(performance.now() - started).toBeLessThan(6_000);
  });

  test('an admin request body over 1 MiB is 413 and is not kept', async () => {
    await using running = await gateway(YAML, { admin: true });
    const { status } = await send(`${running.admin}/api/config/validate`, {
      method: 'POST',
      body: 'x'.repeat(LIMITS.adminBody + 1),
    });
    expect(status).toBe(413);
  });

  test('admin connections are limited, and new ones are accepted after others have closed', async () => {
    // Otherwise connections that are silent for two seconds make room for others.
    const limits = { operatorServerHeadersTimeout: 600_000, adminRequestTimeout: 600_000 };
    await using running = await gateway(YAML, { admin: true, limits });
    const sockets = await Promise.all(Array.from({ length: 1000 }, () => open(portOf(running))));
    await until(
      () => sockets.filter(({ destroyed }) => destroyed).length === 1000 - LIMITS.operatorServerConnections,
    );
    // The data plane does not notice.
    expect((await send(running.url)).status).toBe(200);
    for (const socket of sockets) socket.destroy();
    await until(async () => {
      const reply = await send(`${running.admin}/logging`).catch(() => undefined);
      return reply?.status === 200;
    });
  });

  test('an admin client that has half-closed its connection still gets its response', async () => {
    await using running = await gateway(YAML, { admin: true });
    const socket = connect({ port: portOf(running), host: '127.0.0.1', allowHalfOpen: true });
    let text = '';
    socket.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
    socket.end('GET /logging HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await until(() => text.includes('current log level is'));
    socket.destroy();
  });

  test('admin streams end when the server closes', async () => {
    const running = await gateway(YAML, { admin: true });
    const trace = await fetch(`${running.admin}/debug/trace`);
    const requests = await fetch(`${running.admin}/api/requests`, {
      headers: { accept: 'text/event-stream' },
    });
    const ends = Promise.all([trace.text().catch(() => ''), requests.text().catch(() => '')]);
    await running.close();
    await ends;
    expect((await send(`${running.admin}/logging`).catch(() => undefined))?.status).toBeUndefined();
  });
});

import { once } from 'node:events';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { AT_ONCE } from '../../kit/at-once.ts';
import { chaos } from '../../kit/config.ts';
import { gateway, type TestGateway } from '../../kit/gateway.ts';
import { rawRequest, sendRaw } from '../../kit/raw-http.ts';
import { until } from '../../kit/until.ts';

// Every backend answers PUT with 405, so only the access log shows which route was taken.
let gate: TestGateway;
beforeAll(async () => {
  const backends = [{ mcp: { targets: [chaos('a')] } }];
  const routes = [
    { name: 'mcp', matches: [{ path: { pathPrefix: '/mcp' } }], backends },
    { name: 'admin', matches: [{ path: { exact: '/admin' } }], backends },
  ];
  gate = await gateway(JSON.stringify({ gateways: { default: { port: 0, routes } } }));
});
afterAll(() => gate.close());

/** Status and route of a request with this target; the route is undefined when none matched. */
async function take(target: string, lines: string[] = []): Promise<{ status?: number; route?: string }> {
  const count = gate.accessLog.length + 1;
  const { statuses } = await sendRaw(
    gate.port,
    rawRequest(`PUT ${target} HTTP/1.1`, ['Content-Length: 0', ...lines]),
    {
      responses: 1,
    },
  );
  const { route } = await gate.accessLine(count);
  return { status: statuses[0], ...(route && { route }) };
}

describe('request target paths', () => {
  test.each([
    '/mcp',
    '/mcp/',
    '/mcp/x',
    '/mcp?x=/../admin',
    '/%6dcp',
    '/m%63p',
    '//mcp',
    '/mcp//a///b',
    '/mcp/a;b=..c',
  ])('the target %s reaches the /mcp route', async (target) => {
    expect(await take(target)).toEqual({ status: 405, route: 'default/mcp' });
  });

  test.each(['/mcpx', '/MCP', '/mcp;x', '/', '/admin/', '/admin/mcp', '//evil.example/x'])(
    'the target %s reaches no route',
    async (target) => {
      expect(await take(target)).toEqual({ status: 404 });
    },
  );

  test.each([
    '/mcp/../admin',
    '/mcp/%2e%2e/admin',
    '/mcp/.%2E/admin',
    '/mcp%2f..%2fadmin',
    '/mcp/..%5cadmin',
    '/mcp\\..\\admin',
    '/mcp/..;x/admin',
    '/mcp/..%3bx/admin',
    '/mcp/./x',
    '/mcp%00',
    '/mcp%0d%0aX:1',
    '/mcp%7f',
    '/mcp%zz',
    '/mcp#admin',
    '/mcp/a%2Fb',
    '/\\evil',
  ])('the target %s is rejected because servers interpret it differently', async (target) => {
    expect(await take(target)).toEqual({ status: 400 });
  });

  test('a target with thousands of segments is routed in bounded time', async () => {
    const started = performance.now();
    expect((await take(`/mcp${'/a'.repeat(5_000)}%41`)).route).toBe('default/mcp');
    expect(performance.now() - started).toBeLessThan(AT_ONCE);
  });
});

describe('absolute request targets', () => {
  test('an absolute target is accepted when it names the host of the Host header', async () => {
    expect(await take('http://localhost/admin')).toEqual({ status: 405, route: 'default/admin' });
    expect(await take('HTTP://LOCALHOST/mcp')).toEqual({ status: 405, route: 'default/mcp' });
  });

  test.each([
    'http://evil.example/mcp',
    'http://localhost:1/mcp',
    'http://user@localhost/mcp',
    'ftp://localhost/mcp',
  ])('the absolute target %s is rejected', async (target) => {
    expect(await take(target)).toEqual({ status: 400 });
  });
});

describe('methods and upgrades', () => {
  test('a target without a route gets 404 route not found', async () => {
    const { text } = await sendRaw(gate.port, rawRequest('GET /nowhere HTTP/1.1'), { responses: 1 });
    expect(text).toMatch(/^HTTP\/1\.1 404 /);
    expect(text).toMatch(/content-type: text\/plain; charset=utf-8/i);
    expect(text.endsWith('\r\n\r\nroute not found')).toBe(true);
  });

  test.each(['TRACE /mcp HTTP/1.1', 'OPTIONS * HTTP/1.1', 'CONNECT localhost:443 HTTP/1.1'])(
    'the request %s is rejected with 405 and closes the connection',
    async (line) => {
      const { statuses, closed } = await sendRaw(gate.port, rawRequest(line));
      expect({ statuses, closed }).toEqual({ statuses: [405], closed: true });
    },
  );

  test('a client that resets its connection after CONNECT does not end the gateway', async () => {
    for (let count = 0; count < 20; count += 1) {
      const socket = connect(gate.port, '127.0.0.1').on('error', () => undefined);
      await once(socket, 'connect');
      socket.write(`${rawRequest('CONNECT 127.0.0.1:1 HTTP/1.1')}${'x'.repeat(count * 5_000)}`);
      if (count % 2 === 1) await once(socket, 'data');
      const closed = once(socket, 'close');
      socket.resetAndDestroy();
      await closed;
    }
    // Without a listener for the reset, the test run ends with an uncaught exception.
    await until(async () => (await gate.running.connections()).every(({ count }) => count === 0));
    expect(
      (await sendRaw(gate.port, rawRequest('PUT /mcp HTTP/1.1', ['Content-Length: 0']), { responses: 1 }))
        .statuses,
    ).toEqual([405]);
  });

  test('CONNECT opens no tunnel', async () => {
    const bytes = `${rawRequest('CONNECT 127.0.0.1:1 HTTP/1.1')}GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n`;
    expect((await sendRaw(gate.port, bytes)).statuses).toEqual([405]);
  });

  test.each(['h2c', 'websocket'])('an upgrade to %s is answered as a plain request', async (protocol) => {
    const lines = [
      'Connection: Upgrade',
      `Upgrade: ${protocol}`,
      'Sec-WebSocket-Key: x',
      'Sec-WebSocket-Version: 13',
    ];
    expect(await take('/mcp', lines)).toEqual({ status: 405, route: 'default/mcp' });
  });

  test('an upgrade request closes the connection, since the parser drops pipelined bytes', async () => {
    const upgrade = rawRequest('PUT /mcp HTTP/1.1', ['Connection: Upgrade', 'Upgrade: websocket']);
    const { statuses, closed } = await sendRaw(gate.port, upgrade + rawRequest('GET /admin HTTP/1.1'));
    expect({ statuses, closed }).toEqual({ statuses: [405], closed: true });
  });

  test('forwarding headers do not change the client address', async () => {
    const count = gate.accessLog.length + 1;
    await take('/mcp', ['X-Forwarded-For: 10.9.8.7', 'Forwarded: for=10.9.8.7', 'X-Real-IP: 10.9.8.7']);
    expect((await gate.accessLine(count))['src.addr']).toMatch(/^127\.0\.0\.1:\d+$/);
  });
});

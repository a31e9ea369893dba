import { connect } from 'node:net';
import { networkInterfaces } from 'node:os';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { chaos, mcpConfig } from '../../kit/config.ts';
import { gateway, type TestGateway } from '../../kit/gateway.ts';
import { sendRaw } from '../../kit/raw-http.ts';

/** Status of a request without a session, which is 400 once Host and Origin are accepted. */
async function statusWith(gate: TestGateway, host: string, origin?: string): Promise<number> {
  const lines = [`Host: ${host}`, ...(origin === undefined ? [] : [`Origin: ${origin}`])];
  const bytes = ['GET /mcp HTTP/1.1', ...lines, 'Accept: text/event-stream', '', ''].join('\r\n');
  return (await sendRaw(gate.port, bytes, { responses: 1 })).statuses[0] as number;
}

describe('DNS rebinding protection on a loopback connection', () => {
  let gate: TestGateway;
  beforeAll(async () => {
    gate = await gateway(mcpConfig([chaos('a')], { route: { name: 'r' } }));
  });
  afterAll(() => gate.close());

  test.each([
    'localhost',
    'LOCALHOST:99',
    'localhost.',
    '127.0.0.1',
    '127.0.0.1:1',
    '127.9.9.9',
    '[::1]',
    '[::1]:80',
  ])('Host %s passes on a loopback connection', async (host) => {
    expect(await statusWith(gate, host)).toBe(400);
  });

  test.each([
    'evil.example',
    'localhost.evil',
    'evil.localhost',
    'x127.0.0.1',
    '127.0.0.1.evil.example',
    '127.0.0.256.evil',
    '0.0.0.0',
    '10.0.0.1',
    '[::]',
    'null',
  ])('Host %j is rejected with 403 on a loopback connection', async (host) => {
    expect(await statusWith(gate, host)).toBe(403);
  });

  test.each([
    'http://localhost',
    'http://localhost:5173',
    'https://127.0.0.1',
    'http://[::1]:99',
    'HTTP://LOCALHOST',
  ])('Origin %s passes on a loopback connection', async (origin) => {
    expect(await statusWith(gate, 'localhost', origin)).toBe(400);
  });

  test.each([
    'http://evil.example',
    'https://localhost.evil',
    'http://evil.example#localhost',
    'http://localhost@evil.example',
    'null',
    'file://',
    'localhost',
    '',
    'http://',
    'http://localhost,http://evil.example',
  ])('Origin %j is rejected with 403 on a loopback connection', async (origin) => {
    expect(await statusWith(gate, 'localhost', origin)).toBe(403);
  });

  test('a rejected Host or Origin gives an error that names the setting and a log line with the received value', async () => {
    const count = gate.accessLog.length + 1;
    const bytes = 'GET /mcp HTTP/1.1\r\nHost: evil.example\r\n\r\n';
    const { text } = await sendRaw(gate.port, bytes, { responses: 1 });
    expect(text).toContain('dnsRebindingProtection');
    expect(text).not.toContain('evil.example');
    const line = await gate.accessLine(count);
    expect(line).toMatchObject({ reason: 'MCP', 'http.status': '403' });
    expect(JSON.stringify(line)).toContain('Host: evil.example');
  });
});

describe('DNS rebinding settings', () => {
  test('host names of the route pass as Host and as Origin', async () => {
    const route = { hostnames: ['Tools.Example.com', '*.wild.example'] };
    await using gate = await gateway(mcpConfig([chaos('a')], { route }));
    expect(await statusWith(gate, 'tools.example.com')).toBe(400);
    expect(await statusWith(gate, 'tools.example.com:8080', 'https://tools.example.com')).toBe(400);
    expect(await statusWith(gate, 'tools.example.com', 'https://evil.example')).toBe(403);
    // A wildcard would let an attacker choose the name.
    expect(await statusWith(gate, 'a.wild.example')).toBe(403);
  });

  test('DNS rebinding protection false accepts any Host and Origin', async () => {
    await using gate = await gateway(mcpConfig([chaos('a')], { backend: { dnsRebindingProtection: false } }));
    expect(await statusWith(gate, 'evil.example', 'http://evil.example')).toBe(400);
  });

  const address = Object.values(networkInterfaces())
    .flat()
    .find((each) => each !== undefined && !each.internal && each.family === 'IPv4')?.address;

  test.skipIf(address === undefined)(
    'DNS rebinding protection auto does not check other connections, true does',
    async () => {
      for (const [setting, expected] of [
        ['auto', '400'],
        [true, '403'],
      ] as const) {
        await using gate = await gateway(
          mcpConfig([chaos('a')], { backend: { dnsRebindingProtection: setting } }),
        );
        const status = await new Promise<string>((resolve, reject) => {
          const socket = connect(gate.port, address as string, () =>
            socket.write('GET /mcp HTTP/1.1\r\nHost: evil.example\r\nAccept: text/event-stream\r\n\r\n'),
          );
          socket.on('error', reject);
          socket.on('data', (chunk) => {
            socket.destroy();
            resolve(chunk.toString().slice(9, 12));
          });
        });
        expect(status).toBe(expected);
      }
    },
  );
});

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { GOOD_TLS, TRUSTING } from '../../kit/certificates.ts';
import { gateway, type TestGatewayOptions } from '../../kit/gateway.ts';
import { send } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';
import { type HttpUpstream, httpUpstream } from '../../kit/upstream.ts';

let secured: HttpUpstream;
beforeAll(async () => {
  secured = await httpUpstream((_, response) => response.end('from the service'), { certificate: 'good' });
});
afterAll(() => secured[Symbol.asyncDispose]());

const TUNNEL = { port: 0, tunnelProtocol: 'connect', listeners: [] };
const answering = (body: string) => [{ policies: { directResponse: { body } } }];
/** A gateway whose first port takes CONNECT requests. */
const through = (binds: object[], more: object = {}, options: TestGatewayOptions = {}) =>
  gateway(JSON.stringify({ binds: [TUNNEL, ...binds], ...more }), options);

/** The socket of a tunnel, and the head of the answer to its CONNECT request. */
async function tunnel(port: number, authority: string): Promise<{ socket: Socket; head: string }> {
  const socket = connect({ port, host: '127.0.0.1' });
  socket.write(`CONNECT ${authority} HTTP/1.1\r\nhost: ${authority}\r\n\r\n`);
  let head = '';
  while (!head.includes('\r\n\r\n')) {
    const [chunk] = (await once(socket, 'data')) as [Buffer];
    head += String(chunk);
  }
  return { socket, head };
}

/** What a connection gets for a request that ends it. */
async function ask(socket: Socket, host: string): Promise<string> {
  let received = '';
  socket.on('data', (chunk) => (received += String(chunk)));
  socket.write(`GET / HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`);
  await once(socket, 'close');
  return received;
}

/** What a client of TLS gets through a tunnel. */
async function askTls(socket: Socket, servername: string): Promise<string> {
  const over = connectTls({ socket, ...TRUSTING, servername });
  await once(over, 'secureConnect');
  return ask(over, servername);
}

describe('binds with tunnelProtocol connect', () => {
  test('a tunnel leads to the port that the client names, whatever the host', async () => {
    await using gate = await through([
      { port: 8123, mode: 'internal', listeners: [{ routes: answering('inside') }] },
      { port: 0, listeners: [{ routes: answering('open') }] },
    ]);
    for (const [authority, expected] of [
      ['api.example:8123', 'inside'],
      ['10.1.2.3:8123', 'inside'],
      [`api.example:${gate.ports[2]}`, 'open'],
    ] as const) {
      const { socket, head } = await tunnel(gate.port, authority);
      expect(head).toMatch(/^HTTP\/1\.1 200 /);
      expect(await ask(socket, 'api.example')).toContain(expected);
    }
  });

  test('an internal port is not open', async () => {
    await using gate = await through([
      { port: 8124, mode: 'internal', listeners: [{ routes: answering('inside') }] },
    ]);
    await expect(send('http://127.0.0.1:8124/')).rejects.toThrow('ECONNREFUSED');
    expect((await send(gate.url)).status).toBe(405);
  });

  test.each([
    ['a port that no bind has', 'api.example:9', '404'],
    ['no port', 'api.example', '400'],
    ['something else', '/path', '400'],
  ])('a client that names %s gets no tunnel', async (_, authority, status) => {
    await using gate = await through([
      { port: 8125, mode: 'internal', listeners: [{ routes: answering('inside') }] },
    ]);
    const { head, socket } = await tunnel(gate.port, authority);
    expect(head).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    socket.destroy();
  });

  test('a port on one address of the machine is not reached through a tunnel, nor is that of tunnels', async () => {
    const gateways = { local: { port: 0, address: '127.0.0.1', routes: answering('local') } };
    await using gate = await through([], { gateways });
    for (const port of gate.ports) {
      const { head, socket } = await tunnel(
        gate.running.listeners.at(-1)?.port as number,
        `localhost:${port}`,
      );
      expect(head).toMatch(/^HTTP\/1\.1 404 /);
      socket.destroy();
    }
  });

  test('an expression reads the port that the client has named', async () => {
    const routes = [{ policies: { directResponse: { bodyExpression: 'string(destination.port)' } } }];
    await using gate = await through([
      { port: 8126, mode: 'internal', listeners: [{ routes }] },
      { port: 8127, mode: 'internal', listeners: [{ protocol: 'HTTPS', tls: GOOD_TLS, routes }] },
    ]);
    const plain = await tunnel(gate.port, 'a.example:8126');
    expect(await ask(plain.socket, 'a.example')).toContain('\r\n\r\n8126');
    const tls = await tunnel(gate.port, 'localhost:8127');
    expect(await askTls(tls.socket, 'localhost')).toContain('8127');
  });

  test('a gateway that closes ends its tunnels', async () => {
    const config = { connectionTerminationDeadline: '50ms' };
    await using gate = await through(
      [{ port: 8128, mode: 'internal', listeners: [{ routes: answering('inside') }] }],
      { config },
    );
    const { socket } = await tunnel(gate.port, 'a.example:8128');
    const closed = once(socket.resume(), 'close');
    await gate.close();
    await closed;
  });

  test.each([
    [{ binds: [{ port: 0, listeners: [] }] }, 'the list must not be empty'],
    [{ binds: [{ ...TUNNEL, listeners: [{}] }] }, 'has no listeners'],
    [{ binds: [{ ...TUNNEL, mode: 'internal' }] }, 'an internal bind needs a port'],
    [{ binds: [TUNNEL], config: { workers: 2 } }, 'tunnels cannot be used with several `workers`'],
  ])('%j is refused', async (config, message) => {
    await expect(gateway(JSON.stringify(config))).rejects.toThrow(message);
  });
});

describe('dynamic backends of TCP routes', () => {
  const egress = (tcpRoutes: object[]) => ({
    port: secured.port,
    mode: 'internal',
    listeners: [{ protocol: 'TLS', tcpRoutes }],
  });

  test('a connection is passed to the server that its client names with TLS, at the port of the tunnel', async () => {
    await using gate = await through([egress([{ hostnames: ['localhost'], backends: [{ dynamic: {} }] }])]);
    const { socket } = await tunnel(gate.port, `localhost:${secured.port}`);
    expect(await askTls(socket, 'localhost')).toContain('from the service');
  });

  test('a name that no route has, and no name at all, get no connection', async () => {
    await using gate = await through([egress([{ hostnames: ['localhost'], backends: [{ dynamic: {} }] }])]);
    const other = await tunnel(gate.port, `x:${secured.port}`);
    await expect(askTls(other.socket, 'other.example')).rejects.toThrow();
    await using open = await through([egress([{ backends: [{ dynamic: {} }] }])]);
    const unnamed = await tunnel(open.port, `127.0.0.1:${secured.port}`);
    const over = connectTls({ socket: unnamed.socket, rejectUnauthorized: false });
    await expect(once(over, 'secureConnect')).rejects.toThrow();
  });

  test('a connection that comes back to the gateway is closed', async () => {
    const listeners = [{ protocol: 'TLS', tcpRoutes: [{ backends: [{ dynamic: {} }] }] }];
    await using gate = await gateway(JSON.stringify({ binds: [{ port: 0, listeners }] }));
    const over = connectTls({ port: gate.port, host: '127.0.0.1', servername: 'localhost' });
    await expect(once(over, 'secureConnect')).rejects.toThrow();
    await until(() => gate.accessLog.join('').includes('come back to this gateway'));
  });
});

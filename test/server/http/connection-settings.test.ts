import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { describe, expect, test } from 'vitest';
import type { Limits } from '../../../src/core/limits.ts';
import { loadConfigText } from '../../../src/server/config/load.ts';
import { GOOD_TLS, TRUSTING } from '../../kit/certificates.ts';
import { gateway } from '../../kit/gateway.ts';
import { http2Client } from '../../kit/http2.ts';
import { frameClient } from '../../kit/http2-frames.ts';
import { send } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';

// `frontendPolicies` of connections.

const answering = (frontendPolicies: object, tls?: object, limits: Partial<Limits> = {}) =>
  gateway(
    JSON.stringify({
      frontendPolicies,
      gateways: { default: { port: 0, tls, routes: [{ policies: { directResponse: { body: 'ok' } } }] } },
    }),
    { limits },
  );

/** Connects and sends one request; resolves once the gateway has closed the connection, to what it has sent. */
async function untilClosed(port: number): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
  return await untilEnd(socket);
}

/** What a connection receives until it is closed. */
async function untilEnd(socket: Socket): Promise<string> {
  let text = '';
  socket.on('data', (chunk) => {
    text += String(chunk);
  });
  await new Promise((resolve) => socket.on('error', () => undefined).once('close', resolve));
  return text;
}

describe('networkAuthorization', () => {
  test('closes connections that the rules do not allow, whatever they carry', async () => {
    const denied = { networkAuthorization: { rules: [{ deny: 'source.address == "127.0.0.1"' }] } };
    await using plain = await answering(denied);
    await expect(send(plain.url)).rejects.toThrow();
    await using secure = await answering(denied, GOOD_TLS);
    await expect(http2Client(secure.port)).rejects.toThrow();
    await using tcp = await gateway(
      JSON.stringify({
        frontendPolicies: denied,
        binds: [
          {
            port: 0,
            listeners: [{ protocol: 'TCP', tcpRoutes: [{ backends: [{ host: plain.url.slice(7) }] }] }],
          },
        ],
      }),
    );
    await expect(send(tcp.url)).rejects.toThrow();
  });

  test('closes connections if a deny rule cannot be evaluated, or a require rule is not true', async () => {
    for (const rule of [{ deny: 'int(source.address) == 1' }, { require: 'int(source.address) == 1' }]) {
      const rules = [{ allow: 'source.address == "127.0.0.1"' }, rule];
      await using gate = await answering({ networkAuthorization: { rules } });
      await expect(send(gate.url)).rejects.toThrow();
    }
  });

  test('allows what one of its rules allows', async () => {
    await using gate = await answering({
      networkAuthorization: { rules: ['source.address == "1.2.3.4"', 'source.port > 0'] },
    });
    expect((await send(gate.url)).text).toBe('ok');
  });
});

describe('frontendPolicies.http', () => {
  test('http1MaxHeaders is the limit of header lines', async () => {
    await using gate = await answering({ http: { http1MaxHeaders: 5 } });
    const headers = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, index) => [`x-${index}`, 'y']));
    expect((await send(gate.url, { headers: headers(2) })).status).toBe(200);
    expect((await send(gate.url, { headers: headers(6) })).status).toBe(431);
  });

  test('http1IdleTimeout closes idle connections', async () => {
    await using gate = await answering({ http: { http1IdleTimeout: '50ms' } });
    expect(await untilClosed(gate.port)).toMatch(/^HTTP\/1.1 200 /);
  });

  test('maxConnectionDuration closes connections between requests', async () => {
    await using gate = await answering({ http: { maxConnectionDuration: '1ms', http1IdleTimeout: '60s' } });
    await using secure = await answering({ http: { maxConnectionDuration: '50ms' } }, GOOD_TLS);
    await using client = await http2Client(secure.port);
    expect(await client.send({})).toMatchObject({ text: 'ok' });
    await once(client.session, 'close');
    const socket = connect(gate.port, '127.0.0.1');
    await once(socket, 'connect');
    const since = performance.now();
    await until(() => performance.now() - since > 20);
    socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    const [answer] = (await once(socket, 'data')) as [Buffer];
    expect(String(answer).toLowerCase()).toContain('connection: close');
    socket.destroy();
  });

  test('settings of HTTP/2 are announced', async () => {
    await using gate = await answering(
      {
        http: {
          http2WindowSize: 100_000,
          http2ConnectionWindowSize: 200_000,
          http2FrameSize: 20_000,
          http2MaxHeaderSize: 5000,
        },
      },
      GOOD_TLS,
    );
    await using client = await http2Client(gate.port);
    await until(() => client.session.remoteSettings.maxFrameSize === 20_000);
    expect(client.session.remoteSettings).toMatchObject({
      initialWindowSize: 100_000,
      maxHeaderListSize: 5000,
      maxConcurrentStreams: 100,
    });
    await until(() => client.session.state.remoteWindowSize === 200_000);
  });

  test('a client that does not answer pings is disconnected', async () => {
    await using gate = await answering(
      { http: { http2KeepaliveInterval: '50ms', http2KeepaliveTimeout: '50ms' } },
      GOOD_TLS,
    );
    await using silent = await frameClient(gate.port);
    await using living = await http2Client(gate.port);
    await silent.closed;
    expect(await living.send({})).toMatchObject({ text: 'ok' });
  });
});

describe('the limit of connections', () => {
  test.each([
    ['HTTP', undefined],
    ['TLS', GOOD_TLS],
  ])(
    'idle connections of %s over the limit are closed, and others are accepted when some end',
    async (_, tls) => {
      await using gate = await answering({}, tls, { connections: 20 });
      const sockets = Array.from({ length: 60 }, () =>
        connect(gate.port, '127.0.0.1').on('error', () => undefined),
      );
      const open = (): Socket[] => sockets.filter(({ closed }) => !closed);
      await until(() => open().length === 20);
      const use = async (): Promise<string> => {
        const socket = tls
          ? connectTls({ port: gate.port, host: '127.0.0.1', ...TRUSTING })
          : connect(gate.port, '127.0.0.1');
        socket.on('error', () => undefined);
        const text = untilEnd(socket);
        socket.write('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
        return await text;
      };
      expect(await use()).toBe('');
      expect(open()).toHaveLength(20);
      for (const socket of open().slice(0, 5)) socket.destroy();
      await until(async () => (await use()).startsWith('HTTP/1.1 200'));
      expect(open()).toHaveLength(15);
      for (const socket of sockets) socket.destroy();
    },
  );
});

test('frontendPolicies.tls has the defaults of listeners', async () => {
  await using gate = await answering({ tls: { minVersion: 'TLS_V1_3', alpn: ['http/1.1'] } }, GOOD_TLS);
  const socket = connectTls({
    port: gate.port,
    host: '127.0.0.1',
    ...TRUSTING,
    ALPNProtocols: ['h2', 'http/1.1'],
  });
  await once(socket, 'secureConnect');
  expect(socket.alpnProtocol).toBe('http/1.1');
  socket.destroy();
  const old = connectTls({ port: gate.port, host: '127.0.0.1', ...TRUSTING, maxVersion: 'TLSv1.2' });
  await expect(once(old, 'secureConnect')).rejects.toThrow(/version/);
});

test('keys that cannot be honoured are refused with the reason', () => {
  const help = (frontendPolicies: object) =>
    loadConfigText(JSON.stringify({ frontendPolicies, llm: { port: 0, models: [] } }), 'test.yaml', {})
      .diagnostics[0]?.help;
  expect(help({ proxy: {} })).toContain('PROXY protocol');
  expect(help({ tcp: { keepalives: { retries: 3 } } })).toContain('10 probes');
  expect(help({ http: { http1HeaderCase: 'preserve' } })).toContain('names of headers');
  expect(help({ connect: {} })).toContain('405');
});

import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { connect as connectTls, createServer as createTlsServer } from 'node:tls';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { AUTHORITY, certificateOf, certificatePath, GOOD_TLS, TRUSTING } from '../../kit/certificates.ts';
import { gateway, type TestGatewayOptions } from '../../kit/gateway.ts';
import { http2Client, sendHttps } from '../../kit/http2.ts';
import { until } from '../../kit/until.ts';
import { refusingPort } from '../../kit/upstream.ts';

/** Answers each connection with its name, and then with what it gets. */
async function echo(
  name: string,
  tls?: object,
): Promise<{ host: string; open: Set<Socket>; close(): Promise<void> }> {
  const open = new Set<Socket>();
  const serve = (socket: Socket): void => {
    open.add(socket);
    socket.on('error', () => undefined).on('close', () => open.delete(socket));
    socket.write(`${name}:`);
    socket.pipe(socket);
  };
  const server: Server =
    tls === undefined ? createServer({ allowHalfOpen: true }, serve) : createTlsServer(tls, serve);
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  return {
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    open,
    close: async () => {
      for (const socket of open) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

let one: Awaited<ReturnType<typeof echo>>;
let two: Awaited<ReturnType<typeof echo>>;
let secure: Awaited<ReturnType<typeof echo>>;
beforeAll(async () => {
  [one, two, secure] = await Promise.all([echo('one'), echo('two'), echo('secure', certificateOf('good'))]);
});
afterAll(async () => {
  await Promise.all([one, two, secure].map((each) => each.close()));
});

const bind = (listeners: object[], options: TestGatewayOptions = {}, more: object = {}) =>
  gateway(JSON.stringify({ binds: [{ port: 0, listeners }], ...more }), options);

const to = (host: string, more: object = {}) => ({ backends: [{ host }], ...more });

/** What a connection gets after it has sent `text` and ended its side. */
async function exchange(socket: Socket, text: string): Promise<string> {
  let received = '';
  socket.on('data', (chunk) => {
    received += String(chunk);
  });
  socket.end(text);
  await once(socket, 'close');
  return received;
}

/** What a TLS connection gets until the echo of `text`: closing one side only is not usual with TLS. */
async function exchangeTls(socket: Socket, text: string): Promise<string> {
  let received = '';
  socket.on('data', (chunk) => {
    received += String(chunk);
  });
  socket.write(text);
  await until(() => received.endsWith(text));
  socket.destroy();
  return received;
}

/** A client that is closed as soon as the gateway has closed its side. */
const plain = (port: number): Socket => connect({ port, host: '127.0.0.1' }).resume();
const tcp = (port: number): Socket => connect({ port, host: '127.0.0.1', allowHalfOpen: true });
const tls = (port: number, servername?: string, more: object = {}): Socket =>
  connectTls({
    port,
    host: '127.0.0.1',
    rejectUnauthorized: false,
    allowHalfOpen: true,
    ...(servername && { servername }),
    ...more,
  } as never);

describe('protocol TCP', () => {
  test('bytes are passed in both directions, and a client may end its side first', async () => {
    await using gate = await bind([{ protocol: 'TCP', tcpRoutes: [to(one.host)] }]);
    expect(await exchange(tcp(gate.port), 'hello')).toBe('one:hello');
    const large = 'x'.repeat(5_000_000);
    expect((await exchange(tcp(gate.port), large)).length).toBe(large.length + 4);
    await until(() => one.open.size === 0);
  });

  test.each(['text', 'json'])(
    'the access log has one line per connection, when it has ended: %s',
    async (format) => {
      const config = {
        config: { logging: { format } },
        frontendPolicies: { accessLog: { remove: ['gateway'] } },
      };
      const tcpRoutes = [to(one.host, { name: 'db' })];
      await using gate = await bind([{ name: 'raw', protocol: 'TCP', tcpRoutes }], {}, config);
      const socket = tcp(gate.port);
      await once(socket, 'data');
      expect(gate.accessLog).toEqual([]);
      await exchange(socket, 'hello');
      await until(() => gate.accessLog.length === 1);
      const [line = ''] = gate.accessLog;
      expect(line.replaceAll(/:\d+/g, ':1')).toMatch(
        format === 'text'
          ? /\tinfo\trequest listener=raw route=default\/db endpoint=127.0.0.1:1 src.addr=127.0.0.1:1 protocol=tcp bytes.received=5 bytes.sent=9 duration=\d+ms\n$/
          : /"scope":"request","listener":"raw","route":"default\/db","endpoint":"127.0.0.1:1","src.addr":"127.0.0.1:1","protocol":"tcp","bytes.received":1,"bytes.sent":1,"duration":"\d+ms"}\n$/,
      );
    },
  );

  test('the line of a connection says why it failed', async () => {
    const listeners = [
      { protocol: 'TLS', tcpRoutes: [to(`127.0.0.1:${await refusingPort()}`, { hostnames: ['a.example'] })] },
    ];
    await using gate = await bind(listeners);
    tls(gate.port, 'a.example').on('error', () => undefined);
    expect(await gate.accessLine(1)).toMatchObject({
      route: 'default/route0',
      'tls.server.name': 'a.example',
      error: 'the service cannot be reached',
      'error.detail': expect.stringContaining('refused'),
      'bytes.sent': '0',
    });
    tls(gate.port, 'b.example').on('error', () => undefined);
    const { route, error } = await gate.accessLine(2);
    expect([route, error]).toEqual([undefined, 'no route for the connection']);
  });

  test('backends share connections by weight', async () => {
    const backends = [
      { host: one.host, weight: 1 },
      { host: two.host, weight: 0 },
    ];
    await using gate = await bind([{ protocol: 'TCP', tcpRoutes: [{ backends }] }]);
    const answers = await Promise.all(Array.from({ length: 10 }, () => exchange(tcp(gate.port), '')));
    expect(new Set(answers)).toEqual(new Set(['one:']));
  });

  test('backendTLS connects with TLS and checks the certificate', async () => {
    const policies = { backendTLS: { root: AUTHORITY, hostname: 'localhost' } };
    await using gate = await bind([{ protocol: 'TCP', tcpRoutes: [to(secure.host, { policies })] }]);
    expect(await exchange(tcp(gate.port), 'hi')).toBe('secure:hi');
    await using other = await bind([
      {
        protocol: 'TCP',
        tcpRoutes: [to(secure.host, { policies: { backendTLS: { hostname: 'localhost' } } })],
      },
    ]);
    expect(await exchange(tcp(other.port), 'hi')).toBe('');
    expect(other.log.some((line) => line.includes('an upstream cannot be reached'))).toBe(true);
  });

  test('a reference to a top-level backend connects to its address with its TLS', async () => {
    const backends = (policies: object) => ({ backends: [{ name: 'db', host: secure.host, policies }] });
    const listeners = [{ protocol: 'TCP', tcpRoutes: [{ backends: [{ backend: 'db' }] }] }];
    const tls = { backendTLS: { root: AUTHORITY, hostname: 'localhost' } };
    await using gate = await bind(listeners, {}, backends(tls));
    expect(await exchange(tcp(gate.port), 'hi')).toBe('secure:hi');
    await expect(bind(listeners)).rejects.toThrow('unknown backend `db`');
    await expect(bind(listeners, {}, backends({ backendAuth: { key: 'a' } }))).rejects.toThrow(
      'the policy `backendAuth` of the backend `db` is for requests',
    );
    await expect(bind(listeners, {}, { backends: [{ name: 'db', host: 'unix:/a' }] })).rejects.toThrow(
      'another address than `host:port`',
    );
  });

  test('a silent connection is closed, and one to a service that is down', async () => {
    await using gate = await bind([{ protocol: 'TCP', tcpRoutes: [to(one.host)] }], {
      limits: { tcpIdle: 100 },
    });
    const silent = plain(gate.port);
    await once(silent, 'close');
    await using down = await bind([{ protocol: 'TCP', tcpRoutes: [to('127.0.0.1:1')] }]);
    expect(await exchange(tcp(down.port), '')).toBe('');
  });

  test('bytes are counted, and open connections closed at the deadline', async () => {
    await using gate = await bind(
      [{ protocol: 'TCP', tcpRoutes: [to(one.host)] }],
      {},
      {
        config: { connectionTerminationDeadline: '100ms' },
      },
    );
    await exchange(tcp(gate.port), 'hello');
    const metrics = async () =>
      (await gate.running.metrics.render())
        .split('\n')
        .filter((line) => /bytes|connections/.test(line) && line.includes('bind/'));
    await until(async () => (await metrics()).some((line) => / 9$/.test(line)));
    const open = plain(gate.port);
    await once(open, 'data');
    const closed = once(open, 'close');
    await gate.close();
    await closed;
  });

  test('a client that disconnects ends the connection to the service', async () => {
    await using gate = await bind([{ protocol: 'TCP', tcpRoutes: [to(one.host)] }]);
    const socket = tcp(gate.port);
    await once(socket, 'data');
    expect(one.open.size).toBe(1);
    socket.destroy();
    await until(() => one.open.size === 0);
  });
});

describe('protocol TLS', () => {
  test('without `tls`, the name that a client asks for selects the route, and TLS is passed through', async () => {
    await using gate = await bind([
      {
        protocol: 'TLS',
        tcpRoutes: [
          to(secure.host, { hostnames: ['localhost'] }),
          to(two.host, { hostnames: ['*.wild.example'] }),
        ],
      },
    ]);
    const socket = connectTls({
      port: gate.port,
      host: '127.0.0.1',
      ...TRUSTING,
      ALPNProtocols: ['foo'],
    } as never);
    // The service ends TLS: its certificate is verified.
    await expect(once(socket, 'secureConnect').then(() => exchangeTls(socket, 'hi'))).resolves.toBe(
      'secure:hi',
    );
    const other = tls(gate.port, 'unknown.example');
    await expect(once(other, 'secureConnect')).rejects.toThrow();
    const nameless = tls(gate.port);
    await expect(once(nameless, 'secureConnect')).rejects.toThrow();
  });

  test('a hello in pieces, one that is not TLS, and one that never comes', async () => {
    const listener = { protocol: 'TLS', tcpRoutes: [to(secure.host)] };
    await using gate = await bind([listener]);
    const { Duplex } = await import('node:stream');
    const raw = tcp(gate.port);
    const slow = new Duplex({
      read: () => undefined,
      write(chunk: Buffer, _encoding, done) {
        raw.write(chunk.subarray(0, 10));
        raw.write(chunk.subarray(10, 11));
        setImmediate(() => raw.write(chunk.subarray(11), () => done()));
      },
    });
    raw.on('data', (chunk) => slow.push(chunk));
    const client = connectTls({ socket: slow, ...TRUSTING } as never);
    const [first] = (await once(client, 'data')) as [Buffer];
    expect(String(first)).toBe('secure:');
    client.destroy();
    raw.destroy();
    expect(await exchange(tcp(gate.port), 'GET / HTTP/1.1\r\n\r\n')).toBe('');
    await using impatient = await bind([listener], { limits: { tlsHandshakeTimeout: 200 } });
    await once(plain(impatient.port), 'close');
  });

  test('with `tls`, the gateway ends TLS and passes on what is inside', async () => {
    await using gate = await bind([{ protocol: 'TLS', tls: GOOD_TLS, tcpRoutes: [to(one.host)] }]);
    const socket = connectTls({
      port: gate.port,
      host: '127.0.0.1',
      ...TRUSTING,
      ALPNProtocols: ['postgresql'],
    } as never);
    expect(await exchangeTls(socket, 'hi')).toBe('one:hi');
  });
});

describe('several listeners of a port with TLS', () => {
  const answering = (body: string) => [{ policies: { directResponse: { body } } }];
  const other = { cert: certificatePath('other.crt'), key: certificatePath('other.key') };

  test('each has its certificate, its rules for clients and its routes', async () => {
    await using gate = await bind([
      { name: 'a', hostname: 'localhost', protocol: 'HTTPS', tls: GOOD_TLS, routes: answering('a') },
      {
        name: 'b',
        hostname: 'other.example',
        protocol: 'HTTPS',
        tls: { ...other, root: certificatePath('client-authority.crt') },
        routes: answering('b'),
      },
      { name: 'c', hostname: '*.tcp.example', protocol: 'TLS', tcpRoutes: [to(secure.host)] },
    ]);
    expect((await sendHttps(gate.port, { headers: { host: 'localhost' } })).text).toBe('a');
    const withClient = {
      servername: 'other.example',
      rejectUnauthorized: false,
      cert: readFileSync(certificatePath('client.crt')),
      key: readFileSync(certificatePath('client.key')),
    };
    expect((await sendHttps(gate.port, { headers: { host: 'other.example' } }, withClient)).text).toBe('b');
    await expect(
      sendHttps(
        gate.port,
        { headers: { host: 'other.example' } },
        { servername: 'other.example', rejectUnauthorized: false },
      ),
    ).rejects.toThrow();
    const passed = tls(gate.port, 'x.tcp.example');
    expect(await exchangeTls(passed, 'hi')).toBe('secure:hi');
  });

  test('a connection to one listener cannot be used for the hosts of another', async () => {
    await using gate = await bind([
      { name: 'a', hostname: 'localhost', protocol: 'HTTPS', tls: GOOD_TLS, routes: answering('a') },
      {
        name: 'b',
        hostname: 'other.example',
        protocol: 'HTTPS',
        tls: { ...other, root: certificatePath('client-authority.crt') },
        routes: answering('b'),
      },
    ]);
    expect((await sendHttps(gate.port, { headers: { host: 'other.example' } })).status).toBe(421);
    await using client = await http2Client(gate.port);
    expect((await client.send({ ':authority': 'other.example' })).status).toBe(421);
    expect((await client.send({})).text).toBe('a');
    expect((await client.send({ ':authority': 'third.example' })).status).toBe(404);
  });

  test('a client that asks for a name without a listener gets no connection', async () => {
    await using gate = await bind([
      { name: 'a', hostname: 'localhost', protocol: 'HTTPS', tls: GOOD_TLS, routes: answering('a') },
    ]);
    await expect(once(tls(gate.port, 'nobody.example'), 'secureConnect')).rejects.toThrow();
    await expect(once(tls(gate.port), 'secureConnect')).rejects.toThrow();
  });
});

describe('listeners that cannot be served', () => {
  for (const [name, listeners, expected] of [
    [
      'routes of HTTP on TCP',
      [{ protocol: 'TCP', routes: [{}] }],
      '`routes` cannot be served by listener `listener0`',
    ],
    ['tcpRoutes on HTTP', [{ tcpRoutes: [to('a:1')] }], '`tcpRoutes` cannot be served'],
    ['HTTP and HTTPS on a port', [{ hostname: 'a' }, { hostname: 'b', tls: GOOD_TLS }], 'cannot share port'],
    [
      'two TCP listeners on a port',
      [
        { protocol: 'TCP', hostname: 'a' },
        { protocol: 'TCP', hostname: 'b' },
      ],
      'cannot share port',
    ],
    ['a mesh', [{ protocol: 'HBONE' }], 'not part of a service mesh'],
  ] as const)
    test(name, async () => {
      await expect(bind([...listeners])).rejects.toThrow(expected);
    });
});

test('a route for host names takes no connection without TLS, and the others go to the next route', async () => {
  const tcpRoutes = [to(two.host, { hostnames: ['a.example'] }), to(one.host)];
  await using gate = await bind([{ protocol: 'TCP', tcpRoutes }]);
  expect(await exchange(tcp(gate.port), 'x')).toBe('one:x');
  await using closed = await bind([{ protocol: 'TCP', tcpRoutes: tcpRoutes.slice(0, 1) }]);
  expect(await exchange(tcp(closed.port), 'x')).toBe('');
});

test('tcpRoutes at the top level name their gateway', async () => {
  await using gate = await gateway(
    JSON.stringify({
      gateways: { db: { port: 0, protocol: 'TCP' } },
      tcpRoutes: [{ gateways: 'db', ...to(one.host) }],
    }),
  );
  expect(await exchange(tcp(gate.port), 'x')).toBe('one:x');
});

import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { Agent } from 'node:http';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import { describe, expect, test } from 'vitest';
import { certificatePath, GOOD_TLS, TRUSTING } from '../../kit/certificates.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { gateway, type TestGateway } from '../../kit/gateway.ts';
import { http2Client, sendHttps } from '../../kit/http2.ts';
import { answering, grpc, holding, overHttp, PORT, send } from '../../kit/network-authz.ts';
import { sendRaw } from '../../kit/raw-http.ts';
import { until } from '../../kit/until.ts';
import { httpUpstream } from '../../kit/upstream.ts';

const ALLOW = { status: { code: 0 } };
const DENY = { status: { code: 7 } };

/** The service may take longer than a test. */
const PATIENT = { policies: { http: { requestTimeout: '120s' } } };

const binds = (frontendPolicies: object, ...all: object[]): Promise<TestGateway> =>
  gateway(JSON.stringify({ frontendPolicies, binds: all }));

const request = (more = ''): string => `GET / HTTP/1.1\r\nhost: a\r\n${more}\r\n`;

/** A connection that has sent a request. */
async function opened(port: number): Promise<{ socket: Socket; text(): string }> {
  const socket = connect({ port, host: '127.0.0.1' });
  let received = '';
  socket.on('data', (chunk) => (received += String(chunk))).on('error', () => undefined);
  await once(socket, 'connect');
  socket.write(request());
  return { socket, text: () => received };
}

describe('networkExtAuthz', () => {
  // agentgateway/agentgateway#3016: connections are asked about once, and closed when they are denied.
  test('networkExtAuthz asks about each connection once, over HTTP', async () => {
    await using service = await httpUpstream();
    await using gate = await answering(
      overHttp(service.address, { ...PORT, path: '"/check?from=" + source.address' }),
    );
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    for (let count = 0; count < 3; count += 1)
      expect(await send(gate.url, { agent })).toMatchObject({ text: 'ok' });
    agent.destroy();
    expect(service.received).toHaveLength(1);
    expect(service.received[0]).toMatchObject({
      method: 'GET',
      target: '/check?from=127.0.0.1',
      headers: { host: service.address, 'x-port': expect.stringMatching(/^\d+$/) },
    });
    expect(await send(gate.url)).toMatchObject({ text: 'ok' });
    expect(service.received).toHaveLength(2);
  });

  test.each([401, 403, 302, 404, 500, 503])(
    'networkExtAuthz closes a connection when the service answers %i',
    async (status) => {
      await using service = await httpUpstream((_, response) => response.writeHead(status).end('no'));
      await using gate = await answering(overHttp(service.address, PORT, { failureMode: 'allow' }));
      await expect(sendRaw(gate.port, request())).resolves.toMatchObject({ text: '', closed: true });
      expect(gate.log.join('\n')).toMatch(
        /a connection was refused\ssrc.addr="127.0.0.1:\d+" reason="the service answered/,
      );
      expect(gate.accessLog).toEqual([]);
    },
  );

  // envoyproxy/envoy#23174: the service of a connection gets no headers of a request.
  test('networkExtAuthz asks over gRPC with source and destination', async () => {
    let answer = ALLOW;
    await using service = await grpc(() => answer);
    await using gate = await answering({
      networkExtAuthz: { host: service.address, protocol: { grpc: { context: { gateway: 'a' } } } },
    });
    expect(await send(gate.url, { headers: { authorization: 'Bearer secret' } })).toMatchObject({
      text: 'ok',
    });
    expect(service.received[0].attributes).toMatchObject({
      source: { address: { socket_address: { address: '127.0.0.1', port_value: expect.any(Number) } } },
      destination: { address: { socket_address: { address: '127.0.0.1', port_value: gate.port } } },
      context_extensions: { gateway: 'a' },
      request: null,
    });
    expect(JSON.stringify(service.received)).not.toContain('secret');
    answer = DENY;
    await expect(send(gate.url)).rejects.toThrow();
    expect(service.received).toHaveLength(2);
  });

  // envoyproxy/envoy#20563: the service decides by the certificate of the client, which TLS has to establish first.
  test('networkExtAuthz asks after TLS, with the certificate and name that the client has sent', async () => {
    const tls = { ...GOOD_TLS, root: certificatePath('client-authority.crt') };
    const client = {
      ...TRUSTING,
      cert: readFileSync(certificatePath('client.crt')),
      key: readFileSync(certificatePath('client.key')),
    };
    await using http = await httpUpstream();
    await using gate = await answering(
      overHttp(http.address, {
        addRequestHeaders: { 'x-id': 'source.spiffeId', 'x-name': 'destination.hostname' },
      }),
      tls,
    );
    expect(await sendHttps(gate.port, {}, client)).toMatchObject({ text: 'ok' });
    expect(http.received[0]?.headers).toMatchObject({
      'x-id': 'spiffe://example.org/ns/a/sa/ann',
      'x-name': 'localhost',
    });
    await using service = await grpc(() => ALLOW);
    await using other = await answering({ networkExtAuthz: { host: service.address } }, tls);
    await using over = await http2Client(other.port, client);
    expect(await over.send({})).toMatchObject({ text: 'ok' });
    expect(service.received[0].attributes.source.principal).toBe('spiffe://example.org/ns/a/sa/ann');
    // A handshake that fails is nothing to ask about.
    const broken = connect(other.port, '127.0.0.1', () => broken.write('GET / HTTP/1.1\r\n\r\n'));
    await once(
      broken.on('error', () => undefined),
      'close',
    );
    expect(service.received).toHaveLength(1);
  });

  test.each([true, false])('networkExtAuthz decides about all kinds of ports (%s)', async (isAllowed) => {
    await using backend = await httpUpstream((_, response) => response.end('behind'));
    await using secure = await httpUpstream((_, response) => response.end('behind'), { certificate: 'good' });
    await using service = await httpUpstream((_, response) =>
      response.writeHead(isAllowed ? 204 : 403).end(),
    );
    const policies = overHttp(service.address);
    await using gate = await binds(
      policies,
      { port: 0, listeners: [{ protocol: 'TCP', tcpRoutes: [{ backends: [{ host: backend.address }] }] }] },
      { port: 0, listeners: [{ protocol: 'TLS', tcpRoutes: [{ backends: [{ host: secure.address }] }] }] },
      {
        port: 0,
        listeners: [
          { protocol: 'TLS', tls: GOOD_TLS, tcpRoutes: [{ backends: [{ host: backend.address }] }] },
        ],
      },
      {
        port: 0,
        listeners: [
          { protocol: 'HTTPS', tls: GOOD_TLS, routes: [{ backends: [{ host: backend.address }] }] },
        ],
      },
    );
    const [tcp = 0, passed = 0, ended = 0, https = 0] = gate.ports;
    const calls: (() => Promise<{ text: string }>)[] = [
      () => send(`http://127.0.0.1:${tcp}`),
      () => sendHttps(passed),
      () => sendHttps(ended),
      () => sendHttps(https),
      async () => {
        await using client = await http2Client(https);
        return await client.send({});
      },
    ];
    for (const call of calls)
      if (isAllowed) expect(await call()).toMatchObject({ text: 'behind' });
      else await expect(call()).rejects.toThrow();
    expect(service.received).toHaveLength(calls.length);
    expect(backend.received.length + secure.received.length).toBe(isAllowed ? calls.length : 0);
  });

  test('networkExtAuthz decides about connections through tunnels', async () => {
    let isInside = false;
    await using service = await httpUpstream(({ headers }, response) => {
      isInside ||= headers['x-to'] === '8123';
      response.writeHead(headers['x-to'] === '8123' ? 403 : 200).end();
    });
    await using gate = await binds(
      overHttp(service.address, { addRequestHeaders: { 'x-to': 'string(destination.port)' } }),
      { port: 0, tunnelProtocol: 'connect', listeners: [] },
      {
        port: 8123,
        mode: 'internal',
        listeners: [{ routes: [{ policies: { directResponse: { body: 'ok' } } }] }],
      },
    );
    const reply = await sendRaw(gate.port, `CONNECT a:8123 HTTP/1.1\r\nhost: a:8123\r\n\r\n${request()}`);
    expect(reply).toMatchObject({ statuses: [200], closed: true });
    expect(reply.text).not.toContain('ok');
    expect(isInside).toBe(true);
  });

  test('networkExtAuthz keeps what a client sends meanwhile', async () => {
    await using backend = await httpUpstream((_, response, { body }) => response.end(`${body.length}`));
    for (const tls of [undefined, GOOD_TLS]) {
      await using service = await holding();
      await using gate = await gateway(
        JSON.stringify({
          frontendPolicies: overHttp(service.address),
          gateways: { default: { port: 0, tls, routes: [{ backends: [{ host: backend.address }] }] } },
        }),
      );
      const body = 'a'.repeat(1_000_000);
      const sent = { method: 'POST', body };
      const reply = tls === undefined ? send(gate.url, sent) : sendHttps(gate.port, sent);
      await until(() => service.held.length === 1);
      expect(gate.accessLog).toEqual([]);
      service.held[0]?.end();
      expect(await reply).toMatchObject({ status: 200, text: '1000000' });
    }
  });

  test('networkExtAuthz does not let a connection wait for another one', async () => {
    await using service = await holding();
    await using gate = await answering(overHttp(service.address));
    const first = await opened(gate.port);
    await until(() => service.held.length === 1);
    const second = await opened(gate.port);
    await until(() => service.held.length === 2);
    service.held[1]?.end();
    await until(() => second.text().endsWith('ok'));
    expect(first.text()).toBe('');
    service.held[0]?.writeHead(403).end();
    await once(first.socket, 'close');
    expect(first.text()).toBe('');
    second.socket.destroy();
  });

  test('networkExtAuthz lets a bounded number of connections wait, and closes the others', async () => {
    await using service = await holding();
    const policies = overHttp(service.address, PORT, { failureMode: 'allow' });
    const limits = { authorizingConnections: 2 };
    await using gate = await answering(policies, undefined, { admin: true, limits });
    const waiting = [await opened(gate.port), await opened(gate.port)];
    await until(() => service.held.length === 2);
    const { bounds } = JSON.parse((await send(`${gate.admin}/memory`)).text);
    const bound = {
      name: 'networkExtAuthz.waiting',
      at: 'frontendPolicies.networkExtAuthz',
      used: 2,
      max: 2,
    };
    expect(bounds).toContainEqual(bound);
    await expect(sendRaw(gate.port, request())).resolves.toMatchObject({ text: '', closed: true });
    for (const response of service.held) response.end();
    for (const { text } of waiting) await until(() => text().endsWith('ok'));
    for (const { socket } of waiting) socket.destroy();
    expect(service.held).toHaveLength(2);
  });

  test('networkExtAuthz gives up the call for a client that leaves', async () => {
    let isLeft = false;
    await using service = await httpUpstream(
      (_, response) => void response.on('close', () => (isLeft = true)),
    );
    await using gate = await answering(overHttp(service.address, PORT, PATIENT));
    const { socket } = await opened(gate.port);
    await until(() => service.received.length === 1);
    socket.resetAndDestroy();
    await until(() => isLeft);
    await using remote = await grpc(() => undefined);
    await using other = await answering({ networkExtAuthz: { host: remote.address, ...PATIENT } });
    const left = await opened(other.port);
    await until(() => remote.received.length === 1);
    left.socket.resetAndDestroy();
    await until(() => remote.cancelled === 1);
  });

  test('networkExtAuthz closes connections that wait when the gateway stops', async () => {
    for (const tls of [undefined, GOOD_TLS]) {
      await using service = await holding();
      const gate = await answering(overHttp(service.address, PORT, PATIENT), tls);
      const socket = tls ? connectTls({ port: gate.port, ...TRUSTING }) : connect(gate.port, '127.0.0.1');
      socket.on('error', () => undefined);
      await until(() => service.held.length === 1);
      const closed = once(socket, 'close');
      await gate.close();
      await closed;
    }
  });

  test('networkExtAuthz follows a reload, and a call under way is not lost', async () => {
    await using service = await holding();
    await using folder = await temporaryFolder();
    await using gate = await answering(overHttp(service.address), undefined, {
      live: 'asked',
      folder: folder.path,
    });
    const { socket, text } = await opened(gate.port);
    await until(() => service.held.length === 1);
    const config = {
      gateways: { default: { port: 0, routes: [{ policies: { directResponse: { body: 'new' } } }] } },
    };
    writeFileSync(join(folder.path, 'test.yaml'), JSON.stringify(config));
    expect(await gate.live.reload()).toBe(true);
    expect(await send(gate.url)).toMatchObject({ text: 'new' });
    service.held[0]?.end();
    await until(() => text().endsWith('new'));
    socket.destroy();
    expect(service.held).toHaveLength(1);
  });

  test('networkExtAuthz uses a cached outcome for connections with the same key', async () => {
    let status = 200;
    await using service = await httpUpstream((_, response) => response.writeHead(status).end());
    const cache = { key: ['source.address'], ttl: '1h' };
    await using gate = await answering(overHttp(service.address, {}, { cache }));
    for (let count = 0; count < 3; count += 1) expect(await send(gate.url)).toMatchObject({ text: 'ok' });
    expect(service.received).toHaveLength(1);
    status = 500;
    await using other = await answering(overHttp(service.address, {}, { cache }));
    await expect(send(other.url)).rejects.toThrow();
    status = 200;
    expect(await send(other.url)).toMatchObject({ text: 'ok' });
  });
});

import { Agent, request } from 'node:http';
import { describe, expect, test } from 'vitest';
import { gateway } from '../../kit/gateway.ts';
import { rawRequest, sendRaw } from '../../kit/raw-http.ts';
import { proxyGateway, routesConfig } from '../../kit/routes.ts';
import { send, valuesOf } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';
import { httpUpstream, rawUpstream } from '../../kit/upstream.ts';

describe('forwarded requests', () => {
  test('a forwarded request keeps method, path, query, body and end-to-end headers', async () => {
    await using backend = await httpUpstream();
    await using gate = await proxyGateway(backend.address);
    const headers = {
      'Content-Type': 'text/x-odd',
      'X-Twice': ['1', '2'],
      cookie: 'a=1; b=2',
      'accept-encoding': 'gzip, br',
      'x-empty': '',
      'x-latin': 'caf\u00e9',
      authorization: 'Bearer t',
    };
    for (const method of ['GET', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND']) {
      const target = '/a%20b/%C3%A4;v=1?q=%zz&r=a+b&&=';
      const body = method === 'GET' ? '' : `body of ${method}`;
      expect((await send(gate.url, { method, target, headers, body })).status).toBe(200);
      const got = backend.received.at(-1);
      expect(got).toMatchObject({ method, target, body });
      expect(got?.headers).toMatchObject({
        'content-type': 'text/x-odd',
        cookie: 'a=1; b=2',
        'accept-encoding': 'gzip, br',
        'x-empty': '',
        'x-latin': 'caf\u00e9',
        authorization: 'Bearer t',
      });
      expect(valuesOf(got ?? { rawHeaders: [] }, 'x-twice')).toEqual(['1', '2']);
    }
  });

  test("a forwarded request keeps the client's Host as one header", async () => {
    await using backend = await httpUpstream();
    await using gate = await proxyGateway(backend.address);
    await send(gate.url, { headers: { host: 'public.example' } });
    expect(valuesOf(backend.received[0] ?? { rawHeaders: [] }, 'host')).toEqual(['public.example']);
  });

  test('a forwarded request loses hop-by-hop headers and those that Connection names', async () => {
    await using backend = await httpUpstream();
    await using gate = await proxyGateway(backend.address);
    const lines = [
      'Connection: keep-alive, X-Private ,x-other',
      'Connection: x-third',
      'Keep-Alive: timeout=5',
      'Proxy-Connection: keep-alive',
      'Proxy-Authorization: Basic YTpi',
      'TE: trailers',
      'Trailer: x-checksum',
      'Upgrade: websocket',
      'X-Private: 1',
      'X-OTHER: 1',
      'x-third: 1',
      'X-Kept: 1',
      'Expect: 100-continue',
      'Transfer-Encoding: chunked',
    ];
    const chunks = '4\r\nbody\r\n0\r\nx-checksum: 1\r\n\r\n';
    await sendRaw(gate.port, rawRequest('POST / HTTP/1.1', lines, chunks), { responses: 2 });
    const { headers = {}, body } = backend.received[0] ?? {};
    expect(body).toBe('body');
    const { 'content-length': _length, 'transfer-encoding': _encoding, ...others } = headers;
    expect(Object.keys(others).sort()).toEqual(['connection', 'host', 'x-kept']);
    expect(headers.connection).toBe('keep-alive');
  });

  test.each(['GET', 'HEAD', 'DELETE'])(
    'a forwarded %s request without a body has none at the backend',
    async (method) => {
      await using backend = await httpUpstream();
      await using gate = await proxyGateway(backend.address);
      await send(gate.url, { method });
      const { headers } = backend.received[0] ?? {};
      expect(headers).not.toHaveProperty('transfer-encoding');
      expect(headers?.['content-length'] ?? '0').toBe('0');
    },
  );

  test('a forwarded POST without a body has content-length 0', async () => {
    await using backend = await httpUpstream();
    await using gate = await proxyGateway(backend.address);
    await sendRaw(gate.port, rawRequest('POST / HTTP/1.1', ['Content-Length: 0']), { responses: 1 });
    expect(backend.received[0]?.headers['content-length']).toBe('0');
  });

  test('a forwarded request over the buffer limit gets 100 Continue when nothing buffers it', async () => {
    await using backend = await httpUpstream();
    await using gate = await proxyGateway(backend.address);
    const headers = { expect: '100-continue', 'content-length': '3000000' };
    const call = request(gate.url, { method: 'PUT', headers, agent: new Agent() });
    let mayGoOn = false;
    call
      .on('error', () => undefined)
      .on('continue', () => {
        mayGoOn = true;
      });
    call.flushHeaders();
    await until(() => mayGoOn, 500).finally(() => call.destroy());
  });
});

describe('forwarded responses', () => {
  test('a forwarded response keeps its status and end-to-end headers, including repeated ones', async () => {
    await using backend = await httpUpstream((_, response) =>
      response
        .writeHead(418, [
          'Set-Cookie',
          'a=1; Path=/',
          'X-Order',
          '1',
          'Set-Cookie',
          'b=2',
          'x-order',
          '2',
          'Location',
          'http://other.example/',
          'Content-Encoding',
          'br',
          'WWW-Authenticate',
          'Basic realm="a"',
          'Connection',
          'close, x-hop',
          'X-Hop',
          '1',
          'Keep-Alive',
          'timeout=1',
          'Proxy-Authenticate',
          'Basic',
          'X-Latin',
          'caf\u00e9',
        ])
        .end('not br'),
    );
    await using gate = await proxyGateway(backend.address);
    const reply = await send(gate.url);
    expect(reply).toMatchObject({ status: 418, text: 'not br' });
    expect(valuesOf(reply, 'set-cookie')).toEqual(['a=1; Path=/', 'b=2']);
    expect(valuesOf(reply, 'x-order')).toEqual(['1', '2']);
    expect(reply.headers).toMatchObject({
      location: 'http://other.example/',
      'content-encoding': 'br',
      'www-authenticate': 'Basic realm="a"',
      'x-latin': 'caf\u00e9',
    });
    for (const name of ['x-hop', 'proxy-authenticate']) expect(reply.headers).not.toHaveProperty(name);
    expect(reply.headers['keep-alive'] ?? '').not.toBe('timeout=1');
  });

  test.each([301, 302, 307])(
    'a forwarded %i response goes to the client and is not followed',
    async (status) => {
      await using backend = await httpUpstream((_, response) =>
        response.writeHead(status, { location: '/b' }).end(),
      );
      await using gate = await proxyGateway(backend.address);
      expect(await send(gate.url)).toMatchObject({ status, headers: { location: '/b' } });
      expect(backend.received).toHaveLength(1);
    },
  );

  test.each([204, 304])(
    'a forwarded %i response has no body and keeps the connection open',
    async (status) => {
      await using backend = await httpUpstream((_, response) =>
        response.writeHead(status, { etag: '"a"' }).end(),
      );
      await using gate = await proxyGateway(backend.address);
      const two = rawRequest('GET / HTTP/1.1').repeat(2);
      const { statuses, text } = await sendRaw(gate.port, two, { responses: 2 });
      expect(statuses).toEqual([status, status]);
      expect(text).not.toMatch(/transfer-encoding|content-length/i);
      expect(text).toContain('"a"');
    },
  );

  test('a forwarded response to HEAD has content-length and no body, and keeps the connection open', async () => {
    await using backend = await httpUpstream((_, response) =>
      response.writeHead(200, { 'content-length': '5' }).end('hello'),
    );
    await using gate = await proxyGateway(backend.address);
    expect(await send(gate.url, { method: 'HEAD' })).toMatchObject({
      status: 200,
      text: '',
      headers: { 'content-length': '5' },
    });
    const { text } = await sendRaw(
      gate.port,
      rawRequest('HEAD / HTTP/1.1') + rawRequest('GET / HTTP/1.1', ['Connection: close']),
    );
    expect(text.match(/HTTP\/1\.1 200/g)).toHaveLength(2);
    expect(text.match(/hello/g)).toHaveLength(1);
  });

  test('a forwarded HTTP/1.0 response delimited by connection close arrives complete', async () => {
    await using backend = await rawUpstream((socket) =>
      socket.end('HTTP/1.0 200 OK\r\nX-A: 1\r\n\r\nuntil the end'),
    );
    await using gate = await proxyGateway(backend.address);
    expect(await send(gate.url)).toMatchObject({
      status: 200,
      text: 'until the end',
      headers: { 'x-a': '1' },
    });
  });

  test('a forwarded response to an HTTP/1.0 client is not chunked', async () => {
    await using backend = await httpUpstream((_, response) => {
      response.write('in ');
      response.end('pieces');
    });
    await using gate = await proxyGateway(backend.address);
    const { text } = await sendRaw(gate.port, rawRequest('GET / HTTP/1.0'));
    expect(text.endsWith('\r\n\r\nin pieces')).toBe(true);
    expect(text).not.toMatch(/chunked/i);
  });
});

describe('several backends', () => {
  test('several backends share requests by weight, with none for weight 0', async () => {
    const counts = [0, 0, 0];
    const count = (index: number) =>
      httpUpstream((_, response) => {
        counts[index] = (counts[index] ?? 0) + 1;
        response.end();
      });
    await using a = await count(0);
    await using b = await count(1);
    await using c = await count(2);
    const backends = [
      { host: a.address, weight: 3 },
      { host: b.address, weight: 1 },
      { host: c.address, weight: 0 },
    ];
    await using gate = await gateway(routesConfig([{ backends }]));
    const total = 600;
    for (let i = 0; i < total; i += 20) await Promise.all(Array.from({ length: 20 }, () => send(gate.url)));
    const [first = 0, second = 0, third] = counts;
    expect(first + second).toBe(total);
    expect(third).toBe(0);
    // Six standard deviations of a binomial distribution with p = 3/4.
    expect(Math.abs(first - total * 0.75)).toBeLessThan(6 * Math.sqrt(total * 0.75 * 0.25));
  });

  test('several backends all of weight 0 give 500 no valid backends', async () => {
    await using gate = await gateway(routesConfig([{ backends: [{ host: '127.0.0.1:9', weight: 0 }] }]));
    expect(await send(gate.url)).toMatchObject({ status: 500, text: 'no valid backends' });
  });

  test('the access log names the backend that was called', async () => {
    await using a = await httpUpstream();
    await using gate = await proxyGateway(a.address);
    await send(gate.url);
    expect(await gate.accessLine(1)).toMatchObject({ endpoint: a.address, 'http.status': '200' });
    expect(await gate.accessLine(1)).not.toHaveProperty('reason');
  });
});

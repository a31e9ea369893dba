import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, expect, test } from 'vitest';
import { rawRequest, sendRaw } from '../../kit/raw-http.ts';
import { proxyGateway } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';
import { httpUpstream } from '../../kit/upstream.ts';

const requests = (count: number, path = (index: number): string => `/${index}`): string =>
  Array.from({ length: count }, (_, index) => rawRequest(`GET ${path(index)} HTTP/1.1`)).join('');

describe('pipelined requests on one connection', () => {
  test('pipelined requests reach the backend one after the other in order', async () => {
    let open = 0;
    let most = 0;
    await using upstream = await httpUpstream(async (_, response, { target }) => {
      open += 1;
      most = Math.max(most, open);
      // Later requests are answered faster.
      await new Promise((resolve) => setTimeout(resolve, target === '/0' ? 30 : 0));
      open -= 1;
      response.end(`${target};`);
    });
    await using gate = await proxyGateway(upstream.address);
    const { text, statuses } = await sendRaw(gate.port, requests(100), { responses: 100 });
    expect(statuses).toEqual(Array(100).fill(200));
    expect(upstream.received.map(({ target }) => target)).toEqual(
      Array.from({ length: 100 }, (_, index) => `/${index}`),
    );
    expect(text.match(/\/\d+;/g)).toHaveLength(100);
    expect(most).toBe(1);
  });

  // RFC 9112 §9.3.2
  test('a CONNECT behind a request is answered after it', async () => {
    await using upstream = await httpUpstream(async (_, response) => {
      await new Promise((resolve) => setTimeout(resolve, 20));
      response.end('first');
    });
    await using gate = await proxyGateway(upstream.address);
    const { statuses } = await sendRaw(gate.port, requests(1) + rawRequest('CONNECT x:1 HTTP/1.1'));
    expect(statuses).toEqual([200, 405]);
  });

  test('pipelined requests with large bodies arrive complete', async () => {
    await using upstream = await httpUpstream((_, response, { body }) => response.end(`${body.length};`));
    await using gate = await proxyGateway(upstream.address);
    const lengths = Array.from({ length: 30 }, (_, index) => (index % 3) * 60_000);
    const bytes = lengths
      .map((length) => rawRequest('POST / HTTP/1.1', [`Content-Length: ${length}`], 'x'.repeat(length)))
      .join('');
    const { text } = await sendRaw(gate.port, bytes, { responses: 30 });
    expect(text.match(/\d+(?=;)/g)).toEqual(lengths.map(String));
  });

  test('500 pipelined requests are all answered while other connections are served', async () => {
    await using upstream = await httpUpstream();
    await using gate = await proxyGateway(upstream.address);
    const count = 500;
    const all = sendRaw(gate.port, requests(count), { responses: count });
    expect((await send(gate.url)).status).toBe(200);
    expect((await all).statuses).toHaveLength(count);
    expect(upstream.connections).toBeLessThan(5);
  });

  test('pipelined requests are not started after the client disconnects, and each is logged', async () => {
    await using upstream = await httpUpstream(() => undefined);
    await using gate = await proxyGateway(upstream.address);
    const socket = connect({ port: gate.port, host: '127.0.0.1' });
    socket.write(requests(5));
    await until(() => upstream.received.length === 1);
    socket.destroy();
    await once(socket, 'close');
    await gate.accessLine(5);
    expect(upstream.received).toHaveLength(1);
    const lines = gate.accessLog.map((line) => /http\.path=(\S+).* http\.status=(\d+)/.exec(line)?.slice(1));
    expect(lines.map((line) => line?.join(' ')).sort()).toEqual([0, 1, 2, 3, 4].map((n) => `/${n} 499`));
  });

  test('pipelined requests after one with Connection: close are not answered', async () => {
    await using upstream = await httpUpstream();
    await using gate = await proxyGateway(upstream.address);
    const bytes = rawRequest('GET /last HTTP/1.1', ['Connection: close']) + requests(3);
    const { statuses, closed } = await sendRaw(gate.port, bytes);
    expect({ statuses, closed }).toEqual({ statuses: [200], closed: true });
    expect(upstream.received.map(({ target }) => target)).toEqual(['/last']);
  });

  test('pipelined requests are answered before a following malformed body is rejected', async () => {
    await using upstream = await httpUpstream((_, response) => setTimeout(() => response.end('ok'), 30));
    await using gate = await proxyGateway(upstream.address);
    const broken = rawRequest('POST / HTTP/1.1', ['Transfer-Encoding: chunked'], 'zz\r\nx');
    const { statuses, closed } = await sendRaw(gate.port, requests(3) + broken);
    expect({ statuses, closed }).toEqual({ statuses: [200, 200, 200, 400], closed: true });
    expect(upstream.received).toHaveLength(3);
  });
});

import { Agent, createServer } from 'node:http';
import { describe, expect, test } from 'vitest';
import { AT_ONCE } from '../../kit/at-once.ts';
import { rawRequest, sendRaw } from '../../kit/raw-http.ts';
import { proxyGateway } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';
import { httpUpstream, rawUpstream, refusingPort, release, type Script } from '../../kit/upstream.ts';

/** Status, text and duration of one request to a backend with this behaviour. */
async function outcome(
  script: Script,
): Promise<{ status: number; text: string; took: number; line: Record<string, string> }> {
  await using backend = await rawUpstream(script);
  await using gate = await proxyGateway(backend.address);
  const started = performance.now();
  const { status, text } = await send(gate.url, { agent: new Agent() });
  return { status, text, took: performance.now() - started, line: await gate.accessLine(1) };
}

const OK = 'HTTP/1.1 200 OK\r\n';
const head = (...lines: string[]): string => [...lines, '', ''].join('\r\n');

describe('unreachable backends', () => {
  test('a backend that refuses connections gives 503 with a message without delay', async () => {
    await using gate = await proxyGateway(`127.0.0.1:${await refusingPort()}`);
    const started = performance.now();
    expect(await send(gate.url)).toMatchObject({
      status: 503,
      text: 'upstream call failed: connection refused',
    });
    expect(performance.now() - started).toBeLessThan(AT_ONCE);
    expect(await gate.accessLine(1)).toMatchObject({
      'http.status': '503',
      error: 'upstream call failed: connection refused',
      reason: 'UpstreamFailure',
    });
  });

  test('a backend whose name does not resolve gives 503', async () => {
    await using gate = await proxyGateway('no-such-host.invalid:80');
    const reply = await send(gate.url);
    expect(reply.status).toBe(503);
    expect(reply.text).toMatch(/^upstream call failed: the host name does not resolve/);
  });

  test('a backend whose socket does not exist gives 503', async () => {
    await using gate = await proxyGateway('unix:/nonexistent/agctl.sock');
    expect(await send(gate.url)).toMatchObject({
      status: 503,
      text: 'upstream call failed: the socket does not exist',
    });
  });

  test('a backend that was unreachable is used again as soon as it is back', async () => {
    const port = await refusingPort();
    await using gate = await proxyGateway(`127.0.0.1:${port}`);
    expect((await send(gate.url)).status).toBe(503);
    const server = createServer((_, response) => response.end('back'));
    await release(port);
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
    try {
      expect(await send(gate.url)).toMatchObject({ status: 200, text: 'back' });
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });
});

describe('invalid HTTP responses of a backend', () => {
  test.each<[string, string]>([
    [
      'a length and chunks',
      `${head('HTTP/1.1 200 OK', 'content-length: 5', 'transfer-encoding: chunked')}hello`,
    ],
    ['two lengths', `${head('HTTP/1.1 200 OK', 'content-length: 5', 'content-length: 6')}hello`],
    ['a length that is none', `${head('HTTP/1.1 200 OK', 'content-length: 5x')}hello`],
    ['status 1000', head('HTTP/1.1 1000 OK', 'content-length: 0')],
    ['status 99', head('HTTP/1.1 99 OK', 'content-length: 0')],
    ['status 099', head('HTTP/1.1 099 OK', 'content-length: 0')],
    ['status 000', head('HTTP/1.1 000 OK', 'content-length: 0')],
    ['HTTP/0.9', '<html>hello</html>'],
    ['a head of 20 kB', head('HTTP/1.1 200 OK', `x-big: ${'x'.repeat(20_000)}`, 'content-length: 0')],
    ['a bare line feed in a header', `${OK}x-a: 1\nx-b: 2\r\ncontent-length: 0\r\n\r\n`],
    ['a NUL in a header', `${OK}x-a: 1\u00002\r\ncontent-length: 0\r\n\r\n`],
    ['a bare return in a header', `${OK}x-a: 1\r2\r\ncontent-length: 0\r\n\r\n`],
    ['a folded header', `${OK}x-a: 1\r\n 2\r\ncontent-length: 0\r\n\r\n`],
    ['a space before the colon', `${OK}x-a : 1\r\ncontent-length: 0\r\n\r\n`],
    [
      'a protocol switch',
      head('HTTP/1.1 101 Switching Protocols', 'connection: upgrade', 'upgrade: websocket'),
    ],
    ['nothing', ''],
    ['half a head', 'HTTP/1.1 200 OK\r\ncontent-le'],
  ])('an invalid backend response gives 502 without delay: %s', async (_what, bytes) => {
    const { status, text, took, line } = await outcome((socket) => socket.end(bytes, 'latin1'));
    expect({ status, text }).toEqual({ status: 502, text: expect.stringMatching(/^upstream call failed/) });
    expect(took).toBeLessThan(AT_ONCE);
    expect(line).toMatchObject({ 'http.status': '502', reason: 'UpstreamFailure' });
  });

  test.each(['gzip, chunked', 'gzip', 'chunked, identity'])(
    'a backend response with transfer-encoding %s gives 502',
    async (encoding) => {
      const { status } = await outcome((socket) =>
        socket.end(`${head('HTTP/1.1 200 OK', `transfer-encoding: ${encoding}`)}5\r\nhello\r\n0\r\n\r\n`),
      );
      expect(status).toBe(502);
    },
  );

  test('a backend that resets the connection before the head gives 502', async () => {
    expect(await outcome((socket) => socket.resetAndDestroy())).toMatchObject({ status: 502 });
  });

  test("a bare CR in a backend's reason phrase does not inject a header", async () => {
    const { status, text } = await outcome((socket) =>
      socket.end('HTTP/1.1 200 OK\rset-cookie: a=1\r\ncontent-length: 5\r\n\r\nhello'),
    );
    if (status !== 502) expect({ status, text }).toEqual({ status: 200, text: 'hello' });
  });

  test('a backend that floods 103 responses gives 502', async () => {
    const { status, text, took } = await outcome((socket) => {
      const hint = head('HTTP/1.1 103 Early Hints', 'link: </a>; rel=preload').repeat(1000);
      const more = (): void => {
        while (!socket.destroyed && socket.write(hint));
        if (!socket.destroyed) socket.once('drain', more);
      };
      more();
    });
    expect({ status, text }).toEqual({
      status: 502,
      text: 'upstream call failed: too many informational responses',
    });
    expect(took).toBeLessThan(AT_ONCE);
  });
});

describe('unusual but valid responses of a backend', () => {
  test('a backend response after several 1xx is forwarded', async () => {
    const early = head('HTTP/1.1 103 Early Hints', 'link: </a>') + head('HTTP/1.1 102 Processing');
    const { status, text } = await outcome((socket) =>
      socket.write(`${early}${OK}content-length: 5\r\n\r\nhello`),
    );
    expect({ status, text }).toEqual({ status: 200, text: 'hello' });
  });

  test.each([
    ['gzip that is not gzip', 'content-encoding: gzip'],
    ['fifty encodings', `content-encoding: ${Array(50).fill('gzip').join(', ')}`],
    ['an odd status', 'x-a: 1'],
  ])('a backend response with %s is forwarded unchanged', async (_what, line) => {
    const { status, text } = await outcome((socket) =>
      socket.write(`HTTP/1.1 299 Odd\r\n${line}\r\ncontent-length: 5\r\n\r\nhello`),
    );
    expect({ status, text }).toEqual({ status: 299, text: 'hello' });
  });

  test('a backend response with a status over 599 is forwarded', async () => {
    const { status } = await outcome((socket) => socket.write(head('HTTP/1.1 799 Odd', 'content-length: 0')));
    expect(status).toBe(799);
  });
});

describe('backend responses that end early', () => {
  const cut: [string, Script][] = [
    ['a short body', (socket) => socket.end(`${OK}content-length: 100\r\n\r\nonly this`)],
    ['a cut chunk', (socket) => socket.end(`${OK}transfer-encoding: chunked\r\n\r\n64\r\nonly this`)],
    ['no last chunk', (socket) => socket.end(`${OK}transfer-encoding: chunked\r\n\r\n9\r\nonly this\r\n`)],
    [
      'a wrong chunk',
      (socket) => socket.end(`${OK}transfer-encoding: chunked\r\n\r\n9\r\nonly this\r\nzz\r\n`),
    ],
    [
      'a reset',
      (socket) => {
        socket.write(`${OK}content-length: 100\r\n\r\nonly this`);
        setTimeout(() => socket.resetAndDestroy(), 20);
      },
    ],
  ];

  test.each(cut)(
    'a backend response that ends early is visible to the client and logged once: %s',
    async (_what, script) => {
      await using backend = await rawUpstream(script);
      await using gate = await proxyGateway(backend.address);
      const { text, closed } = await sendRaw(gate.port, rawRequest('GET / HTTP/1.1'));
      expect(closed).toBe(true);
      expect(text).not.toMatch(/\r\n0\r\n\r\n$/);
      await gate.accessLine(1);
      expect(gate.accessLog).toHaveLength(1);
    },
  );

  test.each(cut)(
    'a backend response that ends early is logged as an upstream failure: %s',
    async (_what, script) => {
      await using backend = await rawUpstream(script);
      await using gate = await proxyGateway(backend.address);
      await sendRaw(gate.port, rawRequest('GET / HTTP/1.1'));
      expect((await gate.accessLine(1))['error']).toMatch(/^upstream call failed/);
    },
  );
});

describe('connections to a backend', () => {
  test('backend connections are reused between requests', async () => {
    await using backend = await httpUpstream();
    await using gate = await proxyGateway(backend.address);
    for (let i = 0; i < 10; i += 1) await send(gate.url);
    expect(backend.connections).toBe(1);
  });

  test('backend connections with surplus response bytes are not reused', async () => {
    await using backend = await rawUpstream((socket, request, count) => {
      const answer = `${OK}x-path: ${request.split(' ')[1]}\r\ncontent-length: 5\r\n\r\nhello`;
      socket.write(count === 1 ? `${answer}${OK}x-path: /forged\r\ncontent-length: 6\r\n\r\nforged` : answer);
    });
    await using gate = await proxyGateway(backend.address);
    for (const path of ['/1', '/2', '/3']) {
      const reply = await send(`${gate.url}${path}`);
      expect({ path: reply.headers['x-path'], text: reply.text }).toEqual({ path, text: 'hello' });
    }
    expect(backend.connections).toBe(2);
  });

  test('backend connections that received bytes while idle are not reused', async () => {
    let closed = 0;
    await using backend = await rawUpstream((socket, request, count) => {
      socket.write(`${OK}x-path: ${request.split(' ')[1]}\r\ncontent-length: 5\r\n\r\nhello`);
      socket.on('close', () => {
        closed += 1;
      });
      if (count === 1) setTimeout(() => socket.write(`${OK}content-length: 6\r\n\r\nforged`), 20);
    });
    await using gate = await proxyGateway(backend.address);
    await send(`${gate.url}/1`);
    await until(() => closed === 1);
    const reply = await send(`${gate.url}/2`);
    expect({ path: reply.headers['x-path'], text: reply.text }).toEqual({ path: '/2', text: 'hello' });
  });

  test('backend connections are not reused after a malformed response', async () => {
    await using backend = await rawUpstream((socket, _, count) =>
      socket.write(
        count === 1 ? head('HTTP/1.1 200 OK', 'content-length: 5x') : `${OK}content-length: 5\r\n\r\nhello`,
      ),
    );
    await using gate = await proxyGateway(backend.address);
    expect((await send(gate.url)).status).toBe(502);
    expect(await send(gate.url)).toMatchObject({ status: 200, text: 'hello' });
  });

  test('backend connections closed between requests fail no GET and repeat no POST', async () => {
    const posts = new Map<string, number>();
    await using backend = await rawUpstream((socket, request) => {
      const [method, path = ''] = request.split(' ');
      if (method === 'POST') posts.set(path, (posts.get(path) ?? 0) + 1);
      socket.write(`${OK}content-length: 2\r\n\r\nok`);
      setTimeout(() => socket.end(), Math.random() * 4);
    });
    await using gate = await proxyGateway(backend.address);
    const agent = new Agent({ keepAlive: true });
    let failed = 0;
    for (let i = 0; i < 600; i += 1) {
      const isPost = i % 3 === 0;
      const { status } = await send(`${gate.url}/${i}`, { agent, method: isPost ? 'POST' : 'GET' });
      if (!isPost && status !== 200) failed += 1;
    }
    agent.destroy();
    expect(failed).toBe(0);
    expect([...posts.values()].filter((count) => count > 1)).toEqual([]);
  });

  test('backend connections are closed with the gateway', async () => {
    let open = 0;
    await using backend = await httpUpstream((request, response) => {
      if (request.socket.listenerCount('counted') === 0) {
        open += 1;
        request.socket
          .on('counted', () => undefined)
          .on('close', () => {
            open -= 1;
          });
      }
      response.end();
    });
    const gate = await proxyGateway(backend.address);
    await Promise.all(Array.from({ length: 5 }, () => send(gate.url, { agent: new Agent() })));
    expect(open).toBeGreaterThan(0);
    await gate.close();
    await until(() => open === 0);
  });
});

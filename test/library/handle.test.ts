import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createGateway, type Gateway, type GatewayConfig } from '../../src/library/index.ts';
import { until } from '../kit/until.ts';
import { type HttpUpstream, httpUpstream } from '../kit/upstream.ts';

/** A configuration whose routes lead to a server of HTTP. */
const forwarding = (address: string, route: object = {}, rest: object = {}): GatewayConfig => ({
  config: { connectionTerminationDeadline: '200ms' },
  gateways: {
    default: { port: 0, address: '127.0.0.1', routes: [{ ...route, backends: [{ host: address }] }] },
  },
  ...rest,
});

/** What a response has, without what differs from one response to the next. */
async function shown(response: Response): Promise<object> {
  const headers = Object.fromEntries(
    [...response.headers].filter(
      ([name]) => !['date', 'connection', 'keep-alive', 'transfer-encoding'].includes(name),
    ),
  );
  return { status: response.status, headers, body: await response.text() };
}

describe('gateway.handle beside its port', () => {
  let upstream: HttpUpstream;
  let gateway: Gateway;
  beforeAll(async () => {
    upstream = await httpUpstream(({ method, url, headers }, response, { body }) => {
      if (url === '/empty') return void response.writeHead(204).end();
      if (url === '/unchanged') return void response.writeHead(304, { etag: '"a"' }).end();
      if (url === '/cookies') response.setHeader('set-cookie', ['a=1; Path=/', 'b=2; Path=/']);
      if (url === '/strange') return void response.writeHead(799).end('x');
      if (url === '/chunks') {
        for (let at = 0; at < 100; at += 1) response.write(`chunk ${at}\n`);
        return void response.end();
      }
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ method, url, host: headers.host, type: headers['content-type'], body }));
    });
    const rules = { policies: { authorization: { rules: ['!request.path.startsWith("/denied")'] } } };
    gateway = await createGateway(forwarding(upstream.address, rules));
  });
  afterAll(async () => {
    await gateway.close();
    await upstream.close();
  });

  const cases: readonly [string, string, RequestInit?][] = [
    ['a GET with a query', '/a/b?c=1&c=2'],
    ['encoded characters of a path', '/a%20b/%C3%BC'],
    ['a POST', '/a', { method: 'POST', body: '{"a":1}', headers: { 'content-type': 'application/json' } }],
    ['an empty POST', '/a', { method: 'POST' }],
    ['a body of 2 MB', '/a', { method: 'PUT', body: 'x'.repeat(2_000_000) }],
    ['a HEAD', '/a', { method: 'HEAD' }],
    ['a DELETE', '/a', { method: 'DELETE' }],
    ['an unknown method', '/a', { method: 'PURGE' }],
    ['status 204', '/empty'],
    ['status 304', '/unchanged'],
    ['two cookies', '/cookies'],
    ['a body in chunks', '/chunks'],
    ['a denied path', '/denied'],
    ['a path that two servers could read differently', '/a%2Fb'],
    ['a header with an underscore', '/a', { headers: { a_b: 'c' } }],
  ];
  test.each(cases)('gateway.handle gives the same response as the port for %s', async (_, path, init) => {
    const url = `${gateway.url}${path}`;
    const overPort = await shown(await fetch(url, init));
    expect(await shown(await gateway.handle(new Request(url, init)))).toEqual(overPort);
  });

  test('gateway.handle gives an upstream its body and host, and the program what it answers', async () => {
    const request = new Request('http://shop.example/a', { method: 'POST', body: 'hello' });
    const answer = await gateway.handle(request);
    expect(await answer.json()).toMatchObject({
      method: 'POST',
      url: '/a',
      host: 'shop.example',
      body: 'hello',
    });
  });

  test('gateway.handle takes the host of the URL, whatever the headers say', async () => {
    const headers = {
      host: 'admin.example',
      connection: 'x-user',
      'transfer-encoding': 'chunked',
      expect: '100-continue',
    };
    const answer = await gateway.handle(new Request('http://shop.example/a', { headers }));
    expect(await answer.json()).toMatchObject({ host: 'shop.example' });
  });

  test('gateway.handle answers 502 for a status that the Fetch API does not have', async () => {
    expect((await gateway.handle(new Request(`${gateway.url}/strange`))).status).toBe(502);
  });

  test('gateway.fetch takes paths, URLs and requests, without its object', async () => {
    const { fetch: own } = gateway;
    const answers = [
      await own('/a'),
      await own(new URL('/a', gateway.url)),
      await own(new Request(`${gateway.url}/a`)),
    ];
    for (const answer of answers) expect(await answer.json()).toMatchObject({ url: '/a' });
    expect(await (await own('/a', { method: 'POST', body: 'x' })).json()).toMatchObject({ body: 'x' });
  });

  test('gateway.handle rejects a request whose body was read, and the gateway goes on', async () => {
    const request = new Request(`${gateway.url}/a`, { method: 'POST', body: 'x' });
    await request.text();
    await expect(gateway.handle(request)).rejects.toThrow('the body of the request was read before');
    // @ts-expect-error -- a mistake that only TypeScript finds
    await expect(gateway.handle('/a')).rejects.toThrow('expected a Request of the Fetch API');
    await expect(gateway.fetch('http://:bad')).rejects.toThrow('Invalid URL');
    expect((await gateway.fetch('/a')).status).toBe(200);
  });

  test.each([
    ['text instead of bytes', (controller: ReadableStreamDefaultController) => controller.enqueue('text')],
    ['an error', (controller: ReadableStreamDefaultController) => controller.error(new Error('broken'))],
  ])('a body of the program that gives %s fails its request only', async (_, pull) => {
    const body = new ReadableStream({ pull });
    const init: RequestInit & { duplex: 'half' } = { method: 'POST', body, duplex: 'half' };
    const answer = await gateway.handle(new Request(`${gateway.url}/a`, init));
    expect(answer.status).toBeGreaterThanOrEqual(400);
    expect((await gateway.fetch('/a')).status).toBe(200);
  });
});

describe('streams of gateway.handle', () => {
  /** A server that sends what it is told, and says whether its client has left. */
  async function talking() {
    const state = { write: (_text: string) => {}, end: () => {}, hasLeft: false, sent: 0 };
    const server = createServer((request, response) => {
      response.on('close', () => (state.hasLeft = !response.writableFinished));
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      state.write = (text) => response.write(text);
      state.end = () => response.end();
      if (request.url === '/endless') {
        const more = (): void => {
          while (!response.destroyed && response.write('x'.repeat(10_000))) state.sent += 10_000;
          if (!response.destroyed) response.once('drain', more);
        };
        more();
      } else response.write('data: 1\n\n');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    const gateway = await createGateway(forwarding(address), { listen: false });
    return {
      state,
      gateway,
      [Symbol.asyncDispose]: async () => {
        await gateway.close();
        server.closeAllConnections();
        server.close();
      },
    };
  }

  test('gateway.handle passes each event on when it arrives', async () => {
    await using talk = await talking();
    const answer = await talk.gateway.fetch('/events');
    const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
    expect(await reader?.read()).toEqual({ done: false, value: 'data: 1\n\n' });
    talk.state.write('data: 2\n\n');
    expect(await reader?.read()).toEqual({ done: false, value: 'data: 2\n\n' });
    talk.state.end();
    expect((await reader?.read())?.done).toBe(true);
  });

  test('an upstream is told to wait while the program does not read', async () => {
    await using talk = await talking();
    const answer = await talk.gateway.fetch('/endless');
    const reader = answer.body?.getReader();
    await reader?.read();
    let before = -1;
    // The buffers of the system take a part, and then nothing more.
    await until(
      () => {
        const isFull = talk.state.sent === before;
        before = talk.state.sent;
        return isFull && before > 0;
      },
      10_000,
      200,
    );
    expect(talk.state.sent).toBeLessThan(20_000_000);
    await reader?.cancel();
    await until(() => talk.state.hasLeft);
  });

  test('an upstream is left when the program cancels the response, or aborts its request', async () => {
    for (const leave of ['cancel', 'abort'] as const) {
      await using talk = await talking();
      const controller = new AbortController();
      const answer = await talk.gateway.fetch('/events', { signal: controller.signal });
      const reader = answer.body?.getReader();
      await reader?.read();
      if (leave === 'cancel') await reader?.cancel();
      else {
        controller.abort(new Error('enough'));
        await expect(reader?.read()).rejects.toThrow('enough');
      }
      await until(() => talk.state.hasLeft);
    }
  });

  test('gateway.handle rejects with the reason of its signal, before and while an upstream works', async () => {
    let hasLeft = false;
    await using upstream = await httpUpstream((_, response) => {
      response.on('close', () => {
        hasLeft = true;
      });
    });
    await using gateway = await createGateway(forwarding(upstream.address), { listen: false });
    await expect(gateway.fetch('/', { signal: AbortSignal.abort(new Error('before')) })).rejects.toThrow(
      'before',
    );
    expect(upstream.received).toEqual([]);
    const controller = new AbortController();
    const answer = gateway.fetch('/', { signal: controller.signal });
    await until(() => upstream.received.length === 1);
    controller.abort(new Error('later'));
    await expect(answer).rejects.toThrow('later');
    await until(() => hasLeft);
  });

  // remix-run/remix#11533 (the request hangs), withastro/astro#17966 (unhandled rejections)
  test('a request that is aborted while its body arrives ends at once, whether or not the body is buffered', async () => {
    await using upstream = await httpUpstream((request, response) => void request.pipe(response), {
      streaming: true,
    });
    const reading = { policies: { authorization: { rules: ['json(request.body).a == 1'] } } };
    for (const route of [{}, reading]) {
      await using gateway = await createGateway(forwarding(upstream.address, route), { listen: false });
      const controller = new AbortController();
      let isCancelled = false;
      const body = new ReadableStream({
        start: (stream) => stream.enqueue(new TextEncoder().encode('{"a":')),
        cancel: () => {
          isCancelled = true;
        },
      });
      const init: RequestInit & { duplex: 'half' } = { method: 'POST', body, duplex: 'half' };
      const answer = gateway.fetch('/', { ...init, signal: controller.signal });
      const failed = answer.then((response) => response.text()).catch(({ message }) => message);
      await new Promise((resolve) => setImmediate(resolve));
      controller.abort(new Error('enough'));
      expect(await failed).toBe('enough');
      await until(() => isCancelled);
    }
  });

  test('a body that breaks after a policy has replaced it stops nothing', async () => {
    await using upstream = await httpUpstream((_, response, { body }) => void response.end(body));
    const replacing = { policies: { transformations: { request: { body: '"other"' } } } };
    await using gateway = await createGateway(forwarding(upstream.address, replacing), { listen: false });
    const body = new ReadableStream({ pull: (stream) => stream.error(new Error('broken')) });
    const init: RequestInit & { duplex: 'half' } = { method: 'POST', body, duplex: 'half' };
    expect(await (await gateway.fetch('/', init)).text()).toBe('other');
  });

  // MatthewWid/better-sse#120, h3js/srvx#142: the process ended
  test('an upstream that goes on after the program has cancelled the response stops nothing', async () => {
    await using talk = await talking();
    const answer = await talk.gateway.fetch('/events');
    await answer.body?.cancel();
    for (let count = 0; count < 100; count += 1) talk.state.write('data: late\n\n');
    await until(() => talk.state.hasLeft);
    expect((await talk.gateway.fetch('/events')).status).toBe(200);
  });
});

describe('who a request of gateway.handle is from', () => {
  const byAddress = { policies: { authorization: { rules: ['source.address == "203.0.113.7"'] } } };

  test('rules see the address that the program gives, and none without it', async () => {
    await using upstream = await httpUpstream((_, response) => void response.end('ok'));
    await using gateway = await createGateway(forwarding(upstream.address, byAddress), { listen: false });
    const request = (): Request => new Request('http://localhost/');
    expect((await gateway.handle(request(), { address: '203.0.113.7', port: 4711 })).status).toBe(200);
    expect((await gateway.handle(request(), { address: '203.0.113.8' })).status).toBe(403);
    // A server of Node.js that listens on both families says it in this way.
    expect((await gateway.handle(request(), { address: '::ffff:203.0.113.7' })).status).toBe(200);
    for (const address of ['203.0.113.7:80', 'localhost', '[::1]'])
      await expect(gateway.handle(request(), { address })).rejects.toThrow('expected an IP address');
    expect((await gateway.handle(request())).status).toBe(403);
  });

  test('a client that rules of the network refuse gets 403, and reaches no upstream', async () => {
    await using upstream = await httpUpstream((_, response) => void response.end('ok'));
    const frontendPolicies = {
      networkAuthorization: { rules: ['cidr("10.0.0.0/8").containsIP(source.address)'] },
    };
    await using gateway = await createGateway(forwarding(upstream.address, {}, { frontendPolicies }), {
      listen: false,
    });
    const request = (): Request => new Request('http://localhost/');
    expect((await gateway.handle(request(), { address: '10.1.2.3' })).status).toBe(200);
    expect((await gateway.handle(request(), { address: '192.0.2.1' })).status).toBe(403);
    expect((await gateway.handle(request())).status).toBe(403);
    expect(upstream.received).toHaveLength(1);
  });

  test('a request goes to the gateway that is named, and to the first one otherwise', async () => {
    const answering = (status: number) => ({
      port: 0,
      address: '127.0.0.1',
      routes: [{ policies: { directResponse: { status, body: 'x' } } }],
    });
    await using gateway = await createGateway(
      { gateways: { one: answering(201), two: answering(202) } },
      { listen: false },
    );
    const statusOf = async (name?: string): Promise<number> =>
      (await gateway.handle(new Request('http://localhost/'), name === undefined ? {} : { gateway: name }))
        .status;
    expect([await statusOf(), await statusOf('one'), await statusOf('two')]).toEqual([201, 201, 202]);
    await using sections = await createGateway(
      {
        mcp: { targets: [{ name: 'far', mcp: { host: 'http://127.0.0.1:1/mcp' } }] },
        llm: { models: [{ name: 'm', provider: 'echo' }] },
      },
      { listen: false },
    );
    const models = [
      await sections.fetch('/v1/models'),
      await sections.fetch(`${sections.urls['llm']}/v1/models`),
    ];
    expect(models.map(({ status }) => status)).toEqual([200, 200]);
    expect((await sections.fetch('/mcp')).status).toBe(406);
    const byUrl = async (url = '/'): Promise<number> => (await gateway.fetch(url)).status;
    const { one = '', two = '' } = gateway.urls;
    expect([await byUrl(), await byUrl(`${one}/`), await byUrl(`${two}/`)]).toEqual([201, 201, 202]);
    await expect(statusOf('three')).rejects.toThrow(
      'the configuration has no gateway `three`: its gateways are one, two',
    );
  });
});

import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { gateway, type TestGateway } from '../../kit/gateway.ts';
import { answeringGateway, proxyGateway, routesConfig } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';
import { httpUpstream } from '../../kit/upstream.ts';

const through = (address: string, transformations: object, more: object = {}): Promise<TestGateway> =>
  proxyGateway(address, { transformations }, more);

describe('transformations of requests', () => {
  test('transformations set, add and remove request headers by expressions', async () => {
    await using backend = await httpUpstream();
    await using gate = await through(backend.address, {
      request: {
        set: { 'x-path': 'request.path', 'x-count': '1 + 1', 'x-kept': '"new"' },
        add: { 'x-list': '"b"' },
        remove: ['x-gone'],
      },
    });
    await send(`${gate.url}/a?b=c`, { headers: { 'x-kept': 'old', 'x-list': 'a', 'x-gone': '1' } });
    const [{ headers } = { headers: {} }] = backend.received;
    expect(headers).toMatchObject({ 'x-path': '/a', 'x-count': '2', 'x-kept': 'new', 'x-list': 'a, b' });
    expect(headers).not.toHaveProperty('x-gone');
  });

  test.each([
    ['set', 'request.headers["x-missing"]'],
    ['add', 'request.headers["x-missing"]'],
    ['set', '"a\\r\\nx-evil: 1"'],
    ['set', 'null'],
    ['set', '{"a": 1}'],
  ])(
    'transformations do not let a client send a header that %s could not compute from %s',
    async (action, expression) => {
      await using backend = await httpUpstream();
      await using gate = await through(backend.address, { request: { [action]: { 'x-user': expression } } });
      await send(gate.url, { headers: { 'X-USER': 'admin' } });
      expect(backend.received[0]?.headers).not.toHaveProperty('x-user');
      expect(backend.received[0]?.headers).not.toHaveProperty('x-evil');
    },
  );

  test('transformations change method, path and query by pseudo-headers, and the access log keeps what was requested', async () => {
    await using backend = await httpUpstream();
    await using gate = await through(backend.address, {
      request: { set: { ':method': '"PUT"', ':path': '"/new" + request.path + "?x=1"' } },
    });
    await send(`${gate.url}/old?y=2`, { method: 'POST', body: 'b' });
    expect(backend.received[0]).toMatchObject({ method: 'PUT', target: '/new/old?x=1', body: 'b' });
    expect(await gate.accessLine(1)).toMatchObject({ 'http.path': '/old?y=2', 'http.method': 'POST' });
  });

  test.each([['"/a/../admin"'], ['"/a b"'], ['"//evil/%5Cx"'], ['"relative"'], ['1'], ['"/a#b"']])(
    'transformations ignore the path %s',
    async (expression) => {
      await using backend = await httpUpstream();
      await using gate = await through(backend.address, { request: { set: { ':path': expression } } });
      await send(`${gate.url}/ok`);
      expect(backend.received[0]?.target).toBe('/ok');
    },
  );

  test('transformations set the Host header by :authority or host, and ignore what is not a host', async () => {
    await using backend = await httpUpstream();
    for (const [name, value, host] of [
      [':authority', '"App.internal:8080"', 'app.internal:8080'],
      ['Host', '"app.internal"', 'app.internal'],
      [':authority', '"a b"', 'client.test'],
    ] as const) {
      await using gate = await through(backend.address, { request: { set: { [name]: value } } });
      await send(gate.url, { headers: { host: 'client.test' } });
      expect(backend.received.at(-1)?.headers.host).toBe(host);
      expect((await gate.accessLine(1))['http.host']).toBe('client.test');
    }
  });

  test('transformations replace all request headers but those of the message framing', async () => {
    await using backend = await httpUpstream();
    await using gate = await through(backend.address, {
      request: {
        replace: '{"x-a": "1", "x-list": ["a", "b"], "content-length": "999", ":path": "/x", "x-null": null}',
        set: { 'x-b': '"2"' },
      },
    });
    await send(gate.url, { method: 'POST', body: 'four', headers: { 'x-gone': '1', host: 'client.test' } });
    const { headers, body } = backend.received[0] as (typeof backend.received)[number];
    expect(headers).toMatchObject({ 'x-a': '1', 'x-list': 'a, b', 'x-b': '2', host: 'client.test' });
    expect(headers).toMatchObject({ 'content-length': '4' });
    expect(headers).not.toHaveProperty('x-gone');
    expect(headers).not.toHaveProperty('x-null');
    expect(body).toBe('four');
  });

  test('transformations keep all headers when replace fails', async () => {
    await using backend = await httpUpstream();
    await using gate = await through(backend.address, { request: { replace: '"text"' } });
    await send(gate.url, { headers: { 'x-kept': '1' } });
    expect(backend.received[0]?.headers).toMatchObject({ 'x-kept': '1' });
  });

  test('transformations compute the request body from the body that was sent', async () => {
    await using backend = await httpUpstream();
    await using gate = await through(backend.address, {
      request: { body: '{"wrapped": json(request.body).a, "path": request.path}' },
    });
    await send(`${gate.url}/p`, { method: 'POST', body: '{"a": [1, "\u2600"]}' });
    const received = backend.received[0] as (typeof backend.received)[number];
    const text = Buffer.from(received.body, 'latin1').toString('utf8');
    expect(text).toBe('{"wrapped":[1,"\u2600"],"path":"/p"}');
    expect(received.headers['content-length']).toBe(String(Buffer.byteLength(text)));
  });

  test('transformations give a body to a request without one, and an empty one when the expression fails', async () => {
    await using backend = await httpUpstream();
    await using gate = await through(backend.address, {
      request: { body: '"hello " + request.headers["x-name"]' },
    });
    await send(gate.url, { headers: { 'x-name': 'ann' } });
    await send(gate.url, { method: 'POST', body: 'secret' });
    expect(backend.received.map(({ body }) => body)).toEqual(['hello ann', '']);
  });

  test('transformations keep the content coding of a body that stays as it was, and remove that of a new one', async () => {
    const body = gzipSync('packed');
    const headers = { 'content-encoding': 'gzip' };
    await using backend = await httpUpstream();
    for (const [expression, coding] of [
      ['request.body', 'gzip'],
      ['"plain"', undefined],
    ] as const) {
      await using gate = await through(backend.address, { request: { body: expression } });
      await send(gate.url, { method: 'POST', body, headers });
      expect(backend.received.at(-1)?.headers['content-encoding']).toBe(coding);
    }
  });

  test('transformations see no body larger than maxBufferSize', async () => {
    await using backend = await httpUpstream();
    await using gate = await through(
      backend.address,
      { request: { body: 'request.body' } },
      { frontendPolicies: { http: { maxBufferSize: 1024 } } },
    );
    expect(await send(gate.url, { method: 'POST', body: 'x'.repeat(1024) })).toMatchObject({ status: 200 });
    await send(gate.url, { method: 'POST', body: 'x'.repeat(1025) });
    expect(backend.received.map(({ body }) => body.length)).toEqual([1024, 0]);
  });

  test('transformations keep values that later expressions and the access log read', async () => {
    await using gate = await answeringGateway(
      {
        transformations: {
          request: { metadata: { user: 'request.headers["x-user"]', bad: 'request.headers["no"]' } },
          response: {
            metadata: { twice: 'metadata.user + metadata.user' },
            set: { 'x-user': 'metadata.user' },
          },
        },
        directResponse: { bodyExpression: 'metadata' },
      },
      { frontendPolicies: { accessLog: { add: { user: 'metadata.twice' } } } },
    );
    const reply = await send(gate.url, { headers: { 'x-user': 'ann' } });
    expect(reply.text).toBe('{"user":"ann"}');
    expect(reply.headers['x-user']).toBe('ann');
    expect(await gate.accessLine(1)).toMatchObject({ user: 'annann' });
  });
});

describe('transformations of responses', () => {
  test('transformations set, add and remove response headers and the status', async () => {
    await using backend = await httpUpstream((_, response) =>
      response.writeHead(500, { server: 'x', 'x-list': 'a', 'x-secret': '1' }).end('ok'),
    );
    await using gate = await through(backend.address, {
      response: {
        set: { ':status': '418', 'x-code': 'string(response.code)', 'x-secret': 'response.headers["no"]' },
        add: { 'x-list': '"b"' },
        remove: ['server'],
      },
    });
    const reply = await send(gate.url);
    expect(reply).toMatchObject({ status: 418, text: 'ok' });
    expect(reply.headers).toMatchObject({ 'x-code': '418', 'x-list': 'a, b' });
    for (const name of ['server', 'x-secret']) expect(reply.headers).not.toHaveProperty(name);
  });

  test.each([['99'], ['600'], ['101'], ['"none"']])(
    'transformations ignore the status %s',
    async (status) => {
      await using gate = await answeringGateway({
        transformations: { response: { set: { ':status': status } } },
      });
      expect(await send(gate.url)).toMatchObject({ status: 200 });
    },
  );

  test('transformations compute the response body, also of a compressed one', async () => {
    await using backend = await httpUpstream((_, response) =>
      response
        .writeHead(200, { 'content-encoding': 'gzip', 'content-type': 'application/json' })
        .end(gzipSync('{"a": 1}')),
    );
    await using gate = await through(backend.address, {
      response: { body: '{"b": json(response.body).a, "code": response.code}' },
    });
    const reply = await send(gate.url);
    expect(reply.text).toBe('{"b":1,"code":200}');
    expect(reply.headers).not.toHaveProperty('content-encoding');
    expect(reply.headers).toMatchObject({ 'content-type': 'application/json', 'content-length': '18' });
  });

  test('transformations send an empty body when the expression fails, and never the one it was to hide', async () => {
    await using backend = await httpUpstream((_, response) => response.end('secret'));
    await using gate = await through(backend.address, { response: { body: 'json(response.body).a' } });
    expect(await send(gate.url)).toMatchObject({ status: 200, text: '' });
  });

  test('transformations see no response body larger than maxBufferSize, also after decompression', async () => {
    const large = 'x'.repeat(2000);
    let isCompressed = false;
    await using backend = await httpUpstream((_, response) =>
      isCompressed
        ? response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(large))
        : response.end(large),
    );
    await using gate = await through(
      backend.address,
      { response: { set: { 'x-size': 'string(size(response.body))' } } },
      { frontendPolicies: { http: { maxBufferSize: 1024 } } },
    );
    const plain = await send(gate.url);
    expect(plain.text).toBe(large);
    expect(plain.headers).not.toHaveProperty('x-size');
    isCompressed = true;
    const compressed = await send(gate.url);
    expect(compressed.headers).not.toHaveProperty('x-size');
    expect(compressed.body.equals(gzipSync(large))).toBe(true);
  });

  test('transformations of headers do not wait for a streamed body', async () => {
    let finish = (): void => undefined;
    await using backend = await httpUpstream((_, response) => {
      response.write('first');
      finish = () => response.end('last');
    });
    await using gate = await through(backend.address, { response: { set: { 'x-a': '"1"' } } });
    const answer = await fetch(gate.url);
    expect(answer.headers.get('x-a')).toBe('1');
    finish();
    expect(await answer.text()).toBe('firstlast');
  });

  test('transformations that read the body answer 502 when the backend ends it early', async () => {
    await using backend = await httpUpstream((_, response) => {
      response.writeHead(200, { 'content-length': '100' });
      response.write('part', () => response.destroy());
    });
    await using gate = await through(backend.address, {
      response: { set: { 'x-b': 'string(response.body)' } },
    });
    expect(await send(gate.url)).toMatchObject({ status: 502 });
  });

  test('transformations that wait for a body end when the client disconnects', async () => {
    let left = 0;
    await using backend = await httpUpstream((_, response) => {
      response.on('close', () => {
        left += 1;
      });
      response.write('first');
    });
    await using gate = await through(backend.address, { response: { body: 'response.body' } });
    const client = new AbortController();
    const answer = fetch(gate.url, { signal: client.signal }).catch(() => undefined);
    await until(() => backend.received.length === 1);
    client.abort();
    await answer;
    await until(() => left === 1);
    expect(await gate.accessLine(1)).toMatchObject({ reason: 'ClientClosed' });
  });

  test('transformations apply to HEAD and 304 responses without sending a body', async () => {
    await using backend = await httpUpstream(({ method }, response) =>
      response.writeHead(method === 'HEAD' ? 200 : 304).end(),
    );
    await using gate = await through(backend.address, { response: { body: '"four"' } });
    expect(await send(gate.url, { method: 'HEAD' })).toMatchObject({ status: 200, text: '' });
    expect(await send(gate.url)).toMatchObject({ status: 304, text: '' });
  });
});

describe('places and conditions of transformations', () => {
  test('transformations run only if the condition is true, also those that read the response body', async () => {
    await using backend = await httpUpstream();
    await using gate = await through(backend.address, {
      conditional: [
        {
          condition: 'request.path == "/a"',
          request: { set: { 'x-path': '"a"' } },
          response: { body: 'string(response.body) + "a"' },
        },
        { request: { set: { 'x-path': '"other"' } } },
      ],
    });
    expect((await send(`${gate.url}/a`)).text).toBe('oka');
    expect((await send(`${gate.url}/b`)).text).toBe('ok');
    expect(backend.received.map(({ headers }) => headers['x-path'])).toEqual(['a', 'other']);
  });

  test('transformations of a gateway run before routing, and those of a backend for that backend only', async () => {
    await using backend = await httpUpstream((_, response) => response.end('ok'));
    const side = (name: string): object => ({
      transformations: {
        request: { add: { 'x-place': `"${name}"` } },
        response: { body: `string(response.body) + " ${name}"` },
      },
    });
    const routes = [
      {
        matches: [{ path: { exact: '/new' } }],
        policies: side('route'),
        backends: [{ host: backend.address, policies: side('backend') }],
      },
    ];
    const rewritten = {
      transformations: { request: { set: { ':path': '"/new"', 'x-place': '"gateway"' } } },
    };
    await using gate = await gateway(
      JSON.stringify({ gateways: { default: { port: 0, ...rewritten, routes } } }),
    );
    expect((await send(`${gate.url}/old`)).text).toBe('ok backend route');
    expect(backend.received[0]).toMatchObject({
      target: '/new',
      headers: { 'x-place': 'gateway, route, backend' },
    });
  });
});

describe('configuration of transformations', () => {
  test.each([
    [{ request: { set: { ':scheme': '"https"' } } }, ':scheme'],
    [{ request: { set: { ':status': '200' } } }, ':status'],
    [{ response: { set: { ':path': '"/"' } } }, ':path'],
    [{ request: { set: { 'content-length': '"1"' } } }, 'content-length'],
    [{ request: { remove: ['connection'] } }, 'connection'],
    [{ request: { set: { 'x-a': 'nosuch' } } }, 'nosuch'],
    [{ request: { set: { 'x-a': 'response.code' } } }, 'response'],
    [{ request: { sets: {} } }, 'sets'],
  ])('transformations reject %j', async (transformations, named) => {
    const yaml = routesConfig([{ policies: { transformations, directResponse: {} } }]);
    await expect(gateway(yaml)).rejects.toThrow(named);
  });
});

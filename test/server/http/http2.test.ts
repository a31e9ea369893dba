import { once } from 'node:events';
import { constants } from 'node:http2';
import { expect, test } from 'vitest';
import { GOOD_TLS } from '../../kit/certificates.ts';
import { gateway, type TestGatewayOptions } from '../../kit/gateway.ts';
import { answerOf, http2Client } from '../../kit/http2.ts';
import { until } from '../../kit/until.ts';
import { type Answer, httpUpstream } from '../../kit/upstream.ts';

const proxy = async (answer: Answer, options: TestGatewayOptions = {}, streaming = false) => {
  const upstream = await httpUpstream(answer, { streaming });
  const routes = [{ backends: [{ host: upstream.address }] }];
  const gate = await gateway(
    JSON.stringify({
      config: { connectionTerminationDeadline: '2s' },
      gateways: { default: { port: 0, tls: GOOD_TLS, routes } },
    }),
    options,
  );
  const client = await http2Client(gate.port);
  return {
    upstream,
    gate,
    client,
    [Symbol.asyncDispose]: async () => {
      await client[Symbol.asyncDispose]();
      await gate.close();
      await upstream.close();
    },
  };
};

test('a backend over HTTP/1.1 gets a request of HTTP/2 with Host, one Cookie and the body', async () => {
  await using all = await proxy((_, response) => {
    response.setHeader('set-cookie', ['a=1', 'b=2']);
    response.setHeader('connection', 'close');
    response.end('ok');
  });
  const { status, headers, text } = await all.client.send(
    { ':method': 'POST', ':path': '/p?q=1', cookie: ['x=1', 'y=2'], 'x-list': ['1', '2'] },
    'body',
  );
  expect({ status, text, cookies: headers['set-cookie'] }).toEqual({
    status: 200,
    text: 'ok',
    cookies: ['a=1', 'b=2'],
  });
  expect(headers['connection']).toBeUndefined();
  const [received] = all.upstream.received;
  expect(received).toMatchObject({ method: 'POST', target: '/p?q=1', body: 'body' });
  expect(received?.headers).toMatchObject({ host: 'localhost', cookie: 'x=1; y=2', 'x-list': '1, 2' });
  expect(Object.keys(received?.headers ?? {}).filter((name) => name.startsWith(':'))).toEqual([]);
});

test('requests of one connection are served at the same time', async () => {
  const waiting: (() => void)[] = [];
  await using all = await proxy((_, response) => void waiting.push(() => response.end('ok')));
  const answers = Array.from({ length: 50 }, (_, index) => all.client.send({ ':path': `/${index}` }));
  await until(() => waiting.length === 50);
  for (const answer of waiting) answer();
  expect((await Promise.all(answers)).map(({ status }) => status)).toEqual(Array(50).fill(200));
});

test('large bodies pass in both directions', async () => {
  await using all = await proxy((_, response, { body }) => response.end(body, 'latin1'));
  const body = 'x'.repeat(3_000_000);
  const { text } = await all.client.send({ ':method': 'POST' }, body);
  expect(text.length).toBe(body.length);
});

test('a body without content-length is streamed to the backend while it arrives', async () => {
  const first = Promise.withResolvers<string>();
  await using all = await proxy(
    (request, response) => {
      request.once('data', (chunk) => first.resolve(String(chunk)));
      request.on('end', () => response.end('done')).resume();
    },
    {},
    true,
  );
  const stream = all.client.open({ ':method': 'POST' });
  const answer = answerOf(stream);
  stream.write('one');
  expect(await first.promise).toBe('one');
  stream.end('two');
  expect((await answer).text).toBe('done');
});

test('events are delivered at once, and the backend learns that the client has left', async () => {
  const left = Promise.withResolvers<void>();
  await using all = await proxy((_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write('data: 1\n\n');
    response.on('close', left.resolve);
  });
  const stream = all.client.open({});
  const [chunk] = (await once(stream, 'data')) as [Buffer];
  expect(String(chunk)).toBe('data: 1\n\n');
  stream.close(constants.NGHTTP2_CANCEL);
  await left.promise;
  expect(await all.gate.accessLine(1)).toMatchObject({ reason: 'ClientClosed' });
});

test('a response that the backend ends early is reset, and not ended', async () => {
  await using all = await proxy((request, response) => {
    response.writeHead(200, { 'content-length': '100' });
    response.write('part', () => request.socket.destroy());
  });
  await expect(all.client.send({})).rejects.toThrow(/NGHTTP2_INTERNAL_ERROR|reset/);
  expect(await all.gate.accessLine(1)).toMatchObject({ reason: 'UpstreamFailure' });
});

test('HEAD, 204 and 304 have no body', async () => {
  await using all = await proxy((request, response) => {
    response.statusCode = Number(request.url?.slice(1));
    response.setHeader('etag', '"x"');
    if (request.method === 'HEAD') response.setHeader('content-length', '4');
    response.end(response.statusCode === 200 ? 'four' : undefined);
  });
  expect(await all.client.send({ ':method': 'HEAD', ':path': '/200' })).toMatchObject({
    status: 200,
    text: '',
    headers: { 'content-length': '4' },
  });
  for (const status of [204, 304])
    expect(await all.client.send({ ':path': `/${status}` })).toMatchObject({ status, text: '' });
  expect(await all.gate.accessLine(1)).not.toHaveProperty('error');
});

test('a rejected upload is answered, and the rest of it is refused', async () => {
  await using all = await proxy((_, response) => response.end('never'));
  const stream = all.client.open({ ':method': 'POST', ':path': '/../x', 'content-length': '100000' });
  const answer = once(stream, 'response');
  stream.write('start');
  expect((await answer)[0][':status']).toBe(400);
  stream.resume();
  await once(stream, 'close');
  expect(stream.rstCode).toBe(constants.NGHTTP2_NO_ERROR);
});

test('requests that two servers could interpret differently are rejected', async () => {
  await using all = await proxy((_, response) => response.end('ok'));
  const status = async (headers: object) => (await all.client.send({ ':path': '/', ...headers })).status;
  expect(await status({ host: 'other' })).toBe(400);
  expect(await status({ host: 'LOCALHOST' })).toBe(200);
  expect(await status({ ':path': '/a/../b' })).toBe(400);
  expect(await status({ ':path': '*', ':method': 'OPTIONS' })).toBe(405);
  expect(await status({ ':method': 'TRACE' })).toBe(405);
});

test('Expect: 100-continue is answered once the body is read', async () => {
  await using all = await proxy((_, response, { body }) => response.end(body));
  const stream = all.client.open({ ':method': 'POST', expect: '100-continue' });
  const answer = answerOf(stream);
  await once(stream, 'continue');
  stream.end('now');
  expect((await answer).text).toBe('now');
});

test('a request whose body does not arrive in time is reset', async () => {
  await using all = await proxy(
    () => undefined,
    { limits: { headersTimeout: 100, requestTimeout: 100 } },
    true,
  );
  const stream = all.client.open({ ':method': 'POST' });
  await new Promise((resolve) => stream.once('close', resolve));
  expect(stream.rstCode).toBe(constants.NGHTTP2_INTERNAL_ERROR);
});

test('an idle connection is closed, one with an open stream is not', async () => {
  await using all = await proxy(
    (_, response) => {
      response.writeHead(200);
      response.write('x');
    },
    { limits: { keepAliveTimeout: 100 } },
  );
  const stream = all.client.open({});
  await once(stream, 'data');
  await using idle = await http2Client(all.gate.port);
  await once(idle.session, 'close');
  expect(all.client.session.closed).toBe(false);
  expect(stream.closed).toBe(false);
});

test('a gateway that closes finishes open requests and announces it with GOAWAY', async () => {
  const waiting = Promise.withResolvers<() => void>();
  await using all = await proxy((_, response) => waiting.resolve(() => response.end('late')));
  const answer = all.client.send({});
  const finish = await waiting.promise;
  const goaways: number[] = [];
  all.client.session.on('goaway', (code) => void goaways.push(code));
  const closed = all.gate.close();
  await until(() => goaways.length === 2);
  finish();
  expect(await answer).toMatchObject({ status: 200, text: 'late' });
  await closed;
  expect(goaways).toEqual([0, 0]);
});

test('requests that are open at the deadline get an error response', async () => {
  await using all = await proxy(() => undefined);
  const answer = all.client.send({});
  await until(() => all.upstream.received.length === 1);
  const closed = all.gate.close();
  expect(await answer).toMatchObject({ status: 503 });
  await closed;
});

// 999 is what LinkedIn answers to clients that it does not like.
test.each([600, 999])(
  'a client with HTTP/2 gets 502 with the body of a backend that answers with status %i',
  async (status) => {
    await using all = await proxy((_, response) => response.writeHead(status).end('body'));
    expect(await all.client.send({ ':path': '/' })).toMatchObject({ status: 502, text: 'body' });
    expect(all.gate.log.filter((line) => line.includes('internal error'))).toEqual([]);
  },
);

// curl -X POST -d '' sends it so; the frame arrives with the headers.
test.each(['POST', 'GET', 'DELETE'])(
  'an empty body of a %s request with content-length: 0 ends with a frame of its own',
  async (method) => {
    await using all = await proxy((_, response) => void response.end('ok'));
    const stream = all.client.session.request(
      { ':method': method, ':path': '/', 'content-length': '0' },
      { endStream: false },
    );
    stream.end();
    expect(await answerOf(stream)).toMatchObject({ status: 200, text: 'ok' });
  },
);

import { Agent, type ClientRequest, request } from 'node:http';
import { describe, expect, test } from 'vitest';
import { askPolicy } from '../../kit/authz.ts';
import { answeringGateway, proxyGateway } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';
import { httpUpstream } from '../../kit/upstream.ts';

const rules = (...list: unknown[]) => ({ authorization: { rules: list } });
const small = { frontendPolicies: { http: { maxBufferSize: 1000 } } };

/** A request whose body is sent in pieces, with its status. */
function piecewise(
  url: string,
  headers: Record<string, string> = {},
): { call: ClientRequest; status: Promise<number> } {
  const call = request(url, { method: 'POST', headers, agent: new Agent() });
  const status = new Promise<number>((resolve) => {
    call.on('response', (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    call.on('error', () => resolve(0));
  });
  return { call, status };
}

describe('rules on request.body', () => {
  test('a rule reads the whole request body, which also reaches the backend', async () => {
    await using backend = await httpUpstream();
    await using gate = await proxyGateway(backend.address, rules('json(request.body).user == "ada"'));
    const body = JSON.stringify({ user: 'ada', rest: '\u00e4\u2600'.repeat(10_000) });
    expect((await send(gate.url, { method: 'POST', body })).status).toBe(200);
    expect(backend.received[0]?.body).toBe(Buffer.from(body).toString('latin1'));
    expect((await send(gate.url, { method: 'POST', body: '{"user":"eve"}' })).status).toBe(403);
    expect((await send(gate.url, { method: 'POST', body: 'not json' })).status).toBe(403);
    expect(backend.received).toHaveLength(1);
  });

  test('a rule sees an empty request.body when there is none', async () => {
    await using gate = await answeringGateway(rules('size(request.body) == 0 && string(request.body) == ""'));
    expect((await send(gate.url)).status).toBe(200);
    expect((await send(gate.url, { method: 'POST', body: '' })).status).toBe(200);
    expect((await send(gate.url, { method: 'POST', body: 'x' })).status).toBe(403);
  });

  test('a rule reads a chunked request body', async () => {
    await using backend = await httpUpstream();
    await using gate = await proxyGateway(
      backend.address,
      rules('string(request.body).startsWith("one two")'),
    );
    const { call, status } = piecewise(gate.url);
    for (const piece of ['one ', 'two ', 'three']) call.write(piece);
    call.end();
    expect(await status).toBe(200);
    expect(backend.received[0]?.body).toBe('one two three');
  });

  test('a rule on request.body waits for the whole body before the backend is called', async () => {
    await using backend = await httpUpstream(undefined, { streaming: true });
    await using gate = await proxyGateway(backend.address, rules('size(request.body) > 0'));
    const { call, status } = piecewise(gate.url, { 'content-length': '8' });
    call.write('half');
    // A later request that has completed shows that the first would have arrived by now.
    expect((await send(gate.url, { method: 'POST', body: 'x' })).status).toBe(200);
    expect(backend.received).toHaveLength(1);
    call.end('full');
    expect(await status).toBe(200);
    expect(backend.received).toHaveLength(2);
  });

  test('a request whose body ends early is rejected and does not reach the backend', async () => {
    await using backend = await httpUpstream();
    await using gate = await proxyGateway(backend.address, rules('size(request.body) > 0'));
    const { call, status } = piecewise(gate.url, { 'content-length': '8' });
    call.write('half');
    await until(() => call.socket?.writableLength === 0);
    call.destroy();
    expect(await status).toBe(0);
    await gate.accessLine(1);
    expect(backend.received).toEqual([]);
  });
});

describe('request bodies over maxBufferSize', () => {
  const big = `{"first":true,${' '.repeat(200_000)}"last":true}`;

  test('a body over maxBufferSize reaches the backend whole, with only request.bodyPrefix readable', async () => {
    await using backend = await httpUpstream();
    await using gate = await proxyGateway(
      backend.address,
      rules('string(request.bodyPrefix).startsWith("{\\"first\\"")', '!has(request.body)'),
      small,
    );
    expect((await send(gate.url, { method: 'POST', body: big })).status).toBe(200);
    expect(backend.received[0]?.body).toBe(big);
    expect((await gate.accessLine(1))['error.detail']).toBeUndefined();
  });

  test('a rule on request.body fails for a body over maxBufferSize', async () => {
    await using backend = await httpUpstream();
    await using gate = await proxyGateway(backend.address, rules('json(request.body).first'), small);
    expect((await send(gate.url, { method: 'POST', body: big })).status).toBe(403);
    expect((await send(gate.url, { method: 'POST', body: '{"first":true}' })).status).toBe(200);
    expect(backend.received).toHaveLength(1);
  });

  test('a body of exactly maxBufferSize is available as request.body', async () => {
    await using backend = await httpUpstream();
    await using gate = await proxyGateway(backend.address, rules('size(request.body) > 999'), small);
    expect((await send(gate.url, { method: 'POST', body: 'x'.repeat(1000) })).status).toBe(200);
    expect((await send(gate.url, { method: 'POST', body: 'x'.repeat(1001) })).status).toBe(403);
  });

  test('a body over maxBufferSize streams on after a slow decision, with and without content-length', async () => {
    await using service = await httpUpstream((_, response) => void setTimeout(() => response.end(), 100));
    await using backend = await httpUpstream();
    const policies = { ...askPolicy(service.address), ...rules('size(request.bodyPrefix) > 0') };
    await using gate = await proxyGateway(backend.address, policies, small);
    const body = Buffer.alloc(3_000_000, 'abcdefghij');
    expect((await send(gate.url, { method: 'POST', body })).status).toBe(200);
    const { call, status } = piecewise(gate.url);
    call.end(body);
    expect(await status).toBe(200);
    expect(backend.received.map(({ body: got }) => got.length)).toEqual([body.length, body.length]);
    expect(backend.received.every(({ body: got }) => Buffer.from(got, 'latin1').equals(body))).toBe(true);
  });

  test('a body over maxBufferSize is aborted at the backend when the client disconnects', async () => {
    let broken = false;
    await using backend = await httpUpstream(
      (incoming) => {
        incoming.resume().on('error', () => {
          broken = true;
        });
      },
      { streaming: true },
    );
    await using gate = await proxyGateway(backend.address, rules('size(request.bodyPrefix) > 0'), small);
    const { call, status } = piecewise(gate.url, { 'content-length': '1000000' });
    call.write('x'.repeat(5000));
    await until(() => backend.received.length === 1);
    call.destroy();
    expect(await status).toBe(0);
    await until(() => broken);
  });
});

describe('routes without a rule on request.body', () => {
  test.each([
    ['no rule', {}],
    ['rules on other members', rules('request.method == "POST" && request.path == "/"')],
  ])('a request body streams to the backend before its end is sent with %s', async (_what, policies) => {
    let seen = '';
    await using backend = await httpUpstream(
      async (incoming, response) => {
        for await (const chunk of incoming) seen += chunk;
        response.end();
      },
      { streaming: true },
    );
    await using gate = await proxyGateway(backend.address, policies);
    const { call, status } = piecewise(gate.url);
    call.write('first');
    await until(() => seen === 'first');
    call.end(' last');
    expect(await status).toBe(200);
    expect(seen).toBe('first last');
  });

  test('a route without a rule on request.body answers before the body is complete', async () => {
    await using gate = await answeringGateway({ cors: {} });
    const { call, status } = piecewise(gate.url);
    call.write('never ending');
    // Answered although the body is incomplete, because no policy reads it.
    expect(await status).toBe(200);
    call.destroy();
  });
});

test.each([
  [false, 413, undefined],
  [true, 200, '{"ke'],
])(
  'extAuthz with allowPartialMessage %j keeps its limit for a body that was read before',
  async (allowPartialMessage, status, sent) => {
    await using service = await httpUpstream();
    const expression = 'json(request.body).key';
    await using gate = await answeringGateway({
      apiKey: { mode: 'strict', keys: [{ key: 'secret' }], location: { expression } },
      ...askPolicy(service.address, {}, { includeRequestBody: { maxRequestBytes: 4, allowPartialMessage } }),
    });
    const reply = await send(gate.url, { method: 'POST', body: '{"key":"secret"}' });
    expect(reply.status).toBe(status);
    expect(service.received[0]?.body).toBe(sent);
  },
);

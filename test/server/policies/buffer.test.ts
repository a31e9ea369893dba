import { request } from 'node:http';
import { describe, expect, test } from 'vitest';
import { answeringGateway, proxyGateway } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';
import { httpUpstream } from '../../kit/upstream.ts';

describe('buffer.request', () => {
  test('buffer.request calls the backend once the whole body has arrived', async () => {
    await using backend = await httpUpstream();
    await using gate = await proxyGateway(backend.address, { buffer: { request: {} } });
    const call = request(gate.url, { method: 'POST', headers: { 'transfer-encoding': 'chunked' } });
    const answered = new Promise<number | undefined>((resolve) => {
      call.on('response', (response) => {
        response.resume();
        resolve(response.statusCode);
      });
    });
    call.write('x'.repeat(100_000));
    // Another request shows that the gateway has had time to call the backend.
    await send(gate.url, { target: '/other' });
    expect(backend.received.map(({ target }) => target)).toEqual(['/other']);
    call.end('y');
    expect(await answered).toBe(200);
    expect(backend.received[1]?.body).toHaveLength(100_001);
    // In one piece, with its length.
    expect(backend.received[1]?.headers['content-length'] ?? '100001').toBe('100001');
  });

  test('buffer.request rejects a larger body with 413, with and without a length', async () => {
    await using backend = await httpUpstream();
    await using gate = await proxyGateway(backend.address, { buffer: { request: { maxBytes: 10 } } });
    expect(await send(gate.url, { method: 'POST', body: 'x'.repeat(10) })).toMatchObject({ status: 200 });
    expect(await send(gate.url, { method: 'POST', body: 'x'.repeat(11) })).toMatchObject({ status: 413 });
    const headers = { 'transfer-encoding': 'chunked' };
    const chunked = await new Promise<number | undefined>((resolve, reject) => {
      const call = request(gate.url, { method: 'POST', headers }, (response) => {
        response.resume();
        resolve(response.statusCode);
      });
      call.on('error', reject);
      call.end('x'.repeat(11));
    });
    expect(chunked).toBe(413);
    expect(backend.received).toHaveLength(1);
  });

  test('buffer.request keeps its limit for a body that a policy has read before', async () => {
    const location = { expression: 'json(request.body).key' };
    await using gate = await answeringGateway({
      apiKey: { mode: 'strict', keys: [{ key: 'secret' }], location },
      buffer: { request: { maxBytes: 10 } },
    });
    expect((await send(gate.url, { method: 'POST', body: '{"key":"secret"}' })).status).toBe(413);
  });

  test('buffer.request with failOpen streams a larger body', async () => {
    await using backend = await httpUpstream();
    await using gate = await proxyGateway(backend.address, {
      buffer: { request: { maxBytes: 10, failureMode: 'failOpen' } },
    });
    const body = 'x'.repeat(200_000);
    expect(await send(gate.url, { method: 'POST', body })).toMatchObject({ status: 200 });
    expect(backend.received[0]?.body).toBe(body);
  });

  test('buffer.request may be larger than the limit of expressions', async () => {
    await using backend = await httpUpstream();
    await using gate = await proxyGateway(
      backend.address,
      {
        authorization: { rules: ['!has(request.body)'] },
        buffer: { request: { maxBytes: 100_000 } },
      },
      { frontendPolicies: { http: { maxBufferSize: 1000 } } },
    );
    const body = 'x'.repeat(99_000);
    expect(await send(gate.url, { method: 'POST', body })).toMatchObject({ status: 200 });
    expect(backend.received[0]?.body).toBe(body);
  });
});

describe('buffer.response', () => {
  test('buffer.response answers once the whole body has arrived', async () => {
    let finish = (): void => undefined;
    await using backend = await httpUpstream((_, response) => {
      response.write('first');
      finish = () => response.end('last');
    });
    await using gate = await proxyGateway(backend.address, { buffer: { response: {} } });
    let isAnswered = false;
    const answer = send(gate.url).finally(() => {
      isAnswered = true;
    });
    await until(() => backend.received.length === 1);
    expect(isAnswered).toBe(false);
    finish();
    expect(await answer).toMatchObject({ status: 200, text: 'firstlast' });
  });

  test('buffer.response answers 502 for a larger body and closes the connection to the backend', async () => {
    let closed = false;
    await using backend = await httpUpstream((_, response) => {
      response.on('close', () => {
        closed = true;
      });
      response.write('x'.repeat(1001));
    });
    await using gate = await proxyGateway(backend.address, { buffer: { response: { maxBytes: 1000 } } });
    expect(await send(gate.url)).toMatchObject({
      status: 502,
      text: 'response body is larger than 1000 bytes',
    });
    await until(() => closed);
  });

  test('buffer.response with failOpen streams a larger body', async () => {
    const body = 'x'.repeat(300_000);
    await using backend = await httpUpstream((_, response) => response.end(body));
    await using gate = await proxyGateway(backend.address, {
      buffer: { response: { maxBytes: 1000, failureMode: 'failOpen' } },
    });
    expect((await send(gate.url)).text).toBe(body);
  });

  test('buffer.response sends nothing of a body that the backend ends early', async () => {
    await using backend = await httpUpstream((_, response) => {
      response.writeHead(200, { 'content-length': '100' });
      response.write('part', () => response.destroy());
    });
    await using gate = await proxyGateway(backend.address, { buffer: { response: {} } });
    const { status, text } = await send(gate.url);
    expect(status).toBe(502);
    expect(text).not.toContain('part');
  });

  test('buffer.response ends with the request timeout', async () => {
    await using backend = await httpUpstream((_, response) => response.write('first'));
    await using gate = await proxyGateway(backend.address, {
      timeout: { requestTimeout: '150ms' },
      buffer: { response: {} },
    });
    expect(await send(gate.url)).toMatchObject({ status: 504 });
  });
});

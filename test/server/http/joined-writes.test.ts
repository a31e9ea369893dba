import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { TestGateway } from '../../kit/gateway.ts';
import { answeringGateway, proxyGateway } from '../../kit/routes.ts';
import { type HttpUpstream, httpUpstream } from '../../kit/upstream.ts';

/** All byte values, repeated. */
const bytes = (length: number): Buffer =>
  Buffer.from(Array.from({ length }, (_, index) => (index * 7) & 0xff));

let upstream: HttpUpstream;
let gate: TestGateway;
beforeAll(async () => {
  upstream = await httpUpstream((request, response, received) => {
    const body = Buffer.from(received.body, 'latin1');
    // The head and the first half are written in one turn of the event loop, the first half as its own chunk.
    const half = request.headers['x-whole'] === undefined ? body.length >> 1 : 0;
    if (half > 0) response.write(body.subarray(0, half));
    response.end(body.subarray(half));
  });
  gate = await proxyGateway(upstream.address);
});
afterAll(async () => {
  await gate.close();
  await upstream.close();
});

describe('write coalescing', () => {
  for (const length of [0, 1, 2, 600, 4_000, 16_000, 16_384, 16_385, 70_000, 300_000]) {
    for (const head of [{ 'x-whole': 'yes' }, {}]) {
      test(`a response body is unchanged by write coalescing: ${length}, ${'x-whole' in head ? 'whole' : 'in chunks'}`, async () => {
        const sent = bytes(length);
        const response = await fetch(gate.url, { method: 'POST', body: sent, headers: head });
        expect(Buffer.from(await response.arrayBuffer()).equals(sent)).toBe(true);
        expect(upstream.received.at(-1)?.body).toBe(sent.toString('latin1'));
      });
    }
  }

  test('a non-ASCII response body is unchanged by write coalescing', async () => {
    const body = 'gr\u00fc\u00dfe \u4f60\u597d \ud83d\ude42';
    await using own = await answeringGateway({ directResponse: { body } });
    const response = await fetch(own.url);
    expect(response.headers.get('content-length')).toBe(String(Buffer.byteLength(body)));
    expect(await response.text()).toBe(body);
  });
});

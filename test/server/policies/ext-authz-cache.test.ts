import { expect, test } from 'vitest';
import { askPolicy } from '../../kit/authz.ts';
import { answeringGateway } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { httpUpstream } from '../../kit/upstream.ts';

const cached = (host: string, ...key: readonly string[]): object =>
  askPolicy(host, {}, { cache: { key, ttl: '1h' } });

test.each([
  [401, 401],
  [403, 403],
  [404, 200],
  [429, 200],
  [500, 200],
])('extAuthz over HTTP: after status %i of the service, the next request gets %i', async (first, second) => {
  let answer = first;
  await using service = await httpUpstream((_, response) => response.writeHead(answer).end());
  const policies = cached(service.address, '"a"');
  await using gate = await answeringGateway(policies);
  expect((await send(gate.url)).status).toBe(403);
  answer = 200;
  expect((await send(gate.url)).status).toBe(second === 200 ? 200 : 403);
});

test('extAuthz tells keys apart whose parts differ only in where they end', async () => {
  await using service = await httpUpstream();
  await using gate = await answeringGateway(
    cached(service.address, 'request.headers["x-a"]', 'request.headers["x-b"]'),
  );
  for (const [a, b] of [
    ['ann', 'other'],
    ['anno', 'ther'],
    ['1', '2'],
    ['1,2', ''],
  ] as const)
    await send(gate.url, { headers: { 'x-a': a, 'x-b': b } });
  expect(service.received).toHaveLength(4);
});

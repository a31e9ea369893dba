import { expect, test } from 'vitest';
import { AT_ONCE } from '../../kit/at-once.ts';
import { askPolicy } from '../../kit/authz.ts';
import { answeringGateway } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';
import { httpUpstream } from '../../kit/upstream.ts';

/** How long an answer took, in ms. */
async function took(duration: string, target = '/'): Promise<number> {
  await using gate = await answeringGateway({ delay: { duration } });
  const started = performance.now();
  expect(await send(gate.url, { target })).toMatchObject({ status: 200, text: 'reached' });
  return performance.now() - started;
}

test.each([['150ms'], ['duration("150ms")'], ['150'], ['150.0'], ['request.path == "/slow" ? 150 : 0']])(
  'delay waits for %s',
  async (duration) => {
    expect(await took(duration, '/slow')).toBeGreaterThan(140);
  },
);

test.each([['0s'], ['0'], ['-500'], ['duration("-1h")'], ['"text"'], ['request.headers["no"]'], ['null']])(
  'delay does not wait for %s',
  async (duration) => {
    expect(await took(duration)).toBeLessThan(AT_ONCE);
  },
);

test('delay counts towards the request timeout', async () => {
  await using gate = await answeringGateway({
    timeout: { requestTimeout: '100ms' },
    delay: { duration: '300s' },
  });
  expect(await send(gate.url)).toMatchObject({ status: 504 });
});

test('delay ends when the client disconnects', async () => {
  await using service = await httpUpstream();
  await using gate = await answeringGateway({ ...askPolicy(service.address), delay: { duration: '300s' } });
  const client = new AbortController();
  const answer = fetch(gate.url, { signal: client.signal }).catch(() => undefined);
  await until(() => service.received.length === 1);
  client.abort();
  await answer;
  expect(await gate.accessLine(1)).toMatchObject({ reason: 'ClientClosed' });
});

test('delay does not hold up requests that are rejected', async () => {
  await using gate = await answeringGateway({
    authorization: { rules: ['false'] },
    delay: { duration: '300s' },
  });
  expect(await send(gate.url)).toMatchObject({ status: 403 });
});

test.each([['301s'], ['nosuch'], ['']])('delay rejects the duration %s', async (duration) => {
  await expect(answeringGateway({ delay: { duration } })).rejects.toThrow();
});

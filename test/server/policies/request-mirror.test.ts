import { request } from 'node:http';
import { expect, test } from 'vitest';
import { AT_ONCE } from '../../kit/at-once.ts';
import { freePort } from '../../kit/ports.ts';
import { proxyGateway } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';
import { httpUpstream } from '../../kit/upstream.ts';

const mirror = (host: string, percentage = 1): object => ({
  requestMirror: { backend: { host }, percentage },
});

test('requestMirror sends method, target, headers and body of a request to another service', async () => {
  await using backend = await httpUpstream((_, response) => response.end('original'));
  await using copy = await httpUpstream((_, response) => response.end('copy'));
  await using gate = await proxyGateway(backend.address, {
    requestHeaderModifier: { set: { 'x-added': '1' } },
    ...mirror(copy.address),
  });
  const reply = await send(`${gate.url}/a?b=c`, {
    method: 'POST',
    body: 'body',
    headers: { host: 'client.test' },
  });
  expect(reply.text).toBe('original');
  await until(() => copy.received[0]?.body === 'body');
  expect(copy.received[0]).toMatchObject({
    method: 'POST',
    target: '/a?b=c',
    headers: { 'x-added': '1', host: 'client.test', 'content-length': '4' },
  });
});

test('requestMirror copies the configured share of requests', async () => {
  await using backend = await httpUpstream();
  await using copy = await httpUpstream();
  await using none = await proxyGateway(backend.address, mirror(copy.address, 0));
  for (let i = 0; i < 20; i += 1) await send(none.url);
  await using some = await proxyGateway(backend.address, mirror(copy.address, 0.5));
  for (let i = 0; i < 60; i += 1) await send(some.url);
  // The share of 60 is outside of 6 to 54 once in 10^10 runs.
  await until(() => copy.received.length >= 6);
  expect(copy.received.length).toBeLessThan(54);
});

test.each([['refuses connections'], ['never answers'], ['resets connections']])(
  'requestMirror neither slows nor fails requests when the service %s',
  async (fault) => {
    await using backend = await httpUpstream();
    await using broken = await httpUpstream((_, response) => {
      if (fault === 'resets connections') response.destroy();
    });
    const host = fault === 'refuses connections' ? `127.0.0.1:${await freePort()}` : broken.address;
    await using gate = await proxyGateway(backend.address, mirror(host));
    const started = performance.now();
    for (let i = 0; i < 3; i += 1) expect(await send(gate.url)).toMatchObject({ status: 200, text: 'ok' });
    expect(performance.now() - started).toBeLessThan(AT_ONCE);
  },
);

test('requestMirror does not copy more requests at once than its limit', async () => {
  const held: (() => void)[] = [];
  await using backend = await httpUpstream();
  await using copy = await httpUpstream((_, response) => held.push(() => response.end()));
  await using gate = await proxyGateway(
    backend.address,
    mirror(copy.address),
    {},
    { limits: { mirroredRequests: 2 } },
  );
  for (let i = 0; i < 5; i += 1) expect(await send(gate.url)).toMatchObject({ status: 200 });
  await until(() => held.length === 2);
  // The others do not wait for a connection: they would take memory meanwhile.
  expect(await gate.running.metrics.render()).toContain('gw_mirrored_requests_total{outcome="Skipped"} 3');
  for (const answer of held) answer();
  await until(async () => {
    await send(gate.url);
    return copy.received.length > 2;
  });
});

test('requestMirror streams a large body, or one of unknown length, to the backend only', async () => {
  await using backend = await httpUpstream();
  await using copy = await httpUpstream();
  await using gate = await proxyGateway(backend.address, mirror(copy.address));
  const body = 'x'.repeat(64 * 1024 + 1);
  expect(await send(gate.url, { method: 'POST', body })).toMatchObject({ status: 200 });
  await new Promise<void>((resolve, reject) => {
    const call = request(gate.url, { method: 'POST', headers: { 'transfer-encoding': 'chunked' } });
    call.on('response', (response) => response.resume().on('end', resolve));
    call.on('error', reject);
    call.end('chunked');
  });
  expect(backend.received.map(({ body: { length } }) => length)).toEqual([64 * 1024 + 1, 7]);
  // A request that is copied comes after these.
  await send(`${gate.url}/last`);
  await until(() => copy.received.length > 0);
  expect(copy.received.map(({ target }) => target)).toEqual(['/last']);
});

test('requestMirror does not copy requests that are rejected or answered by a policy', async () => {
  await using backend = await httpUpstream();
  await using copy = await httpUpstream();
  await using gate = await proxyGateway(backend.address, {
    authorization: { rules: ['request.path == "/ok"'] },
    ...mirror(copy.address),
  });
  expect(await send(`${gate.url}/denied`)).toMatchObject({ status: 403 });
  await send(`${gate.url}/ok`);
  await until(() => copy.received.length === 1);
  expect(copy.received[0]?.target).toBe('/ok');
});

test('requestMirror counts copies by outcome in the metrics', async () => {
  await using backend = await httpUpstream();
  await using copy = await httpUpstream();
  await using gate = await proxyGateway(backend.address, mirror(copy.address));
  await send(gate.url);
  await until(() => copy.received.length === 1);
  await until(async () =>
    (await gate.running.metrics.render()).includes('gw_mirrored_requests_total{outcome="Sent"} 1'),
  );
});

test.each([
  [{ backend: { host: '127.0.0.1:9' }, percentage: 1.5 }],
  [{ backend: { host: '127.0.0.1:9' } }],
  [{ backend: { host: 'no address' }, percentage: 1 }],
  [{ percentage: 1 }],
])('requestMirror rejects the configuration %j', async (requestMirror) => {
  await expect(proxyGateway('127.0.0.1:9', { requestMirror })).rejects.toThrow();
});

import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { LIMITS } from '../../src/core/limits.ts';
import { gateway } from '../kit/gateway.ts';
import { send } from '../kit/send.ts';
import { until } from '../kit/until.ts';

// Fields are truncated, so a large request needs many of them.
const add = Object.fromEntries(Array.from({ length: 16 }, (_, index) => [`f${index}`, 'request.path']));
const YAML = JSON.stringify({
  config: { adminAddr: 'off', connectionTerminationDeadline: '100ms' },
  frontendPolicies: { accessLog: { add } },
  gateways: { a: { port: 0, routes: [{ policies: { directResponse: { body: 'ok' } } }] } },
});
const COUNT = 440;

test('a client that stops reading the request stream misses some requests and sees new ones after it reads again', async () => {
  await using running = await gateway(YAML, { admin: true });
  const socket = connect({ port: Number(new URL(running.admin).port), host: '127.0.0.1' });
  socket.pause();
  let text = '';
  socket.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  socket.write('GET /api/requests HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n');
  await until(async () => (await send(`${running.admin}/debug/tasks`)).text.includes('1 stream'));

  // More than the socket buffers hold for a client that does not read.
  const path = `/${'x'.repeat(2 * LIMITS.logFieldLength)}`;
  for (let sent = 0; sent < COUNT; sent += 20) {
    const replies = await Promise.all(Array.from({ length: 20 }, () => send(running.url + path)));
    expect(replies.every(({ status }) => status === 200)).toBe(true);
  }
  await until(() => running.accessLog.length === COUNT);
  expect(text).toBe('');

  socket.resume();
  const last = (): number => Number(/"id":(\d+)/.exec(text.slice(text.lastIndexOf('"id":')))?.[1]);
  await until(async () => {
    await send(running.url);
    return last() > COUNT;
  });
  const ids = [...text.matchAll(/"id":(\d+)/g)].map(([, id]) => Number(id)).filter((id) => id <= COUNT);
  expect(ids.length).toBeGreaterThan(0);
  expect(ids.length).toBeLessThan(COUNT);
  // Complete frames without a gap before the first missing one.
  expect(ids).toEqual(ids.map((_, index) => index + 1));
  socket.destroy();
});

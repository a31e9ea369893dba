import type { Socket } from 'node:net';
import { expect, test } from 'vitest';
import type { TestGateway } from '../../kit/gateway.ts';
import { proxyGateway } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';
import { type RawUpstream, rawUpstream, type Script } from '../../kit/upstream.ts';

// A server that sends more than one response for a request, or more bytes than it has declared, must not answer the next
// request with them: undici GHSA-35p6-xmwp-9g52, nuclei #7671 and #7679, aiohttp #13656.

const response = (text: string, lines = ''): string =>
  `HTTP/1.1 200 OK\r\n${lines}content-length: ${text.length}\r\n\r\n${text}`;

/** The path of a request, such as `3` of `/3`. */
const idOf = (head: string): string => /^\w+ \/(\w+)/.exec(head)?.[1] ?? '';

async function closedConnections({ running }: TestGateway): Promise<number> {
  const text = await running.metrics.render();
  const name = 'gw_upstream_unsolicited_responses_total{kind="Primary",subtype="Http"}';
  return Number(
    text
      .split('\n')
      .find((line) => line.startsWith(name))
      ?.slice(name.length) ?? 0,
  );
}

async function answers(gate: TestGateway, ids: readonly string[]): Promise<string[]> {
  const texts: string[] = [];
  for (const id of ids) texts.push((await send(`${gate.url}/${id}`)).text);
  return texts;
}

test.each<[string, (id: string) => string]>([
  ['a second response', (id) => response(`other ${id}`)],
  ['bytes that are no response', () => 'garbage'],
  ['a single byte', () => 'H'],
  ['an interim response', () => 'HTTP/1.1 103 Early Hints\r\n\r\n'],
  ['a response of 408, as proxies send to idle connections', () => 'HTTP/1.1 408 Request Timeout\r\n\r\n'],
])('%s on an idle connection closes it, is counted, and reaches nobody', async (_, extra) => {
  const sockets: Socket[] = [];
  await using upstream = await rawUpstream((socket, head) => {
    sockets.push(socket);
    socket.write(response(idOf(head)));
  });
  await using gate = await proxyGateway(upstream.address);
  expect(await answers(gate, ['1', '2'])).toEqual(['1', '2']);
  expect([upstream.connections, await closedConnections(gate)]).toEqual([1, 0]);
  sockets[0]?.write(extra('1'));
  await until(() => sockets[0]?.readyState !== 'open');
  await until(async () => (await closedConnections(gate)) === 1);
  expect(await answers(gate, ['3', '4'])).toEqual(['3', '4']);
  expect(upstream.connections).toBe(2);
  sockets[3]?.write(extra('4'));
  await until(async () => (await closedConnections(gate)) === 2);
  // From now on, each request has a connection of its own.
  expect(await answers(gate, ['5', '6'])).toEqual(['5', '6']);
  expect(upstream.connections).toBe(4);
  expect(upstream.heads.map((head) => /connection: (\S+)/.exec(head)?.[1])).toEqual([
    ...['keep-alive', 'keep-alive', 'keep-alive', 'keep-alive'],
    ...['close', 'close'],
  ]);
  const warnings = gate.log.filter((line) => line.includes('no request asked for'));
  expect([warnings.length, warnings[0]?.includes(upstream.address)]).toEqual([1, true]);
});

test.each<[string, string, (id: string) => string]>([
  ['is longer than declared', 'GET', (id) => `${response(id)}more`],
  ['to HEAD has a body', 'HEAD', (id) => response(id)],
  ['of 204 has a body', 'GET', () => 'HTTP/1.1 204 No Content\r\ncontent-length: 4\r\n\r\nmore'],
  ['of 304 has a body', 'GET', () => 'HTTP/1.1 304 Not Modified\r\n\r\nmore'],
  ['has bytes after its last chunk', 'GET', (id) => chunked(id) + response('other')],
])('a connection whose response %s is not used again', async (_, method, answer) => {
  await using upstream = await rawUpstream((socket, head) => socket.write(answer(idOf(head))));
  await using gate = await proxyGateway(upstream.address);
  for (const id of ['1', '2', '3']) {
    const reply = await send(`${gate.url}/${id}`, { method });
    expect(reply.status).toBeLessThan(400);
    expect(['', id]).toContain(reply.text);
  }
  expect(upstream.connections).toBe(3);
});

const chunked = (text: string): string =>
  `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`;

test('a response that is shorter than declared is not completed with the next one', async () => {
  const short: Script = (socket, head) => {
    if (idOf(head) !== 'short') return socket.write(response(idOf(head)));
    socket.write('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nshort');
    return setTimeout(() => socket.end(), 20);
  };
  await using upstream = await rawUpstream(short);
  await using gate = await proxyGateway(upstream.address);
  await expect(send(`${gate.url}/short`)).rejects.toThrow();
  expect(await answers(gate, ['1', '2'])).toEqual(['1', '2']);
  expect(upstream.connections).toBe(2);
});

test('with many connections, an upstream that answers each request twice a moment later misleads at most a few', async () => {
  await using upstream = await twice(1);
  await using gate = await proxyGateway(upstream.address);
  let wrong = 0;
  const client = async (name: number): Promise<void> => {
    for (let i = 0; i < 50; i += 1) {
      const id = `c${name}r${i}`;
      if ((await send(`${gate.url}/${id}`)).text !== id) wrong += 1;
    }
  };
  await Promise.all(Array.from({ length: 32 }, (_, name) => client(name)));
  // Only requests that were sent before the first response that nobody asked for was seen: 1600 connections instead of 32.
  expect(wrong).toBeLessThan(16);
  expect(upstream.connections).toBeGreaterThan(1500);
});

const twice = (delay: number): Promise<RawUpstream> =>
  rawUpstream((socket, head) => {
    socket.write(response(idOf(head)));
    setTimeout(() => socket.writable && socket.write(response(`other ${idOf(head)}`)), delay);
  });

import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { expect, test } from 'vitest';
import { HeaderList } from '../../../../src/server/kernel/request/header-list.ts';
import {
  connectWebSocket,
  type RelayOptions,
  type RelayProblem,
  WebSocketRelay,
} from '../../../../src/server/transport/web-socket/web-socket-relay.ts';
import { type RealtimeClient, realtimeClient, realtimeProvider } from '../../../kit/realtime.ts';
import { until } from '../../../kit/until.ts';

/** A client, relayed to a provider that echoes texts, with these options. */
async function relayed(options: Partial<RelayOptions>) {
  const provider = await realtimeProvider((session, text) => session.send(`echo ${text}`));
  const problems: (RelayProblem | undefined)[] = [];
  const server = createServer();
  server.on('upgrade', (request, socket, head) => {
    const target = {
      url: new URL(provider.baseUrl.replace('http', 'ws')),
      headers: [],
      protocols: [],
      maxMessage: 1_000_000,
    };
    void connectWebSocket(target, new AbortController().signal).then((opened) => {
      if ('status' in opened) throw new Error('refused');
      const ended = (problem: RelayProblem | undefined): void => void problems.push(problem);
      const relay = new WebSocketRelay(opened, { maxMessage: 1_000_000, ended, ...options });
      relay.takeOver({ request, socket: socket as Socket, head }, new HeaderList());
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client: RealtimeClient = await realtimeClient(
    `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
  );
  return {
    provider,
    client,
    problems,
    [Symbol.asyncDispose]: async () => {
      await client[Symbol.asyncDispose]();
      await provider[Symbol.asyncDispose]();
      server.close();
    },
  };
}

const broken = (): never => {
  throw new TypeError('broken');
};

// Without an owner of these errors, the test run itself ends with an unhandled rejection or exception.
test.each<[string, Partial<RelayOptions>, 'client' | 'upstream']>([
  ['checks a message of the client', { check: () => Promise.reject(new TypeError('broken')) }, 'client'],
  ['begins to check a message of the client', { check: broken }, 'client'],
  [
    'checks a message of the upstream',
    { release: () => Promise.reject(new TypeError('broken')) },
    'upstream',
  ],
  ['begins to check a message of the upstream', { release: broken }, 'upstream'],
  ['reads a message of the upstream', { received: broken }, 'upstream'],
])('an error in what %s ends this WebSocket session with 1011', async (_, options, side) => {
  await using session = await relayed(options);
  session.client.socket.send('a');
  expect((await session.client.closed)[0]).toBe(1011);
  await until(() => session.problems.length > 0 && session.provider.closed.length > 0);
  expect(session.problems).toEqual([{ side, why: 'internal error: broken' }]);
  expect(session.provider.closed[0]?.[0]).toBe(1011);
  if (options.check !== undefined) expect(session.provider.messages).toEqual([]);
  if (options.release !== undefined) expect(session.client.received).toEqual([]);
});

const length = (bytes: string): Buffer =>
  Buffer.concat([Buffer.from([0x82, 127]), Buffer.from(bytes, 'hex')]);

// RFC 6455 §5.2 and §7.4.
test.each<[string, Buffer]>([
  ['a frame of 2^63 - 1 bytes', length('7fffffffffffffff')],
  ['a frame of 2^64 - 1 bytes', length('ffffffffffffffff')],
  ['a frame of 2^53 bytes', length('0020000000000000')],
  ['a frame of 4 GB', length('00000000ffffffff')],
  ['a frame over the limit', length('00000000000f4241')],
  ['a frame with an unknown type', Buffer.from([0x83, 0])],
  ['a frame with a reserved bit', Buffer.from([0xc1, 0])],
  ['a masked frame', Buffer.from([0x81, 0x81, 1, 2, 3, 4, 5])],
  ['a long ping', Buffer.concat([Buffer.from([0x89, 126, 0, 200]), Buffer.alloc(200)])],
  ['a continuation of nothing', Buffer.from([0x80, 0])],
  ['text that is no UTF-8', Buffer.from([0x81, 2, 0xc3, 0x28])],
  ['a closing code of 1', Buffer.from([0x88, 2, 0, 1])],
  ['a closing code of 1006', Buffer.from([0x88, 2, 0x03, 0xee])],
  ['a closing code of 65535', Buffer.from([0x88, 2, 0xff, 0xff])],
  ['half a closing code', Buffer.from([0x88, 1, 3])],
])('an upstream that sends %s ends its WebSocket session, and nothing else', async (_, bytes) => {
  await using session = await relayed({});
  await using other = await relayed({});
  await until(() => session.client.received.length === 1);
  const [upstream] = session.provider.sessions;
  (upstream as unknown as { _socket: Socket })._socket.write(bytes);
  expect([1002, 1006, 1007, 1009, 1011]).toContain((await session.client.closed)[0]);
  await until(() => session.problems.length > 0);
  expect(session.problems[0]?.side).toBe('upstream');
  other.client.socket.send('b');
  await until(() => other.client.received.includes('echo b'));
});

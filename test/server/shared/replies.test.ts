import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { expect, test } from 'vitest';
import { answeringGateway } from '../../kit/routes.ts';
import { send } from '../../kit/send.ts';
import { until } from '../../kit/until.ts';

/** A server that accepts every command of a new connection, and answers the scripts of rate limits with these bytes. */
async function storeThatAnswers(reply: string): Promise<{ url: string; asked(): number } & AsyncDisposable> {
  const sockets = new Set<Socket>();
  let asked = 0;
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => undefined));
    socket.on('data', (data) => {
      for (const command of data.toString('latin1').split(/(?=\*\d+\r\n\$)/)) {
        const isLimit = /evalsha|eval/i.test(command) && !command.includes('probe');
        if (isLimit) asked += 1;
        socket.write(isLimit ? reply : '+OK\r\n');
      }
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked: () => asked,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

test.each([
  ['text', '$5\r\nhello\r\n'],
  ['nothing', '$-1\r\n'],
  ['a number', ':1\r\n'],
  ['an empty list', '*0\r\n'],
  ['a list that is nothing', '*-1\r\n'],
  ['too few numbers', '*2\r\n:1\r\n:0\r\n'],
  ['too many numbers', `*6\r\n${':1\r\n'.repeat(6)}`],
  ['texts instead of numbers', `*4\r\n${'$1\r\n1\r\n'.repeat(4)}`],
  ['nothing instead of numbers', `*4\r\n${'$-1\r\n'.repeat(4)}`],
  ['lists instead of numbers', `*4\r\n${'*0\r\n'.repeat(4)}`],
  ['an error', '-ERR broken\r\n'],
  ['a page of HTML', 'HTTP/1.1 400 Bad Request\r\n\r\n<p>no</p>'],
  ['a text of which only the length arrives', '$536870912\r\nx'],
  ['a list of which only the length arrives', '*1000000000\r\n'],
  ['lists in lists', '*1\r\n'.repeat(5_000)],
])('a request is counted by the gateway itself if the shared store answers with %s', async (_, reply) => {
  await using store = await storeThatAnswers(reply);
  const localRateLimit = [{ maxTokens: 2, tokensPerFill: 2, fillInterval: '1h' }];
  await using gate = await answeringGateway(
    { localRateLimit },
    { config: { shared: { redis: store.url, timeout: '500ms' } } },
    { limits: { storeRetryInterval: 20 } },
  );
  await until(async () => /^gw_shared_store_available 1$/m.test(await gate.running.metrics.render()));
  const statuses: number[] = [];
  for (let count = 0; count < 3; count += 1) statuses.push((await send(gate.url)).status);
  expect(statuses).toEqual([200, 200, 429]);
  expect(store.asked()).toBeGreaterThan(0);
  expect(gate.log.filter((line) => line.includes('internal error'))).toEqual([]);
});

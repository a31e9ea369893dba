import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { Client as Client2, StreamableHTTPClientTransport as Transport2 } from '@modelcontextprotocol/client';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as Transport1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { expect, test } from 'vitest';
import { chaos, mcpConfig } from '../../kit/config.ts';
import { gateway } from '../../kit/gateway.ts';

/** A TCP relay to a port whose connections can be cut. */
async function relay(port: number) {
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(port, '127.0.0.1');
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.once('close', () => {
        client.destroy();
        upstream.destroy();
        sockets.delete(socket);
      });
    }
    client.pipe(upstream).pipe(client);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    url: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`),
    cut,
    [Symbol.asyncDispose]: async () => {
      cut();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const INFO = { name: 'client', version: '1' };
const STEPS = 300;
const CALL = { name: 'progress', arguments: { steps: STEPS } };

interface Options {
  onprogress(progress: { progress: number }): void;
}

test.each([
  [
    'first',
    async (url: URL, options: Options) => {
      const client = new Client1(INFO);
      await client.connect(new Transport1(url));
      return { answer: client.callTool(CALL, undefined, options), close: () => client.close() };
    },
  ],
  [
    'second',
    async (url: URL, options: Options) => {
      const client = new Client2(INFO);
      await client.connect(new Transport2(url));
      return { answer: client.callTool(CALL, options), close: () => client.close() };
    },
  ],
])(
  'the official SDK client of the %s generation receives all messages after a broken connection',
  async (_, call) => {
    await using gate = await gateway(mcpConfig([chaos('a')]));
    await using between = await relay(gate.port);
    const steps: number[] = [];
    const { answer, close } = await call(between.url, {
      onprogress: ({ progress }) => {
        steps.push(progress);
        if (progress === 3) between.cut();
      },
    });
    expect((await answer).content).toEqual([{ type: 'text', text: 'done' }]);
    expect(steps).toEqual(Array.from({ length: STEPS }, (_step, index) => index + 1));
    await close();
  },
);

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { clientOf } from '../../../src/server/kernel/request/client-connection.ts';
import { HeaderList } from '../../../src/server/kernel/request/header-list.ts';
import { RequestContext } from '../../../src/server/kernel/request/request-context.ts';
import { Peers } from '../../../src/server/workers/peers.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { send } from '../../kit/send.ts';
import { readAll } from '../../kit/upstream.ts';

const BODY = JSON.stringify({ text: 'x'.repeat(300_000) });

/** A worker that has one peer, with number 2, and forwards every request to it. `arrived` runs while it does. */
async function forwarding(arrived: (peers: Peers, folder: string) => void) {
  const folder = await temporaryFolder();
  const peers = new Peers();
  const server = createServer((request, response) => {
    const ctx = new RequestContext(
      request,
      Object.assign(response, { send: () => undefined }),
      'default',
      new HeaderList(request.rawHeaders),
      request,
      clientOf(request.socket),
    );
    const reply = peers.forward(ctx, 2, 'port');
    arrived(peers, folder.path);
    reply.then(
      ({ status, body }) => {
        response.writeHead(status);
        if (typeof body === 'object' && 'attach' in body) body.attach(response);
      },
      (error: Error) => response.writeHead(599).end(String(error)),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    peers,
    folder: folder.path,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await peers.close();
      await folder.remove();
    },
  };
}

/** Starts a peer: it answers with the body that it gets, after `ready`. */
async function peer(prefix: string, ready: () => void | Promise<void> = () => undefined) {
  const server = createServer(async (request, response) => {
    const bytes = await readAll(request);
    await ready();
    response.end(bytes);
  });
  await new Promise<void>((resolve) => server.listen(`${prefix}port`, resolve));
  return {
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function expectEcho(url: string): Promise<void> {
  const { status, text } = await send(url, { method: 'POST', body: BODY });
  expect([status, text.length, text.slice(0, 100)]).toEqual([200, BODY.length, BODY.slice(0, 100)]);
}

test('a request to a worker that has ended is answered by the next one, with its body', async () => {
  await using worker = await forwarding((peers, folder) => peers.set({ 2: join(folder, 'next.') }));
  await using _next = await peer(join(worker.folder, 'next.'));
  // Nothing listens there, which shows only after the list has changed.
  worker.peers.set({ 2: join(worker.folder, 'ended.') });
  await expectEcho(worker.url);
});

test('a request is answered by a worker that leaves the list while it works on it', async () => {
  await using worker = await forwarding(() => undefined);
  await using _leaving = await peer(join(worker.folder, 'leaving.'), () => worker.peers.set({}));
  worker.peers.set({ 2: join(worker.folder, 'leaving.') });
  await expectEcho(worker.url);
});

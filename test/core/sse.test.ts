import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { EventStream } from '../../src/core/sse.ts';

/** A resumable stream that a client reads. */
async function attached(isEndless: boolean) {
  const stream = new EventStream();
  stream.makeResumable('s', { retry: 1, maxBytes: 1_000, isEndless });
  const responses: ServerResponse[] = [];
  const server = createServer((_, response) => {
    responses.push(response);
    stream.attach(response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  return {
    stream,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

test.each([
  [true, false],
  [false, true],
])(
  'with isEndless %s, an event that two heartbeats have followed can be requested again: %s',
  async (isEndless, isKept) => {
    await using own = await attached(isEndless);
    own.stream.send('old');
    own.stream.beat(Date.now());
    own.stream.send('new');
    own.stream.beat(Date.now());
    expect(own.stream.resume(1)).toBe(true);
    expect(own.stream.resume(0)).toBe(isKept);
  },
);

test.each([
  [true, false],
  [false, true],
])(
  'with isEndless %s, an event over the size of the buffer can be requested again: %s',
  async (isEndless, isKept) => {
    await using own = await attached(isEndless);
    own.stream.send('x'.repeat(2_000));
    expect(own.stream.resume(0)).toBe(isKept);
    expect(own.stream.resume(1)).toBe(true);
  },
);

test('a message with line breaks is one line of data, which simple clients do not join', async () => {
  const stream = new EventStream();
  const server = createServer((_, response) => {
    stream.attach(response);
    stream.send('{\r\n  "a":\n1\r}');
    stream.end('{}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const text = await (await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)).text();
  server.close();
  expect(text).toBe('event: message\ndata: {   "a": 1 }\n\nevent: message\ndata: {}\n\n');
});

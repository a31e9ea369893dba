import fastify from 'fastify';
import { describe, expect, test } from 'vitest';
import {
  type BackendRequest,
  httpTransport,
  injectTransport,
  ReplyTooLongError,
  type Transport,
} from '../../../src/adapter/backend/transport.ts';
import { MEMORY_API_LIMITS } from '../../../src/core/memory-limits.ts';

const request = (more: Partial<BackendRequest> = {}): BackendRequest => ({
  method: 'GET',
  path: '/x',
  headers: {},
  body: undefined,
  signal: new AbortController().signal,
  ...more,
});
const JSON_BODY = {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: '{"a":1}',
} as const;

/** A backend that answers with what it got, over HTTP and within this process. */
async function transports() {
  const app = fastify();
  app.route({
    method: ['GET', 'POST'],
    url: '/api/x',
    handler: ({ method, body }, reply) =>
      reply.headers({ 'retry-after': 7, 'x-list': ['a', 'b'] }).send({ method, body: body ?? null }),
  });
  app.get('/api/long', (_request, reply) => reply.send('x'.repeat(MEMORY_API_LIMITS.replyBytes)));
  app.get('/api/longer', (_request, reply) => reply.send('x'.repeat(MEMORY_API_LIMITS.replyBytes + 1)));
  const http = httpTransport(new URL('/api', await app.listen({ port: 0, host: '127.0.0.1' })));
  const all: readonly [string, Transport][] = [
    ['http', http],
    ['inject', injectTransport(app, '/api')],
  ];
  return {
    http,
    all,
    [Symbol.asyncDispose]: async () => {
      await Promise.all(all.map(([, transport]) => transport.close()));
      await app.close();
    },
  };
}

describe('a transport to the memory backend', () => {
  test('sends a body if there is one, and returns status, headers and text', async () => {
    await using own = await transports();
    for (const [name, transport] of own.all) {
      const reply = await transport.send(request());
      expect([name, reply.status, reply.text]).toEqual([name, 200, '{"method":"GET","body":null}']);
      expect([name, reply.headers]).toEqual([
        name,
        expect.objectContaining({ 'retry-after': '7', 'x-list': ['a', 'b'] }),
      ]);
      expect((await transport.send(request(JSON_BODY))).text).toBe('{"method":"POST","body":{"a":1}}');
      expect([name, (await transport.send(request({ path: '/none' }))).status]).toEqual([name, 404]);
    }
  });

  test('ends with the reason of its signal', async () => {
    await using own = await transports();
    for (const [, transport] of own.all)
      await expect(transport.send(request({ signal: AbortSignal.abort(new Error('gone')) }))).rejects.toThrow(
        'gone',
      );
  });

  test('reads a reply over HTTP up to its bound', async () => {
    await using own = await transports();
    const { text } = await own.http.send(request({ path: '/long' }));
    expect(text).toHaveLength(MEMORY_API_LIMITS.replyBytes);
    await expect(own.http.send(request({ path: '/longer' }))).rejects.toThrow(ReplyTooLongError);
  });
});

import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import { AT_ONCE } from '../../../../kit/at-once.ts';
import { chaos, mcpConfig } from '../../../../kit/config.ts';
import { openEvents } from '../../../../kit/event-stream.ts';
import { gateway } from '../../../../kit/gateway.ts';
import { INITIALIZE, type Json, openSession, post, toolCall } from '../../../../kit/mcp.ts';
import { type McpUpstream, mcpUpstream, type Script } from '../../../../kit/mcp-upstream.ts';
import { modernCall, modernUpstream } from '../../../../kit/modern.ts';
import { rawRequest, sendRaw } from '../../../../kit/raw-http.ts';
import { until } from '../../../../kit/until.ts';
import { refusingPort } from '../../../../kit/upstream.ts';

const target = (up: McpUpstream, name = 'up') => ({ name, mcp: { host: up.url } });
const call = (id: unknown, message: string, name = 'say') => toolCall(id, name, { message });

/** Answers this JSON-RPC method in its own way. */
const on =
  (method: string, answer: (...args: Parameters<Script>) => void): Script =>
  (request, response) => {
    if (request.message?.method !== method) return false;
    answer(request, response);
    return true;
  };

/** A response of server-sent events with these messages. */
const events = (...messages: object[]): string =>
  messages.map((message) => `data: ${JSON.stringify(message)}\n\n`).join('');

describe('requests to an HTTP target', () => {
  test("an HTTP target receives the message with the gateway's request id, its session, its protocol revision and the forwarded client headers", async () => {
    await using up = await mcpUpstream();
    await using gate = await gateway(mcpConfig([target(up)]));
    const session = await openSession(`${gate.url}/mcp`, {
      authorization: 'Bearer client-token',
      'x-custom': 'yes',
      'mcp-protocol-version': '2025-06-18',
    });
    await session.send(call('mine', 'hello'));
    const [initialize] = up.of('initialize');
    expect(initialize?.message.params).toEqual(INITIALIZE.params);
    expect(initialize?.headers).not.toHaveProperty('mcp-session-id');
    const [received] = up.of('tools/call');
    expect(received?.path).toBe('/mcp');
    expect(received?.headers).toMatchObject({
      host: `127.0.0.1:${up.port}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-session-id': 'up-1',
      'mcp-protocol-version': '2025-06-18',
      authorization: 'Bearer client-token',
      'x-custom': 'yes',
    });
    expect(received?.message).toMatchObject({ id: expect.any(Number), params: { name: 'say' } });
    await until(() => up.of('notifications/initialized').length === 1);
  });

  test('an HTTP target receives no client headers about the connection or the browser', async () => {
    await using up = await mcpUpstream();
    await using gate = await gateway(mcpConfig([target(up)]));
    const body = JSON.stringify(INITIALIZE);
    const lines = [
      'Content-Type: application/json',
      'Accept: text/event-stream',
      'Connection: X-Hop, close',
      'X-Hop: 1',
      'TE: trailers',
      'Keep-Alive: 5',
      'Proxy-Authorization: Basic x',
      'Cookie: a=b',
      'Origin: http://localhost',
      'Accept-Encoding: gzip',
      'X-Kept: 1',
      `Content-Length: ${body.length}`,
    ];
    const { statuses } = await sendRaw(gate.port, rawRequest('POST /mcp HTTP/1.1', lines, body));
    expect(statuses).toEqual([200]);
    const { headers } = up.of('initialize')[0] as Json;
    for (const name of [
      'x-hop',
      'te',
      'keep-alive',
      'proxy-authorization',
      'cookie',
      'origin',
      'accept-encoding',
    ])
      expect(headers).not.toHaveProperty(name);
    expect(headers['x-kept']).toBe('1');
    expect(headers.connection).not.toContain('X-Hop');
  });

  test('ending a session sends DELETE to the HTTP target', async () => {
    await using up = await mcpUpstream();
    await using gate = await gateway(mcpConfig([target(up)]));
    const session = await openSession(`${gate.url}/mcp`);
    await session.end();
    await until(() => up.sessions.size === 0);
    expect(up.received.at(-1)).toMatchObject({ verb: 'DELETE', headers: { 'mcp-session-id': 'up-1' } });
  });

  test('a client that disconnects cancels its call at the HTTP target', async () => {
    await using up = await mcpUpstream({ script: on('tools/call', () => undefined) });
    await using gate = await gateway(mcpConfig([target(up)]));
    const session = await openSession(`${gate.url}/mcp`);
    const leave = new AbortController();
    const answer = session.send(call(1, 'x'), { signal: leave.signal });
    answer.catch(() => undefined);
    await until(() => up.of('tools/call').length === 1);
    leave.abort();
    await until(() => up.of('notifications/cancelled').length === 1);
    expect(up.of('notifications/cancelled')[0]?.message.params.requestId).toBe(
      up.of('tools/call')[0]?.message.id,
    );
  });
});

describe('responses of an HTTP target', () => {
  test.each(['application/json', 'application/json; charset=utf-8'])(
    'a response of an HTTP target of type %s becomes one event',
    async (type) => {
      const script = on('tools/call', ({ message }, response) => {
        response.setHeader('content-type', type);
        response.end(`{"jsonrpc":"2.0","id":${message.id},"result":{"n":1.0,"é":"😀"}}`);
      });
      await using up = await mcpUpstream({ script });
      await using gate = await gateway(mcpConfig([target(up)]));
      const session = await openSession(`${gate.url}/mcp`);
      const { text } = await session.send(call('x', 'hello'));
      expect(text).toBe('event: message\ndata: {"jsonrpc":"2.0","id":"x","result":{"n":1.0,"é":"😀"}}\n\n');
    },
  );

  test('events of an HTTP target are forwarded one by one', async () => {
    const script = on('tools/call', ({ message }, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(
        '\ufeff: a comment\r\nid: 1\r\ndata: {"jsonrpc":"2.0",\r\ndata: "method":"notifications/message","params":{"n":1}}\r\n\r\n',
      );
      response.write('id: 2\ndata: \n\n');
      response.end(events({ jsonrpc: '2.0', id: message.id, result: { done: true } }));
    });
    await using up = await mcpUpstream({ script });
    await using gate = await gateway(mcpConfig([target(up)]));
    const session = await openSession(`${gate.url}/mcp`);
    await using stream = await openEvents(session.url, { session: session.id, message: call('x', 'hello') });
    await stream.untilEnd();
    expect(stream.messages).toEqual([
      { jsonrpc: '2.0', method: 'notifications/message', params: { n: 1 } },
      { jsonrpc: '2.0', id: 'x', result: { done: true } },
    ]);
  });

  test('an event stream of an HTTP target without the response fails the call', async () => {
    const script = on('tools/call', (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).end(': nothing\n\n');
    });
    await using up = await mcpUpstream({ script });
    await using gate = await gateway(mcpConfig([target(up)]));
    const session = await openSession(`${gate.url}/mcp`);
    const { error } = await session.send(call(1, 'x'));
    expect(error.message).toBe(
      'target "up" is not available: the server ended its answer without a response',
    );
  });

  test('an event stream of an HTTP target that breaks off fails the call', async () => {
    const script = on('tools/call', (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(': begun\n\n', () => response.destroy());
    });
    await using up = await mcpUpstream({ script });
    await using gate = await gateway(mcpConfig([target(up)]));
    const session = await openSession(`${gate.url}/mcp`);
    const { error } = await session.send(call(1, 'x'));
    expect(error.message).toMatch(/^target "up" is not available: the call to the server failed: /);
  });

  test('a response of an HTTP target over 8 MiB fails the call', async () => {
    const script = on('tools/call', (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const more = (): void => void response.write(`data: ${'x'.repeat(65_536)}`, (error) => error ?? more());
      more();
    });
    await using up = await mcpUpstream({ script });
    await using gate = await gateway(mcpConfig([target(up)]));
    const session = await openSession(`${gate.url}/mcp`);
    const { error } = await session.send(call(1, 'x'));
    expect(error.message).toBe('target "up" is not available: the server sent a message over 8388608 bytes');
  });

  test('an HTTP target may stream messages as lines of a JSON body', async () => {
    let answering: ServerResponse | undefined;
    const script = on('tools/call', ({ message }, response) => {
      answering = response.writeHead(200, { 'content-type': 'application/json' });
      const params = { progressToken: message.params._meta.progressToken, progress: 1 };
      response.write(
        `${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/progress', params })}\n{"json`,
      );
    });
    await using up = await mcpUpstream({ script });
    await using gate = await gateway(mcpConfig([target(up)]));
    const session = await openSession(`${gate.url}/mcp`);
    const message = toolCall(1, 'say', {}, { progressToken: 'p' });
    await using stream = await openEvents(session.url, { session: session.id, message });
    const { params } = await stream.next(({ method }) => method === 'notifications/progress');
    expect(params).toEqual({ progressToken: 'p', progress: 1 });
    const { id } = (up.of('tools/call')[0] as Json).message;
    answering?.end(`rpc":"2.0","id":${id},"result":{"content":[]}}\n`);
    expect((await stream.next((each) => each.id === 1)).result).toEqual({ content: [] });
  });

  test('an HTTP target may format its JSON', async () => {
    const script = on('tools/call', ({ message: { id } }, response) => {
      const text = JSON.stringify({ jsonrpc: '2.0', id, result: { content: [] } }, null, 2);
      response.writeHead(200, { 'content-type': 'application/json' }).end(`${text}\n`);
    });
    await using up = await mcpUpstream({ script });
    await using gate = await gateway(mcpConfig([target(up)]));
    const session = await openSession(`${gate.url}/mcp`);
    await using stream = await openEvents(session.url, { session: session.id, message: call(1, 'x') });
    expect((await stream.next(({ id }) => id === 1)).result).toEqual({ content: [] });
  });

  test("messages on the GET stream of an HTTP target reach the client's stream, also after a reconnect", async () => {
    await using up = await mcpUpstream();
    await using gate = await gateway(mcpConfig([target(up)]));
    const session = await openSession(`${gate.url}/mcp`);
    await using own = await openEvents(session.url, { session: session.id });
    await until(() => up.streams.length === 1);
    const changed = (n: number) =>
      events({ jsonrpc: '2.0', method: 'notifications/tools/list_changed', params: { n } });
    up.streams[0]?.write(changed(1));
    await own.next(({ params }) => params.n === 1);
    up.streams[0]?.destroy();
    await until(() => up.streams.length === 2);
    up.streams[1]?.write(changed(2));
    await own.next(({ params }) => params.n === 2);
  });
});

describe('an unreachable HTTP target', () => {
  test('an unreachable HTTP target is explained to the client without its address', async () => {
    const dead = { name: 'dead', mcp: { host: `http://127.0.0.1:${await refusingPort()}/mcp` } };
    await using gate = await gateway(mcpConfig([dead]));
    const started = performance.now();
    const { status, error } = await post(`${gate.url}/mcp`, INITIALIZE);
    expect(performance.now() - started).toBeLessThan(AT_ONCE);
    expect(status).toBe(500);
    expect(error.message).toBe(
      'failed to create session: target "dead": the call to the server failed: connection refused',
    );
  });

  test.each(['initialize', 'tools/list'])(
    'a %s request to an HTTP target that closes the connection at this moment is sent once more',
    async (method) => {
      let isClosed = false;
      const script: Script = ({ message }, response) => {
        if (isClosed || message?.method !== method) return false;
        isClosed = true;
        response.destroy();
        return true;
      };
      await using up = await mcpUpstream({ script });
      await using gate = await gateway(mcpConfig([target(up)]));
      const session = await openSession(`${gate.url}/mcp`);
      const { result } = await session.send({ id: 1, method: 'tools/list', params: {} });
      expect([result.tools.length > 0, up.of(method).length]).toEqual([true, 2]);
    },
  );

  test('a call to an HTTP target whose connection breaks is never sent twice', async () => {
    const script = on('tools/call', (_request, response) => void response.destroy());
    await using up = await mcpUpstream({ script });
    await using gate = await gateway(mcpConfig([target(up)]));
    const session = await openSession(`${gate.url}/mcp`);
    const { error } = await session.send(call(1, 'x'));
    expect(error.code).toBe(-32603);
    expect(up.of('tools/call')).toHaveLength(1);
  });
});

const upstreamWithSessions = (name: string, script: Script) => mcpUpstream({ name, script });
const openAndCall = async (url: string) => (await openSession(url)).send(call(1, 'x'));
const callOnce = (url: string) => modernCall(url, 'say', { message: 'x' });

describe.concurrent('backendRequestTimeout of an HTTP target', () => {
  // Requests that are answered need some of this time on a busy machine.
  const limited = (targets: object[], backendRequestTimeout = '3s') =>
    gateway(mcpConfig(targets, { route: { policies: { timeout: { backendRequestTimeout } } } }));

  test('a call to an HTTP target that sends no response headers fails, is cancelled there, and the session continues', async () => {
    let calls = 0;
    await using up = await mcpUpstream({
      script: ({ message }) => message?.method === 'tools/call' && ++calls === 1,
    });
    await using gate = await limited([target(up)]);
    const session = await openSession(`${gate.url}/mcp`);
    const { error } = await session.send(call(1, 'x'));
    expect(error).toEqual({
      code: -32603,
      message: 'target "up" is not available: no answer within 3 s',
    });
    await until(() => up.of('notifications/cancelled').length === 1);
    expect(up.of('notifications/cancelled')[0]?.message.params.requestId).toBe(
      up.of('tools/call')[0]?.message.id,
    );
    expect(up.of('tools/call')).toHaveLength(1);
    expect(await session.send(call(2, 'again'))).toHaveProperty('result');
  });

  test('a list of an HTTP target that sends no response headers is given up', async () => {
    await using up = await mcpUpstream({ script: on('tools/list', () => undefined) });
    await using other = await mcpUpstream({ name: 'other' });
    await using gate = await limited([target(up), target(other, 'other')]);
    const session = await openSession(`${gate.url}/mcp`);
    const { result } = await session.request('tools/list');
    expect(result.tools).not.toHaveLength(0);
    await until(() => up.of('notifications/cancelled').length === 1);
    expect(up.of('notifications/cancelled')[0]?.message.params.requestId).toBe(
      up.of('tools/list')[0]?.message.id,
    );
  });

  test.each([
    ['a client with sessions to a target without', modernUpstream, openAndCall],
    ['a client without sessions to a target with them', upstreamWithSessions, callOnce],
    ['a client without sessions to a target without', modernUpstream, callOnce],
  ])('a call of %s fails without response headers', async (_, start, send) => {
    await using up = await start('up', on('tools/call', () => undefined) as () => boolean);
    await using gate = await limited([target(up)], '500ms');
    const { error } = await send(`${gate.url}/mcp`);
    expect(error.message).toBe('target "up" is not available: no answer within 0.5 s');
  });

  test('an HTTP target may take longer for the events of a response that has begun', async () => {
    const begun = Promise.withResolvers<[Json, ServerResponse]>();
    const script = on('tools/call', (request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
      setTimeout(() => begun.resolve([request.message, response]), 3_500);
    });
    await using up = await mcpUpstream({ script });
    await using gate = await limited([target(up)]);
    const session = await openSession(`${gate.url}/mcp`);
    const answer = session.send(call(1, 'x'));
    const [{ id }, response] = await begun.promise;
    response.end(events({ jsonrpc: '2.0', id, result: { content: [] } }));
    expect(await answer).toMatchObject({ result: { content: [] } });
  });
});

describe('targets over stdio and HTTP', () => {
  test('targets over stdio and HTTP work side by side in one backend', async () => {
    await using up = await mcpUpstream();
    await using gate = await gateway(mcpConfig([target(up), chaos('local')]));
    const session = await openSession(`${gate.url}/mcp`);
    const { result } = await session.request('tools/list');
    expect(result.tools.map(({ name }: Json) => name)).toEqual(['up_say', 'local_echo']);
    expect((await session.send(call(1, 'hi', 'up_say'))).result.content[0].text).toBe('up says hi');
    expect((await session.send(call(2, 'hi', 'local_echo'))).result.content[0].text).toBe('hi');
  });
});

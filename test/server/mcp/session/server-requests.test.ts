import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { chaos, mcpConfig } from '../../../kit/config.ts';
import { type EventReader, openEvents } from '../../../kit/event-stream.ts';
import { temporaryFolder } from '../../../kit/folder.ts';
import { gateway } from '../../../kit/gateway.ts';
import { type Json, type McpSession, openSession, toolCall } from '../../../kit/mcp.ts';
import { mcpUpstream } from '../../../kit/mcp-upstream.ts';
import { until } from '../../../kit/until.ts';

const A = chaos('a');
const B = chaos('b');
const call = (number: number, name: string, args: object = {}) => toolCall(`call ${number}`, name, args);
const SAMPLING = 'sampling/createMessage';
const asks = ({ method }: Json): boolean => method === SAMPLING || method === 'roots/list';
const NO_STREAM = {
  code: -32603,
  message: 'the client has no open stream on which this request could reach it',
};

/** What the child of a target has read, parsed. */
async function receivedBy(session: McpSession, tool = 'received'): Promise<Json[]> {
  const { result } = await session.request('tools/call', { name: tool });
  return JSON.parse(result.content[0].text).map((line: string) => JSON.parse(line));
}

const openCall = (session: McpSession, message: object): Promise<EventReader> =>
  openEvents(session.url, { session: session.id, message, headWithin: 15_000 });

describe('server requests while no GET stream is open', () => {
  test('server requests of two concurrent tool calls both reach the client, and both calls complete', async () => {
    await using gate = await gateway(mcpConfig([A]));
    const session = await openSession(`${gate.url}/mcp`);
    const ask = (id: number) =>
      openCall(session, call(id, 'ask', { method: SAMPLING, params: { maxTokens: id } }));
    const opened = [ask(1), ask(2), ask(3)];
    const answered = new Set<string>();
    const streams: EventReader[] = [];
    for (const opening of opened) void opening.then((stream) => streams.push(stream));
    await until(async () => {
      for (const { id, params } of streams.flatMap(({ messages }) => messages.filter(asks))) {
        if (answered.has(id)) continue;
        answered.add(id);
        await session.send({ id, result: { said: params.maxTokens } });
      }
      return answered.size === 3;
    });
    for (const [index, opening] of opened.entries()) {
      await using stream = await opening;
      const { result } = await stream.next(({ id }) => id === `call ${index + 1}`);
      expect(result.content[0].text).toBe(JSON.stringify({ said: index + 1 }));
    }
  });

  test('a server request is sent on a stream of its own target rather than of another target', async () => {
    await using gate = await gateway(mcpConfig([A, B]));
    const session = await openSession(`${gate.url}/mcp`);
    const ofB = openCall(session, call(1, 'b_hang'));
    await receivedBy(session, 'b_received');
    const ofA = openCall(session, call(2, 'a_hang'));
    await receivedBy(session, 'a_received');
    const asking = openCall(session, call(3, 'a_ask'));
    // The oldest call at the same target, since nothing says which call the request belongs to.
    await (await ofA).next(asks);
    await gate.close();
    expect((await ofB).messages.filter(asks)).toEqual([]);
    await asking;
  });

  test("a server request sent on the stream of another call can be answered, because that call's response waits for it", async () => {
    await using gate = await gateway(mcpConfig([A]));
    const session = await openSession(`${gate.url}/mcp`);
    // The server asks for the second call first, so each request goes out on the stream of the other call.
    const opening = openCall(session, call(1, 'ask', { after: 2_000, params: { of: 1 } }));
    const ping = (): Promise<unknown> => session.request('ping');
    await ping();
    const [first, second] = await Promise.all([
      opening,
      openCall(session, call(2, 'ask', { after: 0, params: { of: 2 } })),
    ]);
    const [ofSecond, ofFirst] = [await first.next(asks), await second.next(asks)];
    expect([ofFirst.params.of, ofSecond.params.of]).toEqual([1, 2]);
    await session.send({ id: ofSecond.id, result: { roots: ['two'] } });
    await receivedBy(session);
    expect(second.messages.map(({ id }) => id)).toEqual([ofFirst.id]);
    await session.send({ id: ofFirst.id, result: { roots: ['one'] } });
    const text = ({ result }: Json): string => result.content[0].text;
    expect(text(await first.next(({ id }) => id === 'call 1'))).toBe('{"roots":["one"]}');
    expect(text(await second.next(({ id }) => id === 'call 2'))).toBe('{"roots":["two"]}');
    await Promise.all([first.untilEnd(), second.untilEnd()]);
  });

  test('server requests without any open stream are answered with an error immediately', async () => {
    await using up = await mcpUpstream();
    await using gate = await gateway(mcpConfig([{ name: 'up', mcp: { host: up.url } }]));
    const session = await openSession(`${gate.url}/mcp`);
    const own = await openEvents(session.url, { session: session.id });
    await until(() => up.streams.length === 1);
    own.close();
    await gate.accessLine(3);
    const write = (message: object) =>
      up.streams[0]?.write(`data: ${JSON.stringify({ jsonrpc: '2.0', ...message })}\n\n`);
    write({ id: 'x', method: SAMPLING, params: {} });
    write({ id: 7, method: 'ping' });
    const answers = () =>
      up.received.flatMap(({ message }) => (message?.method === undefined ? [message] : []));
    await until(() => answers().filter(Boolean).length === 2, 800);
    expect(answers().filter(Boolean)).toEqual([
      { jsonrpc: '2.0', id: 'x', error: NO_STREAM },
      // The connection is alive, whatever the client does.
      { jsonrpc: '2.0', id: 7, result: {} },
    ]);
  });

  test('server requests reach a client that opens its stream right after initialize', async () => {
    await using folder = await temporaryFolder();
    const mark = join(folder.path, 'mark');
    await using gate = await gateway(mcpConfig([chaos('a', '--asks-first=1', `--mark=${mark}`)]));
    const session = await openSession(`${gate.url}/mcp`);
    await using own = await openEvents(session.url, { session: session.id });
    const { id } = await own.next(asks);
    await session.send({ id, result: { roots: [] } });
    await until(() =>
      readFileSync(mark, 'utf8').includes('{"jsonrpc":"2.0","id":"ask-1","result":{"roots":[]}}'),
    );
  });

  test('server requests reach a client that has not opened its stream by its first call', async () => {
    await using folder = await temporaryFolder();
    const mark = join(folder.path, 'mark');
    await using gate = await gateway(mcpConfig([chaos('a', '--asks-first=1', `--mark=${mark}`)]));
    const session = await openSession(`${gate.url}/mcp`);
    await using stream = await openCall(session, call(1, 'hang'));
    await stream.next(asks);
  });

  test('server requests are answered with an error when the client has opened no stream within a second after initialize', async () => {
    await using folder = await temporaryFolder();
    const mark = join(folder.path, 'mark');
    await using gate = await gateway(mcpConfig([chaos('a', '--asks-first=70', `--mark=${mark}`)]));
    const answers = (): Json[] =>
      readFileSync(mark, 'utf8')
        .split('\n')
        .filter((line) => line.startsWith('{'))
        .map((line) => JSON.parse(line));
    const began = performance.now();
    await openSession(`${gate.url}/mcp`);
    // No more than 64 of them wait: the others are answered before.
    await until(() => answers().length >= 6, 900);
    expect(
      answers().every(({ error }) => error.message === 'more than 64 requests wait for the client'),
    ).toBe(true);
    await until(() => answers().length === 70);
    expect(performance.now() - began).toBeGreaterThan(900);
    expect(
      answers()
        .slice(6)
        .map(({ error }) => error),
    ).toEqual(Array(64).fill(NO_STREAM));
    expect(new Set(answers().map(({ id }) => id)).size).toBe(70);
  });
});

describe('client responses to server requests', () => {
  test('when too many server requests wait for the client, the oldest gets an error', async () => {
    await using gate = await gateway(mcpConfig([A]));
    const session = await openSession(`${gate.url}/mcp`);
    const lines = Array.from(
      { length: 300 },
      (_, id) => `{"jsonrpc":"2.0","id":"s${id}","method":"roots/list"}\n`,
    );
    const { messages } = await session.send(
      call(1, 'emit', { pieces: [Buffer.from(lines.join('')).toString('base64')] }),
    );
    expect(messages.filter(asks)).toHaveLength(300);
    const answered = (await receivedBy(session)).filter(({ error }) => error !== undefined);
    expect(answered.map(({ id }) => id)).toEqual(Array.from({ length: 300 - 256 }, (_, id) => `s${id}`));
    expect(answered[0].error).toEqual({
      code: -32603,
      message: 'the client has not answered, and 256 later requests wait for it',
    });
  });

  test('a client response with an id that was never issued, or that another session was asked under, reaches no server', async () => {
    await using gate = await gateway(mcpConfig([A]));
    const [asked, other] = await Promise.all([
      openSession(`${gate.url}/mcp`),
      openSession(`${gate.url}/mcp`),
    ]);
    await using stream = await openCall(asked, call(1, 'ask'));
    const { id } = await stream.next(asks);
    const forged = { result: { roots: ['forged'] } };
    expect((await other.send({ id, ...forged })).status).toBe(202);
    for (const never of [`${id}0`, id.toUpperCase(), 'call 1', '__proto__', '', 1, 0, null])
      for (const outcome of [forged, { error: { code: 1, message: 'forged' } }])
        expect([never, (await asked.send({ id: never, ...outcome })).status]).toEqual([never, 202]);
    await asked.send({ id, result: { roots: ['own'] } });
    // It has been answered.
    await asked.send({ id, ...forged });
    const { result } = await stream.next((message) => message.id === 'call 1');
    expect(result.content[0].text).toBe('{"roots":["own"]}');
    const answers = async (session: McpSession): Promise<Json[]> =>
      (await receivedBy(session)).filter(({ method }) => method === undefined);
    expect((await answers(asked)).map(({ result: answer }) => answer)).toEqual([{ roots: ['own'] }]);
    expect(await answers(other)).toEqual([]);
  });

  test('a client response is not sent to the restarted server that replaced the one that asked', async () => {
    await using gate = await gateway(mcpConfig([A]));
    const session = await openSession(`${gate.url}/mcp`);
    const first = await openCall(session, call(1, 'ask'));
    const { id } = await first.next(asks);
    await session.request('tools/call', { name: 'die' });
    await until(async () => (await session.request('tools/call', { name: 'echo' })).result !== undefined);
    await using second = await openCall(session, call(2, 'ask'));
    const question = await second.next(asks);
    expect(question.id).not.toBe(id);
    await session.send({ id, result: { roots: ['of the first'] } });
    await session.send({ id: question.id, result: { roots: ['of the second'] } });
    const { result } = await second.next((message) => message.id === 'call 2');
    expect(result.content[0].text).toBe('{"roots":["of the second"]}');
  });
});

describe('notifications/cancelled of a server', () => {
  test('notifications/cancelled of a server has the id that the client knows and is sent on the stream of the request', async () => {
    await using gate = await gateway(mcpConfig([A, B]));
    const session = await openSession(`${gate.url}/mcp`);
    // With two calls in flight, nothing says which of them the request belongs to.
    const opening = openCall(session, call(9, 'a_hang'));
    await receivedBy(session, 'a_received');
    const asking = openCall(session, call(1, 'a_ask-and-cancel'));
    await using stream = await opening;
    const { id } = await stream.next(asks);
    const { params } = await stream.next(({ method }) => method === 'notifications/cancelled');
    expect(params).toEqual({ requestId: id, reason: 'changed my mind' });
    // A response sent before the cancellation arrived is not forwarded to the server.
    await session.send({ id, result: { roots: [] } });
    const other = await stream.next((message) => asks(message) && message.id !== id);
    await session.send({ id: other.id, result: {} });
    await using asked = await asking;
    await asked.next((message) => message.id === 'call 1');
    const answers = (await receivedBy(session, 'a_received')).filter(({ result }) => result !== undefined);
    expect(answers.map(({ id }) => id)).toEqual(['ask-2']);
  });

  test('notifications/cancelled of a server for an unknown request does not reach the client', async () => {
    await using gate = await gateway(mcpConfig([A]));
    const session = await openSession(`${gate.url}/mcp`);
    const { messages } = await session.send(
      call(1, 'notify', { method: 'notifications/cancelled', params: { requestId: 1 } }),
    );
    expect(messages.map(({ method }) => method)).toEqual([undefined]);
  });
});

describe('notifications/progress of the client', () => {
  const progressed = async (session: McpSession, tool: string): Promise<Json[]> =>
    (await receivedBy(session, tool))
      .filter(({ method }) => method === 'notifications/progress')
      .map(({ params }) => params);

  test('notifications/progress of a client reaches the target of its request when two targets use the same token', async () => {
    await using gate = await gateway(mcpConfig([A, B]));
    const session = await openSession(`${gate.url}/mcp`);
    const args = { method: SAMPLING, params: { _meta: { progressToken: 1, own: 1.5 } } };
    await using a = await openCall(session, call(1, 'a_ask', args));
    await using b = await openCall(session, call(2, 'b_ask', args));
    const tokens = await Promise.all(
      [a, b].map(async (stream) => (await stream.next(asks)).params._meta.progressToken),
    );
    expect(tokens[0]).not.toEqual(tokens[1]);
    for (const [index, progressToken] of tokens.entries())
      await session.send({
        method: 'notifications/progress',
        params: { progressToken, progress: index + 1, total: 5 },
      });
    expect(await progressed(session, 'a_received')).toEqual([{ progressToken: 1, progress: 1, total: 5 }]);
    expect(await progressed(session, 'b_received')).toEqual([{ progressToken: 1, progress: 2, total: 5 }]);
  });

  test('notifications/progress of a client for an unknown request reaches no target', async () => {
    await using gate = await gateway(mcpConfig([A, B]));
    const session = await openSession(`${gate.url}/mcp`);
    const params = { progressToken: 1, progress: 1 };
    expect((await session.send({ method: 'notifications/progress', params })).status).toBe(202);
    expect(await progressed(session, 'a_received')).toEqual([]);
    expect(await progressed(session, 'b_received')).toEqual([]);
  });

  test('notifications/progress of a client keeps its token when there is one target', async () => {
    await using gate = await gateway(mcpConfig([A]));
    const session = await openSession(`${gate.url}/mcp`);
    const args = { method: SAMPLING, params: { _meta: { progressToken: 'p' } } };
    await using stream = await openCall(session, call(1, 'ask', args));
    expect((await stream.next(asks)).params._meta).toEqual({ progressToken: 'p' });
    await session.send({ method: 'notifications/progress', params: { progressToken: 'p', progress: 1 } });
    expect(await progressed(session, 'received')).toEqual([{ progressToken: 'p', progress: 1 }]);
  });
});

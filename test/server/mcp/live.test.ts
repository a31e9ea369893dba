import { describe, expect, test } from 'vitest';
import { chaos, mcpConfig } from '../../kit/config.ts';
import { openEvents } from '../../kit/event-stream.ts';
import { gateway } from '../../kit/gateway.ts';
import { type Json, type McpSession, openSession, toolCall } from '../../kit/mcp.ts';

const A = chaos('a', '--resources=file:///1');
const B = chaos('b');

/** What the child of a target has read, parsed. */
async function receivedBy(session: McpSession, tool = 'received'): Promise<Json[]> {
  const { result } = await session.request('tools/call', { name: tool });
  return JSON.parse(result.content[0].text).map((line: string) => JSON.parse(line));
}

describe('progress', () => {
  test('progress notifications arrive on the stream of their call before its response', async () => {
    await using gate = await gateway(mcpConfig([A]));
    const session = await openSession(`${gate.url}/mcp`);
    const { messages } = await session.send(
      toolCall(1, 'progress', { steps: 3 }, { progressToken: 'token' }),
    );
    expect(messages.map(({ method, params, id }) => params?.progress ?? method ?? id)).toEqual([1, 2, 3, 1]);
    expect(messages[0].params.progressToken).toBe('token');
  });

  test('progress notifications of concurrent calls reach only their own call', async () => {
    await using gate = await gateway(mcpConfig([A, B]));
    const session = await openSession(`${gate.url}/mcp`);
    await using own = await openEvents(session.url, { session: session.id });
    const replies = await Promise.all(
      [7, 'seven', 8, '7'].map((token, index) =>
        session.send(
          toolCall(index, index % 2 ? 'a_progress' : 'b_progress', { steps: 5 }, { progressToken: token }),
        ),
      ),
    );
    for (const [index, token] of [7, 'seven', 8, '7'].entries()) {
      const progress = replies[index]?.messages.filter(({ method }) => method === 'notifications/progress');
      expect(progress?.map(({ params }) => params)).toEqual(
        [1, 2, 3, 4, 5].map((step) => ({ progressToken: token, progress: step })),
      );
    }
    expect(own.messages).toEqual([]);
  });
});

describe('server notifications', () => {
  test('server notifications of every target arrive on the GET stream', async () => {
    await using gate = await gateway(mcpConfig([A, B]));
    const session = await openSession(`${gate.url}/mcp`);
    await using own = await openEvents(session.url, { session: session.id });
    const { messages } = await session.send(
      toolCall(1, 'a_notify', { method: 'notifications/tools/list_changed' }),
    );
    expect(messages).toHaveLength(1);
    await session.send(toolCall(2, 'b_notify', { method: 'notifications/prompts/list_changed' }));
    await own.next(({ method }) => method === 'notifications/tools/list_changed');
    await own.next(({ method }) => method === 'notifications/prompts/list_changed');
  });

  test('server notifications are queued until the GET stream opens, and the oldest are dropped over 64', async () => {
    await using gate = await gateway(mcpConfig([A]));
    const session = await openSession(`${gate.url}/mcp`);
    await session.send(toolCall(1, 'notify', { method: 'notifications/tools/list_changed', times: 70 }));
    await using own = await openEvents(session.url, { session: session.id });
    await own.next(({ params }) => params.n === 69);
    expect(own.messages.map(({ params }) => params.n)).toEqual(
      Array.from({ length: 64 }, (_, index) => index + 6),
    );
  });

  test('notifications/resources/updated uses the URI that the client knows', async () => {
    await using gate = await gateway(mcpConfig([A, B]));
    const session = await openSession(`${gate.url}/mcp`);
    await using own = await openEvents(session.url, { session: session.id });
    expect((await session.request('resources/subscribe', { uri: 'a+file:///1' })).result).toEqual({});
    const { params } = await own.next(({ method }) => method === 'notifications/resources/updated');
    expect(params).toEqual({ uri: 'a+file:///1' });
  });

  test('a log message is sent with the call when only that call is in flight', async () => {
    await using gate = await gateway(mcpConfig([A]));
    const session = await openSession(`${gate.url}/mcp`);
    const params = { level: 'info', data: 'hello' };
    const { messages } = await session.send(
      toolCall(1, 'notify', { method: 'notifications/message', params }),
    );
    expect(messages[0]).toMatchObject({ method: 'notifications/message', params });
  });

  test('server notifications reach no other session', async () => {
    await using gate = await gateway(mcpConfig([A]));
    const [one, two] = [await openSession(`${gate.url}/mcp`), await openSession(`${gate.url}/mcp`)];
    await using ofOne = await openEvents(one.url, { session: one.id });
    await using ofTwo = await openEvents(two.url, { session: two.id });
    await one.send(toolCall(1, 'notify', { method: 'notifications/tools/list_changed' }));
    await ofOne.next(() => true);
    await two.send(toolCall(1, 'notify', { method: 'notifications/prompts/list_changed' }));
    await ofTwo.next(() => true);
    expect([ofOne.messages.length, ofTwo.messages.length]).toEqual([1, 1]);
  });
});

describe('server requests', () => {
  test("a server request arrives on the stream of its call, and the client's response reaches the server", async () => {
    await using gate = await gateway(mcpConfig([A]));
    const session = await openSession(`${gate.url}/mcp`);
    await using stream = await openEvents(session.url, {
      session: session.id,
      message: toolCall(1, 'ask', { method: 'sampling/createMessage', params: { maxTokens: 5 } }),
    });
    const request = await stream.next(({ method }) => method === 'sampling/createMessage');
    expect(request.params).toEqual({ maxTokens: 5 });
    expect((await session.send({ id: request.id, result: { said: 'hello' } })).status).toBe(202);
    const { result } = await stream.next(({ id }) => id === 1);
    expect(result.content[0].text).toBe('{"said":"hello"}');
    await stream.untilEnd();
  });

  test('server requests of two targets with equal ids are distinguished, including error responses', async () => {
    await using gate = await gateway(mcpConfig([A, B]));
    const session = await openSession(`${gate.url}/mcp`);
    const ask = (id: number, name: string) =>
      openEvents(session.url, { session: session.id, message: toolCall(id, name) });
    await using ofA = await ask(1, 'a_ask');
    await using ofB = await ask(2, 'b_ask');
    const isRequest = ({ method }: Json): boolean => method === 'roots/list';
    const [fromA, fromB] = [await ofA.next(isRequest), await ofB.next(isRequest)];
    expect(fromA.id).not.toBe(fromB.id);
    await session.send({ id: fromB.id, error: { code: -1, message: 'no roots' } });
    await session.send({ id: fromA.id, result: { roots: [] } });
    expect((await ofA.next(({ id }) => id === 1)).result.content[0].text).toBe('{"roots":[]}');
    expect((await ofB.next(({ id }) => id === 2)).result.content[0].text).toBe(
      '{"error":{"code":-1,"message":"no roots"}}',
    );
  });

  test('server requests can be answered only by their own session and only once', async () => {
    await using gate = await gateway(mcpConfig([A]));
    const [asked, other] = [await openSession(`${gate.url}/mcp`), await openSession(`${gate.url}/mcp`)];
    await using stream = await openEvents(asked.url, { session: asked.id, message: toolCall(1, 'ask') });
    const { id } = await stream.next(({ method }) => method === 'roots/list');
    expect((await other.send({ id, result: { roots: ['stolen'] } })).status).toBe(202);
    await asked.send({ id, result: { roots: ['mine'] } });
    await asked.send({ id, result: { roots: ['late'] } });
    expect((await stream.next((message) => message.id === 1)).result.content[0].text).toBe(
      '{"roots":["mine"]}',
    );
    expect((await receivedBy(asked)).filter(({ result }) => result !== undefined)).toHaveLength(1);
    expect((await receivedBy(other)).filter(({ result }) => result !== undefined)).toEqual([]);
  });

  test('server requests that the client never answered do not block later ones', async () => {
    await using gate = await gateway(mcpConfig([A]));
    const session = await openSession(`${gate.url}/mcp`);
    const pieces = Array.from(
      { length: 300 },
      (_, id) => `{"jsonrpc":"2.0","id":"s${id}","method":"ping"}\n`,
    );
    await session.send(toolCall(1, 'emit', { pieces: [Buffer.from(pieces.join('')).toString('base64')] }));
    await using stream = await openEvents(session.url, {
      session: session.id,
      message: toolCall(2, 'ask'),
      headWithin: 1_000,
    });
    await stream.next(({ method }) => method === 'roots/list');
  });
});

import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type ReplayedCassette, replayCassette } from '../../src/library/testing/index.ts';
import { writeCassette } from '../kit/cassette.ts';
import { openEvents } from '../kit/event-stream.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { INITIALIZE, type McpSession, openSession, post, toolCall } from '../kit/mcp.ts';

// Sessions of MCP in a replay, message by message.

const SESSION = 'mcp-session-id';
const headers = { 'content-type': 'text/event-stream' };

/** A request of the recorded session. */
const sent = (at: number, message: object, response: object, session: string | undefined = 's') => ({
  at,
  ...(session !== undefined && { session }),
  request: {
    method: 'POST',
    target: '/mcp',
    headers: {},
    body: { json: { jsonrpc: '2.0', ...message } },
  },
  response: { ms: 0, status: 200, ...response },
});

const stream = (...messages: readonly (readonly [ms: number, message: object])[]) => ({
  headers,
  events: messages.map(([ms, message]) => ({ ms, event: 'message', json: { jsonrpc: '2.0', ...message } })),
});

const begun = sent(0, INITIALIZE, stream([1, { id: 0, result: { protocolVersion: '2025-06-18' } }]));
const accepted = { status: 202, headers: {} };
const initialized = sent(5, { method: 'notifications/initialized' }, accepted);
const opened = (at: number, ...messages: readonly (readonly [ms: number, message: object])[]) => ({
  at,
  session: 's',
  request: { method: 'GET', target: '/mcp', headers: {} },
  response: { ms: 0, status: 200, ...stream(...messages), cut: 'client' },
});

interface Replayed extends AsyncDisposable {
  readonly url: string;
  readonly replay: ReplayedCassette;
  open(): Promise<McpSession>;
}

async function replaying(...exchanges: readonly object[]): Promise<Replayed> {
  const folder = await temporaryFolder();
  const file = join(folder.path, 'cassette.jsonl');
  writeCassette(file, [begun, initialized, ...exchanges]);
  const replay = await replayCassette(file);
  const url = `${replay.url}/mcp`;
  return {
    url,
    replay,
    open: () => openSession(url),
    async [Symbol.asyncDispose]() {
      await replay.close();
      await folder.remove();
    },
  };
}

const answered = (id: number, text: string) => ({ id, result: { content: [{ type: 'text', text }] } });
const listed = sent(10, { id: 1, method: 'tools/list' }, stream([1, { id: 1, result: { tools: [] } }]));

describe('sessions', () => {
  test('each client has a session of its own, which ends with DELETE', async () => {
    await using replayed = await replaying(listed);
    const [one, other] = [await replayed.open(), await replayed.open()];
    expect(new Set([one.id, other.id, 's']).size).toBe(3);
    expect((await one.request('tools/list')).result).toEqual({ tools: [] });
    expect((await one.end()).status).toBe(200);
    // Only then do clients start a new session.
    expect((await one.send({ id: 1, method: 'tools/list' })).status).toBe(404);
    expect((await other.request('tools/list')).result).toEqual({ tools: [] });
    const unknown = await post(
      replayed.url,
      { jsonrpc: '2.0', ...toolCall(1, 'a') },
      { [SESSION]: 'unknown' },
    );
    expect([unknown.status, unknown.error.message]).toEqual([404, 'session not found']);
  });

  test('answers have the ids and progress tokens of the client', async () => {
    const progress = (token: unknown) => ({
      method: 'notifications/progress',
      params: { progressToken: token, progress: 1 },
    });
    const call = toolCall(7, 'work', {}, { progressToken: 'recorded' });
    await using replayed = await replaying(
      sent(10, call, stream([1, progress('recorded')], [2, answered(7, 'done')])),
    );
    const session = await replayed.open();
    const asked = await session.send(toolCall('mine', 'work', {}, { progressToken: 5 }));
    expect(asked.messages).toMatchObject([progress(5), { id: 'mine', result: { content: [{}] } }]);
    // Who has not asked for progress gets none.
    const plain = await session.send(toolCall('mine', 'work'));
    expect(plain.messages).toMatchObject([{ id: 'mine' }]);
    expect(plain.messages).toHaveLength(1);
  });

  test('pings and notifications need no recording, and other requests do', async () => {
    await using replayed = await replaying();
    const session = await replayed.open();
    expect((await session.send({ id: 3, method: 'ping' })).messages).toMatchObject([{ id: 3, result: {} }]);
    expect((await session.send({ method: 'notifications/roots/list_changed' })).status).toBe(202);
    const refused = await session.send(toolCall('mine', 'none'));
    expect(refused).toMatchObject({ status: 400, messages: [{ id: 'mine', error: { code: -32_050 } }] });
    expect(refused.error.message).toContain('POST /mcp tools/call is not in the cassette');
  });
});

describe('streams', () => {
  test('a call goes on when the client has answered the request of the server', async () => {
    const question = { id: 'q', method: 'elicitation/create', params: { message: 'Who?' } };
    await using replayed = await replaying(
      sent(10, toolCall(1, 'ask'), stream([1, question], [50, answered(1, 'Ada')])),
      sent(40, { id: 'q', result: { action: 'accept' } }, accepted),
    );
    const session = await replayed.open();
    await using events = await openEvents(replayed.url, {
      session: session.id,
      message: { jsonrpc: '2.0', ...toolCall(9, 'ask') },
    });
    await events.next(({ method }) => method === 'elicitation/create');
    // Another client's answer does not count, nor another answer.
    const other = await replayed.open();
    await other.send({ id: 'q', result: {} });
    await session.send({ id: 'r', result: {} });
    expect(events.messages).toHaveLength(1);
    expect((await session.send({ id: 'q', result: { action: 'decline' } })).status).toBe(202);
    await events.untilEnd();
    expect(events.messages.at(-1)).toMatchObject({ id: 9, result: { content: [{ text: 'Ada' }] } });
  });

  test('a call that was cancelled stays open until the client cancels it', async () => {
    const progress = { method: 'notifications/message', params: { level: 'info', data: 'begun' } };
    await using replayed = await replaying(
      sent(10, toolCall(1, 'wait'), stream([1, progress])),
      sent(30, { method: 'notifications/cancelled', params: { requestId: 1 } }, accepted),
    );
    const session = await replayed.open();
    await using events = await openEvents(replayed.url, {
      session: session.id,
      message: { jsonrpc: '2.0', ...toolCall(9, 'wait') },
    });
    await events.next(({ method }) => method === 'notifications/message');
    await session.send({ method: 'notifications/cancelled', params: { requestId: 8 } });
    expect(events.ended).toBe(false);
    await session.send({ method: 'notifications/cancelled', params: { requestId: 9 } });
    await events.untilEnd();
    expect(events.messages).toHaveLength(1);
  });

  test('what the server told follows the message that had caused it, once', async () => {
    const changed = { method: 'notifications/tools/list_changed' };
    await using replayed = await replaying(opened(7, [20, changed]), listed);
    const session = await replayed.open();
    await using events = await openEvents(replayed.url, { session: session.id });
    expect((await fetch(`${replayed.replay.url}/other`)).status).toBe(404);
    expect(events.messages).toEqual([]);
    await session.send({ id: 3, method: 'ping' });
    // The recorded messages before it are initialize, initialized and the list: this client has sent two, and a ping.
    await events.next(({ method }) => method === changed.method);
    await using again = await openEvents(replayed.url, { session: session.id });
    expect((await session.request('tools/list')).result).toEqual({ tools: [] });
    expect([events.ended, again.ended, again.messages]).toEqual([false, false, []]);
  });

  test('subscriptions of 2026-07-28 have the id of the request that opens them', async () => {
    const meta = (id: unknown) => ({ _meta: { 'io.modelcontextprotocol/subscriptionId': id } });
    const version = { _meta: { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' } };
    const method = 'notifications/subscriptions/acknowledged';
    const message = { method: 'subscriptions/listen', params: version };
    await using replayed = await replaying(
      sent(10, { id: 'a', ...message }, stream([1, { method, params: meta('a') }]), undefined),
    );
    await using events = await openEvents(replayed.url, { message: { jsonrpc: '2.0', id: 5, ...message } });
    expect(await events.next((each) => each.method === method)).toMatchObject({ params: meta(5) });
    // A later request shows that it stays open.
    expect((await fetch(`${replayed.replay.url}/other`)).status).toBe(404);
    expect(events.ended).toBe(false);
  });
});

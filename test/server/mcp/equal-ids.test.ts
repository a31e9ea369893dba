import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { chaos, mcpConfig } from '../../kit/config.ts';
import { openEvents } from '../../kit/event-stream.ts';
import { gateway, type TestGateway } from '../../kit/gateway.ts';
import { legacyClient } from '../../kit/legacy-client.ts';
import {
  INITIALIZE,
  type Json,
  type McpReply,
  type McpSession,
  openSession,
  post,
  toolCall,
} from '../../kit/mcp.ts';
import { modernCall } from '../../kit/modern.ts';
import { until } from '../../kit/until.ts';

let gate: TestGateway;
let session: McpSession;
beforeAll(async () => {
  gate = await gateway(mcpConfig([chaos('a')]));
  session = await openSession(`${gate.url}/mcp`);
});
afterAll(() => gate.close());

/** Calls a tool under an id as it is written. */
const call = (id: string, name: string, args: object = {}): Promise<McpReply> =>
  post(
    session.url,
    `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":${JSON.stringify({ name, arguments: args })}}`,
    { 'mcp-session-id': session.id },
  );

const texts = (replies: readonly McpReply[]): unknown[] =>
  replies.map(({ result }) => result?.content[0].text);

/** Waits until the child has received a call with this message. */
async function isRunning(message: string): Promise<void> {
  await until(async () => {
    const { result } = await call('"poll"', 'received');
    return (JSON.parse(result.content[0].text) as string[]).some((line) => line.includes(message));
  });
}

/** The ids of cancelled calls, as the child has received them. */
async function cancellations(): Promise<unknown[]> {
  const { result } = await call('"cancelled"', 'received');
  const received: Json[] = JSON.parse(result.content[0].text).map((line: string) => JSON.parse(line));
  return received.filter(({ method }) => method === 'notifications/cancelled');
}

// anthropics/claude-ai-mcp#539, anthropics/claude-code#39396, typescript-sdk#2433, python-sdk#3060: claude.ai sends every request
// with the id 1, also those of several conversations in one session.
describe('request ids that are used several times at once', () => {
  test.each([
    ['7', '7'],
    ['7', '7.0'],
    ['"a"', '"\\u0061"'],
    ['12345678901234567890', '12345678901234567890'],
  ])('two requests at once with the ids %s and %s each get their own response', async (first, second) => {
    const slow = `slow ${first} and ${second}`.replace(/["\\]/g, '');
    const running = call(first, 'later', { ms: 150, message: slow });
    await isRunning(slow);
    const other = await call(second, 'later', { ms: 0, message: 'fast' });
    expect(texts([await running, other])).toEqual([slow, 'fast']);
    expect(other.text).toContain(`"id":${second},`);
  });

  test('lists, calls, errors and a hundred requests at once under the id 1 get their own responses', async () => {
    const messages = Array.from({ length: 100 }, (_, index) => `message ${index}`);
    const [list, failed, ...replies] = await Promise.all([
      session.send({ id: 1, method: 'tools/list' }),
      session.send({ id: 1, method: 'no/such/method' }),
      ...messages.map((message, index) => call('1', 'later', { ms: (index * 7) % 50, message })),
    ]);
    expect(list?.result.tools[0].name).toBe('echo');
    expect(failed?.error.code).toBe(-32601);
    expect(texts(replies)).toEqual(messages);
  });

  test('requests at once with one id and progress token get their own progress', async () => {
    const steps = [2, 3, 4];
    const replies = await Promise.all(
      steps.map((count) => session.send(toolCall(1, 'progress', { steps: count }, { progressToken: 1 }))),
    );
    for (const [index, { messages }] of replies.entries()) {
      const progress = messages.filter(({ method }) => method === 'notifications/progress');
      expect(progress.map(({ params }) => params)).toEqual(
        Array.from({ length: steps[index] ?? 0 }, (_, step) => ({ progressToken: 1, progress: step + 1 })),
      );
      expect(messages.at(-1).result.content[0].text).toBe('done');
    }
  });

  test('a cancellation of an id that several requests have cancels none of them', async () => {
    const before = (await cancellations()).length;
    const running = [1, 2].map((n) => call('"twice"', 'later', { ms: 300, message: `not cancelled ${n}` }));
    await isRunning('not cancelled 1');
    await isRunning('not cancelled 2');
    const cancelled = { method: 'notifications/cancelled', params: { requestId: 'twice' } };
    expect((await session.send(cancelled)).status).toBe(202);
    expect(texts(await Promise.all(running))).toEqual(['not cancelled 1', 'not cancelled 2']);
    expect(await cancellations()).toHaveLength(before);
  });

  test('a client that leaves one of several requests with one id cancels that request alone', async () => {
    const before = (await cancellations()).length;
    const leave = new AbortController();
    const left = session
      .send(toolCall(1, 'later', { ms: 60_000, message: 'is left' }), {
        signal: leave.signal,
      })
      .catch(() => 'left');
    const kept = call('1', 'later', { ms: 500, message: 'is kept' });
    await isRunning('is left');
    await isRunning('is kept');
    leave.abort();
    await until(async () => (await cancellations()).length === before + 1);
    expect(texts([await kept])).toEqual(['is kept']);
    expect(await left).toBe('left');
  });

  test('streams of several requests with one id are resumed by their own event ids', async () => {
    const initialize = { ...INITIALIZE, params: { ...INITIALIZE.params, protocolVersion: '2025-11-25' } };
    const own = await openSession(session.url, {}, initialize);
    const headers = { 'mcp-protocol-version': '2025-11-25' };
    const streams = await Promise.all(
      ['first', 'second'].map((message) =>
        openEvents(own.url, {
          session: own.id,
          headers,
          message: toolCall(1, 'later', { ms: 400, message }),
        }),
      ),
    );
    await until(() => streams.every(({ text }) => text.includes('id: ')));
    const ids = streams.map(({ text }) => /^id: (.*)$/m.exec(text)?.[1] ?? '');
    for (const stream of streams) stream.close();
    const resumed = await Promise.all(
      ids.map((id) => openEvents(own.url, { session: own.id, headers: { ...headers, 'last-event-id': id } })),
    );
    const answers = await Promise.all(
      resumed.map((stream) => stream.next(({ result }) => result !== undefined)),
    );
    expect(answers.map(({ result }) => result.content[0].text)).toEqual(['first', 'second']);
  });

  test('two requests at once with one id each get their own response in revision 2026-07-28', async () => {
    const replies = await Promise.all(
      ['one', 'two'].map((message, index) =>
        modernCall(session.url, 'later', { ms: 100 - 50 * index, message }, { id: 1 }),
      ),
    );
    expect(texts(replies)).toEqual(['one', 'two']);
  });

  test('two requests at once with one id each get their own response from several targets', async () => {
    await using several = await gateway(mcpConfig([chaos('a'), chaos('b')]));
    const own = await openSession(`${several.url}/mcp`);
    const replies = await Promise.all(
      ['a', 'b', 'a'].map((target, index) =>
        own.send(toolCall(1, `${target}_later`, { ms: 60 - index * 20, message: `${target} ${index}` })),
      ),
    );
    expect(texts(replies)).toEqual(['a 0', 'b 1', 'a 2']);
  });

  test('a request with an id in flight is refused over HTTP+SSE, whose responses have one stream', async () => {
    await using client = await legacyClient(`${gate.url}/mcp/sse`);
    await client.initialize();
    const running = client.post({ jsonrpc: '2.0', ...toolCall(7, 'later', { ms: 300, message: 'once' }) });
    expect((await running).status).toBe(202);
    const refused = await client.post({ jsonrpc: '2.0', ...toolCall(7, 'echo') });
    expect(refused.status).toBe(400);
    expect(await refused.json()).toEqual({
      jsonrpc: '2.0',
      id: null,
      error: {
        code: -32600,
        message: 'a request with the id 7 is in flight in this session: give each request its own id',
      },
    });
    await until(() => client.messages.some(({ id }) => id === 7));
    expect(client.messages.filter(({ id }) => id === 7)).toHaveLength(1);
  });

  test('request ids of different types and large numbers with different digits are not duplicates', async () => {
    const ids = ['7', '"7"', '9007199254740993', '9007199254740992'];
    const replies = await Promise.all(ids.map((id) => call(id, 'later', { ms: 50, message: id })));
    expect(replies.map(({ result }) => result?.content[0].text)).toEqual(ids);
  });
});

test('a request id can be reused as soon as its request has been answered or cancelled', async () => {
  for (let round = 0; round < 50; round += 1)
    expect((await call('1', 'echo', { message: `${round}` })).result.content[0].text).toBe(`${round}`);
  const hanging = call('1', 'hang').catch(() => undefined);
  await session.send({ id: 'sync', method: 'ping' });
  await session.send({ method: 'notifications/cancelled', params: { requestId: 1 } });
  expect((await call('1', 'echo', { message: 'again' })).result.content[0].text).toBe('again');
  await hanging;
});

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { chaos, mcpConfig } from '../../kit/config.ts';
import { openEvents } from '../../kit/event-stream.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { gateway } from '../../kit/gateway.ts';
import { type Json, type McpSession, openSession, toolCall } from '../../kit/mcp.ts';
import { until } from '../../kit/until.ts';

const hang = (id: unknown, name = 'hang') => toolCall(id, name);

/** The cancellations that a child has read, and the id under which it knows its hanging call. */
async function cancelledAt(
  session: McpSession,
  tool: string,
): Promise<{ calls: number[]; cancelled: Json[] }> {
  const { result } = await session.request('tools/call', { name: tool });
  const lines: Json[] = JSON.parse(result.content[0].text).map((line: string) => JSON.parse(line));
  return {
    calls: lines.filter(({ params }) => params?.name === 'hang').map(({ id }) => id),
    cancelled: lines.filter(({ method }) => method === 'notifications/cancelled').map(({ params }) => params),
  };
}

describe('notifications/cancelled', () => {
  test.each([7, 'seven', '7'])(
    'notifications/cancelled for id %j reaches the target with the id that the target knows',
    async (id) => {
      await using gate = await gateway(mcpConfig([chaos('a'), chaos('b')]));
      const session = await openSession(`${gate.url}/mcp`);
      const call = session.send(hang(id, 'b_hang')).catch(() => undefined);
      await session.request('tools/call', { name: 'b_echo' });
      await session.send({
        method: 'notifications/cancelled',
        params: { requestId: id, reason: 'too slow' },
      });
      const { calls, cancelled } = await cancelledAt(session, 'b_received');
      expect(cancelled).toEqual([{ requestId: calls[0], reason: 'too slow' }]);
      expect((await cancelledAt(session, 'a_received')).cancelled).toEqual([]);
      await gate.close();
      await call;
    },
  );

  test.each([8, '7', null, undefined])(
    'notifications/cancelled for %j, an id without a call in this session, is dropped',
    async (requestId) => {
      await using gate = await gateway(mcpConfig([chaos('a')]));
      const [session, other] = [await openSession(`${gate.url}/mcp`), await openSession(`${gate.url}/mcp`)];
      const calls = [session.send(hang(7)), other.send(hang(8))].map((call) => call.catch(() => undefined));
      await session.request('tools/call', { name: 'echo' });
      await other.request('tools/call', { name: 'echo' });
      const cancelling = {
        method: 'notifications/cancelled',
        params: requestId === undefined ? {} : { requestId },
      };
      expect((await session.send(cancelling)).status).toBe(202);
      expect((await cancelledAt(session, 'received')).cancelled).toEqual([]);
      expect((await cancelledAt(other, 'received')).cancelled).toEqual([]);
      await gate.close();
      await Promise.all(calls);
    },
  );

  test('notifications/cancelled ends the response stream of its call without a response', async () => {
    await using gate = await gateway(mcpConfig([chaos('a')]));
    const session = await openSession(`${gate.url}/mcp`);
    let isEnded = false;
    const call = session.send(hang(7)).then(() => {
      isEnded = true;
    });
    call.catch(() => undefined);
    await session.request('tools/call', { name: 'echo' });
    await session.send({ method: 'notifications/cancelled', params: { requestId: 7 } });
    await until(() => isEnded, 1_500);
  });

  test('a response that arrives after its call was cancelled is dropped, and the next call gets its own', async () => {
    await using gate = await gateway(mcpConfig([chaos('a')]));
    const session = await openSession(`${gate.url}/mcp`);
    await using folder = await temporaryFolder();
    const file = join(folder.path, 'answer');
    const call = session.send(toolCall(7, 'after', { file, message: 'late' })).catch(() => undefined);
    await session.request('ping');
    await session.send({ method: 'notifications/cancelled', params: { requestId: 7 } });
    writeFileSync(file, '');
    await until(() => gate.log.some((line) => line.includes('response to a cancelled request')));
    const { result } = await session.send(toolCall(7, 'echo', { message: 'own' }));
    expect(result.content[0].text).toBe('own');
    await gate.close();
    await call;
  });
});

describe('client disconnects', () => {
  test('a client that disconnects before the response has begun cancels its call', async () => {
    await using gate = await gateway(mcpConfig([chaos('a')]));
    const session = await openSession(`${gate.url}/mcp`);
    const leaving = new AbortController();
    const call = session.send(hang(7), { signal: leaving.signal });
    call.catch(() => undefined);
    await session.request('tools/call', { name: 'echo' });
    leaving.abort();
    await expect(call).rejects.toThrow();
    // Sooner than the head of the response would go out by itself.
    await until(async () => (await cancelledAt(session, 'received')).cancelled.length === 1, 1_500);
    const { calls, cancelled } = await cancelledAt(session, 'received');
    expect(cancelled).toEqual([{ requestId: calls[0], reason: 'the client disconnected' }]);
  });

  test('a client that disconnects while its response stream is open cancels its call immediately', async () => {
    await using gate = await gateway(mcpConfig([chaos('a')]));
    const session = await openSession(`${gate.url}/mcp`);
    // The request of the server opens the stream.
    await using stream = await openEvents(session.url, {
      session: session.id,
      message: { id: 7, method: 'tools/call', params: { name: 'ask', arguments: {} } },
    });
    await stream.next(({ method }) => method === 'roots/list');
    stream.close();
    await until(async () => (await cancelledAt(session, 'received')).cancelled.length === 1, 1_500);
  });
});

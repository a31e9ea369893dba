import { describe, expect, test } from 'vitest';
import type { Limits } from '../../../src/core/limits.ts';
import { mcpConfig } from '../../kit/config.ts';
import { type EventReader, openEvents } from '../../kit/event-stream.ts';
import { gateway } from '../../kit/gateway.ts';
import { INITIALIZE, type McpSession, openSession } from '../../kit/mcp.ts';
import { mcpUpstream } from '../../kit/mcp-upstream.ts';
import { until } from '../../kit/until.ts';

const revision = (protocolVersion: string) => ({
  ...INITIALIZE,
  params: { ...INITIALIZE.params, protocolVersion },
});

/** A session through a gateway to a target whose GET stream the test writes. */
async function stage(protocolVersion = '2025-11-25', limits: Partial<Limits> = {}) {
  const up = await mcpUpstream();
  const gate = await gateway(mcpConfig([{ name: 'up', mcp: { host: up.url } }]), { limits });
  const session = await openSession(`${gate.url}/mcp`, {}, revision(protocolVersion));
  const write = (message: object, stream = 0): void =>
    void up.streams[stream]?.write(`data: ${JSON.stringify({ jsonrpc: '2.0', ...message })}\n\n`);
  return {
    up,
    gate,
    session,
    write,
    log: (data: unknown, stream = 0) =>
      write({ method: 'notifications/message', params: { level: 'info', data } }, stream),
    /** Opens the GET stream, with the stream of the target open, too. */
    open: async (lastEventId?: string, own: McpSession = session): Promise<EventReader> => {
      const headers: Record<string, string> =
        lastEventId === undefined ? {} : { 'last-event-id': lastEventId };
      const stream = await openEvents(own.url, { session: own.id, headers });
      await until(() => up.streams.length > 0);
      return stream;
    },
    /** Resolves once the gateway knows that the client has left its stream, which ends the `count`-th request. */
    left: (count = 3) => gate.accessLine(count),
    /** Resolves once the gateway has received all that the target has sent: it answers a ping that comes after it. */
    received: async () => {
      write({ id: 'alive', method: 'ping' });
      await until(() => up.received.some(({ message }) => message?.id === 'alive'));
    },
    [Symbol.asyncDispose]: async () => {
      await gate.close();
      await up[Symbol.asyncDispose]();
    },
  };
}

const logged = ({ messages }: EventReader): unknown[] =>
  messages.filter(({ method }) => method === 'notifications/message').map(({ params }) => params.data);
const hasLogged = (stream: EventReader, data: unknown): Promise<void> =>
  until(() => logged(stream).includes(data));
const lastId = ({ text }: EventReader): string => [...text.matchAll(/^id: (.*)$/gm)].at(-1)?.[1] ?? '';

describe('the GET stream of a session', () => {
  test('the GET stream of a session begins with an event without data that has an id and a retry time', async () => {
    await using own = await stage();
    await using stream = await own.open();
    own.log('first');
    await hasLogged(stream, 'first');
    expect(stream.text).toMatch(
      /^id: [\w-]+-s\d+\.0\nretry: 1000\ndata: \n\nid: [\w-]+-s\d+\.1\nevent: message\ndata: \{/,
    );
  });

  test('the GET stream of a client with an earlier revision has no event ids', async () => {
    await using own = await stage('2025-06-18');
    await using stream = await own.open();
    own.log('first');
    await hasLogged(stream, 'first');
    expect(stream.text).not.toMatch(/^(?:id|retry):/m);
  });

  test('a client that resumes its lost GET stream gets the messages sent meanwhile in order, and none twice', async () => {
    await using own = await stage();
    const first = await own.open();
    for (const data of [1, 2]) own.log(data);
    await hasLogged(first, 2);
    first.close();
    await own.left();
    for (const data of [3, 4, 5]) own.log(data);
    await using second = await own.open(lastId(first));
    own.log(6);
    await hasLogged(second, 6);
    expect(logged(first)).toEqual([1, 2]);
    expect(logged(second)).toEqual([3, 4, 5, 6]);
    expect(second.text).not.toContain('retry:');
    second.close();
    own.log(7);
    await using third = await own.open(lastId(second));
    await hasLogged(third, 7);
    expect(logged(third)).toEqual([7]);
    // Another stream does not begin with what a resumed one has delivered.
    await using fourth = await own.open();
    own.log(8);
    await hasLogged(fourth, 8);
    expect(logged(fourth)).toEqual([8]);
    expect(own.up.streams).toHaveLength(1);
  });

  test('a client can resume its GET stream before the gateway has noticed that it was lost', async () => {
    await using own = await stage();
    await using first = await own.open();
    for (const data of [1, 2]) own.log(data);
    await hasLogged(first, 2);
    await using second = await own.open(lastId(first).replace(/\d+$/, '1'));
    await first.untilEnd();
    own.log(3);
    await hasLogged(second, 3);
    expect(logged(second)).toEqual([2, 3]);
  });

  test('a client that opens another GET stream without an event id gets each message that had no stream once', async () => {
    await using own = await stage();
    const first = await own.open();
    own.log(1);
    await hasLogged(first, 1);
    first.close();
    await own.left();
    for (const data of [2, 3]) own.log(data);
    await own.received();
    await using second = await own.open();
    own.log(4);
    await hasLogged(second, 4);
    expect(logged(second)).toEqual([2, 3, 4]);
    // The lost stream cannot be resumed any more: its messages were delivered.
    await using third = await own.open(lastId(first));
    own.log(5);
    await hasLogged(third, 5);
    expect(logged(third)).toEqual([5]);
  });

  test('an event id of another session gives a GET stream without messages of that session, which can still be resumed', async () => {
    await using own = await stage();
    const first = await own.open();
    own.log('mine');
    await hasLogged(first, 'mine');
    first.close();
    await own.left();
    own.log('mine, missed');
    const stranger = await openSession(own.session.url, {}, revision('2025-11-25'));
    await using theirs = await own.open(lastId(first).replace(/\d+$/, '0'), stranger);
    await until(() => own.up.streams.length === 2);
    own.log('theirs', 1);
    await hasLogged(theirs, 'theirs');
    expect(logged(theirs)).toEqual(['theirs']);
    await using second = await own.open(lastId(first));
    await hasLogged(second, 'mine, missed');
    expect(logged(second)).toEqual(['mine, missed']);
  });

  test('a request of a server during the interruption of the GET stream reaches the client that resumes it, and a ping is answered at once', async () => {
    await using own = await stage();
    const first = await own.open();
    own.log(1);
    await hasLogged(first, 1);
    first.close();
    await own.left();
    own.write({ id: 'question', method: 'roots/list' });
    own.write({ id: 'alive', method: 'ping' });
    const answers = (id: string) => own.up.received.filter(({ message }) => message?.id === id);
    await until(() => answers('alive').length === 1);
    expect(answers('alive')[0]?.message.result).toEqual({});
    expect(answers('question')).toEqual([]);
    await using second = await own.open(lastId(first));
    const { id } = await second.next(({ method }) => method === 'roots/list');
    await own.session.send({ id, result: { roots: [] } });
    await until(() => answers('question').length === 1);
  });

  test('a client that returns too late to resume its GET stream gets another one with the queued messages, after a request of the server was answered with an error', async () => {
    await using own = await stage('2025-11-25', { resumeTimeout: 50 });
    const first = await own.open();
    own.log(1);
    await hasLogged(first, 1);
    first.close();
    await own.left();
    own.log(2);
    own.write({ id: 'question', method: 'roots/list' });
    // It was waiting since after the stream was lost, so the time for resuming is over, too.
    await until(() => own.up.received.some(({ message }) => message?.id === 'question' && message.error));
    await using second = await own.open(lastId(first));
    own.log(3);
    await hasLogged(second, 3);
    expect(second.text).toContain('retry:');
    expect(logged(second)).toEqual([2, 3]);
  });

  test('a GET stream that has dropped messages over the limit is replaced by one with the queued messages', async () => {
    await using own = await stage('2025-11-25', { serverReplayBytes: 300 });
    const first = await own.open();
    own.log(0);
    await hasLogged(first, 0);
    first.close();
    await own.left();
    for (let data = 1; data < 10; data += 1) own.log(data);
    own.log('x'.repeat(400));
    await own.received();
    await using second = await own.open(lastId(first));
    own.log('end');
    await hasLogged(second, 'end');
    expect(second.text).toContain('retry:');
    expect(logged(second)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 'x'.repeat(400), 'end']);
  });
});

import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import type { Limits } from '../../../../src/core/limits.ts';
import { boundsInUse } from '../../../kit/bounds-in-use.ts';
import { chaos, mcpConfig } from '../../../kit/config.ts';
import { type EventReader, openEvents } from '../../../kit/event-stream.ts';
import { gateway } from '../../../kit/gateway.ts';
import { INITIALIZE, type Json, type McpSession, openSession } from '../../../kit/mcp.ts';
import { mcpUpstream, type Script } from '../../../kit/mcp-upstream.ts';
import { until } from '../../../kit/until.ts';

const CALL = { id: 'c', method: 'tools/call', params: { name: 'say', _meta: { progressToken: 'p' } } };
const revision = (protocolVersion: string) => ({
  ...INITIALIZE,
  params: { ...INITIALIZE.params, protocolVersion },
});

/** A target that answers calls when the test says so, on the stream of the call. */
async function stage(protocolVersion = '2025-11-25', limits: Partial<Limits> = {}) {
  const calls: { id: unknown; response: ServerResponse }[] = [];
  const script: Script = ({ message }, response) => {
    if (message?.method !== 'tools/call') return false;
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
    calls.push({ id: message.id, response });
    return true;
  };
  const up = await mcpUpstream({ script });
  const gate = await gateway(mcpConfig([{ name: 'up', mcp: { host: up.url } }]), { limits, admin: true });
  const session = await openSession(`${gate.url}/mcp`, {}, revision(protocolVersion));
  const write = (message: object): void =>
    void calls.at(-1)?.response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', ...message })}\n\n`);
  return {
    up,
    session,
    call: async (id = CALL.id, isSilent = false): Promise<EventReader> => {
      const stream = openEvents(session.url, { session: session.id, message: { ...CALL, id } });
      const count = calls.length;
      await until(() => calls.length > count);
      if (!isSilent) progress(0);
      return stream;
    },
    progress,
    ask: () => write({ id: 'question', method: 'roots/list' }),
    inFlight: async () => (await boundsInUse(gate))['mcp.session.inFlight'],
    /** Resolves once the gateway knows that the client of the call has left. */
    leftBehind: () => gate.accessLine(3),
    answer: (done: unknown = true) => {
      write({ id: calls.at(-1)?.id, result: { done } });
      calls.at(-1)?.response.end();
    },
    [Symbol.asyncDispose]: async () => {
      await gate.close();
      await up[Symbol.asyncDispose]();
    },
  };

  function progress(n: number): void {
    write({ method: 'notifications/progress', params: { progressToken: 'p', progress: n } });
  }
}

const told = ({ messages }: EventReader): unknown[] =>
  messages.map(({ params, result }: Json) => params?.progress ?? result);
const lastId = ({ text }: EventReader): string => [...text.matchAll(/^id: (.*)$/gm)].at(-1)?.[1] ?? '';
const resume = ({ url, id }: McpSession, eventId: string): Promise<EventReader> =>
  openEvents(url, { session: id, headers: { 'last-event-id': eventId } });
const isProgress =
  (n: number) =>
  ({ params }: Json): boolean =>
    params?.progress === n;

describe('a resumable response stream', () => {
  test('a resumable response stream begins with an event without data that has an id and a retry time', async () => {
    await using own = await stage();
    await using stream = await own.call();
    await stream.next(isProgress(0));
    expect(stream.text).toMatch(
      /^id: [\w-]+\.0\nretry: 1000\ndata: \n\nid: [\w-]+\.1\nevent: message\ndata: \{/,
    );
  });

  test('a resumable response stream continues after a lost connection from the last event that the client received', async () => {
    await using own = await stage();
    const first = await own.call();
    own.progress(1);
    await first.next(isProgress(1));
    first.close();
    own.progress(2);
    await using second = await resume(own.session, lastId(first));
    await second.next(isProgress(2));
    own.progress(3);
    own.answer();
    await second.untilEnd();
    expect(told(first)).toEqual([0, 1]);
    expect(told(second)).toEqual([2, 3, { done: true }]);
    expect(second.messages.at(-1)?.id).toBe('c');
    expect(own.up.of('tools/call')).toHaveLength(1);
    expect(own.up.of('notifications/cancelled')).toEqual([]);
  });

  test('a resumed response stream delivers a server request made during the disconnect when no other stream was open', async () => {
    await using own = await stage();
    const first = await own.call();
    await first.next(isProgress(0));
    first.close();
    await own.leftBehind();
    own.ask();
    own.progress(1);
    await using second = await resume(own.session, lastId(first));
    const { id } = await second.next(({ method }) => method === 'roots/list');
    await own.session.send({ id, result: { roots: [] } });
    const answers = () => own.up.received.filter(({ message }) => message?.id === 'question');
    await until(() => answers().length === 1);
    expect(answers()[0]?.message.result).toEqual({ roots: [] });
  });

  test('a resumable response stream can be lost and resumed repeatedly, even if the gateway has not noticed the disconnect', async () => {
    await using own = await stage();
    const first = await own.call();
    await first.next(isProgress(0));
    await using second = await resume(own.session, lastId(first));
    await first.untilEnd();
    own.progress(1);
    await second.next(isProgress(1));
    second.close();
    own.answer();
    await using third = await resume(own.session, lastId(first));
    await third.untilEnd();
    expect(told(third)).toEqual([1, { done: true }]);
  });

  test('a resumed response stream repeats the response for a client that may have missed it', async () => {
    await using own = await stage();
    await using first = await own.call();
    own.answer();
    await first.untilEnd();
    await using second = await resume(own.session, lastId(first).replace(/\d+$/, '0'));
    await second.untilEnd();
    expect(told(second)).toEqual([0, { done: true }]);
  });

  test('the call of a resumable response stream is cancelled when the client does not come back', async () => {
    await using own = await stage('2025-11-25', { resumeTimeout: 100 });
    const first = await own.call();
    await first.next(isProgress(0));
    first.close();
    await until(() => own.up.of('notifications/cancelled').length === 1);
    await expectRefused(own.session, lastId(first));
  });

  test("the request id of a disconnected client's stream can be used by its next request", async () => {
    await using own = await stage();
    const first = await own.call();
    await first.next(isProgress(0));
    first.close();
    await until(async () => {
      const next = await openEvents(own.session.url, { session: own.session.id, message: CALL });
      next.close();
      return next.status === 200;
    });
  });

  test('a response stream that has dropped events over the limit cannot be resumed before them', async () => {
    await using own = await stage('2025-11-25', { replayBytes: 300 });
    await using first = await own.call();
    for (let n = 1; n < 10; n += 1) own.progress(n);
    await first.next(isProgress(9));
    const id = lastId(first);
    await expectRefused(own.session, id.replace(/\d+$/, '0'));
    await using second = await resume(own.session, id.replace(/\d+$/, '9'));
    await second.next(isProgress(9));
    expect(told(second)).toEqual([9]);
  });

  test.each(['AAAAAAAA-1.0', 'x', '-1', '..', `${'a'.repeat(2000)}.0`])(
    'a response stream cannot be resumed with an event id that was never sent: %s',
    async (id) => {
      await using own = await stage();
      await using first = await own.call();
      await first.next(isProgress(0));
      await expectRefused(own.session, id);
    },
  );

  test('a response stream cannot be resumed by another session', async () => {
    await using own = await stage();
    await using first = await own.call();
    await first.next(isProgress(0));
    await expectRefused(await openSession(own.session.url, {}, revision('2025-11-25')), lastId(first));
    own.progress(1);
    await first.next(isProgress(1));
  });

  test('response streams over the limit are not resumable until other streams have ended', async () => {
    await using own = await stage('2025-11-25', { resumableStreams: 1 });
    await using first = await own.call();
    await first.next(isProgress(0));
    await using second = await own.call('another');
    await second.next(isProgress(0));
    expect(second.text).not.toContain('id: ');
    own.answer();
    await second.untilEnd();
    expect(first.text).toContain('id: ');
  });

  test('a call that ends after its client disconnected is not in flight any more, and the client can resume to get the response', async () => {
    await using own = await stage();
    const first = await own.call();
    await first.next(isProgress(0));
    first.close();
    await own.leftBehind();
    expect(await own.inFlight()).toBe(1);
    own.answer();
    await until(async () => (await own.inFlight()) === 0);
    await using second = await resume(own.session, lastId(first));
    await second.untilEnd();
    expect(told(second)).toEqual([{ done: true }]);
  });

  test('a response is available until the timeout however often it is fetched, and not afterwards', async () => {
    await using own = await stage('2025-11-25', { resumeTimeout: 1_000 });
    await using first = await own.call();
    own.answer();
    await first.untilEnd();
    const id = lastId(first).replace(/\d+$/, '0');
    for (let round = 0; round < 3; round += 1) {
      await using again = await resume(own.session, id);
      await again.untilEnd();
      expect(told(again)).toEqual([0, { done: true }]);
    }
    await until(
      async () => {
        await using again = await resume(own.session, id);
        await again.untilEnd();
        return again.status === 400;
      },
      10_000,
      1_500,
    );
  });

  test('the oldest responses over the limit of characters per session cannot be fetched again', async () => {
    await using own = await stage('2025-11-25', { resumableStreams: 2, replayBytes: 200 });
    const ids: string[] = [];
    for (const id of ['one', 'two']) {
      await using stream = await own.call(id);
      own.answer('x'.repeat(300));
      await stream.untilEnd();
      ids.push(lastId(stream).replace(/\d+$/, '1'));
    }
    const [one = '', two = ''] = ids;
    await expectRefused(own.session, one);
    await using again = await resume(own.session, two);
    await again.untilEnd();
    expect(told(again)).toEqual([{ done: 'x'.repeat(300) }]);
  });

  test('response streams of clients with an earlier revision are not resumable, and a disconnect cancels the call', async () => {
    await using own = await stage('2025-06-18');
    const first = await own.call();
    await first.next(isProgress(0));
    expect(first.text).not.toMatch(/^(?:id|retry):/m);
    first.close();
    await until(() => own.up.of('notifications/cancelled').length === 1);
  });
});

describe('a resumable response stream without events of the target', () => {
  test('a response stream of an HTTP target can be resumed soon after the target has begun its own', async () => {
    await using own = await stage('2025-11-25', { responseHeadAfter: 600_000 });
    await using first = await own.call(CALL.id, true);
    await until(() => /^id: [\w-]+\.0\nretry: 1000\ndata: \n\n$/.test(first.text));
    first.close();
    await own.leftBehind();
    own.answer();
    await using second = await resume(own.session, lastId(first));
    await second.untilEnd();
    expect(told(second)).toEqual([{ done: true }]);
    expect(own.up.of('notifications/cancelled')).toEqual([]);
  });

  test('a response stream of a child process can be resumed soon after the call has begun', async () => {
    // Otherwise only the response would begin the stream.
    await using gate = await gateway(mcpConfig([chaos('a')]), { limits: { responseHeadAfter: 600_000 } });
    const session = await openSession(`${gate.url}/mcp`, {}, revision('2025-11-25'));
    const message = { id: 1, method: 'tools/call', params: { name: 'hang' } };
    await using stream = await openEvents(session.url, { session: session.id, message });
    await until(() => /^id: [\w-]+\.0\nretry: 1000\ndata: \n\n$/.test(stream.text));
  });
});

describe('a response stream with only a response', () => {
  test('a response stream with only its response has neither an id nor an event without data', async () => {
    await using gate = await gateway(mcpConfig([chaos('a')]), { limits: { resumableHeadAfter: 60_000 } });
    const session = await openSession(`${gate.url}/mcp`, {}, revision('2025-11-25'));
    const { text, headers } = await session.send({ id: 1, method: 'ping' });
    expect(text).toBe('event: message\ndata: {"jsonrpc":"2.0","id":1,"result":{}}\n\n');
    // All of it is known at the start, so it is not sent in chunks.
    expect(headers.get('content-length')).toBe(String(text.length));
  });
});

async function expectRefused({ url, id }: McpSession, eventId: string): Promise<void> {
  const response = await fetch(url, {
    headers: { accept: 'text/event-stream', 'mcp-session-id': id, 'last-event-id': eventId },
  });
  expect(response.status).toBe(400);
  expect(await response.text()).toBe('mcp: the events after this Last-Event-ID are no longer available');
}

import { describe, expect, test, vi } from 'vitest';
import { type Answer, cut, fakeBackend, reply, silence } from '../kit/fake-backend.ts';
import { memoryAdapter } from '../kit/memory-adapter.ts';

const SEARCH = ['search_knowledge', { query: 'x' }] as const;
const STORE = ['store_episodic', { sessionId: 's', role: 'user', content: 'x' }] as const;
const INGEST = ['ingest_document', { title: 't', content: 'x' }] as const;
const GRAPH = ['query_graph', { entityId: 'x' }] as const;
const error = (message: string) => ({ error: { code: 'x', message, details: {} } });

/** The error text that the model gets for this behaviour of the backend. */
async function told(
  [name, args]: readonly [string, object],
  ...answers: Answer[]
): Promise<{ text: string; calls: number }> {
  await using backend = await fakeBackend(...answers);
  await using adapter = await memoryAdapter(backend.url, { key: 'top-secret-key' });
  const { result } = await adapter.call(name, args);
  expect(result).toMatchObject({ isError: true });
  expect(result.structuredContent).toBeUndefined();
  const { text } = result.content[0];
  expect(text).not.toContain('top-secret-key');
  return { text: text.replace(backend.url, 'ORIGIN'), calls: backend.seen.length };
}

describe('memory backend failures', () => {
  test('an unreachable backend is reported to the model', async () => {
    await using adapter = await memoryAdapter('http://127.0.0.1:1');
    const say = async ([name, args]: readonly [string, object]) =>
      (await adapter.call(name, args)).result.content[0].text;
    expect(await say(SEARCH)).toBe('Memory backend unreachable at http://127.0.0.1:1.');
    expect(await say(STORE)).toBe('Memory backend unreachable at http://127.0.0.1:1. Nothing was stored.');
    expect(adapter.log.join('')).toMatch(
      /tool failed.*help=.*`agctl memory-backend serve`, or set MEMORY_API_URL/,
    );
  });

  test('a backend host name that does not resolve is reported to the model', async () => {
    await using adapter = await memoryAdapter('http://no-such-host.invalid:3006');
    const { result } = await adapter.call(...SEARCH);
    expect(result.content[0].text).toBe('Memory backend unreachable at http://no-such-host.invalid:3006.');
  });

  test('a backend that closes the connection is reported to the model', async () => {
    expect(await told(SEARCH, cut)).toEqual({
      text: 'The connection to the memory backend was lost at ORIGIN.',
      calls: 2,
    });
    expect((await told(STORE, cut)).text).toContain(
      'Outcome unknown: it may have been stored, so a repetition could store it twice.',
    );
    expect((await told(INGEST, cut)).text).toContain('Outcome unknown; safe to retry.');
  });

  test('a backend that times out is reported to the model', async () => {
    const timeout = vi.spyOn(AbortSignal, 'timeout');
    const asked: number[] = [];
    timeout.mockImplementation((ms) => {
      asked.push(ms);
      const soon = new AbortController();
      setTimeout(() => soon.abort(new DOMException('late', 'TimeoutError')), 50);
      return soon.signal;
    });
    try {
      expect(await told(SEARCH, silence)).toEqual({
        text: 'Memory backend did not answer within 10 s.',
        calls: 1,
      });
      expect((await told(INGEST, silence)).text).toBe(
        'Memory backend did not answer within 50 s. Outcome unknown; safe to retry.',
      );
      expect(asked).toEqual([10_000, 50_000]);
    } finally {
      timeout.mockRestore();
    }
  });

  test.each([400, 422, 413])('the message of a backend that rejects with %i is returned', async (status) => {
    expect(await told(SEARCH, reply(status, error('`query` is too odd')))).toEqual({
      text: '`query` is too odd',
      calls: 1,
    });
  });

  test('the message of a backend that does not know the entity is returned with the close names', async () => {
    const { text } = await told(GRAPH, reply(404, error("No entity 'x'. Similar names: y, z")));
    expect(text).toBe("No entity 'x'. Similar names: y, z");
  });

  test.each([401, 403])('a backend that answers %i is reported to the model', async (status) => {
    const { text } = await told(SEARCH, reply(status, error('bad token top-secret-key')));
    expect(text).toMatch(/^Memory backend rejected the adapter's credentials\./);
  });

  test("a proxy's 413 in front of the backend is reported as too large", async () => {
    const { text } = await told(INGEST, reply(413, '<h1>Request Entity Too Large</h1>'));
    expect(text).toBe('The document or text is larger than the memory backend accepts.');
  });

  test('a busy backend is reported to the model', async () => {
    const { text } = await told(SEARCH, reply(429, {}, { 'retry-after': '7' }));
    expect(text).toBe('Memory backend is busy. Retry after 7 s.');
  });

  test('a backend error is reported with its status and request id, without a stack trace or HTML page', async () => {
    const failing = reply(500, '<h1>Error at /srv/app.js:1</h1>', { 'x-request-id': 'abc-1' });
    expect(await told(SEARCH, failing)).toEqual({
      text: 'Memory backend failed (500, request id abc-1).',
      calls: 1,
    });
    expect((await told(STORE, failing)).text).toContain('Outcome unknown');
  });

  test.each([502, 503])('a backend that fails twice with %i is reported to the model', async (status) => {
    expect(await told(SEARCH, reply(status, 'x'))).toEqual({
      text: `Memory backend failed (${status}).${status === 503 ? ' Retry in a moment.' : ''}`,
      calls: 2,
    });
  });

  test.each([
    ['a page', reply(200, '<html>')],
    ['another shape', reply(200, { results: 'none' })],
    ['nothing', reply(200, '')],
    ['null', reply(200, null)],
    ['9 MiB', reply(200, 'x'.repeat(9 * 1024 * 1024))],
    ['404 of something else', reply(404, 'not found')],
    ['a redirect', reply(302, '', { location: 'http://elsewhere.invalid' })],
  ])('a backend that answers with %s is reported to the model', async (_name, answer) => {
    const { text, calls } = await told(SEARCH, answer);
    expect(text).toMatch(/^Memory backend sent an unexpected response\./);
    expect(calls).toBe(1);
  });
});

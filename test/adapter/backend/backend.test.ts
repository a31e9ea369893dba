import { describe, expect, test } from 'vitest';
import { type BackendCall, createBackend, inNamespace } from '../../../src/adapter/backend/backend.ts';
import {
  type BackendReply,
  type BackendRequest,
  ReplyTooLongError,
} from '../../../src/adapter/backend/transport.ts';

// Every shape check of the reader of answers, which a backend for each would take minutes to reach.

type Answer = Partial<BackendReply> | Error;

/** A backend whose transport gives these answers, the last one again and again, and the requests that it got. */
function backend(answers: readonly Answer[], key?: string) {
  const requests: BackendRequest[] = [];
  const transport = {
    origin: 'ORIGIN',
    send(request: BackendRequest): Promise<BackendReply> {
      const answer = answers[Math.min(requests.length, answers.length - 1)] ?? {};
      requests.push(request);
      return answer instanceof Error
        ? Promise.reject(answer)
        : Promise.resolve({ status: 200, headers: {}, text: '{}', ...answer });
    },
    close: () => Promise.resolve(),
  };
  return { requests, ...createBackend(transport, key) };
}

const READ: BackendCall = {
  method: 'GET',
  path: '/stats',
  timeout: 60_000,
  signal: new AbortController().signal,
};
const WRITE: BackendCall = { ...READ, method: 'POST', body: { a: 1 }, write: { repeatable: false } };

/** What a call returns, as JSON text, or the text of its error. */
const told = (answers: readonly Answer[], call = READ): Promise<string> =>
  backend(answers)
    .call(call)
    .then((value) => JSON.stringify(value))
    .catch((error: Error) => error.message);

const failed = (code: string): Error => Object.assign(new Error('failed'), { code });
const error = (members: object): string => JSON.stringify({ error: members });

const UNEXPECTED =
  'Memory backend sent an unexpected response. Is MEMORY_API_URL the address of a memory backend?';
const REFUSED =
  "Memory backend rejected the adapter's credentials. MEMORY_API_KEY of adapter and backend must be the same.";
const MAYBE = ' Outcome unknown: it may have been stored, so a repetition could store it twice.';

describe('an answer of the memory backend', () => {
  test.each<[Partial<BackendReply>, string]>([
    [{ text: '{"a":1}' }, '{"a":1}'],
    [{ status: 299, text: '1' }, '1'],
    [{ status: 300, text: '{}' }, UNEXPECTED],
    [{ text: 'x' }, UNEXPECTED],
    [{ text: '' }, UNEXPECTED],
    [{ status: 400, text: error({ message: 'no' }) }, 'no'],
    [{ status: 413, text: error({ message: 'no' }) }, 'no'],
    [{ status: 499, text: error({ message: 'no' }) }, 'no'],
    ...['x', 'null', '1', '[]', '{}', '{"error":null}', '{"error":"no"}', '{"error":["no"]}'].map(
      (text): [Partial<BackendReply>, string] => [{ status: 404, text }, UNEXPECTED],
    ),
    ...[undefined, null, '', 1, ['no'], {}].map((message): [Partial<BackendReply>, string] => [
      { status: 404, text: error({ message }) },
      UNEXPECTED,
    ]),
    [{ status: 413, text: 'null' }, 'The document or text is larger than the memory backend accepts.'],
    [{ status: 401, text: error({ code: 'forbidden' }) }, REFUSED],
    [{ status: 403, text: error({ code: 'x' }) }, REFUSED],
    [{ status: 403, text: 'null' }, REFUSED],
    [
      { status: 403, text: error({ code: 'forbidden' }) },
      "The memory backend's key of this adapter does not permit this namespace.",
    ],
    [{ status: 500, text: error({ message: 'at /srv/app.js' }) }, 'Memory backend failed (500).'],
    [{ status: 599, headers: { 'x-request-id': 'a' } }, 'Memory backend failed (599, request id a).'],
    ...['', 'a b', 'a'.repeat(101), ['a', 'b'], ['a']].map((id): [Partial<BackendReply>, string] => [
      { status: 500, headers: { 'x-request-id': id } },
      'Memory backend failed (500).',
    ]),
    [{ status: 429, headers: { 'retry-after': '7' } }, 'Memory backend is busy. Retry after 7 s.'],
    [{ status: 503, headers: { 'retry-after': '1' } }, 'Memory backend failed (503). Retry after 1 s.'],
    ...[undefined, '', 'Wed, 21 Oct 2026 07:28:00 GMT', '-1', '1234567', ['7', '8']].map(
      (after): [Partial<BackendReply>, string] => [
        { status: 429, headers: { 'retry-after': after } },
        'Memory backend is busy. Retry in a moment.',
      ],
    ),
  ])('%j is read as %j', async (answer, text) => {
    expect(await told([answer])).toBe(text);
  });

  test('has a message of bounded length', async () => {
    const text = error({ message: 'm'.repeat(9_999) });
    expect(await told([{ status: 400, text }])).toBe('m'.repeat(500));
  });

  test('says what a write may have stored', async () => {
    expect(await told([{ status: 500 }], WRITE)).toBe(`Memory backend failed (500).${MAYBE}`);
    expect(await told([{ status: 500 }], { ...WRITE, write: { repeatable: true } })).toBe(
      'Memory backend failed (500). Outcome unknown; safe to retry.',
    );
    expect(await told([{ text: 'x' }], WRITE)).toBe(UNEXPECTED.replace(' Is', `${MAYBE} Is`));
  });
});

describe('a connection to the memory backend', () => {
  const LOST = 'The connection to the memory backend was lost at ORIGIN.';
  const UNREACHABLE = 'Memory backend unreachable at ORIGIN.';
  const refused = failed('ECONNREFUSED');
  const reset = failed('ECONNRESET');

  test.concurrent.each<[what: string, answers: Answer[], text: string]>([
    ['that is refused', [refused], `${UNREACHABLE} Nothing was stored.`],
    [
      'that each address refuses',
      [new AggregateError([refused, failed('ENETUNREACH')])],
      `${UNREACHABLE} Nothing was stored.`,
    ],
    ['that one of two addresses loses', [new AggregateError([refused, reset])], LOST + MAYBE],
    ['that is lost', [reset], LOST + MAYBE],
    ['that fails without a code', [new Error('failed')], LOST + MAYBE],
    ['that is lost, then refused', [reset, refused], LOST + MAYBE],
    ['that is refused, then lost', [refused, reset], LOST + MAYBE],
    ['that answers 502 and is then refused', [{ status: 502 }, refused], LOST + MAYBE],
    ['with a reply that is too long', [new ReplyTooLongError()], UNEXPECTED.replace(' Is', `${MAYBE} Is`)],
    [
      'that is lost, with a reply that is too long',
      [reset, new ReplyTooLongError()],
      UNEXPECTED.replace(' Is', `${MAYBE} Is`),
    ],
  ])('%s is reported', async (_what, answers, text) => {
    expect(await told(answers, WRITE)).toBe(text);
  });

  test.concurrent.each<[what: string, answers: Answer[], count: number]>([
    ['after a lost connection', [reset, {}], 2],
    ['after 502', [{ status: 502 }, {}], 2],
    ['after 503', [{ status: 503 }, {}], 2],
    ['but not after 500', [{ status: 500 }], 1],
    ['but not after a reply that is too long', [new ReplyTooLongError()], 1],
  ])('is tried once more %s', async (_what, answers, count) => {
    const { requests, call } = backend(answers);
    await call(READ).catch(() => undefined);
    expect(requests).toHaveLength(count);
  });

  test('ends with the reason of the caller, or with its time', async () => {
    const gone = AbortSignal.abort(new Error('gone'));
    const { requests, call } = backend([reset]);
    await expect(call({ ...READ, signal: gone })).rejects.toThrow('gone');
    expect(requests).toHaveLength(1);
    expect(await told([reset], { ...READ, timeout: 1 })).toBe(
      'Memory backend did not answer within 0.001 s.',
    );
  });
});

describe('a request to the memory backend', () => {
  test('has what its call needs, and nothing else', async () => {
    const { requests, call } = backend([{}], 'k3y');
    await call({ ...WRITE, query: { q: 'a b' }, namespace: 'n' });
    expect(requests[0]).toMatchObject({ method: 'POST', path: '/stats?q=a+b', body: '{"a":1}' });
    expect(requests[0]?.headers).toMatchObject({
      'content-type': 'application/json',
      'idempotency-key': expect.any(String),
      authorization: 'Bearer k3y',
      'x-memory-namespace': 'n',
    });
    const plain = backend([{}]);
    await plain.call(READ);
    expect(plain.requests[0]).toMatchObject({ path: '/stats', body: undefined });
    expect(Object.keys(plain.requests[0]?.headers ?? {})).toEqual(['accept', 'x-request-id']);
  });

  test('is in the namespace of its backend', async () => {
    const { requests, ...own } = backend([{}]);
    await inNamespace(own, 'n').call(READ);
    await inNamespace(own, undefined).call(READ);
    expect(requests.map(({ headers }) => headers['x-memory-namespace'])).toEqual(['n', undefined]);
  });
});

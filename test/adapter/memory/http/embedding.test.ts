import { expect, test } from 'vitest';
import { type Embedder, MODEL_SCORING } from '../../../../src/adapter/memory/embed/embedder.ts';
import { createHashEmbedder } from '../../../../src/adapter/memory/embed/hash-embedder.ts';
import { AppError } from '../../../../src/core/errors.ts';
import { memoryBackend } from '../../../kit/memory-backend.ts';
import { until } from '../../../kit/until.ts';

/** A service that can be away. */
function service() {
  const inner = createHashEmbedder();
  const state = { isAway: false };
  const answered = <T>(value: Promise<T>): Promise<T> =>
    state.isAway
      ? Promise.reject(new AppError('upstream_unreachable', { message: 'the service is away' }))
      : value;
  const embedder: Embedder = {
    ...inner,
    id: 'service/128',
    isImmediate: false,
    scoring: MODEL_SCORING,
    embed: (...args) => answered(inner.embed(...args)),
    embedQuery: (text) => answered(inner.embedQuery(text)),
  };
  return { embedder, state };
}

test('while the embedding service is down, documents are accepted, found by words, and listed as pending', async () => {
  const { embedder, state } = service();
  state.isAway = true;
  await using own = await memoryBackend({ embedder, docs: { 'a.md': '# Zebras\n\nZebras have stripes.' } });
  expect(own.memory.isReady).toBe(true);
  const { status, body } = await own.post('ingest/docs', { title: 'Horses', content: 'Horses have manes.' });
  expect([status, body.document.status, body.sync.state]).toEqual([200, 'created', 'done']);
  const found = (await own.post('search', { query: 'horses and their manes' })).body;
  expect(found.results[0]).toMatchObject({ name: 'Horses', cosine: null });
  expect(found.hint).toBe('search is by words only at the moment: the service is away');
  expect((await own.get('stats')).body.embedding).toMatchObject({
    state: 'waiting',
    pending: 2,
    problem: 'the service is away',
    retryAt: expect.stringMatching(/Z$/),
  });
  state.isAway = false;
  await until(async () => (await own.get('stats')).body.embedding.pending === 0);
  const again = (await own.post('search', { query: 'horses and their manes' })).body;
  expect(again.results[0].cosine).toBeGreaterThan(0);
});

test('a caller that leaves during a search is no error', async () => {
  const { embedder } = service();
  const asked = Promise.withResolvers<void>();
  const left = Promise.withResolvers<void>();
  const slow: Embedder = {
    ...embedder,
    async embedQuery(text, signal) {
      signal?.addEventListener('abort', () => left.resolve());
      asked.resolve();
      await left.promise;
      signal?.throwIfAborted();
      return embedder.embedQuery(text);
    },
  };
  await using own = await memoryBackend({ embedder: slow, docs: { 'a.md': '# Zebras' } });
  const { log } = own;
  const leaving = new AbortController();
  const search = {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"query":"zebra"}',
  };
  const answer = fetch(`${own.url}/api/memory/search`, { ...search, signal: leaving.signal });
  await asked.promise;
  leaving.abort();
  await expect(answer).rejects.toThrow();
  await left.promise;
  expect((await own.post('search', { query: 'zebra' })).status).toBe(200);
  expect(log.filter((line) => /error/i.test(line))).toEqual([]);
});

test('entities of agents and imported texts get vectors, too', async () => {
  const { embedder } = service();
  await using own = await memoryBackend({ embedder });
  await own.post('graph', {
    createEntities: [{ name: 'Alice', entityType: 'person', observations: ['repairs violins'] }],
  });
  await until(async () => (await own.get('stats')).body.embedding.pending === 0);
  const { results } = (await own.post('search', { query: 'who repairs violins?' })).body;
  expect(results[0]).toMatchObject({ name: 'Alice', cosine: expect.any(Number) });
});

test('an entity that loses an observation gets a vector of what is left', async () => {
  const { embedder } = service();
  await using own = await memoryBackend({ embedder });
  const settled = () => until(async () => (await own.get('stats')).body.embedding.pending === 0);
  await own.post('graph', {
    createEntities: [
      { name: 'Alice', entityType: 'person', observations: ['repairs violins', 'knows Bob well'] },
    ],
  });
  await settled();
  const { token } = (await own.post('forget', { about: 'Bob', preview: true })).body;
  expect((await own.post('forget', { about: 'Bob', token })).body).toMatchObject({
    deleted: true,
    counts: { observations: 1 },
  });
  await settled();
  const { results } = (await own.post('search', { query: 'who repairs violins?' })).body;
  expect(results[0]).toMatchObject({ name: 'Alice', cosine: expect.any(Number) });
});

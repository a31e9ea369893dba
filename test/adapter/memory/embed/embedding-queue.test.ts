import { describe, expect, test } from 'vitest';
import { ingestDocument } from '../../../../src/adapter/memory/documents.ts';
import { type Embedder, MODEL_SCORING } from '../../../../src/adapter/memory/embed/embedder.ts';
import { EmbeddingQueue } from '../../../../src/adapter/memory/embed/embedding-queue.ts';
import { createHashEmbedder } from '../../../../src/adapter/memory/embed/hash-embedder.ts';
import { search } from '../../../../src/adapter/memory/search/search.ts';
import { openSqliteStore } from '../../../../src/adapter/memory/sqlite/open.ts';
import { AppError } from '../../../../src/core/errors.ts';
import { temporaryFolder } from '../../../kit/folder.ts';
import { until } from '../../../kit/until.ts';
import { recordingLog } from '../recording-log.ts';

const away = () => new AppError('upstream_unreachable', { message: 'the service is away' });

/** A service that can be away, refuse a text, or wait. */
function service(id = 'service/128') {
  const inner = createHashEmbedder();
  const state = {
    isAway: false,
    refused: '',
    isSingle: false,
    calls: 0,
    before: async (): Promise<void> => undefined,
  };
  const embedder: Embedder = {
    ...inner,
    id,
    isImmediate: false,
    scoring: MODEL_SCORING,
    async embed(texts, signal, progress) {
      state.calls += 1;
      await state.before();
      signal?.throwIfAborted();
      if (state.isAway) throw away();
      if (state.isSingle && texts.length > 1)
        throw new AppError('upstream_invalid', { message: 'the service answers one text' });
      if (state.refused !== '' && texts.some((text) => text.includes(state.refused)))
        throw new AppError('upstream_invalid', { message: 'the service refuses a text' });
      return inner.embed(texts, signal, progress);
    },
    async embedQuery(text) {
      state.calls += 1;
      if (state.isAway) throw away();
      return inner.embedQuery(text);
    },
  };
  return { embedder, state };
}

async function queueOn(embedder: Embedder, dataDir: string, delay = 1, queryWait = 60_000) {
  const log = recordingLog();
  const store = await openSqliteStore({ dataDir, log });
  const queue = new EmbeddingQueue({ store, embedder, log, delay, queryWait });
  return {
    store,
    log,
    queue,
    ingest: (title: string, content: string) => ingestDocument({ store, embedder }, { title, content }),
    ask: (query: string) =>
      search({ store, embedder, embeddings: queue }, { query, limit: 5, minScore: 0.7 }),
    async [Symbol.asyncDispose]() {
      await queue.close();
      await store.close();
    },
  };
}

describe('the queue of texts to embed', () => {
  test('documents stored while the service is down are found by words, and by meaning once it is back', async () => {
    await using folder = await temporaryFolder();
    const { embedder, state } = service();
    await using kit = await queueOn(embedder, folder.path);
    state.isAway = true;
    expect(await kit.ingest('Zebras', 'Zebras have stripes.')).toMatchObject({
      status: 'created',
      chunks: 1,
    });
    await kit.queue.settled(60_000);
    expect(await kit.queue.status()).toMatchObject({ pending: 1, problem: 'the service is away' });
    const found = await kit.ask('zebra stripes');
    expect(found.results).toMatchObject([{ name: 'Zebras', cosine: null }]);
    expect(found.hint).toContain('search is by words only at the moment: the service is away');
    state.isAway = false;
    await until(async () => (await kit.queue.status()).state === 'idle');
    const again = await kit.ask('zebra stripes');
    expect(again).not.toHaveProperty('hint');
    expect(again.results[0]?.cosine).toBeGreaterThan(0.5);
    expect(kit.log.lines.join('')).toContain('the embedder works again');
  });

  test('while the service is down, searches do not wait for it', async () => {
    await using folder = await temporaryFolder();
    const { embedder, state } = service();
    await using kit = await queueOn(embedder, folder.path, 3_600_000);
    state.isAway = true;
    await kit.ingest('Zebras', 'Zebras have stripes.');
    await kit.queue.settled(60_000);
    const { calls } = state;
    for (let count = 0; count < 5; count += 1) expect((await kit.ask('zebra')).count).toBe(1);
    expect(state.calls).toBe(calls);
    expect(Date.parse((await kit.queue.status()).retryAt ?? '')).toBeGreaterThan(Date.now());
  });

  test('while the model is busy with stored texts, a search uses words after a while, and says so', async () => {
    await using folder = await temporaryFolder();
    const { embedder, state } = service();
    const free = Promise.withResolvers<void>();
    await using kit = await queueOn(embedder, folder.path, 1, 20);
    state.before = () => free.promise;
    await kit.ingest('Zebras', 'Zebras have stripes.');
    // The cosine of unrelated texts is not measured yet, which waits for the backlog.
    const found = await kit.ask('zebra stripes');
    expect(found).toMatchObject({ results: [{ name: 'Zebras' }], hint: expect.stringContaining('busy') });
    free.resolve();
    await until(async () => (await kit.ask('zebra stripes')).hint === undefined);
  });

  test('a restart continues with the texts that are left', async () => {
    await using folder = await temporaryFolder();
    const { embedder, state } = service();
    {
      await using kit = await queueOn(embedder, folder.path, 3_600_000);
      state.isAway = true;
      for (let n = 0; n < 150; n += 1) await kit.ingest(`Page ${n}`, `Text of page ${n}.`);
      await kit.queue.settled(60_000);
    }
    state.isAway = false;
    await using kit = await queueOn(embedder, folder.path);
    expect((await kit.queue.status()).pending).toBe(150);
    await kit.queue.settled(60_000);
    expect(await kit.queue.status()).toEqual({ state: 'idle', pending: 0 });
  });

  test('another model embeds everything again while search works, and removes the old vectors', async () => {
    await using folder = await temporaryFolder();
    const first = service('first/128');
    {
      await using kit = await queueOn(first.embedder, folder.path);
      for (let n = 0; n < 100; n += 1) await kit.ingest(`Page ${n}`, `Text of page ${n} about topic${n}.`);
      await kit.queue.settled(60_000);
    }
    const second = service('second/128');
    const held = Promise.withResolvers<void>();
    let pages = 0;
    second.state.before = async () => {
      pages += 1;
      if (pages === 2) await held.promise;
    };
    await using kit = await queueOn(second.embedder, folder.path);
    kit.queue.wake();
    await until(async () => pages === 2);
    // Half has new vectors; the other half is found by words.
    expect((await kit.ask('topic3')).results[0]).toMatchObject({
      name: 'Page 3',
      cosine: expect.any(Number),
    });
    expect((await kit.ask('topic97')).results[0]).toMatchObject({ name: 'Page 97', cosine: null });
    expect((await kit.ask('topic97')).hint).toContain('not embedded yet');
    expect(await kit.queue.status()).toMatchObject({ state: 'running', pending: 36, total: 100 });
    expect(kit.log.lines.join('')).toMatch(
      /embedding all texts again, with another embedder\tembedder="second\/128" done=0 total=100/,
    );
    held.resolve();
    await until(async () => (await kit.queue.status()).state === 'idle');
    expect(await kit.store.unembeddedCount('second/128')).toBe(0);
    expect(kit.log.lines.join('')).toContain('all texts are embedded');
    expect(await kit.store.unembeddedCount('first/128')).toBe(100);
  });

  test('a text that the service refuses does not keep others from being embedded', async () => {
    await using folder = await temporaryFolder();
    const { embedder, state } = service();
    await using kit = await queueOn(embedder, folder.path);
    state.refused = 'poison';
    for (const text of ['one', 'poison', 'three']) await kit.ingest(text, `This is ${text}.`);
    await kit.queue.settled(60_000);
    expect(await kit.queue.status()).toEqual({ state: 'idle', pending: 0 });
    const names = async (query: string) =>
      (await kit.ask(query)).results.map(({ name, cosine }) => [name, cosine]);
    expect((await names('poison'))[0]).toEqual(['poison', null]);
    expect((await names('three'))[0]).toEqual(['three', expect.any(Number)]);
    expect(kit.log.lines.join('')).toContain('texts that the embedder refuses');
  });

  // smaramwbc/statewave#225: servers whose answer to several texts has wrong indexes.
  test('a service that refuses several texts in one call gets each alone, and no text is said to be refused', async () => {
    await using folder = await temporaryFolder();
    const { embedder, state } = service();
    await using kit = await queueOn(embedder, folder.path);
    state.isSingle = true;
    for (const text of ['one', 'two']) await kit.ingest(text, `This is ${text}.`);
    await kit.queue.settled(60_000);
    expect(await kit.queue.status()).toEqual({ state: 'idle', pending: 0 });
    expect(kit.log.lines.join('')).toContain('each is sent alone');
    expect(kit.log.lines.join('')).not.toContain('found by words only');
  });

  test('a service that refuses everything keeps everything in the queue', async () => {
    await using folder = await temporaryFolder();
    const { embedder, state } = service();
    await using kit = await queueOn(embedder, folder.path, 3_600_000);
    state.refused = 'This';
    for (const text of ['one', 'two', 'three', 'four']) await kit.ingest(text, `This is ${text}.`);
    await kit.queue.settled(60_000);
    expect(await kit.queue.status()).toMatchObject({ state: 'waiting', pending: 4 });
  });
});

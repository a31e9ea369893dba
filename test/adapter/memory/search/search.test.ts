import { describe, expect, test } from 'vitest';
import { ingestDocument } from '../../../../src/adapter/memory/documents.ts';
import { type Embedder, MODEL_SCORING, normalise } from '../../../../src/adapter/memory/embed/embedder.ts';
import { EmbeddingQueue } from '../../../../src/adapter/memory/embed/embedding-queue.ts';
import { createHashEmbedder } from '../../../../src/adapter/memory/embed/hash-embedder.ts';
import { type SearchRequest, search } from '../../../../src/adapter/memory/search/search.ts';
import { AppError } from '../../../../src/core/errors.ts';
import { fakeStore } from '../fake-store.ts';
import { recordingLog } from '../recording-log.ts';

const DOCUMENTS = {
  'Rate limits': 'A client may send sixty requests a minute. More are refused with status 429.',
  Tokens: 'A bearer token is checked against the keys of the identity provider, and its audience must match.',
  Backups: 'The database is copied every night. Restoring takes a minute.',
  Logging: 'One line per request is written when its body has ended.',
};

async function library(embedder: Embedder = createHashEmbedder()) {
  const backend = { store: fakeStore(), embedder };
  for (const [title, content] of Object.entries(DOCUMENTS)) await ingestDocument(backend, { title, content });
  const embeddings = new EmbeddingQueue({ ...backend, log: recordingLog() });
  await embeddings.settled(60_000);
  await embeddings.close();
  const ask = (query: string, more: Partial<SearchRequest> = {}) =>
    search(backend, { query, limit: 5, minScore: 0.7, ...more });
  return { ...backend, ask };
}

describe('search', () => {
  test('search returns the documents about a question, best first, with all promised fields', async () => {
    const { ask } = await library();
    const response = await ask('how many requests may a client send per minute?', { debug: true });
    expect(response.results[0]).toMatchObject({
      name: 'Rate limits',
      type: 'doc_chunk',
      content: DOCUMENTS['Rate limits'],
      debug: { words: expect.any(Number), vector: expect.any(Number), fused: expect.any(Number) },
      metadata: { source: 'Rate limits', title: 'Rate limits', heading: '', ordinal: 0 },
    });
    expect(response.results[0]?.cosine).toBeGreaterThan(0);
    expect(response).toMatchObject({
      count: response.results.length,
      minScore: 0.7,
      embedder: 'hash-v2/128',
    });
    expect(response.bestScore).toBe(response.results[0]?.score);
    expect(response.tookMs).toBeGreaterThanOrEqual(0);
    expect(response).not.toHaveProperty('hint');
    expect((await ask('requests of a client')).results[0]).not.toHaveProperty('debug');
  });

  test('search ranks by the same score that it filters by', async () => {
    const { ask } = await library();
    const all = await ask('request minute database token', { minScore: 0 });
    const scores = all.results.map(({ score }) => score);
    expect(scores).toEqual([...scores].sort((a, b) => b - a));
    const [, second = 0] = scores;
    const fewer = await ask('request minute database token', { minScore: second });
    expect(fewer.results.length).toBeLessThan(all.results.length);
    expect(fewer.results.every(({ score }) => score >= second)).toBe(true);
    expect(fewer.filtered).toBe(all.count + all.filtered - fewer.count);
  });

  test('a word is found in a long passage among many short ones', async () => {
    const { ask, store, embedder } = await library();
    for (let n = 0; n < 200; n += 1)
      await ingestDocument({ store, embedder }, { title: `Note ${n}`, content: `Note ${n} is short.` });
    const code = Array.from({ length: 150 }, (_, n) => `const value${n % 90} = request.header(${n});`);
    const content = `\`\`\`js\n${code.join('\n')}\nplugh(1);\n\`\`\`\n`;
    await ingestDocument({ store, embedder }, { title: 'Code', content });
    for (const query of ['plugh', 'what is plugh?'])
      expect((await ask(query)).results).toMatchObject([{ name: 'Code', score: expect.any(Number) }]);
    expect((await ask('xyzzy')).results).toEqual([]);
  });

  test('a compound that no text has is found by its parts', async () => {
    const { ask, ...backend } = await library();
    const ingest = (title: string, content: string) => ingestDocument(backend, { title, content });
    await ingest('Limits', 'At most, a gateway has a hundred sessions.');
    await ingest('Maximum', 'The max of sessions is a hundred.');
    expect((await ask('maxSessions')).results[0]?.name).toBe('Maximum');
  });

  test('search finds parts of compounds, inflected words and texts without spaces', async () => {
    const { ask, ...backend } = await library();
    for (const [title, content] of [
      ['Abwesenheit', 'Die Urlaubsansprüche verfallen nach einem Jahr.'],
      ['Heizung', 'Der Brenner wird jeden Herbst gewartet.'],
      ['部品', '親から子へ値を渡すには、属性を使います。'],
      ['設定', 'ファイルは起動時に読み込まれます。'],
    ] as const)
      await ingestDocument(backend, { title, content });
    const best = async (query: string) => (await ask(query, { minScore: 0.3 })).results[0]?.name;
    expect(await best('Verfällt mein Urlaub?')).toBe('Abwesenheit');
    expect(await best('Brennerwartung')).toBe('Heizung');
    expect(await best('子に値を渡したい')).toBe('部品');
    expect(await best('起動のときに読むファイル')).toBe('設定');
    expect((await ask('猫はなぜ喉を鳴らすのか')).count).toBe(0);
  });

  test('the search threshold is inclusive, and the limit is exact', async () => {
    const { ask } = await library();
    expect((await ask('requests', { minScore: 0, limit: 2 })).results).toHaveLength(2);
    const exact = await ask('client requests minute', { minScore: 0 });
    expect(exact.results.at(-1)?.score).toBeGreaterThanOrEqual(0);
  });

  test('search limits the results of one long document unless there is nothing else', async () => {
    const { store, embedder, ask } = await library();
    const sections = Array.from(
      { length: 8 },
      (_, part) =>
        `# Zebra ${part}\n\n${'zebra stripes '.repeat(30)}${`part${part} `.repeat(9)}${'abcdefgh'[part]} own${part} word${part}`,
    );
    await ingestDocument({ store, embedder }, { title: 'Zebras', content: sections.join('\n\n') });
    expect(
      (await ask('zebra stripes', { minScore: 0.5 })).results.map(({ metadata }) => metadata['title']),
    ).toEqual(Array(5).fill('Zebras'));
    await ingestDocument(
      { store, embedder },
      { title: 'Crossing', content: 'A zebra crossing has stripes.' },
    );
    const mixed = (await ask('zebra stripes', { minScore: 0.5, limit: 4 })).results;
    expect(mixed.map(({ metadata }) => metadata['title']).sort()).toEqual([
      'Crossing',
      'Zebras',
      'Zebras',
      'Zebras',
    ]);
    expect(mixed.map(({ score }) => score)).toEqual(mixed.map(({ score }) => score).sort((a, b) => b - a));
  });

  test('search truncates long content with a marker and never inside a character', async () => {
    const { store, embedder, ask } = await library();
    await ingestDocument({ store, embedder }, { title: 'Long', content: `zebra x${'😀'.repeat(1_500)}` });
    const [long] = (await ask('zebra', { minScore: 0.1 })).results;
    expect([long?.content.length, long?.truncated, long?.content.isWellFormed()]).toEqual([
      2_000,
      true,
      true,
    ]);
  });

  test('search returns equally ranked documents in a stable order', async () => {
    const backend = { store: fakeStore(), embedder: createHashEmbedder() };
    for (const source of ['c', 'a', 'b', 'd'])
      await ingestDocument(backend, { title: 'Same', content: 'Same text.', source });
    const ids = async (): Promise<string[]> =>
      (await search(backend, { query: 'same text', limit: 5, minScore: 0 })).results.map(({ id }) => id);
    const first = await ids();
    expect(first).toEqual([...first].sort());
    expect(await ids()).toEqual(first);
  });

  test('a remote embedder scores by words and by the cosine above that of unrelated texts', async () => {
    const inner = createHashEmbedder();
    const toward = (vector: Float32Array): Float32Array => {
      // All texts resemble each other, as with some models.
      const shifted = Float32Array.from(vector, (value, index) => value + (index === 0 ? 2 : 0));
      return normalise(shifted);
    };
    const embedder: Embedder = {
      ...inner,
      id: 'model/128',
      scoring: MODEL_SCORING,
      isImmediate: false,
      embed: async (...args) => (await inner.embed(...args)).map(toward),
      embedQuery: async (text) => toward(await inner.embedQuery(text)),
    };
    const { ask } = await library(embedder);
    const { results } = await ask('the database is copied every night', { minScore: 0, debug: true });
    expect(results[0]).toMatchObject({ name: 'Backups' });
    expect(results[0]?.cosine).toBeGreaterThan(0.8);
    expect(results.at(-1)?.cosine).toBeGreaterThan(0.7);
    expect(results.at(-1)?.debug?.vector).toBeLessThan(0.3);
    expect(results.at(-1)?.score).toBeLessThan(0.7);
    const { words = 0, vector, fused } = results[0]?.debug ?? {};
    expect(fused).toBeCloseTo((words + (vector ?? 0)) / 2, 3);
  });

  test('passages that repeat a better one are left out', async () => {
    const { store, embedder, ask } = await library();
    const text = 'Giraffes eat leaves of tall trees and sleep for half an hour each night in the savanna.';
    for (const version of ['1.0', '1.1', '2.0'])
      await ingestDocument({ store, embedder }, { title: `Giraffes ${version}`, content: text });
    await ingestDocument({ store, embedder }, { title: 'Zoo', content: 'Giraffes are fed at noon.' });
    const { results } = await ask('what do giraffes eat?', { minScore: 0.3 });
    expect(results.map(({ name }) => name.split(' ')[0])).toEqual(['Giraffes', 'Zoo']);
    // A word of the query makes the difference.
    const versions = (await ask('what do giraffes eat in 1.1?', { minScore: 0.3 })).results;
    expect(versions[0]?.name).toBe('Giraffes 1.1');
  });

  test('search uses words only and says so while the embedder fails', async () => {
    const { store, embedder } = await library();
    const failing: Embedder = {
      ...embedder,
      isImmediate: false,
      embedQuery: () => Promise.reject(new AppError('upstream_unreachable', { message: 'it is down' })),
    };
    const embeddings = new EmbeddingQueue({ store, embedder: failing, log: recordingLog() });
    const ask = (query: string) =>
      search({ store, embedder: failing, embeddings }, { query, limit: 5, minScore: 0.7 });
    const found = await ask('how many requests may a client send?');
    expect(found.results[0]).toMatchObject({ name: 'Rate limits', cosine: null });
    expect(found.hint).toBe('search is by words only at the moment: it is down');
    expect((await ask('weather tomorrow')).hint).toMatch(
      /^no stored text.*by words only at the moment: it is/,
    );
    await embeddings.close();
  });
});

describe('reasons for no search results', () => {
  test('a search without results says that nothing is stored', async () => {
    const response = await search(
      { store: fakeStore(), embedder: createHashEmbedder() },
      { query: 'anything', limit: 5, minScore: 0.7 },
    );
    expect(response).toMatchObject({ results: [], count: 0, filtered: 0, bestScore: null });
    expect(response.hint).toMatch(/^nothing is stored yet/);
  });

  test('a search without results says that the best result is below the threshold', async () => {
    const { ask } = await library();
    const response = await ask('weather forecast for the database', { minScore: 0.99 });
    expect(response.count).toBe(0);
    expect(response.filtered).toBeGreaterThan(0);
    expect(response.bestScore).toBeGreaterThan(0);
    // The same number in both places.
    expect(response.hint).toContain(
      `no result reaches minScore 0.99; the best score was ${response.bestScore}, of "Backups" (doc_chunk)`,
    );
  });

  test('a search without results says that no entities have the requested types', async () => {
    const { ask } = await library();
    expect((await ask('requests', { types: ['chat_message'] })).hint).toBe(
      'no chat_message matches; other types have entities: 4 doc_chunk',
    );
    expect((await ask('requests', { types: ['doc_file'] })).hint).toMatch(
      /^doc_file is not searched, only traversed/,
    );
  });

  test('a search without results says that the query has no words', async () => {
    const { ask } = await library();
    expect((await ask('?!')).hint).toMatch(/^the query has no words: ask/);
  });
});

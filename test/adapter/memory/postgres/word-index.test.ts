import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { openStoreOn } from '../../../../src/adapter/memory/postgres/open.ts';
import type { Store } from '../../../../src/adapter/memory/store.ts';
import { MEMORY_STORE_LIMITS } from '../../../../src/core/memory-limits.ts';
import { pgliteServer } from '../../../kit/pglite-pool.ts';
import { recordingLog } from '../recording-log.ts';
import { documentOf } from '../records.ts';

/** Chunks with a common word. Estimates are multiples of 16, so this number, which is not one, was counted. */
const DOCUMENTS = 151;
const CHUNKS = 7;
const TOTAL = DOCUMENTS * CHUNKS;

const limits: { counted: number; ranked: number; rankedAll: number } = MEMORY_STORE_LIMITS;
const { counted, ranked, rankedAll } = limits;
let server: Awaited<ReturnType<typeof pgliteServer>>;
let store: Store;

/** With their document, chunks have eight rows, so that each row of a chunk has the same remainder. */
beforeAll(async () => {
  server = await pgliteServer();
  store = await openStoreOn(server.pool(), 'PGlite', recordingLog());
  for (let n = 0; n < DOCUMENTS; n += 1) {
    const texts = Array.from({ length: CHUNKS }, (_, part) =>
      [
        'everywhere',
        part % 2 === 0 ? 'often' : 'seldom',
        n === 3 && part === 1 ? 'once' : '',
        n % 5 === 0 && part === 1 ? 'companion' : '',
        n >= 100 && part === 1 ? 'late' : '',
        n === 140 && part === 3 ? 'seldom seldom' : '',
        `filler${n}x${part}`,
      ].join(' '),
    );
    await store.putDocument(documentOf(`${n}.md`, texts));
  }
}, 180_000);
afterAll(async () => {
  await store.close();
  await server.close();
});
afterEach(() => {
  Object.assign(limits, { counted, ranked, rankedAll });
});

describe('words of a large memory in PostgreSQL', () => {
  beforeEach(() => {
    limits.counted = 100;
  });

  test('common words are counted in a sample that has its share of every document, rare words exactly', async () => {
    const { total, counts } = await store.frequencies(['everywhere', 'often', 'once', 'never']);
    expect(total).toBe(TOTAL);
    const often = Math.ceil(CHUNKS / 2) * DOCUMENTS;
    for (const [word, count] of [['everywhere', TOTAL] as const, ['often', often] as const]) {
      expect(counts.get(word), word).toBeGreaterThan(count * 0.8);
      expect(counts.get(word), word).toBeLessThanOrEqual(Math.min(TOTAL, count * 1.2));
    }
    expect(counts.get('once')).toBe(1);
    expect(counts.get('never')).toBe(0);
    expect((counts.get('often') ?? 0) % 16).toBe(0);
  });

  test('the sample has an index of its own, which the planner recognises', async () => {
    const pool = server.pool();
    await pool.query('SET enable_seqscan = off');
    await pool.query('ANALYZE memory_entities');
    const { rows } = await pool.query(
      `EXPLAIN SELECT count(*) FROM memory_entities
       WHERE words @@ to_tsquery('memory_words', 'often') AND row * 40503 % 65536 < 4096`,
    );
    await pool.query('RESET enable_seqscan');
    expect(JSON.stringify(rows)).toContain('memory_entities_sample');
  });
});

test('if the rarest words of a search are in too many entities, those with most of the words are ranked', async () => {
  limits.ranked = 20;
  const found = await store.lexical(['everywhere', 'seldom', 'filler7x1', 'filler9x3'], { limit: 5 });
  // Each of the first two has three of the words.
  expect(
    found
      .slice(0, 2)
      .map(({ id }) => id)
      .sort(),
  ).toEqual([expect.stringContaining('filler7x1'), expect.stringContaining('filler9x3')]);
  expect(found).toHaveLength(5);
  const types = await store.lexical(['everywhere'], { limit: 50, types: ['doc_chunk'] });
  expect(types).toHaveLength(20);
  expect(await store.lexical(['everywhere'], { limit: 50, types: ['entity'] })).toEqual([]);
});

describe('a word in more entities than are all ranked', () => {
  beforeEach(() => {
    limits.rankedAll = 20;
  });

  test('an entity that repeats the word is found, wherever it is', async () => {
    const found = await store.lexical(['seldom'], { limit: 5 });
    expect(found[0]?.id).toContain('filler140x3');
    expect(found).toHaveLength(5);
  });

  test('entities that also have another word of the search come first, as if all were ranked', async () => {
    const search = async (): Promise<string[]> =>
      (await store.lexical(['companion', 'late'], { limit: 5 })).map(({ id }) => id);
    const found = await search();
    const numbers = found.map((id) => Number(/filler(\d+)x1/.exec(id)?.[1]));
    expect(numbers.every((n) => n >= 100 && n % 5 === 0)).toBe(true);
    limits.rankedAll = 5_000;
    expect(found).toEqual(await search());
  });
});

import { expect, test } from 'vitest';
import { openSqliteStore } from '../../../../src/adapter/memory/sqlite/open.ts';
import type { Store } from '../../../../src/adapter/memory/store.ts';
import { MEMORY_STORE_LIMITS } from '../../../../src/core/memory-limits.ts';
import { temporaryFolder } from '../../../kit/folder.ts';
import { recordingLog } from '../recording-log.ts';
import { EMBEDDER, entity } from '../records.ts';

// The store scans vectors that are rounded to 8 bits for a number; what it returns must not depend on that.

/** Not a multiple of what the scan processes at once. */
const DIMENSIONS = 100;

/** The same numbers in every run, from -0.5 to 0.5. */
function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32 - 0.5;
  };
}

function unit(values: Float32Array): Float32Array {
  const length = Math.hypot(...values);
  return values.map((value) => value / length);
}

const dot = (a: Float32Array, b: Float32Array): number =>
  a.reduce((sum, value, index) => sum + value * (b[index] ?? 0), 0);

async function stored(store: Store, vectors: readonly Float32Array[]): Promise<void> {
  const all = vectors.map((embedding, n) => entity({ id: `v${n}`, searchText: 'text', embedding }));
  for (let start = 0; start < all.length; start += 500)
    await store.putEntities(all.slice(start, start + 500), [], EMBEDDER);
}

test('the nearest of many vectors are those of an exact comparison, however close to each other they are', async () => {
  await using folder = await temporaryFolder();
  const store = await openSqliteStore({ dataDir: folder.path, log: recordingLog() });
  try {
    const next = numbers(11);
    const random = () => unit(new Float32Array(DIMENSIONS).map(next));
    const near = (vector: Float32Array, by: number) => unit(vector.map((value) => value + by * next()));
    const centre = random();
    // Far from each other, as near as rounding can tell, nearer than that, and one with a large number beside small ones.
    const vectors = [
      ...Array.from({ length: 1_500 }, random),
      ...Array.from({ length: 300 }, () => near(centre, 0.05)),
      ...Array.from({ length: 200 }, () => near(centre, 0.001)),
      near(new Float32Array(DIMENSIONS).fill(1, 7, 8), 0.01),
    ];
    await stored(store, vectors);
    const queries = [centre, near(centre, 0.01), random(), ...vectors.slice(-2), vectors[3] ?? centre];
    for (const query of queries)
      for (const limit of [1, 20, 400]) {
        const expected = vectors
          .map((vector, n) => ({ id: `v${n}`, cosine: dot(query, vector) }))
          .sort((a, b) => b.cosine - a.cosine)
          .slice(0, limit);
        const found = await store.nearest(query, EMBEDDER, { limit });
        expect(found.map(({ id }) => id)).toEqual(expected.map(({ id }) => id));
        for (const [index, { cosine }] of found.entries())
          expect(cosine).toBeCloseTo(expected[index]?.cosine ?? 2, 7);
      }
  } finally {
    await store.close();
  }
});

test('of more equal vectors than are compared, the oldest are found', async () => {
  await using folder = await temporaryFolder();
  const store = await openSqliteStore({ dataDir: folder.path, log: recordingLog() });
  try {
    const vector = unit(new Float32Array(DIMENSIONS).map(numbers(5)));
    await stored(
      store,
      Array.from({ length: MEMORY_STORE_LIMITS.comparedVectors + 100 }, () => vector),
    );
    const found = await store.nearest(vector, EMBEDDER, { limit: 3 });
    expect(found.map(({ id, cosine }) => [id, Math.round(cosine * 1e6)])).toEqual([
      ['v0', 1e6],
      ['v1', 1e6],
      ['v2', 1e6],
    ]);
  } finally {
    await store.close();
  }
});

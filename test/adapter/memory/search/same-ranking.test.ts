import { afterAll, beforeAll, expect, test } from 'vitest';
import { ingestDocument } from '../../../../src/adapter/memory/documents.ts';
import { createHashEmbedder } from '../../../../src/adapter/memory/embed/hash-embedder.ts';
import { openStoreOn } from '../../../../src/adapter/memory/postgres/open.ts';
import { search } from '../../../../src/adapter/memory/search/search.ts';
import { openSqliteStore } from '../../../../src/adapter/memory/sqlite/open.ts';
import type { Store } from '../../../../src/adapter/memory/store.ts';
import { temporaryFolder } from '../../../kit/folder.ts';
import { pgliteServer } from '../../../kit/pglite-pool.ts';
import { recordingLog } from '../recording-log.ts';
import { filesIn } from './project-docs.ts';

const embedder = createHashEmbedder();
const closing: (() => Promise<unknown>)[] = [];
let sqlite: Store;
let postgres: Store;

beforeAll(async () => {
  const folder = await temporaryFolder();
  const server = await pgliteServer();
  sqlite = await openSqliteStore({ dataDir: folder.path, log: recordingLog() });
  postgres = await openStoreOn(server.pool(), 'PGlite', recordingLog());
  closing.push(
    () => sqlite.close(),
    () => folder.remove(),
    () => postgres.close(),
    () => server.close(),
  );
  // Every second file: all of them take twice as long and ask the engines nothing else.
  for (const [source, content] of filesIn('docs').filter((_, at) => at % 2 === 0))
    for (const store of [sqlite, postgres])
      await ingestDocument({ store, embedder }, { title: source, content, source });
}, 180_000);
afterAll(async () => {
  for (const close of closing) await close();
});

test.each([
  'how do I require a key for the memory backend?',
  'rate limits',
  'session ids of MCP',
  'which fields do log lines have',
  'translate an answer of Anthropic to OpenAI',
  'reload configuration without dropping connections',
  'dashboard',
  'recipe for sourdough bread',
])('both engines return the same results with the same scores for %j', async (query) => {
  const ask = async (store: Store) => {
    const { results } = await search({ store, embedder }, { query, limit: 5, minScore: 0.5 });
    return new Map(
      results.map(({ metadata, score }) => [`${metadata['source']} ${metadata['ordinal']}`, score]),
    );
  };
  const [one, other] = [await ask(sqlite), await ask(postgres)];
  expect(other.size).toBe(one.size);
  // Results whose scores are nearly equal may change places: also the last one with the first that is left out.
  const last = Math.min(...one.values());
  for (const [chunk, score] of one) expect(other.get(chunk) ?? last, chunk).toBeCloseTo(score, 1);
  expect([...one.keys()].filter((chunk) => !other.has(chunk)).length).toBeLessThanOrEqual(1);
});

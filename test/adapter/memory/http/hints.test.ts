import { rm } from 'node:fs/promises';
import { expect, test } from 'vitest';
import type { Embedder } from '../../../../src/adapter/memory/embed/embedder.ts';
import { createHashEmbedder } from '../../../../src/adapter/memory/embed/hash-embedder.ts';
import { memoryBackend, type TestBackend } from '../../../kit/memory-backend.ts';

// A search that finds nothing says what to do in words that fit the situation. "No matching memories found" for a misspelled namespace
// made a user believe that the memory was empty (MystenLabs/MemWal#416).

const DOCS = { 'a.md': '# Tea\n\nGreen tea needs water of 80 degrees.\n' };
const IN_ALICE = { 'x-memory-namespace': 'alice' };

async function hint(backend: TestBackend, body: object, headers = {}): Promise<string> {
  const reply = await backend.post('search', { query: 'quantum chromodynamics', ...body }, headers);
  expect(reply.body.results).toEqual([]);
  return reply.body.hint;
}

test('an empty memory says how to store something', async () => {
  await using backend = await memoryBackend();
  expect(await hint(backend, {})).toMatch(
    /^nothing is stored yet: store documents with ingest_document, or add \.md files/,
  );
});

test('an empty namespace says that its name may be wrong, and names no other tenant', async () => {
  await using backend = await memoryBackend({ docs: DOCS });
  await backend.post(
    'ingest/docs',
    { title: 'Secret', content: 'Secret of bob.' },
    { 'x-memory-namespace': 'bob' },
  );
  const found = await hint(backend, {}, IN_ALICE);
  expect(found).toBe(
    'nothing is stored yet in the namespace "alice": check its name, which is case-sensitive, or store documents with ingest_document. The docs ' +
      'folder belongs to the namespace "default"',
  );
});

test('a namespace without an answer says that only it was searched', async () => {
  await using backend = await memoryBackend({ docs: DOCS });
  await backend.post('ingest/docs', { title: 'Coffee', content: 'Coffee needs hot water.' }, IN_ALICE);
  expect(await hint(backend, { query: 'green tea degrees', minScore: 1 }, IN_ALICE)).toContain(
    'Only the namespace "alice" was searched; the docs folder belongs to "default"',
  );
  expect(await hint(backend, {})).not.toContain('namespace');
});

test('a memory with conversations only says how to search them', async () => {
  await using backend = await memoryBackend();
  await backend.post('chat', { sessionId: 's', role: 'user', content: 'Quarks have colours.' });
  expect(await hint(backend, {})).toMatch(
    /^no document is stored yet: .*Conversations \(1 turn\) are stored, but were not searched: `turns: true` does that$/,
  );
  expect(await hint(backend, { turns: true })).toMatch(/^no document is stored yet: (?!.*turns: true)/);
});

test('a best score below minScore comes with the minScore that returns it', async () => {
  await using backend = await memoryBackend({ docs: DOCS });
  const found = await hint(backend, { query: 'green tea with milk and sugar and honey', minScore: 0.99 });
  const [, lower] = /`minScore: ([\d.]+)` returns it/.exec(found) ?? [];
  const again = await backend.post('search', {
    query: 'green tea with milk and sugar and honey',
    minScore: Number(lower),
  });
  expect(again.body.count).toBe(1);
});

test('a question about something else says so', async () => {
  await using backend = await memoryBackend({ docs: DOCS });
  expect(await hint(backend, {})).toMatch(/Nothing stored seems to be related: use other words/);
  expect(await hint(backend, { query: '?!' })).toMatch(/^the query has no words: ask in words/);
});

test('texts that are not embedded yet are mentioned', async () => {
  const inner = createHashEmbedder();
  const embedder: Embedder = {
    ...inner,
    id: 'slow/128',
    isImmediate: false,
    embed: (texts, signal) =>
      texts.some((text) => text.includes('tea'))
        ? new Promise((_resolve, reject) =>
            signal?.addEventListener('abort', () => reject(new Error('stopped'))),
          )
        : inner.embed(texts),
  };
  await using backend = await memoryBackend({ docs: DOCS, embedder, isStarting: true });
  await backend.memory.sync.run();
  expect(await hint(backend, {})).toMatch(/none is embedded with slow\/128 yet.*not embedded yet/s);
});

test('a docs folder that cannot be read is mentioned', async () => {
  await using backend = await memoryBackend({ docs: DOCS });
  await rm(backend.docs, { recursive: true });
  await backend.memory.sync.run();
  expect(await hint(backend, {})).toMatch(
    /Of the last sync: the docs folder cannot be read, so nothing was removed/,
  );
  expect(backend.log.filter((line) => line.includes('documents are up to date'))).toHaveLength(1);
});

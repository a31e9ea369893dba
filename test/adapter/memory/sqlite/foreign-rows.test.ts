import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { createHashEmbedder } from '../../../../src/adapter/memory/embed/hash-embedder.ts';
import { createMemories } from '../../../../src/adapter/memory/memories.ts';
import { DATABASE_FILE } from '../../../../src/adapter/memory/sqlite/namespace-folder.ts';
import { openSqliteStore } from '../../../../src/adapter/memory/sqlite/open.ts';
import { DIMENSIONS } from '../../../../src/adapter/memory/store.ts';
import { temporaryFolder } from '../../../kit/folder.ts';
import type { Json } from '../../../kit/mcp.ts';
import { memoryBackend } from '../../../kit/memory-backend.ts';
import { recordingLog } from '../recording-log.ts';
import { documentOf, EMBEDDER, vector } from '../records.ts';

// A memory.db may come from a backup, another version, or a program that wrote into it.

/** Lets `change` change the file while no store has it open. */
function changed(path: string, change: (database: DatabaseSync) => void): void {
  const database = new DatabaseSync(path);
  try {
    change(database);
  } finally {
    database.close();
  }
}

// vlasky/sqlite-vec#8, chroma-core/chroma#7420: NaN is neither nearer nor farther, and takes the place of better results.
test('vectors of a memory.db that are not numbers are no results, and hide none', async () => {
  await using folder = await temporaryFolder();
  const path = join(folder.path, DATABASE_FILE);
  const open = () => openSqliteStore({ path, log: recordingLog() });
  const texts = ['first words', 'second words', 'third words'];
  const before = await open();
  await before.putDocument(documentOf('guide.md', texts));
  await before.close();
  changed(path, (database) => {
    const bytes = Buffer.from(new Float32Array(DIMENSIONS).fill(Number.NaN).buffer);
    const set = database.prepare('UPDATE memory_vectors SET embedding = ? WHERE vector < 3');
    expect(Number(set.run(bytes).changes)).toBe(2);
  });
  const after = await open();
  const near = await after.nearest(vector(2), EMBEDDER, { limit: 2 });
  expect(near.map(({ content, cosine }) => [content, cosine])).toEqual([['third words', 1]]);
  const found = await after.lexical(['words'], { limit: 3 }, { vector: vector(2), embedder: EMBEDDER });
  expect(new Set(found.map(({ cosine }) => cosine))).toEqual(new Set([1, undefined]));
  await after.close();
});

// A later version may know more of them without another table, so that its file opens after a rollback.
test('roles, types and origins that this version does not know are shown as they are, and hide nothing', async () => {
  await using folder = await temporaryFolder();
  const data = join(folder.path, 'data');
  await (async () => {
    await using backend = await memoryBackend({ data });
    for (const content of ['first lemur', 'second lemur'])
      await backend.post('chat', { sessionId: 's', agentId: 'a', role: 'user', content });
    for (const title of ['One', 'Two'])
      await backend.post('ingest/docs', { title, content: `# ${title}\n\nA lemur of ${title}.\n` });
  })();
  changed(join(data, DATABASE_FILE), (database) => {
    database.exec("UPDATE memory_chat_history SET role = 'tool' WHERE content = 'first lemur'");
    database.exec("UPDATE memory_entities SET type = 'image' WHERE name = 'One'");
    database.exec("UPDATE memory_documents SET origin = 'feed' WHERE key LIKE '%One%'");
  });
  await using backend = await memoryBackend({ data });
  const bodyOf = async (reply: Promise<{ status: number; body: Json }>): Promise<Json> => {
    const { status, body } = await reply;
    expect(status, JSON.stringify(body)).toBe(200);
    return body;
  };
  const turns = [{ role: 'tool' }, { role: 'user' }];
  expect((await bodyOf(backend.get('sessions/s/turns'))).turns).toMatchObject(turns);
  expect((await bodyOf(backend.get('turns?query=lemur&order=oldest'))).turns).toMatchObject(turns);
  const { entities } = await bodyOf(backend.get('entities'));
  expect(entities.map(({ type }: Json) => type).toSorted()).toEqual(
    expect.arrayContaining(['doc_file', 'image']),
  );
  const found = await bodyOf(backend.post('search', { query: 'lemur', limit: 9 }));
  expect(found.results.length).toBeGreaterThan(1);
  const preview = await bodyOf(backend.post('forget', { about: 'lemur', preview: true }));
  expect(preview.turns).toHaveLength(2);
});

test.each([['missing'], [5], [null], [[]], [{}], [{ state: 'done', errors: {}, total: '9', startedAt: 5 }]])(
  'a status of a sync that is stored as %j is given in the form that the API promises',
  async (value) => {
    await using folder = await temporaryFolder();
    const log = recordingLog();
    const store = await openSqliteStore({ path: join(folder.path, DATABASE_FILE), log });
    await store.setNote('docs-sync', value);
    // Not started: a sync would replace the status.
    const options = { store, log, embedder: createHashEmbedder(), docsFolder: undefined, indexesChat: false };
    const memories = createMemories(options);
    expect(await memories.default.syncStatus()).toMatchObject({
      state: expect.stringMatching(/^(?:idle|done)$/),
      total: expect.any(Number),
      errors: [],
      startedAt: null,
    });
    await memories.close();
  },
);

test.each(['5', '{"pid":1,"host":{"toString":1},"since":[]}', '{"pid":"1"}', '', '<html>'])(
  'a memory.db in use whose lock file has %j is refused with a message',
  async (text) => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, DATABASE_FILE);
    const store = await openSqliteStore({ path, log: recordingLog() });
    writeFileSync(`${path}.lock`, text);
    await expect(openSqliteStore({ path, log: recordingLog() })).rejects.toMatchObject({
      code: 'memory_in_use',
      message: expect.stringContaining('in use by another program'),
    });
    await store.close();
  },
);

// modelcontextprotocol/servers#2044: what a file contains is found out by a later call, which fails.
test('metadata of an imported document that is no text does not fail a sync of documents that refer to it', async () => {
  const page = '---\ndepends_on: Strange\n---\n# Page\n\n';
  await using backend = await memoryBackend({ docs: { 'page.md': page, 'other.md': '# Other\n' } });
  const line = JSON.stringify({
    type: 'document',
    key: 'k',
    hash: 'h',
    title: 'Strange',
    summary: '',
    metadata: {
      origin: 'docs_dir',
      path: { toString: 1, valueOf: 1 },
      links: 5,
      dependsOn: [{ toString: 1 }],
    },
    chunks: [],
  });
  const reply = await backend.post('import', line, { 'content-type': 'application/x-ndjson' });
  expect(reply.status).toBe(200);
  writeFileSync(join(backend.docs, 'other.md'), '# Other\n\nSee [the page](page.md).\n');
  const { body } = await backend.post('ingest/docs');
  expect(body.sync).toMatchObject({ state: 'done', failed: 0 });
});

import { describe, expect, test } from 'vitest';
import { indexTurn } from '../../../src/adapter/memory/chat-index.ts';
import { ingestDocument, putDocument } from '../../../src/adapter/memory/documents.ts';
import { createHashEmbedder } from '../../../src/adapter/memory/embed/hash-embedder.ts';
import { chatMessageId, chunkId, documentId, workspaceId } from '../../../src/adapter/memory/ids.ts';
import { search } from '../../../src/adapter/memory/search/search.ts';
import { openSqliteStore } from '../../../src/adapter/memory/sqlite/open.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { fakeStore } from './fake-store.ts';
import { recordingLog } from './recording-log.ts';

const backend = () => ({ store: fakeStore(), embedder: createHashEmbedder() });
const paragraph = 'Words that fill a section of the document. '.repeat(10);

describe('ingesting a document', () => {
  test('ingesting a document creates it, leaves an unchanged one as it is, and updates a changed one', async () => {
    const to = backend();
    const document = {
      title: 'Notes',
      content: `# One\n\n${paragraph}\n\n# Two\n\n${paragraph}`,
      source: 'wiki/1',
    };
    const first = await ingestDocument(to, document);
    expect(first).toEqual({
      id: documentId('ingest', 'wiki/1'),
      title: 'Notes',
      source: 'wiki/1',
      status: 'created',
      chunks: 2,
    });
    const { writes } = to.store;
    expect(await ingestDocument(to, document)).toEqual({ ...first, status: 'unchanged' });
    expect(to.store.writes).toBe(writes);
    const shorter = { ...document, content: '# One' };
    expect(await ingestDocument(to, shorter)).toEqual({ ...first, status: 'updated', chunks: 1 });
    expect(await to.store.entities([chunkId('ingest', 'wiki/1', 1)])).toEqual([]);
    expect((await ingestDocument(to, { ...shorter, title: 'Renamed' })).status).toBe('updated');
  });

  test('ingesting a document without a source uses its title as the key', async () => {
    const to = backend();
    await ingestDocument(to, { title: 'Notes', content: 'One.' });
    await ingestDocument(to, { title: 'Notes', content: 'Two.' });
    await ingestDocument(to, { title: 'Others', content: 'Two.' });
    expect((await to.store.documents('ingest')).map(({ key }) => key)).toEqual(['Notes', 'Others']);
  });

  test('ingesting a document stores each chunk with position, headings and source and relates it to the document', async () => {
    const to = backend();
    await ingestDocument(to, {
      title: 'T',
      content: `# T\n\n${paragraph}\n\n## Deep\n\n${paragraph}`,
      source: 'x',
    });
    const [chunk] = await to.store.entities([chunkId('ingest', 'x', 1)]);
    expect(chunk).toMatchObject({
      name: 'T > Deep',
      type: 'doc_chunk',
      metadata: { source: 'x', title: 'T', heading: 'Deep', ordinal: 1, origin: 'ingest' },
    });
    expect(
      to.store.relations.has(`${chunkId('ingest', 'x', 1)} ${documentId('ingest', 'x')} BELONGS_TO`),
    ).toBe(true);
  });

  test('ingesting a document that is too long is rejected and stores nothing', async () => {
    const to = backend();
    const content = 'é'.repeat(1024 * 1024 + 1);
    await expect(ingestDocument(to, { title: 'Long', content })).rejects.toMatchObject({
      code: 'body_too_large',
    });
    expect(to.store.writes).toBe(0);
  });

  test('ingesting a document accepts texts without words and titles that are not valid paths', async () => {
    const to = backend();
    expect(await ingestDocument(to, { title: '../../x\0\ud800', content: '' })).toMatchObject({
      chunks: 0,
      title: '../../x\ufffd\ufffd',
    });
    expect(await ingestDocument(to, { title: '-', content: '---\n***\n!!!' })).toMatchObject({
      status: 'created',
    });
    expect(await ingestDocument(to, { title: '__proto__', content: '[a](__proto__.md) text' })).toMatchObject(
      { chunks: 1 },
    );
  });
});

test('a document whose title or headings are too long for a name is stored with shorter ones', async () => {
  await using folder = await temporaryFolder();
  const store = await openSqliteStore({ dataDir: folder.path, log: recordingLog() });
  const title = '\u{1f9a6}'.repeat(30_000);
  const headings = Array.from({ length: 6 }, (_, n) => `${'#'.repeat(n + 1)} ${title}\n`).join('\n');
  const content = `---\ntitle: ${title}\n---\n\n${headings}\nOtters.\n`;
  const stored = await putDocument(
    { store, embedder: createHashEmbedder() },
    { origin: 'docs_dir', key: 'a.md', path: 'a.md', content },
  );
  await store.close();
  expect([stored.title.length, stored.status]).toEqual([512, 'created']);
});

test('an indexed chat turn can be found and belongs to its session', async () => {
  const to = backend();
  const turn = {
    id: 't1',
    seq: 4,
    sessionId: 's1',
    agentId: 'planner',
    role: 'user',
    content: 'The deployment window is on Thursday.',
    createdAt: '2026-01-02T03:04:05.000Z',
  } as const;
  await indexTurn(to, turn);
  const { results } = await search(to, { query: 'deployment window', limit: 5, minScore: 0.7 });
  expect(results).toHaveLength(1);
  expect(results[0]).toMatchObject({
    id: chatMessageId('t1'),
    type: 'chat_message',
    metadata: { sessionId: 's1', agentId: 'planner', role: 'user', turnId: 't1' },
  });
  expect(to.store.relations.has(`${chatMessageId('t1')} ${workspaceId('session', 's1')} BELONGS_TO`)).toBe(
    true,
  );
  await indexTurn(to, { ...turn, id: 't2', content: '  ' });
  expect((await to.store.stats()).entities.chat_message).toBe(1);
});

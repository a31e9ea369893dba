import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createDocsSync, SYNC_NOTE } from '../../../src/adapter/memory/docs-sync.ts';
import { ingestDocument } from '../../../src/adapter/memory/documents.ts';
import { createHashEmbedder } from '../../../src/adapter/memory/embed/hash-embedder.ts';
import { walkGraph } from '../../../src/adapter/memory/graph.ts';
import { openStore } from '../../../src/adapter/memory/open-store.ts';
import { search } from '../../../src/adapter/memory/search/search.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { recordingLog } from './recording-log.ts';

test('a folder is synced into the embedded store, searched and walked, also after a restart', async () => {
  await using folder = await temporaryFolder();
  const docs = join(folder.path, 'handbook');
  await mkdir(join(docs, 'guides'), { recursive: true });
  await writeFile(join(docs, 'limits.md'), '# Rate limits\n\nSixty requests a minute, then status 429.\n');
  await writeFile(
    join(docs, 'guides/client.md'),
    '# Client\n\nRetry later, see [limits](../limits.md).\n\n---\n',
  );
  await writeFile(join(docs, 'empty.md'), '***\n');
  const opened = async () => ({
    store: await openStore({ dataDir: join(folder.path, 'data'), log: recordingLog() }),
    embedder: createHashEmbedder(),
  });

  const first = await opened();
  await ingestDocument(first, {
    title: 'Notes',
    content: 'Zebras have stripes.',
    source: 'https://example.com/z',
  });
  const synced = await createDocsSync(first, { folder: docs }).run();
  expect(synced).toMatchObject({ state: 'done', added: 3, failed: 0, errors: [] });
  await first.store.close();

  const again = await opened();
  expect(await again.store.note(SYNC_NOTE)).toMatchObject({ state: 'done', added: 3 });
  expect(await createDocsSync(again, { folder: docs }).run()).toMatchObject({ unchanged: 3, embedded: 0 });
  const found = await search(again, { query: 'how many requests per minute?', limit: 5, minScore: 0.7 });
  expect(found.results[0]).toMatchObject({ name: 'Rate limits', metadata: { path: 'limits.md' } });
  expect(
    (await search(again, { query: 'stripes', limit: 5, minScore: 0.7 })).results[0]?.metadata,
  ).toMatchObject({
    source: 'https://example.com/z',
  });

  const walk = await walkGraph(again.store, { entityId: 'Client', maxDepth: 2 });
  if (walk.root === undefined) throw new Error('nothing found');
  expect(walk.nodes.map(({ name, type }) => `${type} ${name}`).sort()).toEqual([
    'doc_chunk Client',
    'doc_chunk Rate limits',
    'doc_file Client',
    'doc_file Rate limits',
    'workspace handbook',
    'workspace handbook/guides',
  ]);
  expect(await walkGraph(again.store, { entityId: 'Rate limit', maxDepth: 1 })).toMatchObject({
    root: undefined,
    similarNames: ['Rate limits'],
  });

  await rm(join(docs, 'limits.md'));
  expect(await createDocsSync(again, { folder: docs }).run()).toMatchObject({ removed: 1, unchanged: 2 });
  expect((await search(again, { query: 'requests per minute', limit: 5, minScore: 0.7 })).count).toBe(0);
  await again.store.close();
});

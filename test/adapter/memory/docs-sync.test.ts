import { rmSync } from 'node:fs';
import { chmod, mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createDocsSync } from '../../../src/adapter/memory/docs-sync.ts';
import { ingestDocument } from '../../../src/adapter/memory/documents.ts';
import type { Embedder } from '../../../src/adapter/memory/embed/embedder.ts';
import { EmbeddingQueue } from '../../../src/adapter/memory/embed/embedding-queue.ts';
import { createHashEmbedder } from '../../../src/adapter/memory/embed/hash-embedder.ts';
import { documentId, workspaceId } from '../../../src/adapter/memory/ids.ts';
import { AppError } from '../../../src/core/errors.ts';
import { MEMORY_STORE_LIMITS } from '../../../src/core/memory-limits.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { fakeStore } from './fake-store.ts';
import { recordingLog } from './recording-log.ts';

/** Counts the embedded texts; can be made to fail or to wait. */
function countingEmbedder(id = 'hash-v2/128') {
  const inner = createHashEmbedder();
  const state = { texts: 0, before: async (_texts: readonly string[]): Promise<void> => undefined };
  const embedder: Embedder = {
    ...inner,
    id,
    async embed(texts, signal, progress) {
      await state.before(texts);
      signal?.throwIfAborted();
      state.texts += texts.length;
      return inner.embed(texts, signal, progress);
    },
  };
  return Object.assign(embedder, { state });
}

async function withDocs(
  files: Readonly<Record<string, string | Uint8Array>>,
  use: (kit: {
    readonly folder: string;
    put(path: string, text: string | Uint8Array): Promise<void>;
    readonly store: ReturnType<typeof fakeStore>;
    readonly embedder: ReturnType<typeof countingEmbedder>;
    sync(): ReturnType<typeof createDocsSync>;
  }) => Promise<void>,
): Promise<void> {
  await using temporary = await temporaryFolder();
  const folder = join(temporary.path, 'docs');
  await mkdir(folder);
  const put = async (path: string, text: string | Uint8Array): Promise<void> => {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), text);
  };
  for (const [path, text] of Object.entries(files)) await put(path, text);
  const store = fakeStore();
  const embedder = countingEmbedder();
  await use({ folder, put, store, embedder, sync: () => createDocsSync({ store, embedder }, { folder }) });
}

const GUIDE = { 'a.md': '# A\n\nFirst.\n', 'sub/b.mdx': '# B\n\nSecond, see [a](../a).\n', 'c.txt': 'no' };

describe('docs sync', () => {
  test('a sync that reads a docs folder while it is being deleted removes nothing', async () => {
    await withDocs(GUIDE, async ({ folder, store, embedder, sync }) => {
      await sync().run();
      await rm(join(folder, 'a.md'));
      const deleting = { add: () => undefined, keep: () => rmSync(folder, { recursive: true }) };
      const { removed, errors } = await createDocsSync(
        { store, embedder },
        { folder, watch: deleting },
      ).run();
      expect(removed).toBe(0);
      expect(errors[0]?.message).toBe('the docs folder was deleted meanwhile: 1 missing documents were kept');
    });
  });

  test('a sync counts a file that is not UTF-8 text as failed and reports it', async () => {
    const files = { 'a.md': '# A', 'latin.md': Buffer.from('# Caf\xe9', 'latin1') };
    await withDocs(files, async ({ sync }) => {
      expect(await sync().run()).toMatchObject({
        state: 'done',
        added: 1,
        failed: 1,
        errors: [{ path: 'latin.md', message: 'it is not UTF-8 text: save it as UTF-8' }],
      });
    });
  });

  test('a sync stores .md and .mdx files with their folders and links and reports the result', async () => {
    await withDocs(GUIDE, async ({ store, sync }) => {
      const result = await sync().run();
      expect(result).toMatchObject({
        state: 'done',
        scanned: 2,
        total: 2,
        added: 2,
        updated: 0,
        removed: 0,
        failed: 0,
      });
      expect(result).toMatchObject({ embedded: 2, errors: [] });
      const [a, b] = [documentId('docs_dir', 'a.md'), documentId('docs_dir', 'sub/b.mdx')];
      const edges = [...store.relations.keys()];
      expect(edges).toContain(`${b} ${a} REFERENCES`);
      expect(edges).toContain(`${b} ${workspaceId('folder', 'sub')} BELONGS_TO`);
      expect(edges).toContain(`${workspaceId('folder', 'sub')} ${workspaceId('folder', '')} BELONGS_TO`);
      const [file, sub] = await store.entities([b, workspaceId('folder', 'sub')]);
      expect(file).toMatchObject({
        name: 'B',
        type: 'doc_file',
        metadata: { path: 'sub/b.mdx', origin: 'docs_dir' },
      });
      expect(sub).toMatchObject({ name: 'docs/sub', type: 'workspace' });
    });
  });

  test('a second sync of unchanged files embeds and writes nothing', async () => {
    await withDocs(GUIDE, async ({ store, embedder, sync }) => {
      await sync().run();
      const { writes } = store;
      const { texts } = embedder.state;
      expect(await sync().run()).toMatchObject({
        state: 'done',
        scanned: 2,
        unchanged: 2,
        added: 0,
        embedded: 0,
      });
      expect([store.writes, embedder.state.texts]).toEqual([writes, texts]);
    });
  });

  test('a sync replaces changed files and removes deleted ones, but no ingested documents', async () => {
    await withDocs(GUIDE, async ({ folder, put, store, embedder, sync }) => {
      await ingestDocument({ store, embedder }, { title: 'Kept', content: 'Text.' });
      await sync().run();
      await put('a.md', '# A\n\nOther.\n');
      await rm(join(folder, 'sub'), { recursive: true });
      expect(await sync().run()).toMatchObject({ updated: 1, removed: 1, unchanged: 0, scanned: 1 });
      expect((await store.documents('docs_dir')).map(({ key }) => key)).toEqual(['a.md']);
      expect(await store.documents('ingest')).toHaveLength(1);
    });
  });

  test('a sync never removes everything because the folder is empty or missing', async () => {
    await withDocs(GUIDE, async ({ folder, store, sync }) => {
      await sync().run();
      await rm(folder, { recursive: true });
      const missing = await sync().run();
      expect(missing).toMatchObject({ state: 'done', scanned: 0, removed: 0 });
      expect(missing.errors[0]?.message).toMatch(
        /^the docs folder cannot be read, so nothing was removed: ENOENT/,
      );
      await mkdir(folder);
      const empty = await sync().run();
      expect(empty).toMatchObject({ state: 'done', scanned: 0, removed: 0 });
      expect(empty.errors[0]?.message).toBe('the docs folder has no documents: the 2 stored ones were kept');
      expect(await store.documents('docs_dir')).toHaveLength(2);
    });
  });

  test('a sync continues after an invalid document and keeps its last valid version', async () => {
    await withDocs(GUIDE, async ({ put, store, sync }) => {
      await sync().run();
      await put('a.md', 'x'.repeat(10 * 1024 * 1024));
      await put(
        'binary.md',
        Uint8Array.from({ length: 4_000 }, (_, index) => (index * 7) % 256),
      );
      await put('new.md', 'New.');
      const result = await sync().run();
      expect(result).toMatchObject({
        state: 'done',
        scanned: 4,
        added: 1,
        unchanged: 1,
        failed: 2,
        removed: 0,
      });
      expect(result.errors).toEqual([
        { path: 'a.md', message: 'the document has 10485760 bytes, the maximum is 2097152: split it' },
        { path: 'binary.md', message: 'it is not UTF-8 text: save it as UTF-8' },
      ]);
      expect(await store.documents('docs_dir')).toHaveLength(3);
    });
  });

  test('a sync follows symbolic links inside the folder only, and stores each file once', async () => {
    await withDocs({ 'a.md': 'A.', '..data/mounted.md': 'M.' }, async ({ folder, store, sync }) => {
      await writeFile(join(folder, '..', 'secret.md'), 'S.');
      await symlink('../secret.md', join(folder, 'out.md'));
      await symlink('..', join(folder, 'up'));
      await symlink('.', join(folder, 'loop'));
      await symlink('a.md', join(folder, 'again.md'));
      await symlink('..data/mounted.md', join(folder, 'mounted.md'));
      await symlink('nowhere.md', join(folder, 'dangling.md'));
      const result = await sync().run();
      expect((await store.documents('docs_dir')).map(({ key }) => key).sort()).toEqual([
        'a.md',
        'mounted.md',
      ]);
      expect(result.errors.map(({ path }) => path).sort()).toEqual(['dangling.md', 'out.md', 'up']);
    });
  });

  test.skipIf(process.getuid?.() === 0)('a sync of an unreadable folder removes nothing', async () => {
    await withDocs(GUIDE, async ({ folder, store, sync }) => {
      await sync().run();
      await chmod(join(folder, 'sub'), 0o000);
      expect(await sync().run()).toMatchObject({ removed: 0, failed: 1 });
      await chmod(join(folder, 'sub'), 0o755);
      expect(await store.documents('docs_dir')).toHaveLength(2);
    });
  });

  test('a sync creates the relation of a link when its target appears later, also after a removal', async () => {
    await withDocs({ 'b.md': 'See [a](a.md).' }, async ({ folder, put, store, sync }) => {
      const key = `${documentId('docs_dir', 'b.md')} ${documentId('docs_dir', 'a.md')} REFERENCES`;
      await sync().run();
      expect(store.relations.has(key)).toBe(false);
      for (const _ of [1, 2]) {
        await put('a.md', 'A.');
        await sync().run();
        expect(store.relations.has(key)).toBe(true);
        await rm(join(folder, 'a.md'));
        await sync().run();
        expect(store.relations.has(key)).toBe(false);
      }
    });
  });

  test('a sync creates the link relations that an interrupted sync left out', async () => {
    await withDocs({ 'a.md': 'A.', 'b.md': 'See [a](a.md).' }, async ({ store, sync }) => {
      // Folder, a.md, b.md, then the links: the fourth write fails.
      store.beforeWrite = () => {
        if (store.writes === 3) throw new Error('the disk is full');
      };
      expect(await sync().run()).toMatchObject({ state: 'failed', added: 2 });
      store.beforeWrite = () => undefined;
      expect(await sync().run()).toMatchObject({ state: 'done', unchanged: 2 });
      expect(
        [...store.relations.values()].filter(({ relationType }) => relationType === 'REFERENCES'),
      ).toHaveLength(1);
    });
  });
});

describe('concurrent syncs', () => {
  test('a second sync call joins the one in progress', async () => {
    await withDocs(GUIDE, async ({ sync }) => {
      const docs = sync();
      const [first, second] = await Promise.all([docs.run(), docs.run()]);
      expect(second).toBe(first);
      expect(await docs.run()).toMatchObject({ unchanged: 2 });
    });
  });

  test('a sync is skipped while another process holds the lock', async () => {
    await withDocs(GUIDE, async ({ store, sync }) => {
      const elsewhere = Promise.withResolvers<void>();
      const holding = store.exclusively('docs-sync', () => elsewhere.promise);
      expect(await sync().run()).toMatchObject({ state: 'running', scanned: 0 });
      expect(store.writes).toBe(0);
      elsewhere.resolve();
      await holding;
      expect(await sync().run()).toMatchObject({ state: 'done', added: 2 });
    });
  });

  test('closing the store stops a sync between two documents with a message', async () => {
    await withDocs(GUIDE, async ({ embedder, store, sync }) => {
      const docs = sync();
      let closing: Promise<void> | undefined;
      embedder.state.before = async () => {
        closing ??= docs.close();
      };
      const result = await docs.run();
      expect(result).toMatchObject({ state: 'failed', added: 0 });
      expect(result.errors[0]?.message).toMatch(/^stopped before its end/);
      await closing;
      expect(store.writes).toBe(0);
    });
  });

  test('a sync reports its progress while it runs', async () => {
    await withDocs(GUIDE, async ({ folder, store, embedder }) => {
      const seen: string[] = [];
      const docs = createDocsSync(
        { store, embedder },
        {
          folder,
          progress: ({ state, scanned, total, embedded }) =>
            seen.push(`${state} ${scanned}/${total} ${embedded}`),
        },
      );
      await docs.run();
      expect(seen).toContain('running 1/2 1');
      expect(seen.at(-1)).toBe('done 2/2 2');
    });
  });
});

describe('syncs and the embedder', () => {
  test('a sync after the embedder was changed neither reads nor writes unchanged documents', async () => {
    await withDocs(GUIDE, async ({ folder, store, sync }) => {
      await sync().run();
      const { writes } = store;
      const other = countingEmbedder('other/128');
      const result = await createDocsSync({ store, embedder: other }, { folder }).run();
      expect(result).toMatchObject({ state: 'done', unchanged: 2, embedded: 0 });
      expect([store.writes, other.state.texts]).toEqual([writes, 0]);
    });
  });

  test('a slow embedder gets a bounded number of concurrent documents', async () => {
    const files = Object.fromEntries(
      Array.from({ length: 20 }, (_, index) => [`${index % 3}/${index}.md`, `Text ${index}.`]),
    );
    await withDocs(files, async ({ embedder, store, sync }) => {
      const [full, open] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      let asked = 0;
      embedder.state.before = async () => {
        asked += 1;
        if (asked === MEMORY_STORE_LIMITS.syncConcurrency) full.resolve();
        await open.promise;
      };
      const result = sync().run();
      await full.promise;
      await new Promise((resolve) => setImmediate(resolve));
      expect(asked).toBe(MEMORY_STORE_LIMITS.syncConcurrency);
      open.resolve();
      expect(await result).toMatchObject({ state: 'done', added: 20, embedded: 20, failed: 0 });
      const folders = [...store.relations.keys()].filter((key) => key.endsWith('BELONGS_TO'));
      for (const folder of ['0', '1', '2'])
        expect(folders).toContain(`${workspaceId('folder', folder)} ${workspaceId('folder', '')} BELONGS_TO`);
    });
  });

  test('a sync stores all documents while the embedding service is down', async () => {
    const files = Object.fromEntries(
      Array.from({ length: 20 }, (_, index) => [`${index}.md`, `Text ${index}.`]),
    );
    await withDocs(files, async ({ folder, embedder, store }) => {
      const failing = { ...embedder, isImmediate: false };
      embedder.state.before = async () => {
        throw new AppError('upstream_unreachable', { message: 'the service is away' });
      };
      const embeddings = new EmbeddingQueue({ store, embedder: failing, log: recordingLog() });
      const result = await createDocsSync({ store, embedder: failing }, { folder, embeddings }).run();
      expect(result).toMatchObject({ state: 'done', added: 20, failed: 0, errors: [] });
      await embeddings.settled(60_000);
      expect(await embeddings.status()).toMatchObject({
        state: 'waiting',
        pending: 20,
        problem: 'the service is away',
      });
      expect(await store.lexical(['text'], { limit: 50 })).toHaveLength(20);
      await embeddings.close();
    });
  });
});

import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Embedder } from '../../../src/adapter/memory/embed/embedder.ts';
import { createHashEmbedder } from '../../../src/adapter/memory/embed/hash-embedder.ts';
import { openStoreOn } from '../../../src/adapter/memory/postgres/open.ts';
import type { NamespacedStore } from '../../../src/adapter/memory/store.ts';
import type { Json } from '../../kit/mcp.ts';
import { memoryBackend, type TestBackend } from '../../kit/memory-backend.ts';
import { pgliteServer } from '../../kit/pglite-pool.ts';
import { recordingLog } from './recording-log.ts';

// A moved folder must not be embedded again (bobmatnyc/trusty-tools#1073), nor become other documents.

/** A section as long as a chunk. */
const section = (heading: string, text: string): string => `## ${heading}\n\n${`${text} `.repeat(40)}\n\n`;
const SETUP = `# Setup\n\n${section('Archive', 'Unpack the archive there.')}${section('Proxy', 'Name the proxy here.')}`;

const DOCS = {
  'guide/setup.md': SETUP,
  'index.md': '# Start\n\nSee [setup](guide/setup.md), which needs Alice.\n',
  'other.md': '# Other\n\nNothing.\n',
};

function countingEmbedder(): { embedder: Embedder; texts: string[] } {
  const inner = createHashEmbedder();
  const texts: string[] = [];
  return {
    texts,
    embedder: {
      ...inner,
      embed: (...args) => {
        texts.push(...args[0]);
        return inner.embed(...args);
      },
    },
  };
}

interface Kit extends AsyncDisposable {
  readonly backend: TestBackend;
  /** Texts embedded since the first sync. */
  readonly texts: readonly string[];
  write(path: string, text: string): void;
  move(from: string, to: string): void;
  remove(path: string): void;
  sync(): Promise<Json>;
  /** Id of the document at a path; undefined if there is none. */
  idOf(path: string): Promise<string | undefined>;
  /** Ids of the parts of a document. */
  partsOf(id: string): Promise<string[]>;
  folders(): Promise<string[]>;
  /** Names of what refers to an entity. */
  referring(id: string): Promise<string[]>;
}

async function kit(docs: Readonly<Record<string, string>>, store: NamespacedStore | undefined): Promise<Kit> {
  const { embedder, texts } = countingEmbedder();
  const backend = await memoryBackend({ docs, embedder, ...(store && { store }) });
  texts.length = 0;
  const at = (path: string): string => join(backend.docs, path);
  const relations = async (id: string): Promise<Json> =>
    (await backend.get(`graph?entityId=${id}&direction=in&maxDepth=1`)).body;
  return {
    backend,
    texts,
    write(path, text) {
      mkdirSync(dirname(at(path)), { recursive: true });
      writeFileSync(at(path), text);
    },
    move(from, to) {
      mkdirSync(dirname(at(to)), { recursive: true });
      renameSync(at(from), at(to));
    },
    remove: (path) => rmSync(at(path), { recursive: true }),
    sync: async () => (await backend.post('ingest/docs')).body.sync,
    idOf: async (path) => (await backend.memory.store.document('docs_dir', path))?.id,
    partsOf: async (id) =>
      (await relations(id)).nodes
        .filter(({ type }: Json) => type === 'doc_chunk')
        .map((node: Json) => node.id)
        .sort(),
    folders: async () =>
      (await backend.get('entities?types=workspace')).body.entities.map(({ name }: Json) => name).sort(),
    referring: async (id) => {
      const { nodes, edges } = await relations(id);
      const from = edges
        .filter((edge: Json) => edge.relationType === 'REFERENCES')
        .map((edge: Json) => edge.fromId);
      return nodes.filter((node: Json) => from.includes(node.id)).map((node: Json) => node.name);
    },
    [Symbol.asyncDispose]: () => backend[Symbol.asyncDispose](),
  };
}

let server: Awaited<ReturnType<typeof pgliteServer>>;
beforeAll(async () => {
  server = await pgliteServer();
}, 120_000);
afterAll(() => server.close());

const ENGINES: [string, () => Promise<NamespacedStore | undefined>][] = [
  ['SQLite', () => Promise.resolve(undefined)],
  [
    'PostgreSQL',
    async () => {
      await server.empty();
      return openStoreOn(server.pool(), 'PGlite', recordingLog());
    },
  ],
];

describe.each(ENGINES)('renamed documents on %s', (_name, open) => {
  const start = async (docs: Readonly<Record<string, string>> = DOCS): Promise<Kit> =>
    kit(docs, await open());

  test('a document that moves to another folder keeps its id, parts, relations and vectors, and gets its new place', async () => {
    await using docs = await start();
    const id = (await docs.idOf('guide/setup.md')) ?? '';
    const parts = await docs.partsOf(id);
    expect([parts.length, await docs.referring(id)]).toEqual([2, ['Start']]);
    docs.move('guide/setup.md', 'howto/install/setup.md');
    expect(await docs.sync()).toMatchObject({ added: 0, updated: 1, removed: 0, unchanged: 2 });
    expect(await docs.idOf('howto/install/setup.md')).toBe(id);
    expect(await docs.idOf('guide/setup.md')).toBeUndefined();
    expect(await docs.partsOf(id)).toEqual(parts);
    expect(await docs.referring(id)).toEqual(['Start']);
    expect(docs.texts).toEqual([]);
    const [found] = (await docs.backend.post('search', { query: 'unpack the archive' })).body.results;
    expect(found).toMatchObject({ cosine: expect.any(Number), metadata: { path: 'howto/install/setup.md' } });
    const { nodes } = (await docs.backend.get(`graph?entityId=${id}&direction=out&maxDepth=1`)).body;
    expect(nodes.map(({ name }: Json) => name)).toContain('docs/howto/install');
    expect(await docs.folders()).toEqual(['docs', 'docs/howto', 'docs/howto/install']);
    expect((await docs.sync()).unchanged).toBe(3);
  });

  test('a renamed document stays the same when it is edited and renamed again, and its old path is free', async () => {
    await using docs = await start();
    const id = (await docs.idOf('guide/setup.md')) ?? '';
    const parts = await docs.partsOf(id);
    docs.move('guide/setup.md', 'second.md');
    await docs.sync();
    // The last section is at another place then.
    docs.write('second.md', SETUP.replace('## Proxy', `${section('More', 'Another part.')}## Proxy`));
    docs.write('guide/setup.md', '# New setup\n\nSomething else.\n');
    expect(await docs.sync()).toMatchObject({ added: 1, updated: 1, removed: 0 });
    const other = await docs.idOf('guide/setup.md');
    expect(await docs.idOf('second.md')).toBe(id);
    expect(other).not.toBe(id);
    expect((await docs.partsOf(id)).length).toBe(3);
    expect(await docs.partsOf(id)).toEqual(expect.arrayContaining(parts));
    expect([...docs.texts].sort()).toEqual([
      expect.stringContaining('Something else.'),
      expect.stringContaining('Another part.'),
    ]);
    docs.move('second.md', 'third.md');
    docs.move('guide/setup.md', 'fourth.md');
    await docs.sync();
    expect([await docs.idOf('third.md'), await docs.idOf('fourth.md')]).toEqual([id, other]);
    expect(docs.texts.length).toBe(2);
  });

  test('a folder without documents is gone from the graph, and one with others stays', async () => {
    await using docs = await start({ ...DOCS, 'a/b/c.md': 'C.', 'a/d.md': 'D.' });
    expect(await docs.folders()).toEqual(['docs', 'docs/a', 'docs/a/b', 'docs/guide']);
    docs.remove('a/b');
    docs.remove('guide');
    await docs.sync();
    expect(await docs.folders()).toEqual(['docs', 'docs/a']);
    const { edges } = (await docs.backend.get('graph?entityId=docs&direction=in&maxDepth=1')).body;
    expect(edges.filter(({ relationType }: Json) => relationType === 'BELONGS_TO')).toHaveLength(3);
  });

  test('a case-only rename keeps the document', async () => {
    await using docs = await start();
    const id = await docs.idOf('other.md');
    docs.move('other.md', 'Other.md');
    expect(await docs.sync()).toMatchObject({ added: 0, removed: 0 });
    expect(await docs.idOf('Other.md')).toBe(id);
  });

  test('an edited file under another name is another document', async () => {
    await using docs = await start();
    const id = await docs.idOf('other.md');
    docs.remove('other.md');
    docs.write('renamed.md', '# Other\n\nNothing!\n');
    expect(await docs.sync()).toMatchObject({ added: 1, removed: 1 });
    expect(await docs.idOf('renamed.md')).not.toBe(id);
  });

  test('of two equal files, the one that stays keeps its document, and the other one follows its file', async () => {
    await using docs = await start({
      ...DOCS,
      'copy.md': DOCS['other.md'],
      'sub/index.md': 'Same.',
      'top/index.md': 'Same.',
    });
    const ids = { other: await docs.idOf('other.md'), copy: await docs.idOf('copy.md') };
    const [sub, top] = [await docs.idOf('sub/index.md'), await docs.idOf('top/index.md')];
    docs.remove('copy.md');
    expect(await docs.sync()).toMatchObject({ removed: 1, added: 0, updated: 0 });
    expect(await docs.idOf('other.md')).toBe(ids.other);
    docs.move('top', 'a');
    docs.move('sub', 'z/sub');
    expect(await docs.sync()).toMatchObject({ removed: 0, added: 0, updated: 2 });
    expect(await docs.idOf('z/sub/index.md')).toBe(sub);
    expect(await docs.idOf('a/index.md')).toBe(top);
  });

  test('a path that stays keeps its document when two files swap names, or one replaces the other', async () => {
    await using docs = await start();
    const [setup, other] = [await docs.idOf('guide/setup.md'), await docs.idOf('other.md')];
    docs.write('guide/setup.md', DOCS['other.md']);
    docs.write('other.md', SETUP);
    expect(await docs.sync()).toMatchObject({ updated: 2, added: 0, removed: 0 });
    expect([await docs.idOf('guide/setup.md'), await docs.idOf('other.md')]).toEqual([setup, other]);
    docs.move('guide/setup.md', 'other.md');
    expect(await docs.sync()).toMatchObject({ updated: 1, added: 0, removed: 1 });
    expect(await docs.idOf('other.md')).toBe(other);
  });

  test('a rename that a kill interrupts is completed by the next sync', async () => {
    await using docs = await start();
    const id = (await docs.idOf('guide/setup.md')) ?? '';
    const parts = await docs.partsOf(id);
    docs.move('guide/setup.md', 'moved.md');
    // What is on disk between the two writes of a rename.
    await docs.backend.memory.store.renameDocuments('docs_dir', [{ from: 'guide/setup.md', to: 'moved.md' }]);
    expect(await docs.sync()).toMatchObject({ updated: 1, added: 0, removed: 0 });
    expect([await docs.idOf('moved.md'), await docs.partsOf(id), docs.texts]).toEqual([id, parts, []]);
    expect((await docs.backend.get(`entities/${id}`)).body.metadata.path).toBe('moved.md');
  });
});

test('a folder of 100 files that moves is neither embedded nor added again', async () => {
  const files = Object.fromEntries(
    Array.from({ length: 100 }, (_, n) => [
      `old/${n % 20}/page-${n}.md`,
      `# Page ${n}\n\nAbout subject ${n}.\n`,
    ]),
  );
  await using docs = await kit({ 'index.md': '# Start\n', ...files }, undefined);
  const before = await docs.idOf('old/7/page-7.md');
  docs.move('old', 'new/place');
  expect(await docs.sync()).toMatchObject({ updated: 100, added: 0, removed: 0, unchanged: 1, failed: 0 });
  expect(await docs.idOf('new/place/7/page-7.md')).toBe(before);
  expect(docs.texts).toEqual([]);
}, 60_000);

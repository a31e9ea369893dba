import { createHash } from 'node:crypto';
import { mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, test } from 'vitest';
import { siteBaseIn } from '../../../src/adapter/memory/markdown/links.ts';
import { cli } from '../../kit/cli.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import type { Json } from '../../kit/mcp.ts';
import {
  memoryBackend,
  type TestBackend,
  type TestBackendOptions,
  writeFiles,
} from '../../kit/memory-backend.ts';

const A = {
  'README.md': '# Alpha\n\nThe alpha project bakes rye bread.\n\n## Ovens\n\nOvens of alpha are hot.\n',
  'guide/setup.md': '# Setup of alpha\n\nKnead the rye dough, see [readme](../README.md).\n',
};
const B = {
  'README.md': '# Beta\n\nThe beta project brews barley beer.\n',
  'guide/setup.md': '# Setup of beta\n\nMash the barley malt, see [readme](../README.md).\n',
};

/** A folder with two projects, and backends that serve one of them from the same data, one after another. */
async function projects(): Promise<
  AsyncDisposable & {
    readonly a: string;
    readonly b: string;
    serving(docsFolder: string | undefined, more?: TestBackendOptions): Promise<TestBackend>;
  }
> {
  const folder = await temporaryFolder();
  const [a, b] = [join(folder.path, 'a', 'docs'), join(folder.path, 'b', 'docs')];
  writeFiles(a, A);
  writeFiles(b, B);
  return {
    a,
    b,
    serving: (docsFolder, more = {}) =>
      memoryBackend({ data: join(folder.path, 'data'), docsFolder, ...more }),
    [Symbol.asyncDispose]: () => folder.remove(),
  };
}

/** Where the results of a search are from. */
async function found(backend: TestBackend, query: string): Promise<string[]> {
  const { body } = await backend.post('search', { query, minScore: 0.1, limit: 10 });
  return body.results.map(({ metadata }: Json) => metadata.path).sort();
}
const sync = async ({ memory }: TestBackend) => memory.sync.status();
const rootOf = async (backend: TestBackend, entityId: string): Promise<Json> =>
  (await backend.get(`graph?entityId=${encodeURIComponent(entityId)}`)).body;

describe('two docs folders in one memory', () => {
  test('a second folder removes nothing of the first, also when its own files go', async () => {
    await using kit = await projects();
    {
      await using first = await kit.serving(kit.a);
      expect(await sync(first)).toMatchObject({ added: 2, removed: 0 });
    }
    {
      await using second = await kit.serving(kit.b);
      expect(await sync(second)).toMatchObject({ added: 2, updated: 0, removed: 0 });
      expect(await found(second, 'rye bread')).toContain(join(kit.a, 'README.md'));
      await rm(join(kit.b, 'guide/setup.md'));
      expect(await second.memory.sync.run()).toMatchObject({ removed: 1 });
      expect((await second.memory.store.documents('docs_dir')).map(({ key }) => key)).toEqual([
        '/2/README.md',
        'README.md',
        'guide/setup.md',
      ]);
      // A workspace goes with the last document of its own folder only.
      expect((await rootOf(second, join(kit.a, 'guide'))).root).toMatchObject({ type: 'workspace' });
    }
    await using again = await kit.serving(kit.a);
    expect(await sync(again)).toMatchObject({ added: 0, updated: 0, unchanged: 2, removed: 0 });
  });

  test('results name files of the served folder by their path in it, and others by an absolute one', async () => {
    await using kit = await projects();
    {
      await using first = await kit.serving(kit.a);
      expect(await found(first, 'rye bread')).toEqual(expect.arrayContaining(['README.md']));
    }
    await using second = await kit.serving(kit.b);
    expect(await found(second, 'barley beer project')).toEqual(expect.arrayContaining(['README.md']));
    expect(await found(second, 'rye barley')).toEqual([
      join(kit.a, 'README.md'),
      join(kit.a, 'guide/setup.md'),
      'README.md',
      'guide/setup.md',
    ]);
    const readme = await rootOf(second, 'README.md');
    expect(readme.root.name).toBe('Beta');
    expect((await rootOf(second, `${join(kit.a, 'README.md')}:5#ovens`)).root.name).toBe('Alpha');
    // Links stay inside of their folder.
    const files = readme.nodes.filter(({ type }: Json) => type === 'doc_file').map(({ name }: Json) => name);
    expect(files.sort()).toEqual(['Beta', 'Setup of beta']);
    const { body } = await second.post('forget', { about: 'barley malt', preview: true });
    expect(body.documents.map(({ key }: Json) => key)).toEqual([join(kit.b, 'guide/setup.md')]);
  });

  test('a folder that has moved takes its documents along', async () => {
    await using kit = await projects();
    let id: string | undefined;
    {
      await using first = await kit.serving(kit.a);
      id = (await first.memory.store.document('docs_dir', 'README.md'))?.id;
    }
    const elsewhere = join(kit.a, '..', 'moved');
    await rename(kit.a, elsewhere);
    await rm(join(elsewhere, 'guide/setup.md'));
    await using moved = await kit.serving(elsewhere);
    expect(await sync(moved)).toMatchObject({ added: 0, unchanged: 1, removed: 1 });
    expect((await moved.memory.store.document('docs_dir', 'README.md'))?.id).toBe(id);
  });

  test('a folder that is gone keeps its documents beside those of a different folder', async () => {
    await using kit = await projects();
    {
      await using _first = await kit.serving(kit.a);
    }
    await rm(kit.a, { recursive: true });
    await using second = await kit.serving(kit.b);
    expect(await sync(second)).toMatchObject({ added: 2, removed: 0 });
    expect(await second.memory.store.documents('docs_dir')).toHaveLength(4);
    // Until somebody says that they are not needed any more.
    const run = (...args: string[]) =>
      cli(['memory', 'forget', ...args], { env: { MEMORY_API_URL: second.url }, cwd: join(kit.b, '..') });
    expect((await run('--folder')).stdout).toBe(
      `${kit.a}  (does not exist any more)\n${kit.b}  (read now)\n`,
    );
    expect(await run('--folder', 'docs')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('is the docs folder of this backend'),
    });
    expect(await run('--folder', '/nowhere')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`no documents of /nowhere are stored: there are those of ${kit.a}`),
    });
    expect(await run('name', '--folder', kit.a)).toMatchObject({ code: 2 });
    const shown = await run('--folder', kit.a);
    expect(shown.stdout).toContain('document Alpha (README.md)\n');
    expect(shown.stderr).not.toContain('note:');
    const [, token = ''] = /--folder \S+ --token (\w+)\n/.exec(shown.stderr) ?? [];
    const elsewhere = await cli(['memory', 'forget', '--memory-api-url', second.url, 'rye bread']);
    expect(elsewhere.stderr).toContain(` --memory-api-url ${second.url}\n`);
    expect((await run('--folder', kit.a, '--token', 'stale')).stderr).toContain('409');
    expect((await run('--folder', kit.a, '--token', token)).stdout).toContain('deleted: documents 2\n');
    expect((await second.memory.store.documents('docs_dir')).map(({ key }) => key)).toEqual([
      '/2/README.md',
      '/2/guide/setup.md',
    ]);
    const { nodes } = (await second.get('graph?types=workspace')).body;
    expect(nodes.map(({ name }: Json) => name).sort()).toEqual(['docs', 'docs/guide']);
    expect((await run('--folder')).stdout).toBe(`${kit.b}  (read now)\n`);
    expect(await second.memory.sync.run()).toMatchObject({ added: 0, unchanged: 2 });
  });

  test('a link to the folder, and an empty folder, bring no second copy', async () => {
    await using kit = await projects();
    {
      await using _first = await kit.serving(kit.a);
    }
    const link = join(kit.a, '..', 'link');
    await symlink(kit.a, link);
    const empty = join(kit.a, '..', 'empty');
    await mkdir(empty);
    for (const folder of [link, empty]) {
      await using other = await kit.serving(folder);
      expect(await sync(other)).toMatchObject({ added: 0, removed: 0 });
      expect(await other.memory.store.documents('docs_dir')).toHaveLength(2);
    }
  });

  test('documents of a release that kept no folder (0.2.0) belong to the folder that has them', async () => {
    await using kit = await projects();
    let data: string;
    {
      await using first = await kit.serving(kit.a);
      await first.memory.store.setNote('docs-folders', {});
      ({ data } = first);
    }
    hashAsRelease020(join(data, 'memory.db'));
    {
      await using second = await kit.serving(kit.b);
      expect(await sync(second)).toMatchObject({ added: 2, removed: 0 });
    }
    await using first = await kit.serving(kit.a);
    await writeFile(join(kit.a, 'new.md'), '# New\n');
    expect(await sync(first)).toMatchObject({ added: 0, unchanged: 2, removed: 0 });
    expect(await first.memory.store.documents('docs_dir')).toHaveLength(4);
  });
});

/** Release 0.2.0 and earlier ones hashed the title, source and path of a document with its text. */
function hashAsRelease020(file: string): void {
  using database = new DatabaseSync(file);
  const write = database.prepare(
    "UPDATE memory_entities SET metadata = json_set(metadata, '$.contentHash', ?) WHERE json_extract(metadata, '$.path') = ? AND type = 'doc_file'",
  );
  for (const [path, text] of Object.entries(A)) {
    const hash = createHash('sha256')
      .update(`${JSON.stringify([null, null, path])}\0${text}`)
      .digest('hex');
    expect(write.run(hash, path).changes).toBe(1);
  }
}

test('query_graph finds a document by everything that a citation or an address of it can be', async () => {
  await using backend = await memoryBackend({
    docs: A,
    siteBase: siteBaseIn('https://example.com/handbook'),
  });
  await backend.post('ingest/docs', {
    title: 'Notes',
    content: '# Notes\n\nText.',
    source: 'https://x.example/n',
  });
  const roots = async (...citations: string[]) => [
    ...new Set(await Promise.all(citations.map(async (one) => (await rootOf(backend, one)).root?.name))),
  ];
  const setup = ['guide/setup.md:3', 'guide/setup.md#setup-of-alpha', 'guide/setup.md:1#setup-of-alpha'];
  const bare = [
    'guide/setup',
    './guide/setup',
    '/guide/setup/',
    'docs/guide/setup.md',
    join(backend.docs, 'guide/setup.md:1'),
  ];
  const site = [
    'https://example.com/handbook/guide/setup',
    'https://example.com/handbook/guide/setup/#top',
    '/handbook/guide/setup',
  ];
  expect(await roots(...setup, ...bare, ...site)).toEqual(['Setup of alpha']);
  expect(await roots('https://example.com/handbook/', backend.docs)).toEqual(['docs']);
  expect(await roots('https://x.example/n', 'https://x.example/n#notes')).toEqual(['Notes']);
  expect(await roots('https://other.example/handbook/guide/setup')).toEqual([undefined]);
});

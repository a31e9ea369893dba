import { mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createHashEmbedder } from '../../../src/adapter/memory/embed/hash-embedder.ts';
import { memoryBackend, type TestBackend } from '../../kit/memory-backend.ts';
import { until } from '../../kit/until.ts';

const DOCS = { 'a.md': '# A\n\nOne about tea.\n', 'guide/b.md': '# B\n\nTwo about coffee.\n' };

/** What is stored of each document, by its path. */
async function stored({ memory }: TestBackend): Promise<Record<string, string>> {
  const documents = await memory.store.documents('docs_dir');
  const files = await memory.store.entities(documents.map(({ id }) => id));
  return Object.fromEntries(files.map(({ metadata, content }) => [String(metadata['path']), content]));
}

const becomes = (backend: TestBackend, expected: Record<string, string>): Promise<void> =>
  until(async () => {
    const now = await stored(backend);
    return (
      Object.keys(now).length === Object.keys(expected).length &&
      Object.entries(expected).every(([path, text]) => now[path] === text)
    );
  }, 5_000);

test('files that are changed, added, renamed and deleted are read at once, also in new folders', async () => {
  await using backend = await memoryBackend({ docs: DOCS, watchesDocs: true });
  const at = (path: string): string => join(backend.docs, path);
  await writeFile(at('a.md'), '# A\n\nThree.\n');
  await becomes(backend, { 'a.md': 'Three.', 'guide/b.md': 'Two about coffee.' });
  const renamed = await backend.memory.store.document('docs_dir', 'guide/b.md');
  await rename(at('guide/b.md'), at('guide/c.md'));
  await becomes(backend, { 'a.md': 'Three.', 'guide/c.md': 'Two about coffee.' });
  expect((await backend.memory.store.document('docs_dir', 'guide/c.md'))?.id).toBe(renamed?.id);
  await mkdir(at('new/deep'), { recursive: true });
  await writeFile(at('new/deep/d.md'), '# D\n\nFour.\n');
  await becomes(backend, { 'a.md': 'Three.', 'guide/c.md': 'Two about coffee.', 'new/deep/d.md': 'Four.' });
  await writeFile(at('new/deep/d.md'), '# D\n\nFive.\n');
  await becomes(backend, { 'a.md': 'Three.', 'guide/c.md': 'Two about coffee.', 'new/deep/d.md': 'Five.' });
  await rm(at('guide'), { recursive: true });
  await becomes(backend, { 'a.md': 'Three.', 'new/deep/d.md': 'Five.' });
});

test('the docs folder, or a folder in it, may be replaced by another one, or be a link that is switched', async () => {
  await using backend = await memoryBackend({ docs: DOCS, watchesDocs: true });
  const put = async (folder: string, text: string): Promise<void> => {
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, 'x.md'), `# X\n\n${text}\n`);
  };
  await rename(join(backend.docs, 'guide'), `${backend.docs}-guide`);
  await put(join(backend.docs, 'guide'), 'One.');
  await becomes(backend, { 'a.md': 'One about tea.', 'guide/x.md': 'One.' });
  await put(join(backend.docs, 'guide'), 'Two.');
  await becomes(backend, { 'a.md': 'One about tea.', 'guide/x.md': 'Two.' });
  await rename(backend.docs, `${backend.docs}-old`);
  await put(backend.docs, 'Three.');
  await becomes(backend, { 'x.md': 'Three.' });
  await put(backend.docs, 'Four.');
  await becomes(backend, { 'x.md': 'Four.' });
  await put(`${backend.docs}-1`, 'Five.');
  await put(`${backend.docs}-2`, 'Six.');
  await rm(backend.docs, { recursive: true });
  await symlink(`${backend.docs}-1`, backend.docs);
  await becomes(backend, { 'x.md': 'Five.' });
  await symlink(`${backend.docs}-2`, `${backend.docs}-link`);
  await rename(`${backend.docs}-link`, backend.docs);
  await becomes(backend, { 'x.md': 'Six.' });
  await put(`${backend.docs}-2`, 'Seven.');
  await becomes(backend, { 'x.md': 'Seven.' });
});

test('a change embeds what has changed, and nothing again', async () => {
  const texts: string[] = [];
  const inner = createHashEmbedder();
  const embedder = {
    ...inner,
    embed: (...args: Parameters<typeof inner.embed>) => {
      texts.push(...args[0]);
      return inner.embed(...args);
    },
  };
  await using backend = await memoryBackend({ docs: DOCS, watchesDocs: true, embedder });
  expect(texts.length).toBe(2);
  await writeFile(join(backend.docs, 'a.md'), DOCS['a.md']);
  await writeFile(join(backend.docs, 'guide/b.md'), '# B\n\nSix.\n');
  await becomes(backend, { 'a.md': 'One about tea.', 'guide/b.md': 'Six.' });
  expect(texts.slice(2)).toEqual([expect.stringContaining('Six.')]);
});

test('without watching, changes wait for the next sync', async () => {
  await using backend = await memoryBackend({ docs: DOCS, watchesDocs: false });
  await writeFile(join(backend.docs, 'a.md'), '# A\n\nThree.\n');
  await using other = await memoryBackend({ docs: DOCS, watchesDocs: true });
  // When that one has noticed, this one would have, too.
  await writeFile(join(other.docs, 'a.md'), '# A\n\nThree.\n');
  await becomes(other, { 'a.md': 'Three.', 'guide/b.md': 'Two about coffee.' });
  expect(await stored(backend)).toMatchObject({ 'a.md': 'One about tea.' });
  await backend.memory.sync.run();
  expect(await stored(backend)).toMatchObject({ 'a.md': 'Three.' });
});

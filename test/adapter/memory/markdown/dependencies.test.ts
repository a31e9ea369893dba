import { expect, test } from 'vitest';
import { markdownDocument } from '../../../../src/adapter/memory/markdown/document.ts';
import { memoryBackend, writeFiles } from '../../../kit/memory-backend.ts';

const dependencies = (text: string): readonly string[] => markdownDocument(text, 'guide/a.md').dependencies;

test.each<[string, readonly string[]]>([
  ['It depends on [B](b.md).', ['guide/b.md']],
  ['This builds upon the [B](../b.md#part "title") and [C](c).', ['b.md', 'guide/c']],
  [
    'Requires [B](b.md), [C](c.md), and [D](d.md). See [E](e.md).',
    ['guide/b.md', 'guide/c.md', 'guide/d.md'],
  ],
  ['Each service needs an [account](account.md); read [more](more.md).', ['guide/account.md']],
  ['See [B](b.md). It requires care, as [C](c.md) says.', []],
  ['It depends on many things: [B](b.md)', []],
  ['Requires [Node](https://nodejs.org).', []],
  ['```\ndepends on [B](b.md)\n```', []],
  ['---\ndepends_on: b.md\n---\n', ['guide/b.md']],
  ['---\ndependsOn: [b.md]\n---\n', ['guide/b.md']],
  ['```yaml\nservices:\n  web:\n    depends_on: [b.md]\n```', []],
  ['---\ndepends_on:\n  - ../b.md\n  - Getting Started\n  - 7\n---\n', ['b.md', 'Getting Started']],
  ['---\ndepends_on: {a: 1}\n---\n', []],
  ['It does not depend on [B](b.md).', []],
  ["It doesn't in any way depend on [B](b.md), and requires [C](c.md).", ['guide/c.md']],
  ['It no longer requires [B](b.md).', []],
  ['Since 2.0, the client never needs [B](b.md) or [C](c.md).', []],
  ['None of these builds on [B](b.md).', []],
  ['It used to depend on [B](b.md).', []],
  ['The server does not\ndepend on [B](b.md).', []],
  ['Es hängt nicht ab von [B](b.md).', []],
  ['It does not only depend on [B](b.md).', ['guide/b.md']],
  ['It is not small and requires [B](b.md).', ['guide/b.md']],
  ['If there is no cache, it requires [B](b.md).', ['guide/b.md']],
  ['It is not finished. It depends on [B](b.md).', ['guide/b.md']],
  ['    depends on [B](b.md)\n\nText <!-- requires [C](c.md) --> and `needs [D](d.md)`.', []],
])('the text %j names its dependencies', (text, expected) => {
  expect(dependencies(text)).toEqual(expected);
});

test('a line of a million letters is searched in time', () => {
  expect(dependencies(`depends on ${'[a'.repeat(300_000)} requires `)).toEqual([]);
});

test('documents depend on others by path, title and phrase, also on one that is added later', async () => {
  await using backend = await memoryBackend({
    docs: {
      'app.md': '---\ndepends_on: [lib/core.md, Basics, Later]\n---\n# App\n\nSee [core](lib/core.md).\n',
      'lib/core.md': '# Core\n\nRequires [the basics](../basics.md).\n',
      'basics.md': '# Basics\n',
    },
  });
  const dependsOn = async (name: string): Promise<string[]> => {
    const { nodes, edges } = (await backend.get(`graph?entityId=${name}&direction=out&maxDepth=1`)).body;
    const names = new Map(nodes.map(({ id, name: of }: { id: string; name: string }) => [id, of]));
    return edges
      .filter(({ relationType }: { relationType: string }) => relationType === 'DEPENDS_ON')
      .map(({ toId }: { toId: string }) => names.get(toId))
      .sort();
  };
  expect(await dependsOn('App')).toEqual(['Basics', 'Core']);
  expect(await dependsOn('Core')).toEqual(['Basics']);
  writeFiles(backend.docs, { 'later.md': '# Later\n' });
  await backend.post('ingest/docs');
  expect(await dependsOn('App')).toEqual(['Basics', 'Core', 'Later']);
});

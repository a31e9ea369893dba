import { expect, test } from 'vitest';
import { markdownDocument } from '../../../../src/adapter/memory/markdown/document.ts';
import type { Json } from '../../../kit/mcp.ts';
import { memoryBackend } from '../../../kit/memory-backend.ts';

const links = (text: string, path = 'guide/page.mdx'): Record<string, number> =>
  Object.fromEntries(markdownDocument(text, path).links);

// Docusaurus imports documents, also by its alias for the site (rachfop/docusaurus-plugin-llms#54); Mintlify from the root.
test.each<[string, Record<string, number>]>([
  [`import Other from './other.mdx';\n\n<Other />\n`, { 'guide/other.mdx': 1 }],
  [`import Shared from "../_shared/_note.md"\n\ntext`, { '_shared/_note.md': 1 }],
  [
    `import A from '/snippets/a.mdx';\nimport B, { toc as bToc } from '/snippets/b.mdx';`,
    { 'snippets/a.mdx': 1, 'snippets/b.mdx': 1 },
  ],
  [`import {\n  one,\n  two,\n} from './parts.mdx';\n`, { 'guide/parts.mdx': 1 }],
  [`export { default } from '../moved.mdx';`, { 'moved.mdx': 1 }],
  [`import License from '@site/docs/shared/_license.mdx'\n`, { '@site/docs/shared/_license.mdx': 1 }],
  [`import Tabs from '@theme/Tabs';\nimport data from './data.json';\nimport './style.css';`, {}],
  [
    `<Include file="./part.mdx#usage" /> and <Markdown src={'/top.md'}/>`,
    { 'guide/part.mdx': 1, 'top.md': 1 },
  ],
  [`<Card href="./card" to="/docs/x">Card</Card> <img src="a.png" />`, { 'guide/card': 1, 'docs/x': 1 }],
  [`{/* [old](./old.md) <Include file="gone.md" /> */}`, {}],
  ['```mdx\nimport Other from "./other.mdx"\n<Include file="x.md" />\n```\n\n`import X from "./x.md"`', {}],
  [`We import from './prose.mdx' every day.`, {}],
  [`import Far from '../../outside.mdx'`, {}],
  [`import X from 'https://example.com/a.mdx'`, {}],
])('the MDX text %j links to %j', (text, expected) => {
  expect(links(text)).toEqual(expected);
});

test.each<[string, Record<string, number>]>([
  ['See [the other][o] and [o] and [O][].\n\n[o]: ./other.md "Title"\n', { 'guide/other.md': 1 }],
  ['[a]: <../with space.md>\n', { 'with space.md': 1 }],
  [
    '[x](<my file.md>) and [y](a_(b).md) and [z](c.md "t(itle)")',
    { 'guide/my file.md': 1, 'guide/a_(b).md': 1, 'guide/c.md': 1 },
  ],
  ['[//]: # (a comment)\n\n[^1]: a footnote', {}],
])('the Markdown text %j links to %j', (text, expected) => {
  expect(links(text, 'guide/page.md')).toEqual(expected);
});

test('a document that imports others refers to them in the graph, also by the alias of the site', async () => {
  await using backend = await memoryBackend({
    docs: {
      'app.mdx': `# App\n\nimport Part from './parts/_part.mdx';\nimport License from '@site/docs/shared/_license.mdx';\n\nimport A from '@site/shared/_again.mdx';\n\n<Part />\n`,
      'parts/_part.mdx': '# Part\n',
      'shared/_license.mdx': '# License\n',
      'shared/_again.mdx': '# Again\n',
    },
  });
  const { nodes, edges } = (await backend.get('graph?entityId=App&direction=out&maxDepth=1')).body;
  const names = new Map<string, string>(nodes.map(({ id, name }: Json) => [id, name]));
  const referred = edges
    .filter(({ relationType }: Json) => relationType === 'REFERENCES')
    .map(({ toId }: Json) => names.get(toId))
    .sort();
  expect(referred).toEqual(['Again', 'License', 'Part']);
});

test('a megabyte that only looks like imports and links is read in time', () => {
  const before = performance.now();
  links(
    `import ${'"./a'.repeat(100_000)}\n${'](('.repeat(100_000)}\n${'{/*'.repeat(100_000)}\n${'src="'.repeat(50_000)}`,
  );
  expect(performance.now() - before).toBeLessThan(5_000);
});

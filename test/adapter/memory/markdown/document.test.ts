import { describe, expect, test } from 'vitest';
import { markdownDocument } from '../../../../src/adapter/memory/markdown/document.ts';
import { LinkedDocuments, linksOf, siteBaseIn } from '../../../../src/adapter/memory/markdown/links.ts';
import { withoutJsx } from '../../../../src/adapter/memory/markdown/mdx.ts';

describe('titles and summaries', () => {
  test('title and summary come from the front matter, which is not part of the text', () => {
    const document = markdownDocument(
      '---\ntitle: "A: b"\ndescription: What it does.\n---\n# Heading\n\nText.\n',
      'a.md',
    );
    expect(document.title).toBe('A: b');
    expect(document.summary).toBe('What it does.');
    expect(document.chunks).toEqual([
      { text: '# Heading\n\nText.', headings: ['Heading'], anchor: 'heading', line: 5 },
    ]);
  });

  test('title and summary default to the first heading and paragraph, then to the file name', () => {
    const named = markdownDocument('\ufeff# The `one`\r\n\r\nText\r\nhere.\r\n', 'x/a.md');
    expect([named.title, named.summary, named.chunks[0]?.headings]).toEqual(['The one', 'Text here.', []]);
    expect(markdownDocument('Only text.', 'guide/set-up.mdx').title).toBe('set-up');
    expect(markdownDocument('# Other', 'a.md', 'Given').title).toBe('Given');
  });

  test.each([
    ['not YAML', '---\n\t{{{\n---\nText.\n'],
    ['a list', '---\n- a\n---\nText.\n'],
    ['TOML', '+++\ntitle = "x"\n+++\nText.\n'],
    ['numbers', '---\ntitle: 3\ndescription: []\n---\nText.\n'],
  ])('front matter that is %s is ignored without a failure', (_, text) => {
    const document = markdownDocument(text, 'page.md');
    expect([document.title, document.summary]).toEqual(['page', 'Text.']);
  });

  test('a horizontal rule at the beginning is not front matter', () => {
    expect(markdownDocument('---\n\nText.\n', 'a.md').chunks[0]?.text).toBe('---\n\nText.');
  });

  test('characters that a store cannot keep are replaced', () => {
    const document = markdownDocument('a\0b \ud800 c', 'a.md');
    expect(document.chunks[0]?.text).toBe('a\ufffdb \ufffd c');
  });

  test('an empty document has no chunks', () => {
    expect(markdownDocument(' \n\n', 'a.md').chunks).toEqual([]);
  });
});

describe('places of chunks', () => {
  const long = 'Words of a passage. '.repeat(40);

  test('a chunk has the line and the anchor that it begins at in its file', () => {
    const source = [
      '---',
      'title: Guide',
      '---',
      '',
      '# Guide',
      '',
      long,
      '',
      '## Set up: the `first` one!',
      '',
      long,
      '',
      '## Über uns {#about}',
      '',
      long,
      '',
      '## Set up the first one',
      '',
      long,
    ].join('\r\n');
    expect(markdownDocument(source, 'a.md').chunks.map(({ line, anchor }) => [line, anchor])).toEqual([
      [5, 'guide'],
      [9, 'set-up-the-first-one'],
      [13, 'about'],
      [17, 'set-up-the-first-one-1'],
    ]);
  });

  test('pieces of a long section have lines of their own, also those of text that was changed', () => {
    const paragraphs = Array.from({ length: 4 }, (_, index) => `Paragraph ${index}. ${long}`);
    const mdx = ['# A', '', ...paragraphs.flatMap((each) => [each, '']), `<Note>Inside</Note> ${long}`].join(
      '\n',
    );
    const { chunks } = markdownDocument(mdx, 'a.mdx');
    const lines = mdx.split('\n').map((line) => line.replace(/<\/?Note>/g, '').trimEnd());
    expect(chunks.length).toBeGreaterThan(2);
    for (const { line, text } of chunks) expect(lines[line - 1]).toBe(text.split('\n')[0]);
    expect(chunks.at(-1)?.line).toBe(mdx.split('\n').length);
  });

  test('equal headings, some of them inside of a passage, have lines of their own', () => {
    const source = ['# A', '', '## Options', '', 'One.', '', '## Run', '', long, '', '## Options', '', long];
    const places = markdownDocument(source.join('\n'), 'a.md').chunks.map(({ line, anchor, sections }) => [
      line,
      anchor,
      sections?.map((one) => [one.line, one.at, one.anchor]),
    ]);
    expect(places).toEqual([
      [1, 'options', [[7, 6, 'run']]],
      [11, 'options-1', undefined],
    ]);
  });

  test('a passage of MDX after imports, tags and comments of several lines has the line of its text', () => {
    const mdx = [
      '---',
      'title: T',
      '---',
      "import A from './a'",
      "import B from './b'",
      '',
      '<Tabs',
      '  defaultValue="x">',
      '<TabItem>First words.</TabItem>',
      '{/* a comment',
      'of two lines */}',
      '',
      '## Next',
      '',
      long,
    ].join('\n');
    expect(
      markdownDocument(mdx, 'a.mdx').chunks.map(({ line, sections }) => [line, sections?.[0]?.line]),
    ).toEqual([[9, 13]]);
  });

  test('the pieces of a program that is too long have the lines at which they continue', () => {
    const program = Array.from({ length: 400 }, (_, index) => `const constant${index} = 'value of it';`);
    const source = ['# A', '', '```js', ...program, '```'];
    const { chunks } = markdownDocument(source.join('\n'), 'a.md');
    expect(chunks.length).toBeGreaterThan(1);
    for (const { line, text } of chunks.slice(1)) expect(source[line - 1]).toBe(text.split('\n')[1]);
  });

  test('lines of a long document are found in time', () => {
    const source = '<T>a</T>\n\n## B\n\n'.repeat(60_000);
    const { chunks } = markdownDocument(source, 'a.mdx');
    expect(chunks.at(-1)?.line).toBeGreaterThan(230_000);
  });
});

describe('MDX', () => {
  test('MDX loses imports, exports, tags and comments and keeps text and code', () => {
    const mdx = [
      "import { Card } from './card'",
      'export const meta = {',
      "  title: 'x',",
      '}',
      '',
      '# Title',
      '',
      'We import it. {/* hidden */}',
      '',
      '<Card title="a > b" on={() => { go("<b>") }}>',
      'Inside **the** card<br/>and after.',
      '</Card>',
      '',
      'Inline `<Card>` stays, 1 < 2 stays.',
      '',
      '```jsx',
      "import React from 'react'",
      '<Card />',
      '```',
    ].join('\n');
    expect(
      withoutJsx(mdx)
        .text.replace(/\n{2,}/g, '\n')
        .trim(),
    ).toBe(
      [
        '# Title',
        'We import it. ',
        'Inside **the** card and after.',
        'Inline `<Card>` stays, 1 < 2 stays.',
        '```jsx',
        "import React from 'react'",
        '<Card />',
        '```',
      ].join('\n'),
    );
  });

  test('MDX constructs that are never closed stay as text', () => {
    for (const text of ['<Card title="', 'a < b', '{/* open', '<Card {', '`<Card'])
      expect(withoutJsx(text).text).toBe(text);
  });
});

describe('links', () => {
  test('links to other documents outside of code become paths in the docs folder', () => {
    const text = [
      'See [a](./a.md#part), [b](../b.mdx?x=1 "title"), ![c](<c.md>) and [again](a.md).',
      '<a href="/top/d.md">d</a> [e]: not one',
      '[ref]: sub/f%20g.md',
      '[web](https://example.com/x.md) [mail](mailto:a@b.c) [anchor](#x) [host](//e.com/x.md) [out](../../../etc/x.md)',
      '```\n[code](code.md)\n```',
    ].join('\n');
    expect(Object.fromEntries(linksOf(text, 'guide/page.md'))).toEqual({
      'guide/a.md': 2,
      'b.mdx': 1,
      'guide/c.md': 1,
      'top/d.md': 1,
      'guide/sub/f g.md': 1,
    });
  });

  test('links refer to a document by its path, its path without extension or its folder', () => {
    const there = new LinkedDocuments(['a.md', 'b.mdx', 'c/index.md', 'd/README.md']);
    const found = ['a.md', 'a', 'a.html', 'b', 'c', 'd', 'e'].map((link) => there.find(link));
    expect(found).toEqual(['a.md', 'a.md', 'a.md', 'b.mdx', 'c/index.md', 'd/README.md', undefined]);
  });

  test('links of wikis refer to a document of that name in any folder, if it is the only one', () => {
    const text =
      'See [[Set up]], [[ops/Backup#Restore|the backup]], [[]], [not](x.md "[[a]]") and `[[Code]]`.';
    expect([...linksOf(text, 'a.md').keys()]).toEqual(['x.md', '[[Set up]]', '[[ops/Backup]]', '[[a]]']);
    const there = new LinkedDocuments(['guide/set up.md', 'ops/backup.md', 'x/Twice.md', 'y/twice.mdx']);
    expect(
      ['[[Set up]]', '[[ops/Backup]]', '[[Twice]]', '[[x/Twice]]', '[[none]]'].map((link) =>
        there.find(link),
      ),
    ).toEqual(['guide/set up.md', 'ops/backup.md', undefined, 'x/Twice.md', undefined]);
  });

  test.each([
    ['https://example.com/docs/v1/', ['a', 'b', 'x/y', 'docs/v2/c', 'd']],
    ['/docs/v1', ['a', 'x/y', 'docs/v2/c', 'd']],
    ['/', ['docs/v1/a', 'x/y', 'docs/v2/c', 'docs/v1/d']],
  ])('links that name the site of the folder, at %s, refer to its documents', (base, targets) => {
    const text = [
      '[a](/docs/v1/a/) [b](https://example.com/docs/v1/b?c#d) [other](https://example.com/blog/x) [far](https://far.example/docs/v1/b)',
      '[top](/x/y) [version](/docs/v2/c) <Link to="/docs/v1/d">d</Link>',
    ].join('\n');
    expect([...linksOf(text, 'guide/page.md', siteBaseIn(base)).keys()]).toEqual(targets);
  });

  test.each(['docs', 'ftp://example.com', ''])('%j is no place of a site', (text) => {
    expect(siteBaseIn(text)).toBeUndefined();
  });
});

describe('code and comments', () => {
  const links = (text: string, path = 'page.md'): string[] => [...linksOf(text, path).keys()];

  test.each<[string, string, readonly string[]]>([
    ['indented code', 'Text:\n\n    see [a](a.md)\n\n    [b](b.md)\n\n[c](c.md)', ['c.md']],
    ['text in a list', '- item\n\n    more [a](a.md)\n\n        [b](b.md)\n', ['a.md', 'b.md']],
    ['a paragraph that is continued', 'Text\n    of [a](a.md)', ['a.md']],
    ['code in a line', '`[a](a.md)` ``[b](b.md) ` `` [`c`](c.md) ` [d](d.md)', ['c.md', 'd.md']],
    [
      'a comment',
      '[a](a.md) <!-- [b](b.md) --> [c](c.md) <!-- x\n[d](d.md)\n--> [e](e.md)',
      ['a.md', 'c.md', 'e.md'],
    ],
    ['a comment with a fence', '<!--\n```\n[a](a.md)\n-->\n[b](b.md)', ['b.md']],
    ['a comment without an end', '<!-- [a](a.md)\n[b](b.md)', ['a.md', 'b.md']],
    ['a comment in code', '```html\n<!--\n```\n[a](a.md)\n', ['a.md']],
  ])('links of %s', (_name, text, expected) => {
    expect(links(text)).toEqual(expected);
  });

  test('indented lines of MDX are text', () => {
    expect(links('<Card>\n\n    [a](a.md)\n\n</Card>', 'page.mdx')).toEqual(['a.md']);
  });

  test('hostile lines are read in time', () => {
    expect(links(`${'`'.repeat(200_000)} [a](a.md)`)).toEqual(['a.md']);
    expect(links(`${'<!-- '.repeat(100_000)}[a](a.md)`)).toEqual(['a.md']);
    expect(links(`${'`a '.repeat(100_000)}\n[a](a.md)`)).toEqual(['a.md']);
  });
});

describe('shortcodes of Hugo', () => {
  const textOf = (source: string): string =>
    markdownDocument(source, 'page.md')
      .chunks.map(({ text }) => text)
      .join('\n');

  test.each([
    ['keep the text between them', 'A {{< gloss "Gateway" >}}gateway{{< /gloss >}} here.', 'A gateway here.'],
    ['are removed alone', 'In the {{< reuse "snippets/ns.md" >}} namespace.', 'In the  namespace.'],
    ['leave a space between words', 'Version{{% version %}}one', 'Version one'],
    [
      'give the address of a link',
      'See [set up]({{< link-hextra path="/setup/" >}}#a).',
      'See [set up](/setup/#a).',
    ],
    [
      'give the address of a reference',
      '[x]({{< ref "guide.md" >}}) [y]({{% relref "../b.md" %}})',
      '[x](guide.md) [y](../b.md)',
    ],
    ['show their title', '{{% tab name="With Docker" %}}\nRun it.\n{{% /tab %}}', 'With Docker\nRun it.'],
    ['link their title', '{{< card link="/mcp/" title="Set up MCP" icon="x" >}}', '[Set up MCP](/mcp/)'],
    ['that are escaped stay', 'Write `{{</* reuse "x" */>}}`.', 'Write `{{</* reuse "x" */>}}`.'],
    ['without an end stay text', 'A {{< reuse "x" here.', 'A {{< reuse "x" here.'],
    ['in code stay', '```yaml\nimage: {{< version >}}\n```', '```yaml\nimage: {{< version >}}\n```'],
    ['of templates stay', 'Use {{ .Values.x }} here.', 'Use {{ .Values.x }} here.'],
  ])('shortcodes %s', (_what, source, text) => {
    expect(textOf(source)).toBe(text);
  });

  // Of the 3,912 chunks of agentgateway/website, 384 had such a comment as their heading.
  test('comments of a script in a shortcode are no headings', () => {
    const source = [
      '# Install',
      '',
      'Download it.',
      '',
      '{{< doc-test paths="mcp" >}}',
      '# Install the binary for tests',
      '{{< reuse "snippets/install.md" >}}',
      '# Wait',
      'sleep 3',
      '{{< /doc-test >}}',
      '',
      '## Next',
      '',
      'text '.repeat(300),
    ].join('\n');
    const { chunks } = markdownDocument(source, 'page.md');
    expect(chunks.map(({ headings }) => headings)).toEqual([[], ['Next']]);
    expect(chunks[0]?.text).toContain('# Wait\nsleep 3\n```');
  });

  test('headings between shortcodes are headings', () => {
    const source =
      '{{< version include-if="1.x" >}}\n\n## Steps\n\nDo it.\n\n{{< /version >}}\n\n{{% steps %}}\n# One\n\nA.\n{{% /steps %}}';
    expect(textOf(source)).toBe('## Steps\n\nDo it.\n\n\n\n\n# One\n\nA.');
  });
});

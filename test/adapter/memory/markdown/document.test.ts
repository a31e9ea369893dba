import { describe, expect, test } from 'vitest';
import { markdownDocument } from '../../../../src/adapter/memory/markdown/document.ts';
import { linkedDocument, linksOf } from '../../../../src/adapter/memory/markdown/links.ts';
import { withoutJsx } from '../../../../src/adapter/memory/markdown/mdx.ts';

describe('titles and summaries', () => {
  test('title and summary come from the front matter, which is not part of the text', () => {
    const document = markdownDocument(
      '---\ntitle: "A: b"\ndescription: What it does.\n---\n# Heading\n\nText.\n',
      'a.md',
    );
    expect(document.title).toBe('A: b');
    expect(document.summary).toBe('What it does.');
    expect(document.chunks).toEqual([{ text: '# Heading\n\nText.', headings: ['Heading'] }]);
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
        .replace(/\n{2,}/g, '\n')
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
      expect(withoutJsx(text)).toBe(text);
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
    const there = new Set(['a.md', 'b.mdx', 'c/index.md', 'd/README.md']);
    const found = ['a.md', 'a', 'a.html', 'b', 'c', 'd', 'e'].map((link) =>
      linkedDocument(link, (path) => there.has(path)),
    );
    expect(found).toEqual(['a.md', 'a.md', 'a.md', 'b.mdx', 'c/index.md', 'd/README.md', undefined]);
  });
});

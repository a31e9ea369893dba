import fc from 'fast-check';
import { Lexer, type Tokens } from 'marked';
import { describe, expect, test } from 'vitest';
import { chunksOf } from '../../../../src/adapter/memory/markdown/chunk.ts';
import { splitBlock } from '../../../../src/adapter/memory/markdown/split-block.ts';
import { repeats } from '../../../kit/thorough.ts';

const texts = (markdown: string): string[] => chunksOf(markdown).map(({ text }) => text);
const dense = (text: string): string => text.replace(/\s+/g, '');

/** Fenced blocks that never end, of the top level and of list items. */
function openFences(text: string): string[] {
  return new Lexer()
    .lex(text)
    .flatMap((token) => [
      token,
      ...('items' in token ? (token as Tokens.List).items.flatMap((item) => item.tokens) : []),
    ])
    .filter(({ type, raw }) => type === 'code' && /^\s*(`{3,}|~{3,})/.test(raw))
    .map(({ raw }) => raw)
    .filter((raw) => {
      const [, fence = ''] = /^\s*(`{3,}|~{3,})/.exec(raw) ?? [];
      return !new RegExp(`\\n\\s*${fence[0]}{${fence.length},}\\s*$`).test(raw.trimEnd());
    });
}

const word = fc.stringMatching(/^[a-zA-Zäßж]{1,12}$/);
const line = fc.array(word, { minLength: 1, maxLength: 14 }).map((words) => words.join(' '));
const block = fc.oneof(
  fc.tuple(fc.integer({ min: 1, max: 6 }), line).map(([depth, text]) => `${'#'.repeat(depth)} ${text}`),
  fc.array(line, { minLength: 1, maxLength: 30 }).map((lines) => lines.join('\n')),
  fc.array(line, { minLength: 1, maxLength: 40 }).map((lines) => lines.map((item) => `- ${item}`).join('\n')),
  fc
    .tuple(fc.constantFrom('```', '~~~~', '````'), fc.array(line, { maxLength: 120 }))
    .map(([fence, lines]) => `${fence}js\n# not a heading\n${lines.join('\n')}\n${fence}`),
  fc
    .array(line, { minLength: 1, maxLength: 10 })
    .map((rows) => `| a |\n|---|\n${rows.map((row) => `| ${row} |`).join('\n')}`),
);
const document = fc.array(block, { maxLength: 25 }).map((blocks) => `${blocks.join('\n\n')}\n`);

describe('Markdown chunks', () => {
  test('chunks contain all text of any document in order, with every fence complete', () => {
    fc.assert(
      fc.property(document, (markdown) => {
        const chunks = texts(markdown);
        const isCut = Math.max(0, ...chunks.map((chunk) => chunk.length)) > 7_000;
        if (!isCut) expect(dense(chunks.join('\n'))).toBe(dense(markdown));
        for (const chunk of chunks) {
          expect(openFences(chunk)).toEqual([]);
          expect(chunk.length).toBeLessThanOrEqual(8 * 1024 + 100);
          expect(chunk.trim()).not.toBe('');
        }
      }),
      { numRuns: repeats(20, 1_000) },
    );
  });

  test('chunks contain all text of a file that is not Markdown', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom(...'`~>-#*[](){}<|=!&\\\n\t _1.a'), maxLength: 300 }),
        (text) => {
          expect(dense(texts(text).join(''))).toBe(dense(text));
        },
      ),
      { numRuns: repeats(80, 2_000) },
    );
  });

  test('chunks begin at headings and contain their parent headings', () => {
    const paragraph = 'Some words that fill the section. '.repeat(10);
    const chunks = chunksOf(
      `# Guide\n\n${paragraph}\n\n## Install\n\n${paragraph}\n\n### Linux\n\n${paragraph}\n\n## Use\n\n${paragraph}\n`,
    );
    expect(chunks.map(({ headings }) => headings)).toEqual([
      ['Guide'],
      ['Guide', 'Install'],
      ['Guide', 'Install', 'Linux'],
      ['Guide', 'Use'],
    ]);
    expect(chunks[1]?.text.startsWith('## Install\n')).toBe(true);
  });

  test.each([
    ['# escalade ![CI](https://ci.example/badge.svg)', 'escalade'],
    ['# cliui [![Version][npm-image]][npm-url] [![CI](b.svg "build")](ci)', 'cliui'],
    ['# ![Our logo](logo.png)', 'Our logo'],
    ['# The [API](api.md), by [hand][1] {#api}', 'The API, by hand'],
    ['# `code` and **bold** <br> [1]', 'code and bold [1]'],
    [
      '# Q &amp; A: C\\#, 2 \\* 3, Vec&lt;T&gt; &#169;&#x20;&#0; &none; `&amp;\\#`',
      'Q & A: C#, 2 * 3, Vec<T> © &#0; &none; &amp;\\#',
    ],
    ['# Gateways: `gateways.<name>`', 'Gateways: gateways.<name>'],
  ])('the title of a chunk is the visible text of its heading: %j', (line, heading) => {
    expect(chunksOf(`${line}\n\nText.\n`)[0]?.headings).toEqual([heading]);
  });

  test('a heading is in the same chunk as the text that follows it', () => {
    const chunks = texts(`Short.\n\n# A\n\n## B\n\n${'long words '.repeat(108)}\n\nEnd.\n`);
    expect(chunks[0]).toBe('Short.');
    expect(chunks[1]).toMatch(/^# A\n\n## B\n\nlong words/);
  });

  test('a section after a long table has its own heading', () => {
    const table = `| a |\n|---|\n${'| some words of a row |\n'.repeat(60)}`;
    const chunks = chunksOf(`# Guide\n\n## First part\n\n${table}\n## Second part\n\nText.\n`);
    expect(chunks.map(({ headings }) => headings)).toEqual([
      ['Guide', 'First part'],
      ['Guide', 'Second part'],
    ]);
  });

  test('a comment in a code block does not start a section', () => {
    const chunks = chunksOf(`# Only\n\n${'text '.repeat(60)}\n\n\`\`\`sh\n# install it\nnpm i\n\`\`\`\n`);
    expect(chunks).toHaveLength(1);
    expect(chunks[0]?.headings).toEqual(['Only']);
  });

  test('a block up to 8 KiB stays in one chunk, and a longer fence is split between lines and reopened', () => {
    const whole = `\`\`\`js\n${'const value = 1;\n'.repeat(300)}\`\`\``;
    expect(texts(`${whole}\n`)).toEqual([whole]);
    const long = `\`\`\`js\n${'const value = 1;\n'.repeat(1_500)}\`\`\`\n`;
    const pieces = texts(long);
    expect(pieces.length).toBeGreaterThan(2);
    for (const piece of pieces) {
      expect(piece.startsWith('```js\n')).toBe(true);
      expect(piece.endsWith('\n```')).toBe(true);
    }
    expect(pieces.join('\n').match(/const value = 1;/g)).toHaveLength(1_500);
  });

  test('a long line is split, but never inside a character', () => {
    const pieces = splitBlock('😀'.repeat(9_000), 8_191).map(({ text }) => text);
    expect(pieces.join('')).toBe('😀'.repeat(9_000));
    expect(pieces.every((piece) => piece.isWellFormed())).toBe(true);
  });

  test('a split fence in a list item is reopened with its indent', () => {
    const [first = '', second = ''] = splitBlock(
      `- item\n\n  \`\`\`yaml\n${'  key: value\n'.repeat(60)}  \`\`\`\n`,
      400,
    ).map(({ text }) => text);
    expect(first.endsWith('\n  ```\n')).toBe(true);
    expect(second.startsWith('  ```yaml\n')).toBe(true);
  });
});

describe('hostile Markdown of 150 kB', () => {
  const size = 150_000;
  const fill = (text: string): string => text.repeat(size / text.length);
  test.each([
    ['nested quotes', '>'.repeat(size)],
    ['nested lists', '- '.repeat(size / 2)],
    ['indented lists', Array.from({ length: 900 }, (_, index) => `${' '.repeat(index)}- x`).join('\n')],
    ['brackets', '['.repeat(size)],
    ['emphasis', fill('*_a')],
    ['backticks', fill('``` ')],
    ['fences', fill('```\n')],
    ['tags', fill('<a ')],
    ['quoted tags', fill('<a b="')],
    ['comments', fill('<!--')],
    ['JSX expressions', fill('<a {')],
    ['link definitions', fill('[a]: <b> "c\n')],
    ['links', fill('[a](b')],
    ['one line', 'a'.repeat(size)],
    ['white space', ' '.repeat(size)],
    ['headings', fill('# a\n')],
    ['tables', `a|b\n-|-\n${fill('a|b\n')}`],
    ['items', fill('- a\n')],
    ['shortcodes that begin', fill('{{< a >}}\n# b\n')],
    ['shortcodes that end', fill('{{< a >}}\n{{< /a >}}\n')],
    ['unfinished shortcodes', fill('{{< a "')],
    ['shortcodes in links', fill(']({{< a "b" >}}')],
    ['wiki links', fill('[[a')],
    ['front matter', `---\n${'['.repeat(size)}\n---\n`],
    [
      'aliases',
      `---\na: &a [1]\n${Array.from({ length: 5_000 }, (_, index) => `b${index}: [*a, *a]\n`).join('')}---\n`,
    ],
  ])('chunking 150 kB of hostile Markdown takes linear time: %s', async (_, text) => {
    const { markdownDocument } = await import('../../../../src/adapter/memory/markdown/document.ts');
    for (const path of ['a.md', 'a.mdx']) {
      const before = process.threadCpuUsage();
      markdownDocument(text, path);
      // CPU time: other processes of the machine stretch every other time.
      const { user, system } = process.threadCpuUsage(before);
      expect((user + system) / 1000).toBeLessThan(1_000);
    }
  });
});

import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { marked } from 'marked';
import { describe, expect, test } from 'vitest';

const root = fileURLToPath(new URL('..', import.meta.url));
const pages = globSync('{*.md,docs/**/*.md}', { cwd: root, exclude: ['docs/site/**'] }).sort();

interface Token {
  readonly type: string;
  readonly href?: string;
  readonly raw: string;
  readonly text?: string;
}

function tokensOf(file: string): Token[] {
  const found: Token[] = [];
  void marked.walkTokens(
    marked.lexer(readFileSync(join(root, file), 'utf8')),
    (token) => void found.push(token as Token),
  );
  return found;
}

/** The anchors of a page: its headings as GitHub writes them. */
function anchorsOf(file: string): Set<string> {
  const anchors = new Set<string>();
  for (const { type, text = '' } of tokensOf(file)) {
    if (type !== 'heading') continue;
    const plain = text.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').replace(/[`*]/g, '');
    const base = plain
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replace(/\s/g, '-');
    let anchor = base;
    for (let number = 1; anchors.has(anchor); number += 1) anchor = `${base}-${number}`;
    anchors.add(anchor);
  }
  return anchors;
}

describe('links of the documentation', () => {
  test.each(pages)('each link of %s leads to a file and a heading that exist', (page) => {
    const broken = tokensOf(page)
      .flatMap(({ type, href }) => (type === 'link' || type === 'image' ? [href ?? ''] : []))
      .filter((href) => !/^(?:https?|mailto):/.test(href))
      .filter((href) => {
        const [path = '', anchor] = href.split('#');
        const file = path === '' ? page : relative(root, join(root, dirname(page), decodeURIComponent(path)));
        if (!existsSync(join(root, file))) return true;
        return anchor !== undefined && file.endsWith('.md') && !anchorsOf(file).has(anchor);
      });
    expect(broken).toEqual([]);
  });

  test.each(['ARCHITECTURE.md', 'CONTRIBUTING.md'])(
    'each file and folder of src that %s names exists',
    (page) => {
      const sources = globSync('src/**/*.*', { cwd: root }).map((path) => `/${path.split(sep).join('/')}`);
      const missing = [...readFileSync(join(root, page), 'utf8').matchAll(/`([\w./-]+\/(?:[\w-]+\.tsx?)?)`/g)]
        .map(([, name = '']) => name)
        .filter((name) => !name.startsWith('test/') && !existsSync(join(root, name)))
        .filter(
          (name) =>
            !sources.some((path) =>
              name.endsWith('/') ? path.includes(`/${name}`) : path.endsWith(`/${name}`),
            ),
        );
      expect(missing).toEqual([]);
    },
  );

  test('each page of the documentation can be reached from README.md', () => {
    const reached = new Set<string>();
    const visit = (page: string): void => {
      if (reached.has(page) || !pages.includes(page)) return;
      reached.add(page);
      for (const { type, href = '' } of tokensOf(page))
        if (type === 'link' && !/^\w+:/.test(href))
          visit(relative(root, join(root, dirname(page), href.split('#')[0] ?? '')));
    };
    visit('README.md');
    const unlinked = ['CHANGELOG.md'];
    expect(pages.filter((page) => !reached.has(page))).toEqual(unlinked);
  });

  test('each page of docs/ is in the navigation of the site', () => {
    const config = readFileSync(join(root, 'docs/site/.vitepress/config.mts'), 'utf8');
    const own = pages.filter((page) => /^docs\/[^/]+\.md$/.test(page)).map((page) => page.slice(5, -3));
    expect(own.filter((name) => !config.includes(`'${name}'`))).toEqual([]);
  });
});

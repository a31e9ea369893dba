import { execFile } from 'node:child_process';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, test } from 'vitest';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const site = join(root, 'dist/site');

describe('npm run docs', () => {
  beforeAll(async () => {
    // VitePress fails if a link of a page is broken.
    await promisify(execFile)(process.execPath, ['scripts/docs.mjs'], { cwd: root, timeout: 600_000 });
  }, 600_000);

  test('npm run docs makes a page of each document, and an index for the search in the browser', () => {
    for (const page of globSync('docs/**/*.md', { cwd: root, exclude: ['docs/site/**'] })) {
      const path = page.slice('docs/'.length, -'.md'.length).replace(/README$/, 'index');
      expect(existsSync(join(site, `${path}.html`)), page).toBe(true);
    }
    expect(globSync('assets/chunks/*localSearchIndex*.js', { cwd: site })).not.toEqual([]);
  });

  test('links to files outside of docs/ lead to copies of them on the site', () => {
    const html = readFileSync(join(site, 'memory.html'), 'utf8');
    const [link] = /\/files\/examples\/[\w-]+\.yaml/.exec(html) ?? [];
    expect(link).toBe('/files/examples/memory.yaml');
    expect(readFileSync(join(site, link as string), 'utf8')).toBe(
      readFileSync(join(root, 'examples/memory.yaml'), 'utf8'),
    );
  });
});

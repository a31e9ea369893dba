import { globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const root = fileURLToPath(new URL('..', import.meta.url));

// The compiler does not check these files, so a renamed export would break them unnoticed.
test('scripts and benchmarks import only names that the modules of src and test export', async () => {
  const imports = globSync('{scripts,bench}/**/*.mjs', { cwd: root }).flatMap((file) =>
    [...readFileSync(join(root, file), 'utf8').matchAll(/import \{([^}]*)\} from '(\.[^']+\.ts)'/g)].map(
      ([, names = '', path = '']) => ({ file, path: join(root, dirname(file), path), names }),
    ),
  );
  expect(imports.length).toBeGreaterThan(20);
  const missing = await Promise.all(
    imports.map(async ({ file, path, names }) => {
      const module = (await import(path)) as object;
      return names
        .split(',')
        .map((name) => name.trim().split(' as ')[0] as string)
        .filter((name) => name !== '' && !(name in module))
        .map((name) => `${file}: ${name}`);
    }),
  );
  expect(missing.flat()).toEqual([]);
});

test('manual pages become Markdown without macros, escapes and markup that Vue would read', async () => {
  const { manualPageToMarkdown } = (await import(join(root, 'scripts/manual-pages.mjs'))) as {
    manualPageToMarkdown: (roff: string) => string;
  };
  for (const file of globSync('man/*.[157]', { cwd: root })) {
    const page = manualPageToMarkdown(readFileSync(join(root, file), 'utf8'));
    const text = page.replace(/^```\n[\s\S]*?^```$/gm, '').replace(/<\/?code>|<br>/g, '');
    expect(text.match(/^\.[A-Z].*|\\[-(fe%[&].*|[<>{}].*/m), file).toBeNull();
    expect(text).toMatch(/^# agctl[\w-]*\n/);
  }
});

import { globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '..');

/** Text of every file that may use a file of src. */
const texts = new Map(
  globSync('{src,test,scripts,bench}/**/*.{ts,tsx,mjs}', {
    cwd: root,
    exclude: (path) => path.endsWith('node_modules'),
  }).map((path) => [path, readFileSync(join(root, path), 'utf8')]),
);
const sources = [...texts].filter(([path]) => path.startsWith('src/'));

/** In how many files each word is. */
const filesWith = new Map<string, number>();
for (const text of texts.values())
  for (const word of new Set(text.match(/[\w$]+/g))) filesWith.set(word, (filesWith.get(word) ?? 0) + 1);

// By name: a word that another file has by chance hides an unused one, but none is reported by mistake.
test('every value that a file of src exports is used by another file', () => {
  const exported = sources.flatMap(([path, text]) =>
    [...text.matchAll(/^export (?:async )?(?:const|let|function\*?|(?:abstract )?class) ([\w$]+)/gm)].map(
      ([, name = '']) => ({ path, name }),
    ),
  );
  expect(exported.length).toBeGreaterThan(1000);
  expect(exported.filter(({ name }) => filesWith.get(name) === 1)).toEqual([]);
});

test('every file of src is named by another file', () => {
  const named = new Set(
    [...texts.values()].flatMap((text) => [...text.matchAll(/([\w.-]+\.tsx?)'/g)].map(([, name]) => name)),
  );
  // Declarations name packages; commands are found by their path, and programs of the browser by their folder.
  const isFound = (path: string): boolean =>
    path.endsWith('.d.ts') || path.startsWith('src/cli/commands/') || path.endsWith('/main.tsx');
  const unnamed = sources
    .map(([path]) => path)
    .filter((path) => !isFound(path) && !named.has(basename(path)));
  expect(unnamed).toEqual([]);
});

// Biome has this rule, too, which makes it read every package: 7 s of processor time.
test('every package that a file imports is declared in package.json', () => {
  const { name: own, ...manifest } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const { dependencies, devDependencies, peerDependencies } = manifest;
  const declared = new Set(Object.keys({ ...dependencies, ...devDependencies, ...peerDependencies }));
  // Of programs that tests write into files.
  const written = new Set([own, 'hono', `\${PACKAGE_NAME}`]);
  const imported = [...texts].flatMap(([path, text]) =>
    [
      ...text.matchAll(
        /^(?:import|export)\b(?:[^;'"`]*? from)? '([^'.#][^']*)'|\bimport\('([^'.#][^']*)'\)/gm,
      ),
    ].map(([, statically, dynamically = '']) => ({ path, specifier: statically ?? dynamically })),
  );
  expect(imported.length).toBeGreaterThan(1000);
  const undeclared = imported.filter(({ specifier }) => {
    const [name = ''] = /^(?:@[^/]+\/)?[^/]+/.exec(specifier) ?? [];
    return !specifier.startsWith('node:') && !written.has(name) && !declared.has(name);
  });
  expect(undeclared).toEqual([]);
});

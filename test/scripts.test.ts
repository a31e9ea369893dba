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

interface Mutation {
  readonly kind: string;
  readonly start: number;
  readonly end: number;
  readonly original: string;
  readonly replacement: string;
}

const mutations = async (): Promise<{
  mutationsOf: (text: string, name?: string, options?: { all: boolean }) => Mutation[];
  placeOf: (text: string, offset: number) => string;
  sample: <T>(elements: readonly T[], count: number, seed: number) => T[];
}> => await import(join(root, 'scripts/mutations.mjs'));

test('mutants of a file remove its checks of types, bounds, fallbacks and optional chains', async () => {
  const { mutationsOf } = await mutations();
  const changes = (text: string) =>
    mutationsOf(text).map(
      ({ start, end, replacement }) => text.slice(0, start) + replacement + text.slice(end),
    );
  expect(changes("const a = typeof b === 'string';")).toEqual(['const a = true;', 'const a = false;']);
  for (const check of [
    'Array.isArray(b)',
    'isRecord(b)',
    'b === null',
    'undefined !== b',
    'Number.isInteger(b)',
    'b instanceof C',
    "'c' in b",
    'b < 3',
    '/^x/.test(b)',
    'Object.hasOwn(b, c)',
  ])
    expect(changes(`if (${check}) d();`), check).toEqual(['if (true) d();', 'if (false) d();']);
  expect(changes('f(a ?? b)')).toEqual(['f((a))']);
  expect(changes('a?.b?.[0]?.(c)')).toEqual(['a.b?.[0]?.(c)', 'a?.b[0]?.(c)', 'a?.b?.[0](c)']);
  expect(changes('f(elementsOf(a.b))')).toEqual(['f((a.b))']);
  expect(changes("f('😀', (a as B) ?? 1)")).toEqual(["f('😀', (a as B))"]);
  expect(changes('type A = B extends null ? C : D; const a = f(b === c, d + 1);')).toEqual([]);
});

test('with all, mutants of a file also change conditions, operators and statements', async () => {
  const { mutationsOf } = await mutations();
  const text = "if ((a) && b) throw c; d = e + 1; return 'f' + g;";
  const changed = mutationsOf(`function h() { ${text} }`, 'h.ts', { all: true });
  expect(changed.map(({ original, replacement }) => [original, replacement])).toEqual([
    ['(a) && b', '!((a) && b)'],
    ['&&', '||'],
    ['throw c;', ';'],
    ['d = e + 1;', ';'],
    ['+', '-'],
    ["return 'f' + g;", 'return undefined;'],
  ]);
  expect(mutationsOf('<a>{b === null}</a>', 'a.tsx')).toHaveLength(2);
});

test('a sample of mutants is the same for the same seed, and has places of the source', async () => {
  const { sample, placeOf } = await mutations();
  const numbers = Array.from({ length: 50 }, (_, index) => index);
  const chosen = sample(numbers, 5, 7);
  expect(chosen).toHaveLength(5);
  expect(chosen).toEqual(sample(numbers, 5, 7));
  expect(chosen).toEqual([...new Set(chosen)].sort((a, b) => a - b));
  expect(sample(numbers, 5, 8)).not.toEqual(chosen);
  expect(sample(numbers, 60, 7)).toEqual(numbers);
  expect(placeOf('a\nbc', 3)).toBe('2:2');
});

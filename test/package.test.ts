import { execFileSync } from 'node:child_process';
import { existsSync, globSync, lstatSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { marked } from 'marked';
import { describe, expect, test } from 'vitest';

// What an installation of the package adds to a folder, computed from the lockfile and the packages that are installed here.

const root = fileURLToPath(new URL('..', import.meta.url));
const read = (file: string): string => readFileSync(join(root, file), 'utf8');

interface Locked {
  readonly version?: string;
  readonly dev?: boolean;
  readonly devOptional?: boolean;
  readonly optional?: boolean;
  readonly peer?: boolean;
  readonly hasInstallScript?: boolean;
  readonly deprecated?: string;
  readonly engines?: { readonly node?: string };
}

/** Folders of the packages that a default installation has, with their entries in the lockfile. */
const production = Object.entries(
  (JSON.parse(read('package-lock.json')) as { packages: Record<string, Locked> }).packages,
).filter(
  ([folder, { dev, devOptional, optional, peer }]) =>
    folder !== '' && !(dev || devOptional || optional || peer),
);

const BLOCK = 4096;
const MIB = 2 ** 20;

/** Bytes on a disk with blocks of 4 KiB, as `du` counts them. */
const onDisk = (path: string): number => Math.ceil(lstatSync(path).size / BLOCK) * BLOCK;

/** Bytes of a package without the packages inside it, which have entries of their own. */
function sizeOf(folder: string): number {
  const inside = globSync('**/*', {
    cwd: join(root, folder),
    exclude: (name) => String(name).endsWith('node_modules'),
  });
  return inside.reduce((sum, path) => sum + onDisk(join(root, folder, path)), BLOCK);
}

/**
 * Paths of the files that `npm pack` puts into the package. Without scripts: a build would replace the files that other tests
 * run at this moment.
 */
const packedFiles = ((): string[] => {
  const packed = JSON.parse(
    execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], { cwd: root, encoding: 'utf8' }),
  ) as Record<string, { files: { path: string }[] }>;
  return (Object.values(packed)[0]?.files ?? []).map(({ path }) => path);
})();

const foldersOf = (file: string): string[] => {
  const parent = posix.dirname(file);
  return parent === '.' ? [] : [parent, ...foldersOf(parent)];
};

describe('the installed package', () => {
  test('the npm package contains the program, manual, examples and root documents', () => {
    const allowed =
      /^(?:bin\/(?:agctl\.js|package\.json)|dist\/cli\/[\w-]+\.c?js|dist\/types\/(?:[\w-]+\/)+[\w-]+\.d\.ts|dist\/THIRD-PARTY-NOTICES\.txt|dist\/web\/.+\.js|dist\/web\/.+\.(?:html|css|svg|js\.gz|css\.gz)|man\/.+\.(?:[157]|json)|prices\/catalog\.json|examples\/.+|docs\/(?:decisions\/|guides\/)?[\w-]+\.md|docs\/ui\/[\w-]+\.png|deploy\/.+|package\.json|LICENSE|(?:README|ARCHITECTURE|CONTRIBUTING|CODE_OF_CONDUCT|CHANGELOG|SECURITY)\.md)$/;
    expect(packedFiles.filter((path) => !allowed.test(path))).toEqual([]);
    expect(packedFiles).toEqual(
      expect.arrayContaining([
        'bin/agctl.js',
        'dist/cli/main.js',
        'dist/cli/library.js',
        'dist/types/library/index.d.ts',
        'dist/cli/testing.js',
        'dist/types/library/testing/index.d.ts',
        'dist/THIRD-PARTY-NOTICES.txt',
        'man/agctl.1',
        'examples/quickstart.yaml',
      ]),
    );
  });

  test('each relative link of a page of the package leads to a file or folder of the package, or to a picture of the repository', () => {
    const files = packedFiles;
    const known = new Set(files.flatMap((file) => [file, ...foldersOf(file)]));
    const pages = files.filter((file) => file.endsWith('.md'));
    const broken: string[] = [];
    let links = 0;
    for (const page of pages)
      void marked.walkTokens(marked.lexer(read(page)), (token) => {
        if (token.type !== 'link' && token.type !== 'image') return;
        const [path = ''] = String(token['href']).split('#');
        if (path === '' || /^(?:https?|mailto):/.test(path)) return;
        links += 1;
        const target = posix.join(posix.dirname(page), decodeURIComponent(path)).replace(/\/$/, '');
        // Pictures would take more room than the program.
        if (token.type === 'image' && existsSync(join(root, target))) return;
        if (!known.has(target)) broken.push(`${page}: ${path}`);
      });
    expect(broken).toEqual([]);
    expect([pages.length > 50, links > 300]).toEqual([true, true]);
  });

  test('the installed package takes less than 50 MiB, and as much as docs/dependencies.md says', () => {
    const own = packedFiles.reduce((sum, path) => sum + onDisk(join(root, path)), 0);
    const size = (own + production.reduce((sum, [folder]) => sum + sizeOf(folder), 0)) / MIB;
    expect(size).toBeGreaterThan(20);
    expect(size).toBeLessThan(50);
    const [, stated] = /takes (\d+) MiB on disk/.exec(read('docs/dependencies.md')) ?? [];
    expect(Math.abs(Number(stated) - size), `${size.toFixed(0)} MiB`).toBeLessThan(8);
  });

  test('the installed package has no install scripts and no deprecated packages', () => {
    expect(production.length).toBeGreaterThan(20);
    const bad = production.filter(
      ([, { hasInstallScript, deprecated }]) => hasInstallScript === true || deprecated !== undefined,
    );
    expect(bad).toEqual([]);
  });

  test('the SBOM lists every package that is installed or bundled', () => {
    const { components } = JSON.parse(
      execFileSync('npm', ['run', '--silent', 'sbom'], { cwd: root, encoding: 'utf8' }),
    ) as { components: { group?: string; name: string; version: string }[] };
    const listed = new Set(components.map(({ name, version }) => `${name} ${version}`));
    const bundled = read('dist/THIRD-PARTY-NOTICES.txt').matchAll(/^(\S+ \d+\.\d+\.\d+) \(.+\)$/gm);
    const expected = [
      ...[...bundled].map(([, nameAndVersion]) => nameAndVersion as string),
      ...production.map(([folder, { version }]) => `${folder.split('node_modules/').at(-1)} ${version}`),
    ];
    expect(expected.length).toBeGreaterThan(100);
    expect(expected.filter((each) => !listed.has(each))).toEqual([]);
  });
});

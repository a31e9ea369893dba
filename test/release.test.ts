import { execFile, execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { temporaryFolder } from './kit/folder.ts';

// `npm run release` in a clone, without a registry. The clone copies what is built here instead of building.

const root = fileURLToPath(new URL('..', import.meta.url));
/** npm is started up to four times, which a busy machine needs long for, in ms. */
const TIMEOUT = 180_000;
const folder = await temporaryFolder();
afterAll(folder.remove);
const clone = join(folder.path, 'agctl'); // npm names the SBOM after the folder.
const env = {
  ...process.env,
  GIT_AUTHOR_NAME: 'Tester',
  GIT_AUTHOR_EMAIL: 'tester@example.com',
  GIT_COMMITTER_NAME: 'Tester',
  GIT_COMMITTER_EMAIL: 'tester@example.com',
  npm_config_registry: 'http://127.0.0.1:1',
  npm_config_fetch_retries: '0',
};

const git = (...args: string[]): string =>
  execFileSync('git', args, { cwd: clone, encoding: 'utf8', env }).trim();
const read = (file: string): string => readFileSync(join(clone, file), 'utf8');
const write = (file: string, text: string): void => writeFileSync(join(clone, file), text);
const commit = (): void => {
  git('add', '--all');
  git('commit', '--quiet', '--message', 'test');
};

execFileSync('git', ['clone', '--quiet', '--shared', root, clone], { env });
git('checkout', '--quiet', '-B', 'main');
symlinkSync(join(root, 'node_modules'), join(clone, 'node_modules'));
for (const file of ['package.json', 'package-lock.json', 'scripts/release.mjs'])
  cpSync(join(root, file), join(clone, file));
write(
  'scripts/build.mjs',
  `import { cpSync } from 'node:fs';\ncpSync(${JSON.stringify(join(root, 'dist'))}, 'dist', { recursive: true });\n`,
);
write('CHANGELOG.md', '# Changelog\n\n## 99.0.0 – 2030-01-31\n\n* Everything.\n');
commit();
const start = git('rev-parse', 'HEAD');

beforeEach(() => {
  git('checkout', '--quiet', '--force', '-B', 'main', start);
  git('clean', '--quiet', '--force', '-d');
  for (const tag of git('tag').split('\n').filter(Boolean)) git('tag', '--delete', tag);
  rmSync(join(clone, 'results'), { recursive: true, force: true });
});

interface Ran {
  readonly code: unknown;
  readonly output: string;
}

const release = async (...args: string[]): Promise<Ran> =>
  await new Promise((resolve) => {
    execFile(process.execPath, ['scripts/release.mjs', ...args], { cwd: clone, env }, (error, out, err) =>
      resolve({ code: error?.code ?? 0, output: out + err }),
    );
  });

describe('npm run release', () => {
  test('release sets the version everywhere, writes the SBOM, commits and tags', {
    timeout: TIMEOUT,
  }, async () => {
    const { version: before } = JSON.parse(read('package.json')) as { version: string };
    const { code, output } = await release('99.0.0');
    expect(code, output).toBe(0);
    expect(output).toContain('git push origin main v99.0.0');
    expect(git('log', '-1', '--format=%s')).toBe('release: 99.0.0');
    expect(git('rev-parse', 'v99.0.0^{commit}')).toBe(git('rev-parse', 'HEAD'));
    expect(git('status', '--porcelain')).toBe('');
    for (const file of ['package.json', 'package-lock.json'])
      expect(JSON.parse(read(file)), file).toMatchObject({ version: '99.0.0' });
    for (const file of git('ls-files', 'deploy', 'docs/guides').split('\n'))
      expect(read(file), file).not.toContain(before);
    const { metadata } = JSON.parse(read('results/sbom.cdx.json')) as { metadata: { component: object } };
    expect(metadata.component).toMatchObject({ name: 'agctl', version: '99.0.0' });
  });

  test('release --dry-run checks the same and changes nothing', { timeout: TIMEOUT }, async () => {
    const { code, output } = await release('99.0.0', '--dry-run');
    expect(code, output).toBe(0);
    expect(output).toContain('99.0.0 can be released');
    expect([git('rev-parse', 'HEAD'), git('status', '--porcelain'), git('tag')]).toEqual([start, '', '']);
    expect(existsSync(join(clone, 'results'))).toBe(false);
  });

  test.each<[string, string[], () => void, string]>([
    ['no version', [], () => {}, 'expected a version'],
    ['an old version', ['0.0.1'], () => {}, 'is not newer than'],
    ['an unknown option', ['99.0.0', '--force'], () => {}, 'unknown option: --force'],
    ['uncommitted changes', ['99.0.0'], () => write('new.txt', ''), '?? new.txt'],
    ['another branch', ['99.0.0'], () => void git('checkout', '--quiet', '-b', 'other'), 'not on other'],
    ['a tag that exists', ['99.0.0'], () => void git('tag', 'v99.0.0'), 'the tag v99.0.0 exists'],
    ['another section', ['99.1.0'], () => {}, '"## 99.1.0 – YYYY-MM-DD"'],
    [
      'a section without a date',
      ['99.0.0'],
      () => {
        write('CHANGELOG.md', '# Changelog\n\n## 99.0.0\n');
        commit();
      },
      'it begins with "## 99.0.0"',
    ],
  ])('release refuses %s before it builds', async (_name, args, prepare, message) => {
    prepare();
    rmSync(join(clone, 'dist'), { recursive: true, force: true });
    const { code, output } = await release(...args);
    expect(output).toContain(message);
    expect(code).toBe(1);
    expect(existsSync(join(clone, 'dist'))).toBe(false);
  });

  test('release refuses a package with secrets, sources and missing files, and restores the version', {
    timeout: TIMEOUT,
  }, async () => {
    mkdirSync(join(clone, 'examples/src'), { recursive: true });
    write('examples/gateway.env', 'KEY=secret\n');
    write('examples/src/main.ts', '');
    const manifest = JSON.parse(read('package.json')) as { files: string[] };
    write('package.json', JSON.stringify({ ...manifest, files: [...manifest.files, 'no-such-folder'] }));
    commit();
    const prepared = git('rev-parse', 'HEAD');
    const { code, output } = await release('99.0.0');
    expect(output).toContain('examples/gateway.env may hold a secret\n');
    expect(output).toContain('examples/src/main.ts is a source\n');
    expect(output).toContain('no-such-folder of files is missing');
    expect(code).toBe(1);
    expect([git('rev-parse', 'HEAD'), git('status', '--porcelain'), git('tag')]).toEqual([prepared, '', '']);
  });
});

import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import { temporaryFolder } from './kit/folder.ts';

const script = pathToFileURL(join(import.meta.dirname, '../scripts/install.mjs')).href;

type Packages = Record<string, { readonly version?: string; readonly optional?: true }>;

/** Whether the script calls npm for a folder with this lockfile, where npm has installed these packages. */
async function callsNpm(locked: Packages, installed?: Packages): Promise<boolean> {
  await using folder = await temporaryFolder();
  const write = (file: string, packages: Packages): void =>
    writeFileSync(join(folder.path, file), JSON.stringify({ lockfileVersion: 3, packages }));
  write('package-lock.json', locked);
  mkdirSync(join(folder.path, 'node_modules'));
  if (installed !== undefined) write('node_modules/.package-lock.json', installed);
  const npm = join(folder.path, 'npm.cjs');
  writeFileSync(npm, `require('node:fs').writeFileSync('called', process.argv[2])`);
  const call = `import { install } from ${JSON.stringify(script)}; install(${JSON.stringify(folder.path)});`;
  const { status, stderr } = spawnSync(process.execPath, ['--input-type=module', '--eval', call], {
    env: { ...process.env, npm_execpath: npm },
    encoding: 'utf8',
  });
  expect(status, stderr).toBe(0);
  return existsSync(join(folder.path, 'called'));
}

const LOCKED: Packages = {
  '': {},
  'node_modules/a': { version: '1.0.0' },
  'node_modules/b-other-platform': { version: '2.0.0', optional: true },
};

test('packages that npm has installed are not installed a second time', async () => {
  expect(await callsNpm(LOCKED, { 'node_modules/a': { version: '1.0.0' } })).toBe(false);
});

test.each<[string, Packages | undefined]>([
  ['nothing is installed', undefined],
  ['a package is missing', {}],
  ['a package has another version', { 'node_modules/a': { version: '1.0.1' } }],
])('npm installs the packages of the lockfile if %s', async (_, installed) => {
  expect(await callsNpm(LOCKED, installed)).toBe(true);
});

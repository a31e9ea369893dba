// Installs packages by a lockfile, where the installed ones are not those that it names. Runs on Node.js 20 or newer, and
// uses nothing else.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** Large packages that only some tasks need: a folder each, with a lockfile of its own. */
const PARTS = join(root, 'scripts/parts');

/**
 * Installs the packages of a folder with a lockfile, if npm has not. Ends this process with the exit code of npm when that fails.
 * npm writes what it has installed into `node_modules/.package-lock.json`, whoever called it.
 */
export async function install(folder = root, what = 'dependencies') {
  if (isInstalled(folder)) return;
  process.stderr.write(`installing ${what} (npm ci) …\n`);
  const npm = process.env.npm_execpath;
  const [command, args] = npm === undefined ? ['npm', ['ci']] : [process.execPath, [npm, 'ci']];
  const child = spawn(command, args, {
    cwd: folder,
    stdio: ['ignore', 2, 2],
    shell: npm === undefined && process.platform === 'win32',
  });
  // Rejects where npm cannot be started.
  const [status] = await once(child, 'close');
  if (status !== 0) process.exit(status ?? 1);
}

function isInstalled(folder) {
  const installed = packagesOf(join(folder, 'node_modules/.package-lock.json'));
  if (installed === undefined) return false;
  const wanted = packagesOf(join(folder, 'package-lock.json')) ?? {};
  return Object.entries(wanted).every(
    ([path, { version, optional }]) =>
      path === '' ||
      installed[path]?.version === version ||
      (optional === true && installed[path] === undefined),
  );
}

function packagesOf(file) {
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')).packages : undefined;
}

/** Installs a part. Resolves to its `node_modules`. */
export async function installPart(name) {
  const folder = join(PARTS, name);
  await install(folder, name);
  return join(folder, 'node_modules');
}

/** Makes a file or folder of a part look like one of the root's `node_modules`. */
export function link(target, path) {
  const at = join(root, 'node_modules', path);
  mkdirSync(dirname(at), { recursive: true });
  rmSync(at, { recursive: true, force: true });
  symlinkSync(relative(dirname(at), target), at, 'junction');
}

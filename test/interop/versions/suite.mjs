// The package of the last release on the same database, before this version and beside it. It is built from the history, and installed
// with its own dependencies: a copy of the sources without the history (a tarball, a shallow clone) has nothing to compare with.
import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import * as postgres from '../postgres/suite.mjs';

/** Release 0.2.0. */
const OTHER = '312caf6fd9493062640e9daf3a16fd94ea9b9f80';
const ROOT = join(import.meta.dirname, '../../..');
/** Not below node_modules, where bundlers take files for those of packages. */
const CACHE = join(tmpdir(), 'agctl-versions');
const run = (file, args, options = {}) => promisify(execFile)(file, args, { timeout: 300_000, ...options });

export function missing() {
  const found = spawnSync('git', ['cat-file', '-e', `${OTHER}^{commit}`], { cwd: ROOT, stdio: 'ignore' });
  if (found.status !== 0) return `needs the history of the repository, with commit ${OTHER.slice(0, 8)}`;
  return undefined;
}

/** A program that is called as Node.js is, with the path of this version's command, and runs the other's instead. */
async function otherVersion() {
  const folder = join(CACHE, OTHER);
  const program = join(folder, 'node.sh');
  if (existsSync(program)) return program;
  const sources = join(folder, 'sources');
  mkdirSync(sources, { recursive: true });
  const archive = execFileSync('git', ['archive', OTHER], { cwd: ROOT, maxBuffer: 2 ** 30 });
  execFileSync('tar', ['-x', '-C', sources], { input: archive });
  if (!existsSync(join(sources, 'node_modules')))
    symlinkSync(join(ROOT, 'node_modules'), join(sources, 'node_modules'));
  await run(process.execPath, ['scripts/build-program.mjs'], { cwd: sources });
  const packed = ['pack', '--json', '--ignore-scripts', '--pack-destination', folder];
  const [{ filename }] = JSON.parse((await run('npm', packed, { cwd: sources })).stdout);
  const quietly = ['--ignore-scripts', '--no-audit', '--no-fund'];
  await run('npm', ['install', '--prefix', folder, ...quietly, join(folder, filename)], { cwd: folder });
  const command = join(folder, 'node_modules/@agctl/agctl/bin/agctl.js');
  writeFileSync(program, `#!/bin/sh\nshift\nexec '${process.execPath}' '${command}' "$@"\n`);
  chmodSync(program, 0o755);
  return program;
}

export async function start() {
  const OTHER_VERSION = await otherVersion();
  const reason = postgres.missing();
  if (reason !== undefined) {
    console.error(`SKIPPED: versions on PostgreSQL: ${reason}`);
    return { env: { OTHER_VERSION }, stop: async () => undefined };
  }
  const server = await postgres.start();
  return { env: { OTHER_VERSION, ...server.env }, stop: server.stop };
}

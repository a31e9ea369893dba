// Another version of agctl on the same database, before this one and beside it. Until a release is in a registry, the other one is
// built from the history: a copy of the sources without it (a tarball, a shallow clone) has nothing to compare with.
import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import * as postgres from '../postgres/suite.mjs';

/** The last commit before `agctl_usage` got the column `refused`. */
const OTHER = 'cfffaab9df91b8d02769778b76c930e2bdd0c6a2';
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
  mkdirSync(folder, { recursive: true });
  const archive = execFileSync('git', ['archive', OTHER], { cwd: ROOT, maxBuffer: 2 ** 30 });
  execFileSync('tar', ['-x', '-C', folder], { input: archive });
  if (!existsSync(join(folder, 'node_modules')))
    symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  await run(process.execPath, ['scripts/build-program.mjs'], { cwd: folder });
  writeFileSync(program, `#!/bin/sh\nshift\nexec '${process.execPath}' '${folder}/bin/agctl.js' "$@"\n`);
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

// libfaketime, which shifts the clock of a process, with a real Redis and PostgreSQL. The library is that of FAKETIME_LIBRARY
// or of this machine, or from Debian's package, which is unpacked, not installed.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, globSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import * as postgres from '../postgres/suite.mjs';
import * as redis from '../redis/suite.mjs';

const CACHE = join(import.meta.dirname, '../../../node_modules/.cache/agctl-faketime');
/** For programs with several threads, which Node.js is. */
const FILE = 'usr/lib/*/faketime/libfaketimeMT.so.1';
const installed = [
  process.env['FAKETIME_LIBRARY'],
  ...globSync(FILE, { cwd: '/' }).map((name) => join('/', name)),
].find((file) => file !== undefined && existsSync(file));

export function missing() {
  if (process.platform !== 'linux') return 'needs Linux, where LD_PRELOAD shifts the clock of a process';
  if (installed === undefined && spawnSync('apt-get', ['--version']).status !== 0)
    return 'needs libfaketime, or apt-get to fetch it';
  return redis.missing() ?? postgres.missing();
}

function fetchLibrary() {
  const found = () => globSync(FILE, { cwd: CACHE })[0];
  if (found() === undefined) {
    mkdirSync(CACHE, { recursive: true });
    execFileSync('apt-get', ['download', 'libfaketime'], {
      cwd: CACHE,
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    execFileSync('dpkg', ['-x', globSync('*.deb', { cwd: CACHE })[0], '.'], { cwd: CACHE });
  }
  return join(CACHE, found());
}

export async function start() {
  const library = installed ?? fetchLibrary();
  const counters = await redis.start();
  const database = await postgres.start().catch(async (error) => {
    await counters.stop();
    throw error;
  });
  const stop = async () => void (await Promise.all([counters.stop(), database.stop()]));
  return { env: { ...counters.env, ...database.env, FAKETIME_LIBRARY: library }, stop };
}

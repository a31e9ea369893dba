import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { freePort } from './ports.ts';
import { until } from './until.ts';

/**
 * The server that tests use: `REDIS_SERVER`, else `redis-server` or `valkey-server` of this machine. Undefined without
 * one; the tests that need it are then skipped.
 */
export const REDIS_SERVER: string | undefined = [
  process.env['REDIS_SERVER'],
  'redis-server',
  'valkey-server',
].find((name) => name !== undefined && spawnSync(name, ['--version']).status === 0);

if (REDIS_SERVER === undefined)
  process.stderr.write('SKIPPED: there is no redis-server or valkey-server: nothing is tested against it.\n');

/** A real Redis or Valkey server, on a port that stays the same when it is started again. */
export interface RedisServer extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  /** A client of the test itself. */
  readonly client: Redis;
  /** Ends it at once, without saving anything. */
  kill(): Promise<void>;
  /** Starts it again, empty. */
  restart(...args: readonly string[]): Promise<void>;
  /** Stops and continues the process: it hangs meanwhile. */
  hang(): void;
  resume(): void;
}

/** Starts a server with these further arguments, such as `--requirepass`. */
export async function redisServer(...args: readonly string[]): Promise<RedisServer> {
  const folder = mkdtempSync(join(tmpdir(), 'agctl-redis-'));
  const port = await freePort();
  const password = args[args.indexOf('--requirepass') + 1];
  const hasPassword = args.includes('--requirepass');
  let child = await start(port, folder, args);
  const client = new Redis({
    host: '127.0.0.1',
    port,
    ...(hasPassword && { password: password as string }),
    lazyConnect: true,
    retryStrategy: () => 50,
  });
  client.on('error', () => undefined);
  const kill = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  };
  return {
    url: `redis://${hasPassword ? `:${password}@` : ''}127.0.0.1:${port}`,
    port,
    client,
    kill,
    restart: async (...other) => {
      child = await start(port, folder, other.length > 0 ? other : args);
    },
    hang: () => child.kill('SIGSTOP'),
    resume: () => child.kill('SIGCONT'),
    [Symbol.asyncDispose]: async () => {
      client.disconnect();
      await kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function start(port: number, folder: string, args: readonly string[]): Promise<ChildProcess> {
  const own = [
    '--port',
    String(port),
    '--bind',
    '127.0.0.1',
    '--dir',
    folder,
    '--save',
    '',
    '--appendonly',
    'no',
  ];
  const child = spawn(REDIS_SERVER ?? 'redis-server', [...own, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  child.stdout.resume();
  // The port of its arguments may be another one, such as that of TLS.
  await until(() => child.exitCode !== null || accepts(port));
  if (child.exitCode !== null) throw new Error(`the server has ended with ${child.exitCode}`);
  return child;
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('close', () => socket.destroy());
    socket.once('connect', () => socket.destroy());
  });
}

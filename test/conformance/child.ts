import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';

/** A running process that said it was ready. */
export interface Child<T> {
  /** What its lines announced. */
  ready: T;
  pid: number;
  /**
   * Sends SIGTERM and waits for the end.
   *
   * @throws Error when the process had ended by itself, or needs more than 10 s
   */
  stop(): Promise<void>;
}

type Process = ChildProcessByStdio<null, Readable, Readable>;

const readyMs = 15_000;
const stopMs = 10_000;
const keptLines = 40;

/**
 * Starts a Node script and waits until it is ready.
 *
 * @param args what follows `node` on the command line
 * @param onLine sees each line of stdout and stderr; what it returns, unless undefined, means ready
 * @throws Error with the last lines of output when the script ends first, or is not ready after 15 s
 */
export async function startChild<T>(
  args: string[],
  onLine: (line: string) => T | undefined,
): Promise<Child<T>> {
  const child: Process = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  const kill = () => child.kill('SIGKILL');
  process.once('exit', kill);
  const lines: string[] = [];
  const failure = (what: string) => new Error(`${args.join(' ')}: ${what}\n${lines.join('\n')}`);
  const ended = new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('close', (code, signal) => resolve(`ended with ${signal ?? code}`));
  }).finally(() => process.off('exit', kill));

  const announced = new Promise<T>((resolve) => {
    // Reading goes on after readiness: a full pipe would stop the child.
    eachLine(child, (line) => {
      if (lines.push(line) > keptLines) lines.shift();
      const ready = onLine(line);
      if (ready !== undefined) resolve(ready);
    });
  });
  const timeout = timer(readyMs, `not ready after ${readyMs / 1000} s`);
  const dead = Promise.race([ended, timeout.expired]).then((what) => {
    throw failure(what);
  });
  try {
    const ready = await Promise.race([announced, dead]);
    return { ready, pid: child.pid as number, stop: () => stop(child, ended, failure) };
  } catch (error) {
    kill();
    throw error;
  } finally {
    timeout.clear();
  }
}

function eachLine(child: Process, see: (line: string) => void): void {
  createInterface({ input: child.stdout }).on('line', see);
  createInterface({ input: child.stderr }).on('line', see);
}

function timer(ms: number, what: string): { expired: Promise<string>; clear(): void } {
  const { promise: expired, resolve } = Promise.withResolvers<string>();
  const handle = setTimeout(resolve, ms, what);
  return { expired, clear: () => clearTimeout(handle) };
}

async function stop(child: Process, ended: Promise<string>, failure: (what: string) => Error): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) throw failure(await ended);
  const timeout = timer(stopMs, `still there ${stopMs / 1000} s after SIGTERM`);
  child.kill('SIGTERM');
  const what = await Promise.race([ended.then(() => undefined), timeout.expired]);
  timeout.clear();
  if (what === undefined) return;
  child.kill('SIGKILL');
  throw failure(what);
}

import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { env as environment } from 'node:process';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { built } from './built.ts';
import { until } from './until.ts';

/** The command as users run it; `npm test` has built what it loads. */
export const AGCTL = fileURLToPath(new URL('../../bin/agctl.js', import.meta.url));
built('cli/main.js');

export interface RunOptions {
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string;
  /** Text for stdin, which is empty otherwise; that of a service stays open then. */
  readonly input?: string;
  /** Another Node to run it with. */
  readonly node?: string;
  /** How many file descriptors it may have. */
  readonly descriptors?: number;
  /** Of `serve`: arguments in place of those that name the file. */
  readonly args?: readonly string[];
  /** Of a service: nobody waits for it any longer, though it is not ready. Otherwise after 30 s. */
  readonly giveUp?: Promise<unknown>;
  /** Nobody reads stdout: writing to it fails. */
  readonly closeStdout?: boolean;
  /** Nobody reads stdout, which stays open: what is written to it stays in its buffers until they are full. */
  readonly pauseStdout?: boolean;
}

export interface Finished {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

type Running = ChildProcessByStdio<Writable, Readable, Readable>;

/** Runs `agctl` with arguments to its end. */
export async function agctl(args: readonly string[], options: RunOptions = {}): Promise<Finished> {
  const child = start(args, options);
  child.stdin.end(options.input ?? '');
  return watch(child).finished;
}

function start(args: readonly string[], options: RunOptions): Running {
  const { env, cwd, node = process.execPath, descriptors } = options;
  // The runner's own settings would colour the output, and its Node options would reach the child.
  const { FORCE_COLOR, NODE_OPTIONS, VITEST, ...inherited } = environment;
  const command = [node, AGCTL, ...args] as [string, ...string[]];
  // The shell sets the limit and becomes the command.
  const limited = ['sh', '-c', `ulimit -n ${descriptors} && exec "$@"`, 'sh', ...command] as typeof command;
  const [file, ...rest] = descriptors === undefined ? command : limited;
  return spawn(file, rest, {
    cwd,
    // Tests run side by side: the fixed default ports are for whoever asks for them.
    env: { ...inherited, ADMIN_ADDR: 'off', STATS_ADDR: 'off', READINESS_ADDR: 'off', ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
}

function watch(child: Running): { output: { stdout: string; stderr: string }; finished: Promise<Finished> } {
  const output = { stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output.stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (output.stderr += text));
  child.stdin.on('error', () => undefined);
  const finished = new Promise<Finished>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => resolve({ code, signal, ...output }));
  });
  return { output, finished };
}

/** `agctl serve` in a process of its own. Leaving its scope kills it. */
export interface ServeProcess extends AsyncDisposable {
  /** Origin of the first port. */
  readonly url: string;
  readonly pid: number;
  readonly stdout: string;
  readonly stderr: string;
  readonly finished: Promise<Finished>;
  kill(signal: NodeJS.Signals): void;
}

/** Writes the configuration to a file of its own and serves it; resolves when the gateway says that it is ready. */
export async function serve(config: string, options: RunOptions = {}): Promise<ServeProcess> {
  const folder = mkdtempSync(join(tmpdir(), 'agctl-serve-'));
  const file = join(folder, 'config.yaml');
  writeFileSync(file, config);
  const removed = (): void => rmSync(folder, { recursive: true, force: true });
  return service(['serve', ...(options.args ?? ['-f', file])], options, removed);
}

/**
 * Runs a command that serves until it is stopped; resolves when it says that it is ready. One that does not is ended.
 * `after` runs when it has ended.
 */
export async function service(
  args: readonly string[],
  options: RunOptions = {},
  after: () => void = () => undefined,
): Promise<ServeProcess> {
  const child = start(args, options);
  const { output, finished } = watch(child);
  if (options.input !== undefined) child.stdin.end(options.input);
  if (options.closeStdout) child.stdout.destroy();
  if (options.pauseStdout) {
    child.stdout.pause();
    // What was written before the end still counts for `finished`.
    child.once('exit', () => child.stdout.resume());
  }
  const gone = finished.then(({ code, stderr }) => {
    after();
    return new Error(`${args[0]} ended with ${code}: ${stderr}`);
  });
  const isReady = (): boolean => /^ready in |"message":"ready"/m.test(output.stderr);
  let hasGivenUp = false;
  void options.giveUp?.then(() => {
    hasGivenUp = true;
  });
  const ready = until(() => isReady() || hasGivenUp, 30_000)
    .catch(() => undefined)
    .then(() => {
      const name = args.slice(0, 2).join(' ');
      return isReady() ? undefined : new Error(`${name} was not ready in time: ${output.stderr}`);
    });
  const failure = await Promise.race([gone, ready]);
  if (failure !== undefined) {
    child.kill('SIGKILL');
    await finished;
    throw failure;
  }
  return {
    url: urlIn(output.stderr),
    pid: child.pid as number,
    get stdout() {
      return output.stdout;
    },
    get stderr() {
      return output.stderr;
    },
    finished,
    kill: (signal) => void child.kill(signal),
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGKILL');
      await finished;
    },
  };
}

/** The first URL of the banner. A warning before it may show a part of another one. */
function urlIn(stderr: string): string {
  const [, ofGateway] = /^ {2}gateway \S+ +(http:\/\/127\.0\.0\.1:\d+)/m.exec(stderr) ?? [];
  return ofGateway ?? (/http:\/\/127\.0\.0\.1:\d+/.exec(stderr)?.[0] as string);
}

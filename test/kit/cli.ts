import { closeSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { main } from '../../src/cli/main.ts';

/** A command that ran in this process. */
export interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RanOptions {
  readonly env?: Record<string, string | undefined>;
  /** The working directory of this whole process while the command runs, in which it finds relative paths. */
  readonly cwd?: string;
  /** Text for stdin, which is empty otherwise. */
  readonly input?: string;
  /** What is printed so far, for what waits for it. */
  readonly live?: { stdout: string; stderr: string };
  /** Stdout says that it is a terminal. */
  readonly isTTY?: boolean;
}

/**
 * The environment of this process, without ports that other tests may use and without the runner's own settings, for
 * commands that need a PATH or a HOME. `cli` gives commands an empty environment otherwise.
 */
export function inheritedEnv(): Record<string, string | undefined> {
  const { FORCE_COLOR, NODE_OPTIONS, VITEST, ...inherited } = process.env;
  return { ...inherited, ADMIN_ADDR: 'off', STATS_ADDR: 'off', READINESS_ADDR: 'off' };
}

/** Runs `agctl` in this process: everything of the command except its start. */
export async function cli(
  args: readonly string[],
  { env = {}, cwd, input = '', live = { stdout: '', stderr: '' }, isTTY = false }: RanOptions = {},
): Promise<Ran> {
  const sink = (name: 'stdout' | 'stderr'): Writable =>
    Object.assign(
      new Writable({
        decodeStrings: false,
        write(chunk, _encoding, done) {
          live[name] += String(chunk);
          done();
        },
      }),
      { isTTY, columns: 100 },
    );
  const context = { stdout: sink('stdout'), stderr: sink('stderr'), env, cwd: cwd ?? '/' };
  using _folder = cwd === undefined ? undefined : workingDirectory(cwd);
  using _stdin = args.includes('-') ? standardInput(input) : undefined;
  const code = await main(args, context);
  return { code, ...live };
}

let entered: { readonly path: string; readonly before: string; commands: number } | undefined;

/** Changes the working directory until it is disposed of. Commands that run at the same time must agree on it. */
function workingDirectory(path: string): Disposable {
  if (entered !== undefined && entered.path !== path)
    throw new Error(`a command runs in ${entered.path}, so none can run in ${path}`);
  entered ??= { path, before: process.cwd(), commands: 0 };
  const current = entered;
  if (current.commands === 0) process.chdir(path);
  current.commands += 1;
  return {
    [Symbol.dispose]: () => {
      current.commands -= 1;
      if (current.commands > 0) return;
      process.chdir(current.before);
      entered = undefined;
    },
  };
}

let isInputTaken = false;

/**
 * Makes file descriptor 0 a file with this text until it is disposed of: commands read `-` from the descriptor. A new
 * descriptor gets the lowest number that is free, hence the pair of calls.
 */
function standardInput(text: string): Disposable {
  if (isInputTaken) throw new Error('another command reads stdin');
  isInputTaken = true;
  const path = join(tmpdir(), `agctl-stdin-${process.pid}`);
  writeFileSync(path, text);
  replaceStandardInput(path);
  return {
    [Symbol.dispose]: () => {
      replaceStandardInput('/dev/null');
      rmSync(path, { force: true });
      isInputTaken = false;
    },
  };
}

function replaceStandardInput(path: string): void {
  closeSync(0);
  const descriptor = openSync(path, 'r');
  if (descriptor !== 0) throw new Error(`stdin became descriptor ${descriptor}`);
}

import { execFile, execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { AGCTL } from './process.ts';
import { until } from './until.ts';

const run = promisify(execFile);

/** Whether this machine can show a terminal to a program. */
export const hasTerminal = ((): boolean => {
  try {
    execFileSync('tmux', ['-V']);
    return true;
  } catch {
    process.stderr.write('tmux is not installed: THE TESTS OF THE TRACE SCREEN ARE SKIPPED\n');
    return false;
  }
})();

/** A real pseudo-terminal with a shell in it, of a tmux server of its own. */
export interface Terminal extends AsyncDisposable {
  /** What is on it now, as text. */
  screen(): Promise<string>;
  /** The same with its colours. */
  styled(): Promise<string>;
  /** Waits until it shows something and is not being drawn any more; gives the screen. */
  shows(pattern: RegExp | string): Promise<string>;
  /** Keys by tmux's names (`Up`, `C-c`, `Escape`), or text. */
  press(...keys: readonly string[]): Promise<void>;
  resize(columns: number, rows: number): Promise<void>;
  /** Runs `agctl` in the shell; `$?` follows as `code N`. */
  agctl(args: readonly string[], environment?: string): Promise<void>;
  /** Settings and state of the terminal by tmux's names, such as `alternate_on`. */
  state(format: string): Promise<string>;
  /** Process id of what runs in the foreground. */
  foreground(): Promise<number>;
}

/** For a program to start and draw, in ms, where others want the processor too. */
const PATIENCE = 30_000;

/** Between two looks at a screen, in ms. Each starts a process: every 30 ms, they took a third of the tests' CPU time. */
const INTERVAL = 60;

let count = 0;

export async function terminal({ columns = 80, rows = 24 } = {}): Promise<Terminal> {
  const folder = mkdtempSync(join(tmpdir(), 'agctl-tmux-'));
  const socket = join(folder, `s${count++}`);
  // A person's terminal: in CI, libraries turn colours off.
  const { CI: _, NO_COLOR: __, FORCE_COLOR: ___, ...env } = process.env;
  const tmux = async (...args: readonly string[]): Promise<string> =>
    (await run('tmux', ['-f', '/dev/null', '-S', socket, ...args], { env })).stdout;
  await tmux(
    'new-session',
    '-d',
    '-x',
    String(columns),
    '-y',
    String(rows),
    '-e',
    'PS1=$ ',
    '-e',
    'LC_ALL=C.UTF-8',
    '-c',
    folder,
    '/bin/sh',
  );
  await tmux('set', '-g', 'status', 'off');
  await tmux('resize-window', '-x', String(columns), '-y', String(rows));
  const screen = (): Promise<string> => tmux('capture-pane', '-p');
  const shows = async (pattern: RegExp | string): Promise<string> => {
    let last = '';
    const isShown = async (): Promise<boolean> => {
      const before = last;
      last = await screen();
      const found = typeof pattern === 'string' ? last.includes(pattern) : pattern.test(last);
      return found && last === before;
    };
    try {
      await until(isShown, PATIENCE, INTERVAL);
    } catch {
      throw new Error(`the terminal never showed ${pattern}:\n${last}`);
    }
    return last;
  };
  const type = async (text: string): Promise<void> => void (await tmux('send-keys', '-l', text));
  await shows(/[#$]/);
  return {
    screen,
    styled: () => tmux('capture-pane', '-p', '-e'),
    shows,
    press: async (...keys) => {
      for (const key of keys)
        await tmux('send-keys', ...(/^[a-z]-?[a-z]* /i.test(key) ? ['-l', key] : [key]));
    },
    resize: async (x, y) => void (await tmux('resize-window', '-x', String(x), '-y', String(y))),
    agctl: async (args, environment = '') => {
      const words = [process.execPath, AGCTL, ...args]
        .map((word) => `'${word.replaceAll("'", `'\\''`)}'`)
        .join(' ');
      await type(`clear; ${environment} ${words}; echo code $?`);
      await tmux('send-keys', 'Enter');
    },
    state: async (format) => (await tmux('display-message', '-p', `#{${format}}`)).trim(),
    foreground: async () => {
      const shell = (await tmux('display-message', '-p', '#{pane_pid}')).trim();
      const { stdout } = await run('ps', ['-o', 'pid=', '--ppid', shell]);
      return Number(stdout.trim().split('\n')[0]);
    },
    [Symbol.asyncDispose]: async () => {
      await tmux('kill-server').catch(() => undefined);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

import { type ChildProcessByStdio, spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { LIMITS } from '../../../core/limits.ts';
import { TargetFailure } from '../target-failure.ts';
import { StderrLines } from './stderr-lines.ts';
import { watchdog } from './watchdog.ts';

export interface Command {
  readonly cmd: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** Takes secrets out of a line that the process wrote, and out of arguments. */
  clean(line: string): string;
  cleanArguments(args: readonly string[]): readonly string[];
}

export interface ChildEvents {
  /** One line of stdout, without its line break. */
  line(bytes: Buffer): void;
  /** One line of stderr without secrets, rate-limited; `suppressed` lines were left out before it. */
  errorLine(text: string, suppressed: number): void;
  /** The process is gone; the failure says how. Called once. */
  gone(failure: TargetFailure): void;
}

/** A running command in a process group of its own, so that what it started ends with it. */
export interface Child {
  readonly pid: number;
  /** Bytes written but not yet taken by the process. */
  readonly backlog: number;
  /** The command, and what it wrote on stderr last, without secrets. */
  describe(): string;
  write(line: string): void;
  pause(paused: boolean): void;
  /** Ends stdin, then terminates, then kills the group. Resolves when the process is gone. */
  stop(): Promise<void>;
}

type Process = ChildProcessByStdio<Writable, Readable, Readable>;

/** Groups that still live; they are killed when the gateway exits, however it exits. */
const GROUPS = new Set<number>();
process.on('exit', () => {
  for (const group of GROUPS) killGroup(group, 'SIGKILL');
});

/** Starts a command. Rejects with a `TargetFailure` when it cannot be started. */
export function startChild(command: Command, events: ChildEvents): Promise<Child> {
  return new Promise((resolve, reject) => {
    const child = spawnIn(command, reject);
    child?.once('error', (error) => reject(explainSpawnError(error, command)));
    child?.once('spawn', () => resolve(supervise(child, command, events)));
  });
}

/** Some failures, such as a command line that is too long, are thrown and not told. */
function spawnIn(command: Command, failed: (failure: TargetFailure) => void): Process | undefined {
  try {
    return spawn(command.cmd, command.args, {
      cwd: command.cwd,
      env: command.env,
      detached: process.platform !== 'win32',
      windowsHide: true,
      stdio: ['pipe', 'pipe', 'pipe'],
    });
  } catch (error) {
    failed(explainSpawnError(error as NodeJS.ErrnoException, command));
    return undefined;
  }
}

function supervise(child: Process, command: Command, events: ChildEvents): Child {
  const pid = child.pid as number;
  GROUPS.add(pid);
  watchdog.add(pid);
  const errors = new StderrLines(
    (line) => command.clean(line),
    (text, suppressed) => events.errorLine(text, suppressed),
  );
  splitLines(child.stdout, events);
  child.stderr.on('data', (chunk: Buffer) => errors.push(chunk));
  // A write to a child that has closed its stdin: its exit tells more.
  child.stdin.on('error', () => undefined);
  let stopping = false;
  let isGone = false;
  const gone = (how: string): void => {
    if (isGone) return;
    isGone = true;
    events.gone(ended(stopping ? 'was stopped by the gateway' : how, command, stopping ? '' : errors.last()));
  };
  // Without its output it can answer nothing any more.
  child.stdout.once('end', () => {
    // An exit, which tells more, usually follows at once.
    setTimeout(() => {
      if (GROUPS.has(pid)) killGroup(pid, 'SIGKILL');
      gone('closed its output');
    }, LIMITS.childExitGrace).unref();
  });
  const exited = new Promise<void>((resolve) => {
    // 'exit', not 'close': a grandchild that keeps stdout open would delay 'close' for ever.
    child.once('exit', (code, signal) => {
      killGroup(pid, 'SIGKILL');
      GROUPS.delete(pid);
      watchdog.delete(pid);
      // What it still wrote before the end is worth having; the pipe may lag behind the exit.
      setImmediate(() => {
        child.stdout.destroy();
        child.stderr.destroy();
        gone(signal === null ? `exited with code ${code}` : `was ended by ${signal}`);
        resolve();
      });
    });
  });
  return {
    pid,
    get backlog() {
      return child.stdin.writableLength;
    },
    describe: () => `the server "${shown(command)}" runs${lastWords(errors.last())}`,
    write: (line) => void child.stdin.write(`${line}\n`),
    pause: (paused) => void (paused ? child.stdout.pause() : child.stdout.resume()),
    stop: () => {
      if (!stopping) {
        stopping = true;
        child.stdin.end();
        // Its reader is gone: whatever it still says must not keep it alive.
        child.stdout.resume();
        const terminate = setTimeout(() => killGroup(pid, 'SIGTERM'), LIMITS.childExitGrace);
        const kill = setTimeout(
          () => killGroup(pid, 'SIGKILL'),
          LIMITS.childExitGrace + LIMITS.childKillGrace,
        );
        void exited.then(() => {
          clearTimeout(terminate);
          clearTimeout(kill);
        });
      }
      return exited;
    },
  };
}

/** A negative pid addresses the group (kill(2)); the process alone where there are no groups. */
function killGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(process.platform === 'win32' ? pid : -pid, signal);
  } catch {
    // Nobody is left in it.
  }
}

function splitLines(stdout: Readable, events: ChildEvents): void {
  let parts: Buffer[] = [];
  let size = 0;
  stdout.on('data', (chunk: Buffer) => {
    let from = 0;
    for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, from)) {
      parts.push(chunk.subarray(from, at));
      const line = parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts);
      parts = [];
      size = 0;
      from = at + 1;
      events.line(line);
    }
    if (from === chunk.length) return;
    parts.push(chunk.subarray(from));
    size += chunk.length - from;
    if (size > LIMITS.targetMessageBytes) {
      parts = [];
      size = 0;
      events.line(OVERSIZED);
    }
  });
}

/** Handed to `line` in place of a line over the limit. */
export const OVERSIZED: Buffer = Buffer.alloc(0);

function explainSpawnError(error: NodeJS.ErrnoException, command: Command): TargetFailure {
  switch (error.code) {
    case 'ENOENT':
      return notStarted(
        'command not found',
        `command not found: "${shown(command)}" (looked for it on PATH, working folder ${command.cwd})`,
      );
    case 'EACCES':
      return notStarted('the command is not executable', `"${shown(command)}" is not executable`);
    default:
      return notStarted(
        error.code ?? 'unknown error',
        `"${shown(command)}": ${command.clean(error.message)}`,
      );
  }
}

function notStarted(message: string, detail: string): TargetFailure {
  const begin = 'failed to start stdio server: ';
  return new TargetFailure(begin + message, begin + detail);
}

/** How a process ended: in words for clients, with the command and its last lines on stderr for the log. */
function ended(how: string, command: Command, lastLines: string): TargetFailure {
  return new TargetFailure(how, `the server "${shown(command)}" ${how}${lastWords(lastLines)}`, true);
}

const lastWords = (lines: string): string => (lines === '' ? '' : `; last on stderr: ${lines}`);

/** The command line without secrets. They go before it is cut: a part of one would not be found any more. */
function shown({ cmd, args, clean, cleanArguments }: Command): string {
  return clean([cmd, ...cleanArguments(args)].join(' ')).slice(0, 200);
}

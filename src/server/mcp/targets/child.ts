import { type ChildProcessByStdio, spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { LIMITS } from '../../../core/limits.ts';

export interface Command {
  readonly cmd: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
}

export interface ChildEvents {
  /** One line of stdout, without its line break. */
  line(bytes: Buffer): void;
  /** One line of stderr, rate-limited; `suppressed` lines were left out before it. */
  errorLine(text: string, suppressed: number): void;
  /** The process is gone: `reason` says how, in words, with its last lines on stderr. Called once. */
  gone(reason: string): void;
}

/** A running command in a process group of its own, so that what it started ends with it. */
export interface Child {
  readonly pid: number;
  /** Bytes written but not yet taken by the process. */
  readonly backlog: number;
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

/** Starts a command. Rejects with the reason in words when it cannot be started. */
export function startChild(command: Command, events: ChildEvents): Promise<Child> {
  return new Promise((resolve, reject) => {
    const child: Process = spawn(command.cmd, command.args, {
      cwd: command.cwd,
      env: command.env,
      detached: process.platform !== 'win32',
      windowsHide: true,
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    child.once('error', (error: NodeJS.ErrnoException) =>
      reject(new Error(explainSpawnError(error, command))),
    );
    child.once('spawn', () => resolve(supervise(child, command, events)));
  });
}

function supervise(child: Process, command: Command, events: ChildEvents): Child {
  const pid = child.pid as number;
  GROUPS.add(pid);
  const errors = new StderrLines(events);
  splitLines(child.stdout, events);
  child.stderr.on('data', (chunk: Buffer) => errors.push(chunk));
  // A write to a child that has closed its stdin: its exit tells more.
  child.stdin.on('error', () => undefined);
  let stopping = false;
  let isGone = false;
  const gone = (reason: string): void => {
    if (isGone) return;
    isGone = true;
    events.gone(stopping ? 'stopped by the gateway' : reason);
  };
  // Without its output it can answer nothing any more.
  child.stdout.once('end', () => {
    // An exit, which tells more, usually follows at once.
    setTimeout(() => {
      if (GROUPS.has(pid)) killGroup(pid, 'SIGKILL');
      gone(`the server "${shown(command)}" closed its output`);
    }, LIMITS.childExitGrace).unref();
  });
  const exited = new Promise<void>((resolve) => {
    // 'exit', not 'close': a grandchild that keeps stdout open would delay 'close' for ever.
    child.once('exit', (code, signal) => {
      killGroup(pid, 'SIGKILL');
      GROUPS.delete(pid);
      // What it still wrote before the end is worth having; the pipe may lag behind the exit.
      setImmediate(() => {
        child.stdout.destroy();
        child.stderr.destroy();
        gone(explainExit(command, code, signal, errors.last()));
        resolve();
      });
    });
  });
  return {
    pid,
    get backlog() {
      return child.stdin.writableLength;
    },
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

/** Splits stderr into lines, keeps the last of them, and passes on so many a second. */
class StderrLines {
  readonly #events: ChildEvents;
  #rest = '';
  #kept = '';
  #second = 0;
  #inSecond = 0;
  #suppressed = 0;

  constructor(events: ChildEvents) {
    this.#events = events;
  }

  push(chunk: Buffer): void {
    const text = chunk.toString('utf8');
    this.#kept = (this.#kept + text).slice(-LIMITS.childErrorBytes);
    const lines = (this.#rest + text).slice(-LIMITS.childErrorBytes).split('\n');
    this.#rest = lines.pop() ?? '';
    for (const line of lines) if (line.trim() !== '') this.#pass(line.trimEnd());
  }

  #pass(line: string): void {
    const second = Math.floor(performance.now() / 1000);
    if (second !== this.#second) {
      this.#second = second;
      this.#inSecond = 0;
    }
    this.#inSecond += 1;
    if (this.#inSecond > LIMITS.childErrorLinesPerSecond) {
      this.#suppressed += 1;
      return;
    }
    this.#events.errorLine(line, this.#suppressed);
    this.#suppressed = 0;
  }

  /** The last three lines, for an explanation. */
  last(): string {
    return this.#kept.trim().split('\n').slice(-3).join(' | ').slice(-500);
  }
}

const shown = ({ cmd, args }: Command): string => [cmd, ...args].join(' ').slice(0, 200);

function explainSpawnError(error: NodeJS.ErrnoException, command: Command): string {
  switch (error.code) {
    case 'ENOENT':
      return `failed to start stdio server: command not found: "${command.cmd}" (looked for it on PATH, working folder ${command.cwd})`;
    case 'EACCES':
      return `failed to start stdio server: "${command.cmd}" is not executable`;
    default:
      return `failed to start stdio server: "${shown(command)}": ${error.message}`;
  }
}

function explainExit(
  command: Command,
  code: number | null,
  signal: NodeJS.Signals | null,
  lastLines: string,
): string {
  const how = signal === null ? `exited with code ${code}` : `was ended by ${signal}`;
  return `the server "${shown(command)}" ${how}${lastLines === '' ? '' : `; last on stderr: ${lastLines}`}`;
}

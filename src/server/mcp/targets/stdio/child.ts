import { type ChildProcessByStdio, spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { isJson } from '../../../../core/foreign.ts';
import { LIMITS } from '../../../../core/limits.ts';
import { TargetFailure } from '../../connection/target-failure.ts';
import { isFolder } from './environment.ts';
import { StderrLines } from './stderr-lines.ts';
import { watchdog } from './watchdog.ts';

/** A command to start, with everything that its process gets. */
export interface Command {
  readonly cmd: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** Removes secrets from a line that the process wrote. */
  clean(line: string): string;
  /** Removes secrets from arguments. */
  cleanArguments(args: readonly string[]): readonly string[];
}

/** Callbacks of a child process. */
export interface ChildEvents {
  /** One line of stdout, without its line break. */
  line(bytes: Buffer): void;
  /** One line of stderr without secrets, rate-limited. `suppressed`: number of lines omitted before it. */
  errorLine(text: string, suppressed: number): void;
  /** The process exited, or closed its output; the failure has the reason. Called once. */
  exited(failure: TargetFailure): void;
}

/** A running command in its own process group, so that its descendants end with it. */
export interface Child {
  readonly pid: number;
  /** Bytes written to stdin that the process has not read yet. */
  readonly backlog: number;
  /** Describes the command and its last lines on stderr, without secrets. */
  describe(): string;
  /** Writes a line to stdin. */
  write(line: string): void;
  /** Stops (true) or continues (false) reading stdout. */
  pause(paused: boolean): void;
  /**
   * Ends stdin, sends SIGTERM to the group after `LIMITS.childExitGrace` and SIGKILL after another `LIMITS.childKillGrace`.
   * Resolves when the process has exited.
   */
  stop(): Promise<void>;
}

type Process = ChildProcessByStdio<Writable, Readable, Readable>;

/** Running process groups, which are killed when the gateway exits. */
const GROUPS = new Set<number>();
process.on('exit', () => {
  for (const group of GROUPS) killGroup(group, 'SIGKILL');
});

/** Starts a command. Rejects with a `TargetFailure` if it cannot be started. */
export function startChild(command: Command, events: ChildEvents): Promise<Child> {
  return new Promise((resolve, reject) => {
    const child = spawnIn(command, reject);
    child?.once('error', (error) => reject(explainSpawnError(error, command)));
    child?.once('spawn', () => resolve(supervise(child, command, events)));
  });
}

/** Some failures, such as a command line that is too long, are thrown instead of emitted as `error`. */
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
    failed(explainSpawnError(error instanceof Error ? error : new Error(String(error)), command));
    return undefined;
  }
}

function supervise(child: Process, command: Command, events: ChildEvents): Child {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- set before `spawn` is emitted
  const pid = child.pid as number;
  GROUPS.add(pid);
  watchdog.add(pid);
  const errors = new StderrLines(
    (line) => command.clean(line),
    (text, suppressed) => events.errorLine(text, suppressed),
  );
  const endLastLine = splitLines(child.stdout, events);
  child.stderr.on('data', (chunk: Buffer) => errors.push(chunk));
  let stopping = false;
  let isReported = false;
  const report = (reason: string): void => {
    if (isReported) return;
    isReported = true;
    events.exited(
      exitFailure(stopping ? 'was stopped by the gateway' : reason, command, stopping ? '' : errors.last()),
    );
  };
  const isOfNoUse = (reason: string): void => {
    // An exit, which has a better reason, usually follows at once.
    setTimeout(() => {
      if (!GROUPS.has(pid)) return;
      killGroup(pid, 'SIGKILL');
      report(reason);
    }, LIMITS.childExitGrace).unref();
  };
  // A server without stdout cannot answer any more, and one without stdin gets no requests (bensons/mcp-exec#23).
  child.stdout.once('end', () => isOfNoUse('closed its output'));
  child.stdin.on('error', () => {
    if (!stopping) isOfNoUse('closed its input');
  });
  const exited = new Promise<void>((resolve) => {
    child.once('exit', (code, signal) => {
      killGroup(pid, 'SIGKILL');
      GROUPS.delete(pid);
      watchdog.delete(pid);
      const end = (): void => {
        clearTimeout(grace);
        endLastLine();
        child.stdout.destroy();
        child.stderr.destroy();
        report(signal === null ? `exited with code ${code}` : `was ended by ${signal}`);
        resolve();
      };
      // Output from before the exit may arrive after it. A grandchild outside the group that keeps a pipe open would delay
      // 'close' indefinitely.
      const grace = setTimeout(end, LIMITS.childExitGrace);
      child.once('close', end);
    });
  });
  // Lines of one turn of the event loop are written at once. Each write wakes the process, which costs more than the rest of
  // a small message: 25 % of the time of a loaded gateway was in these writes.
  let input = '';
  const flush = (): void => {
    if (input === '') return;
    child.stdin.write(input);
    input = '';
  };
  return {
    pid,
    get backlog() {
      return child.stdin.writableLength + input.length;
    },
    describe: () => `the server "${commandLine(command)}" runs${stderrSuffix(errors.last())}`,
    write: (line) => {
      if (input === '') setImmediate(flush);
      input += `${onOneLine(line)}\n`;
    },
    pause: (paused) => void (paused ? child.stdout.pause() : child.stdout.resume()),
    stop: () => {
      if (!stopping) {
        stopping = true;
        flush();
        child.stdin.end();
        // Nobody reads the output any more, and a full pipe would keep the process alive.
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

/**
 * A message without the characters at which Unicode also ends lines. JSON allows them in strings; servers that read lines with Node's
 * `readline` or Python's `splitlines` would get two halves of a message, and never answer.
 */
function onOneLine(message: string): string {
  return message.replaceAll(
    /[\u0085\u2028\u2029]/g,
    (end) => `\\u${end.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** A negative pid addresses the group (kill(2)); the process alone where there are no groups. */
function killGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(process.platform === 'win32' ? pid : -pid, signal);
  } catch {
    // The group has no process any more.
  }
}

/**
 * Splits stdout into lines, each of at most `LIMITS.targetMessageBytes`; the rest of a longer one is dropped. JSON without a line break is a line after
 * `LIMITS.unfinishedMessageWait`, and so is anything at the end: some servers write no last line break. Returns a function that
 * ends the last line.
 */
function splitLines(stdout: Readable, events: ChildEvents): () => void {
  let parts: Buffer[] = [];
  let size = 0;
  let timer: NodeJS.Timeout | undefined;
  /** Whether what follows belongs to a line that is over the limit. */
  let isOver = false;
  const endLine = (isLast: boolean): void => {
    if (size === 0) return;
    const line = Buffer.concat(parts);
    if (!isLast && !isJson(line.toString('utf8'))) return;
    parts = [];
    size = 0;
    events.line(line);
  };
  const endLastLine = (): void => {
    clearTimeout(timer);
    endLine(true);
  };
  stdout.once('end', endLastLine);
  stdout.on('data', (chunk: Buffer) => {
    let from = 0;
    if (isOver) {
      const end = chunk.indexOf(10);
      if (end === -1) return;
      isOver = false;
      from = end + 1;
    }
    for (let at = chunk.indexOf(10, from); at !== -1; at = chunk.indexOf(10, from)) {
      parts.push(chunk.subarray(from, at));
      const [only] = parts;
      const line = parts.length === 1 && only !== undefined ? only : Buffer.concat(parts);
      parts = [];
      size = 0;
      from = at + 1;
      events.line(line);
    }
    if (from === chunk.length) return;
    parts.push(chunk.subarray(from));
    size += chunk.length - from;
    timer ??= setTimeout(() => endLine(false), LIMITS.unfinishedMessageWait).unref();
    timer.refresh();
    if (size > LIMITS.targetMessageBytes) {
      parts = [];
      size = 0;
      isOver = true;
      events.line(OVERSIZED);
    }
  });
  return endLastLine;
}

/** Passed to `line` instead of a line over `LIMITS.targetMessageBytes`. */
export const OVERSIZED: Buffer = Buffer.alloc(0);

function explainSpawnError(error: NodeJS.ErrnoException, command: Command): TargetFailure {
  // Node.js reports a missing working folder as a missing command.
  if (!isFolder(command.cwd))
    return startFailure(
      'its working folder does not exist',
      `the working folder of "${commandLine(command)}" is not a folder: ${command.cwd} (stdio.cwd)`,
    );
  switch (error.code) {
    case 'ENOENT':
      return startFailure(
        'command not found',
        `command not found: "${commandLine(command)}" (searched on PATH, working folder ${command.cwd})`,
      );
    case 'EACCES':
      return startFailure('the command is not executable', `"${commandLine(command)}" is not executable`);
    // Its message has the value.
    case 'ERR_INVALID_ARG_VALUE': {
      const what = 'an argument or variable has a null byte';
      return startFailure(what, `"${commandLine(command)}": ${what} (stdio.args, stdio.env)`);
    }
    default: {
      const { code = 'unknown error' } = error;
      const why = SYSTEM_LIMITS[code];
      return startFailure(
        why?.what ?? code,
        `"${commandLine(command)}": ${why?.fix ?? command.clean(error.message)}`,
      );
    }
  }
}

/** Limits of the system at which no process starts (supercorp-ai/supergateway#177). */
const SYSTEM_LIMITS: Readonly<Record<string, { readonly what: string; readonly fix: string }>> = {
  E2BIG: {
    what: 'its arguments and variables are too large',
    fix: 'its arguments and variables are too large for the system, often over 128 KiB for one (stdio.args, stdio.env)',
  },
  EAGAIN: {
    what: 'the system starts no more processes',
    fix: 'the system starts no more processes: raise the limit of this user, service or container (`ulimit -u`, TasksMax, --pids-limit)',
  },
  EMFILE: {
    what: 'too many files are open',
    fix: 'this process has too many files open: raise `ulimit -n`',
  },
  ENOMEM: {
    what: 'the system is out of memory',
    fix: 'the system is out of memory',
  },
};

function startFailure(message: string, detail: string): TargetFailure {
  const prefix = 'failed to start stdio server: ';
  return new TargetFailure(prefix + message, prefix + detail);
}

/** Failure of a process that exited: the reason for clients, with command and last lines on stderr for the log. */
function exitFailure(reason: string, command: Command, lastLines: string): TargetFailure {
  return new TargetFailure(
    reason,
    `the server "${commandLine(command)}" ${reason}${stderrSuffix(lastLines)}`,
    true,
  );
}

const stderrSuffix = (lines: string): string => (lines === '' ? '' : `; last on stderr: ${lines}`);

/** The command line without secrets, at most 200 characters. Secrets are removed before it is cut. */
function commandLine({ cmd, args, clean, cleanArguments }: Command): string {
  return clean([cmd, ...cleanArguments(args)].join(' ')).slice(0, 200);
}

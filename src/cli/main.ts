import { setImmediate } from 'node:timers/promises';
import { CommanderError } from 'commander';
import { CommandError, EXIT_CODES } from '../core/exit-codes.ts';
import type { Context } from './context.ts';
import { explain } from './explain.ts';
import { invocation } from './invocation.ts';
import { createProgram } from './program.ts';
import { withSafeOutput } from './safe-output.ts';

/** Runs `agctl` with the arguments after the program's name. Resolves to the exit code and never rejects. */
export async function main(argv: readonly string[], given: Context = processContext()): Promise<number> {
  const context = withSafeOutput(given, 'never');
  const output = watchOutput(context);
  let exit: number = EXIT_CODES.ok.code;
  const setExit = (code: number): void => {
    exit = code;
  };
  const program = createProgram(context, setExit, argv[0]);
  const code = await program.parseAsync(argv, { from: 'user' }).then(
    () => exit,
    (error: unknown) => exitOf(error, context),
  );
  // The error of a last write comes after it.
  await setImmediate();
  return output.isIncomplete && code === EXIT_CODES.ok.code ? EXIT_CODES.not_ok.code : code;
}

function exitOf(error: unknown, context: Context): number {
  if (error instanceof CommanderError) {
    // Commander has already printed its message. It uses exit code 1 for wrong usage.
    return error.exitCode === 0 ? EXIT_CODES.ok.code : EXIT_CODES.usage.code;
  }
  if (error instanceof CommandError) {
    explain(error, context);
    return EXIT_CODES[error.exit].code;
  }
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  context.stderr.write(`agctl: internal error, please report it with the lines below\n${text}\n`);
  return EXIT_CODES.bug.code;
}

/**
 * A failed write does not end the program: `agctl … | head -1` has what it needs, and if stderr cannot be written, there is nowhere to
 * report it. But a file that stdout is written to is incomplete if the disk is full, which the exit code says.
 */
function watchOutput(context: Context): { readonly isIncomplete: boolean } {
  let isIncomplete = false;
  context.stderr.on('error', () => undefined);
  context.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE' || isIncomplete) return;
    isIncomplete = true;
    const help = 'a part of the output is missing: write it where there is room';
    explain(new CommandError('not_ok', `stdout cannot be written: ${error.message}`, help), context);
  });
  return {
    get isIncomplete() {
      return isIncomplete;
    },
  };
}

function processContext(): Context {
  const { stdout, stderr, argv } = process;
  // biome-ignore lint/style/noProcessEnv: the only place that reads the environment.
  const start = { env: process.env, cwd: process.cwd(), script: argv[1] };
  return { stdout, stderr, ...start, invocation: (folder) => invocation(start, folder) };
}

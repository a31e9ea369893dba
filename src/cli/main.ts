import { CommanderError } from 'commander';
import { CommandError, EXIT_CODES } from '../core/exit-codes.ts';
import type { Context } from './context.ts';
import { explain } from './explain.ts';
import { invocation } from './invocation.ts';
import { createProgram } from './program.ts';

/** Runs `agctl` with the arguments after the program's name. Resolves to the exit code and never rejects. */
export async function main(argv: readonly string[], context: Context = processContext()): Promise<number> {
  quietOnClosedPipe(context);
  let exit: number = EXIT_CODES.ok.code;
  const setExit = (code: number): void => {
    exit = code;
  };
  const program = createProgram(context, setExit, argv[0]);
  try {
    await program.parseAsync(argv, { from: 'user' });
    return exit;
  } catch (error) {
    return exitOf(error, context);
  }
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

/** `agctl … | head -1` is no failure: the reader has what it needs. */
function quietOnClosedPipe(context: Context): void {
  for (const stream of [context.stdout, context.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error;
    });
  }
}

function processContext(): Context {
  const { stdout, stderr, argv } = process;
  // biome-ignore lint/style/noProcessEnv: the only place that reads the environment.
  const start = { env: process.env, cwd: process.cwd(), script: argv[1] };
  return { stdout, stderr, ...start, invocation: (folder) => invocation(start, folder) };
}

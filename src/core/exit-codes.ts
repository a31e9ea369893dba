/** Exit codes of every `agctl` command (`agctl help exit-codes` prints this table). */
export const EXIT_CODES = {
  ok: { code: 0, doc: 'The command succeeded; a configuration is valid.' },
  not_ok: {
    code: 1,
    doc: 'The check failed: a configuration with errors, or a server that could not start.',
  },
  usage: {
    code: 2,
    doc: 'Wrong usage: unknown command or option, bad value, or an input file that cannot be read.',
  },
  unreachable: { code: 3, doc: 'The server could not be reached, or the connection was lost.' },
  refused: { code: 4, doc: 'The server denied access.' },
  bug: { code: 70, doc: 'An error inside agctl. Please report it.' },
  interrupted: { code: 130, doc: 'Interrupted by Ctrl-C.' },
} as const;

export type ExitName = keyof typeof EXIT_CODES;

/** The table as text, one code per line. */
export function exitCodeTable(): string {
  return Object.values(EXIT_CODES)
    .map(({ code, doc }) => `  ${String(code).padStart(3)}  ${doc}`)
    .join('\n');
}

/** Ends a command with a message on stderr and an exit code, without a stack trace. */
export class CommandError extends Error {
  readonly exit: ExitName;
  readonly help: string | undefined;

  constructor(exit: ExitName, message: string, help?: string) {
    super(message);
    this.name = 'CommandError';
    this.exit = exit;
    this.help = help;
  }
}

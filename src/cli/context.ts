import type { Writable } from 'node:stream';
import type { Environment } from '../core/yaml/env.ts';

/** Everything that a command may access outside of its own code, passed in so that tests can replace it. */
export interface Context {
  readonly stdout: Writable & { readonly isTTY?: boolean; readonly columns?: number };
  readonly stderr: Writable & { readonly isTTY?: boolean; readonly columns?: number };
  readonly env: Environment;
  readonly cwd: string;
  /** File whose variables `env` includes, as it is shown. */
  readonly envFile?: string;
  /** The variables of the environment alone, if `env` includes those of a file. */
  readonly environment?: Environment;
  /** How the user can call this program from a folder; absent: as `agctl`. */
  readonly invocation?: (folder: string) => string;
}

/** Whether to color a stream: `--color` decides, else NO_COLOR (if not empty), else whether it is a terminal. */
export function wantsColor(
  stream: { readonly isTTY?: boolean },
  choice: string,
  env: Context['env'],
): boolean {
  if (choice !== 'auto') return choice === 'always';
  if ((env['NO_COLOR'] ?? '') !== '' || env['TERM'] === 'dumb') return false;
  return stream.isTTY === true;
}

/**
 * What the file of a command exports: takes the options and returns the exit code. Such a file is loaded when its command
 * runs, so that `--version` stays fast.
 */
export type Run<Options> = (options: Options, context: Context) => Promise<number>;

/** Turns a command's file into an action for Commander. */
export type Bind = <Options>(
  load: () => Promise<{ run: Run<Options> }>,
) => (...args: unknown[]) => Promise<void>;

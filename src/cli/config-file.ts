import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { CommandError } from '../core/exit-codes.ts';
import type { Context } from './context.ts';

/** The configuration of commands without `-f`, in the working folder. `agctl init` creates it. */
export const DEFAULT_CONFIG_FILE = 'gateway.yaml';

/** Whether the working folder has one. */
export const hasConfigFile = ({ cwd }: Pick<Context, 'cwd'>): boolean =>
  existsSync(resolve(cwd, DEFAULT_CONFIG_FILE));

/**
 * The configuration file of a command: `-f`, else `gateway.yaml` in the working folder.
 *
 * @throws CommandError with exit name `usage` if there is neither
 */
export function configFileOf(file: string | undefined, { cwd }: Pick<Context, 'cwd'>): string {
  if (file !== undefined) return file;
  if (hasConfigFile({ cwd })) return DEFAULT_CONFIG_FILE;
  throw new CommandError(
    'usage',
    `no configuration file: this folder has no ${DEFAULT_CONFIG_FILE}`,
    'create one with `agctl init`, or name one with -f',
  );
}

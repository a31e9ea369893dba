import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import type { Context } from './context.ts';

type Environment = Context['env'];

/** Whether the PATH has `agctl`. */
export const isOnPath = (env: Environment): boolean =>
  (env['PATH'] ?? '').split(delimiter).some((folder) => folder !== '' && existsSync(join(folder, 'agctl')));

/**
 * How the user can call this program again, for commands that are printed to be copied. npx and scripts of npm have a PATH of
 * their own, which the user's shell has not (`npm_command`: docs.npmjs.com, "Scripts").
 */
export const invocation = (env: Environment): string =>
  env['npm_command'] === undefined && isOnPath(env) ? 'agctl' : 'npx agctl';

import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PACKAGE_ROOT } from '../core/package-root.ts';
import type { Context } from './context.ts';

type Environment = Context['env'];

/** Whether the PATH has `agctl`. */
const isOnPath = (env: Environment): boolean =>
  (env['PATH'] ?? '').split(delimiter).some((folder) => folder !== '' && existsSync(join(folder, 'agctl')));

/**
 * Whether the PATH of the user's shell has `agctl`. npx and scripts of npm have a PATH of their own, which that shell has
 * not (`npm_command`: docs.npmjs.com, "Scripts").
 */
const isOnPathOfShell = (env: Environment): boolean => env['npm_command'] === undefined && isOnPath(env);

/** How the user can call this program again, for commands that are printed to be copied. */
export const invocation = (env: Environment): string => (isOnPathOfShell(env) ? 'agctl' : 'npx agctl');

/** Whether a path is in the cache of npx, which npx may empty. */
export const isInNpxCache = (path: string): boolean => path.includes('_npx');

/** How a configuration starts this program: name or path of an executable, then its first arguments. */
export function startCommand(env: Environment): readonly [string, ...string[]] {
  if (isOnPathOfShell(env)) return ['agctl'];
  const program = fileURLToPath(new URL('bin/agctl.js', PACKAGE_ROOT));
  return isInNpxCache(program) ? ['npx', '-y', 'agctl'] : [process.execPath, program];
}

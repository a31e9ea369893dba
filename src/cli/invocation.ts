import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PACKAGE_ROOT } from '../core/package-root.ts';
import { VERSION } from '../core/version.ts';
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

const PROGRAM = fileURLToPath(new URL('bin/agctl.js', PACKAGE_ROOT));

/**
 * How a configuration starts this program: name or path of an executable, then its first arguments. From the cache of npx,
 * it is this version, so that npx never runs another package of this name.
 */
export function startCommand(env: Environment, program = PROGRAM): readonly [string, ...string[]] {
  if (isOnPathOfShell(env)) return ['agctl'];
  return isInNpxCache(program) ? ['npx', '-y', `agctl@${VERSION}`] : [process.execPath, program];
}

import { parseEnv } from 'node:util';
import { LIMITS } from '../core/limits.ts';
import { readNamedFile } from '../core/named-file.ts';
import type { Context } from './context.ts';

/**
 * Adds the variables of a file in the format of `node --env-file` to the environment of a command. As there, a variable
 * that is set already keeps its value.
 *
 * @throws CommandError with exit name `usage` if the file cannot be read
 */
export function withEnvFile(context: Context, file: string | undefined): Context {
  if (file === undefined) return context;
  const text = readNamedFile(file, {
    cwd: context.cwd,
    maxBytes: LIMITS.envFileBytes,
    hint: '--env-from takes a file with lines such as NAME=value',
  });
  return { ...context, env: { ...parseEnv(text), ...context.env } };
}

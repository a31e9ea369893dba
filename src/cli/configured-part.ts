import { CommandError } from '../core/exit-codes.ts';
import { membersOf } from '../core/foreign.ts';
import { readNamedFile } from '../core/named-file.ts';
import { YamlSource } from '../core/yaml/source.ts';
import type { Context } from './context.ts';

/**
 * The value at a path of a configuration file; undefined if there is none. Mistakes in other places, such as variables that are not set
 * here, do not matter.
 *
 * @throws CommandError
 */
export function configuredPart(
  file: string,
  path: readonly string[],
  { env, cwd }: Pick<Context, 'env' | 'cwd'>,
): unknown {
  const text = readNamedFile(file, { cwd, hint: 'specify the path of a configuration file' });
  const { source, diagnostics } = YamlSource.parse(text, file, env);
  const at = source.valueRange(path);
  const problem = diagnostics.find(
    ({ range }) =>
      source.value === undefined ||
      (range.start.offset < at.end.offset && at.start.offset < range.end.offset),
  );
  if (problem !== undefined)
    throw new CommandError(
      'not_ok',
      `${file}: ${problem.message}`,
      'agctl config validate shows all problems',
    );
  return path.reduce((value: unknown, name) => membersOf(value)[name], source.value);
}

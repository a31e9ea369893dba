import { dirname, resolve } from 'node:path';
import { CommandError } from '../core/exit-codes.ts';
import { membersOf, stringIn } from '../core/foreign.ts';
import type { Environment } from '../core/yaml/env.ts';
import { YamlSource } from '../core/yaml/source.ts';
import { readConfigFile } from '../server/config/load.ts';
import { type DatabaseLocation, parseDatabaseUrl } from '../server/database/settings.ts';
import { configFileOf } from './config-file.ts';
import type { Context } from './context.ts';
import { forConfig } from './env-file.ts';

/**
 * Where the database of a configuration is; the path of a SQLite file is absolute.
 *
 * @throws CommandError
 */
export function configuredDatabase(option: string | undefined, context: Context): DatabaseLocation {
  const file = configFileOf(option, context);
  const { env, cwd } = forConfig(context, file);
  const url = stringIn(configuredPart(file, ['config', 'database', 'url'], env));
  if (url === undefined)
    throw new CommandError('usage', `${file} has no config.database`, 'name the configuration with -f');
  const location = parseDatabaseUrl(url);
  if (typeof location === 'string') throw new CommandError('usage', location);
  if (location.kind === 'postgres') return location;
  const folder = file === '-' ? cwd : dirname(resolve(cwd, file));
  return { ...location, path: resolve(folder, location.path) };
}

/**
 * The value at a path of a configuration file; undefined if there is none. Mistakes in other places, such as variables that are not set
 * here, do not matter.
 *
 * @throws CommandError
 */
export function configuredPart(file: string, path: readonly string[], env: Environment): unknown {
  const { source, diagnostics } = YamlSource.parse(readConfigFile(file), file, env);
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

/**
 * Why PostgreSQL is not copied by agctl, with the command that does, without the password, which `pg_dump` asks for. `note`: ends the
 * sentence.
 */
export function postgresTools(url: string, command: (shown: string) => string, note = ''): CommandError {
  const shown = new URL(url);
  shown.password = '';
  return new CommandError(
    'usage',
    `PostgreSQL is copied with its own tools, in one consistent state and from any machine${note}`,
    `run ${command(shown.href)}`,
  );
}

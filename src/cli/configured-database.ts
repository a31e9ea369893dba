import { dirname, resolve } from 'node:path';
import { CommandError } from '../core/exit-codes.ts';
import { stringIn } from '../core/foreign.ts';
import { type DatabaseLocation, parseDatabaseUrl } from '../server/database/settings.ts';
import { configFileOf } from './config-file.ts';
import { configuredPart } from './configured-part.ts';
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
  const url = stringIn(configuredPart(file, ['config', 'database', 'url'], { env, cwd }));
  if (url === undefined)
    throw new CommandError('usage', `${file} has no config.database`, 'name the configuration with -f');
  const location = parseDatabaseUrl(url);
  if (typeof location === 'string') throw new CommandError('usage', location);
  if (location.kind === 'postgres') return location;
  const folder = file === '-' ? cwd : dirname(resolve(cwd, file));
  return { ...location, path: resolve(folder, location.path) };
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

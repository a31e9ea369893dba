import { resolve } from 'node:path';
import { CommandError, EXIT_CODES } from '../../core/exit-codes.ts';
import { DatabaseError } from '../../server/database/driver.ts';
import { configuredDatabase, postgresTools } from '../configured-database.ts';
import type { Run } from '../context.ts';
import { withoutSqliteWarning } from '../sqlite-warning.ts';

interface Options {
  readonly operands?: readonly string[];
  readonly file?: string;
}

/** Copies the database of a configuration. Standard output has the path of the copy. */
export const run: Run<Options> = async ({ operands: [target] = [], file }, context) => {
  const location = configuredDatabase(file, context);
  if (location.kind === 'postgres')
    throw postgresTools(
      location.url,
      (url) => `pg_dump --format=custom --table='agctl_*' --file=${target ?? 'agctl.dump'} '${url}'`,
    );
  withoutSqliteWarning();
  const [{ backUpSqlite }, { backupPath }] = await Promise.all([
    import('../../server/database/sqlite-restore.ts'),
    import('../../server/database/sqlite-backup.ts'),
  ]);
  const to = target === undefined ? backupPath(location.path) : resolve(context.cwd, target);
  try {
    const bytes = backUpSqlite(location.path, to);
    context.stdout.write(`${to}\n`);
    context.stderr.write(`copied ${location.path} (${bytes} bytes)\n`);
  } catch (error) {
    if (error instanceof DatabaseError) throw new CommandError('not_ok', error.message, error.help);
    throw error;
  }
  return EXIT_CODES.ok.code;
};

import { resolve } from 'node:path';
import { CommandError, EXIT_CODES } from '../../core/exit-codes.ts';
import { DatabaseError } from '../../server/database/driver.ts';
import { databaseSchemas } from '../../server/features.ts';
import { configuredDatabase, postgresTools } from '../configured-database.ts';
import type { Run } from '../context.ts';

interface Options {
  readonly operands: readonly string[];
  readonly file?: string;
}

/** Replaces the database of a configuration by a copy. */
export const run: Run<Options> = async ({ operands: [copy = ''], file }, context) => {
  const location = configuredDatabase(file, context);
  if (location.kind === 'postgres')
    throw postgresTools(
      location.url,
      (url) => `pg_restore --clean --if-exists --single-transaction --dbname='${url}' ${copy}`,
    );
  const { restoreSqlite } = await import('../../server/database/sqlite-restore.ts');
  try {
    const kept = restoreSqlite(location.path, resolve(context.cwd, copy), databaseSchemas);
    context.stderr.write(
      `restored ${location.path}${kept === undefined ? '' : `; what it was is in ${kept}`}\n`,
    );
  } catch (error) {
    if (error instanceof DatabaseError) throw new CommandError('not_ok', error.message, error.help);
    throw error;
  }
  return EXIT_CODES.ok.code;
};

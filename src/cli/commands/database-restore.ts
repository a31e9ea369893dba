import { existsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { AppError } from '../../core/errors.ts';
import { CommandError, EXIT_CODES } from '../../core/exit-codes.ts';
import { LIMITS } from '../../core/limits.ts';
import { escapeControls, SILENT_LOG } from '../../core/log.ts';
import { readConfigFile } from '../../server/config/load.ts';
import { DatabaseError } from '../../server/database/driver.ts';
import { GatewayDatabase } from '../../server/database/gateway-database.ts';
import { databaseSchema } from '../../server/database/settings.ts';
import { databaseSchemas } from '../../server/features.ts';
import { auditOwn } from '../audit/own-change.ts';
import { configFileOf } from '../config-file.ts';
import { configuredDatabase, postgresTools } from '../configured-database.ts';
import type { Run } from '../context.ts';
import { forConfig } from '../env-file.ts';
import { withoutSqliteWarning } from '../sqlite-warning.ts';

interface Options {
  readonly operands: readonly string[];
  readonly file?: string;
  readonly reviveKeys?: boolean;
}

/** Replaces the database of a configuration by a copy. */
export const run: Run<Options> = async ({ operands: [copy = ''], file, reviveKeys }, context) => {
  const location = configuredDatabase(file, context);
  const from = resolve(context.cwd, copy);
  if (location.kind === 'postgres') {
    throw postgresTools(
      location.url,
      (url) => `pg_restore --clean --if-exists --no-owner --single-transaction --dbname='${url}' ${copy}`,
      // The command may be meant for the machine that has the dump.
      existsSync(from) ? '' : `; ${from} is not on this machine`,
    );
  }
  withoutSqliteWarning();
  const { revokeAsIn } = await import('../../server/budgets/revoked-keys.ts');
  const { restoreSqlite } = await import('../../server/database/sqlite-restore.ts');
  const event = { action: 'database.restore', target: location.path };
  const named = configFileOf(file, context);
  const config = { file: named, text: named === '-' ? '' : readConfigFile(named) };
  const inFolder = forConfig(context, named);
  try {
    let revoked: string[] = [];
    const kept = restoreSqlite(location.path, from, databaseSchemas, (present, restored) => {
      if (reviveKeys !== true) revoked = revokeAsIn(present, restored);
    });
    context.stderr.write(
      `restored ${location.path}${kept === undefined ? '' : `; what it was is in ${kept}`}\n`,
    );
    const names = revoked.map(escapeControls).join(', ');
    if (names !== '')
      context.stderr.write(
        `these keys were revoked since, and stay revoked: ${names} (--revive-keys makes the keys of the copy valid again)\n`,
      );
    const detail = `from ${from}${kept === undefined ? '' : `; what it was is in ${kept}`}${names === '' ? '' : `; stay revoked: ${names}`}${reviveKeys === true ? '; --revive-keys' : ''}`;
    const database = await eventsIn(location.path);
    await auditOwn({ ...event, outcome: 'done', detail }, config, inFolder, database);
    await database?.close();
  } catch (error) {
    if (!(error instanceof DatabaseError)) throw error;
    const database = await eventsIn(location.path);
    await auditOwn(
      { ...event, outcome: 'failed', detail: `from ${from}: ${error.message}` },
      config,
      inFolder,
      database,
    );
    await database?.close();
    throw new CommandError('not_ok', error.message, error.help);
  }
  return EXIT_CODES.ok.code;
};

/** The database at `path` if it has a table of events already: a copy may be of an earlier version, which the next start migrates. */
async function eventsIn(path: string): Promise<GatewayDatabase | undefined> {
  const database = new GatewayDatabase({
    config: databaseSchema.parse({ url: `sqlite://${path}?mode=rw` }),
    folder: dirname(path),
    schemas: [],
    log: SILENT_LOG,
    limits: LIMITS,
  });
  try {
    await database.open();
    const tables = await database.query("SELECT name FROM sqlite_master WHERE name = 'agctl_audit'");
    if (tables.length > 0) return database;
  } catch (error) {
    if (!(error instanceof AppError || error instanceof DatabaseError)) throw error;
  }
  await database.close();
  return undefined;
}

import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { AppError, messageOf } from '../../core/errors.ts';
import { LIMITS } from '../../core/limits.ts';
import { SILENT_LOG } from '../../core/log.ts';
import { CLOCK_HELP, clockProblem } from '../../server/database/clock.ts';
import { DatabaseError } from '../../server/database/driver.ts';
import { GatewayDatabase } from '../../server/database/gateway-database.ts';
import { parseDatabaseUrl } from '../../server/database/settings.ts';
import {
  type CheckContext,
  type CheckGroup,
  type CheckResult,
  check,
  fail,
  ok,
  skip,
  warn,
} from './check.ts';

/** Opens the database of `config.database` as the gateway does. Tables are neither made nor migrated. */
export const database: CheckGroup = {
  name: 'database',
  title: () => 'database',
  run: (context) =>
    context.config?.config.database === undefined ? [] : [check('the database', checkDatabase(context))],
};

async function checkDatabase({ config, folder, options }: CheckContext): Promise<CheckResult> {
  const settings = config?.config.database;
  const location = parseDatabaseUrl(settings?.url ?? '');
  if (settings === undefined || typeof location === 'string')
    return skip('not checked: the configuration is not valid');
  if (location.kind === 'postgres') {
    if (options.offline) return skip('not contacted (--offline)');
    const { pingPostgres } = await import('../../server/database/postgres.ts');
    return tried(async () => clockProblem(await pingPostgres(location.url, LIMITS), LIMITS));
  }
  const path = resolve(folder, location.path);
  if (!existsSync(path) && !location.mustExist) return ok(`${path} is created at the start`);
  return tried(async () => {
    const opened = new GatewayDatabase({
      config: settings,
      folder,
      schemas: [],
      log: SILENT_LOG,
      limits: LIMITS,
    });
    try {
      await opened.open();
      await opened.query('SELECT 1');
      return undefined;
    } finally {
      await opened.close();
    }
  });
}

/** `open` returns how the clock of the server differs, if it does. */
async function tried(open: () => Promise<string | undefined>): Promise<CheckResult> {
  try {
    const problem = await open();
    return problem === undefined ? ok('can be opened and written') : warn(problem, CLOCK_HELP);
  } catch (error) {
    const detail = error instanceof AppError ? error.detail : undefined;
    const help = error instanceof DatabaseError ? error.help : 'correct `config.database.url`';
    return fail(detail ?? messageOf(error), help);
  }
}

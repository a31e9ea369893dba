import { dirname, resolve } from 'node:path';
import { AppError, detailOf } from '../../core/errors.ts';
import { CommandError } from '../../core/exit-codes.ts';
import { LIMITS } from '../../core/limits.ts';
import { SILENT_LOG } from '../../core/log.ts';
import { shownEvent } from '../../server/audit/event.ts';
import { listEvents } from '../../server/audit/table.ts';
import { DatabaseError } from '../../server/database/driver.ts';
import { GatewayDatabase } from '../../server/database/gateway-database.ts';
import { databaseSchema } from '../../server/database/settings.ts';
import { configuredPart } from '../configured-part.ts';
import type { Context } from '../context.ts';
import { withFileBeside } from '../env-file.ts';

/** Which events are listed; those of `/api/audit`. */
export interface Wanted {
  /** Unix time in ms. */
  readonly from: number;
  readonly action?: string | undefined;
  readonly actor?: string | undefined;
  readonly outcome?: string | undefined;
}

/** A page of events, and where the next one begins. */
export interface EventPage {
  readonly events: readonly unknown[];
  readonly next: number | undefined;
}

interface StoredEvents {
  page(limit: number, after: number | undefined): Promise<EventPage>;
  close(): Promise<void>;
}

/**
 * The events in the database of a configuration file. Creates no database and no tables: a gateway of an earlier version may use it.
 *
 * @throws CommandError
 */
export async function storedEvents(wanted: Wanted, file: string, given: Context): Promise<StoredEvents> {
  const { context } = withFileBeside(given, file);
  const configured = configuredPart(file, ['config', 'database'], context);
  if (configured === undefined)
    throw new CommandError(
      'not_ok',
      `${file} has no config.database`,
      'without -f, the command asks a running gateway',
    );
  const { data: settings } = databaseSchema.safeParse(configured);
  if (settings === undefined)
    throw new CommandError(
      'not_ok',
      `${file}: config.database is not valid`,
      'agctl config validate says why',
    );
  const database = new GatewayDatabase({
    // A file that does not exist is not created.
    config: { ...settings, url: mustExist(settings.url) },
    folder: file === '-' ? context.cwd : dirname(resolve(context.cwd, file)),
    schemas: [],
    log: SILENT_LOG,
    limits: LIMITS,
  });
  try {
    await database.open();
  } catch (error) {
    if (!(error instanceof DatabaseError)) throw error;
    throw new CommandError('not_ok', error.message, error.help);
  }
  return {
    page: async (limit, after) => {
      try {
        const { events, next } = await listEvents(database, {
          ...wanted,
          to: Number.MAX_SAFE_INTEGER,
          limit,
          after,
        });
        return { events: events.map(shownEvent), next };
      } catch (error) {
        if (!(error instanceof AppError)) throw error;
        throw new CommandError('not_ok', `the events in the database cannot be read: ${detailOf(error)}`);
      }
    },
    close: () => database.close(),
  };
}

const mustExist = (url: string): string =>
  /^sqlite:/i.test(url) && !url.includes('?') ? `${url}?mode=rw` : url;

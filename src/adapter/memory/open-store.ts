import type { Log } from '../../core/log.ts';
import { openSqliteStore } from './sqlite/open.ts';
import type { NamespacedStore } from './store.ts';

export interface StoreOptions {
  /** Folder of the embedded store; created if missing. */
  readonly dataDir: string;
  /** `MEMORY_DATABASE_URL`: selects PostgreSQL. */
  readonly databaseUrl?: string | undefined;
  readonly log: Log;
}

/**
 * Opens the store that the options select.
 *
 * @throws AppError `memory_not_opened`, whose message never contains a password
 */
export async function openStore({ dataDir, databaseUrl, log }: StoreOptions): Promise<NamespacedStore> {
  if (databaseUrl === undefined || databaseUrl === '') return openSqliteStore({ dataDir, log });
  // `pg` is loaded only when it is used.
  const { openPostgresStore } = await import('./postgres/open.ts');
  return openPostgresStore({ url: databaseUrl, log });
}

import type { Log } from '../../core/log.ts';
import { openSqliteStore } from './sqlite/open.ts';
import type { Store } from './store.ts';

export interface StoreOptions {
  /** Folder of the embedded store; created if missing. */
  readonly dataDir: string;
  /** `MEMORY_DATABASE_URL`: PostgreSQL instead. */
  readonly databaseUrl?: string | undefined;
  readonly log: Log;
}

/** Opens the store that the options name. Rejects with `memory_not_opened`, whose message never holds a password. */
export async function openStore({ dataDir, databaseUrl, log }: StoreOptions): Promise<Store> {
  if (databaseUrl === undefined || databaseUrl === '') return openSqliteStore({ dataDir, log });
  // `pg` is loaded by those who use it.
  const { openPostgresStore } = await import('./postgres/open.ts');
  return openPostgresStore({ url: databaseUrl, log });
}

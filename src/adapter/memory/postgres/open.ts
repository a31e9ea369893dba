import { AppError } from '../../../core/errors.ts';
import type { Log } from '../../../core/log.ts';
import type { Store } from '../store.ts';

/** Not built yet. */
export async function openPostgresStore(_options: { url: string; log: Log }): Promise<Store> {
  throw new AppError('memory_not_opened', { message: 'PostgreSQL is not supported yet' });
}

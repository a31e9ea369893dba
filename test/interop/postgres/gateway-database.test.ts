import { afterAll, beforeAll, describe } from 'vitest';
import { LIMITS } from '../../../src/core/limits.ts';
import type { Driver } from '../../../src/server/database/driver.ts';
import { openPostgres } from '../../../src/server/database/postgres.ts';
import type { DatabaseSchema } from '../../../src/server/kernel/database.ts';
import { recordSchema } from '../../../src/server/record/schema.ts';
import { databaseContract } from '../../server/database/database-contract.ts';
import { recordContract } from '../../server/record/record-contract.ts';
import { freshDatabase } from './fresh-database.ts';

const hasServer = Boolean(process.env['MEMORY_DATABASE_URL']);

describe.skipIf(!hasServer)('config.database on a PostgreSQL server', () => {
  let database: Awaited<ReturnType<typeof freshDatabase>> | undefined;
  const renew = async (): Promise<void> => {
    await database?.remove();
    database = await freshDatabase();
  };
  const open = (schemas: readonly DatabaseSchema[]): Promise<Driver> =>
    openPostgres({
      url: database?.url ?? '',
      connections: 5,
      schemas,
      limits: LIMITS,
      onLost: () => undefined,
    });
  beforeAll(renew);
  afterAll(() => database?.remove());

  databaseContract('PostgreSQL server', () => ({ open, empty: renew }));

  recordContract('postgres', async () => {
    await renew();
    return open([recordSchema]);
  });
});

import { afterAll, beforeAll } from 'vitest';
import { LIMITS } from '../../../src/core/limits.ts';
import { openPostgresOn } from '../../../src/server/database/postgres.ts';
import { pgliteServer } from '../../kit/pglite-pool.ts';
import { databaseContract } from './database-contract.ts';

// One server for all: to compile PostgreSQL takes a second of CPU time.
let server: Awaited<ReturnType<typeof pgliteServer>>;
beforeAll(async () => {
  server = await pgliteServer();
}, 120_000);
afterAll(() => server.close());

databaseContract('PostgreSQL in process', () => ({
  open: (schemas) => openPostgresOn(server.pool(), 'PGlite', schemas, LIMITS),
  empty: () => server.empty(),
}));

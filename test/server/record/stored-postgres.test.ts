import { afterAll, beforeAll } from 'vitest';
import { LIMITS } from '../../../src/core/limits.ts';
import { openPostgresOn } from '../../../src/server/database/postgres.ts';
import { recordSchema } from '../../../src/server/record/schema.ts';
import { pgliteServer } from '../../kit/pglite-pool.ts';
import { recordContract } from './record-contract.ts';

// One server for all: to compile PostgreSQL takes a second of CPU time.
let server: Awaited<ReturnType<typeof pgliteServer>>;
beforeAll(async () => {
  server = await pgliteServer();
}, 120_000);
afterAll(() => server.close());

recordContract('postgres', () => openPostgresOn(server.pool(), 'PGlite', [recordSchema], LIMITS));

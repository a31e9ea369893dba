// npm run bench record -- [--records 1000000] [--payloads 20000] [--postgres URL]
// The record of requests: how long it takes to store, bytes per request, how long searches and sums take. Goal: a search
// of 1,000,000 records answers in at most 200 ms. With the URL of an empty database, also in PostgreSQL.
import { rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { LIMITS } from '../src/core/limits.ts';
import { openPostgres } from '../src/server/database/postgres.ts';
import { openSqlite } from '../src/server/database/sqlite.ts';
import { Retention } from '../src/server/record/retention.ts';
import { recordSchema } from '../src/server/record/schema.ts';
import { recordById, searchRecords } from '../src/server/record/search.ts';
import { storeStatements } from '../src/server/record/statements.ts';
import { usageOf } from '../src/server/record/usage.ts';
import { scratchFolder } from './harness/processes.mjs';
import { EVERYTHING, generated, SEARCHES } from './record/generated.mjs';

const { values } = parseArgs({
  options: {
    records: { type: 'string', default: '1000000' },
    payloads: { type: 'string', default: '20000' },
    postgres: { type: 'string', default: '' },
  },
});
const counts = { records: Number(values.records), payloads: Number(values.payloads) };
const ROUNDS = 7;
const DAY = 24 * 3600 * 1000;
const write = (line) => process.stdout.write(`${line}\n`);
const log = { warn: () => undefined, debug: () => undefined };
const options = { schemas: [recordSchema], log, limits: LIMITS };

/** Stores so many records; returns the seconds of CPU time of the process, and of waiting. */
async function fill(database, count, hasPayload) {
  const cpu = process.cpuUsage();
  const own = process.threadCpuUsage();
  const started = performance.now();
  // What the generator takes is not counted.
  let generating = 0;
  for (let done = 0; done < count; done += LIMITS.recordBatch) {
    const { user: before, system } = process.threadCpuUsage();
    const at = before + system;
    const batch = generated(done, Math.min(LIMITS.recordBatch, count - done), count, hasPayload);
    const { user: u, system: s } = process.threadCpuUsage();
    generating += u + s - at;
    await database.transaction(storeStatements(database.kind, batch));
  }
  const { user, system } = process.cpuUsage(cpu);
  const thread = process.threadCpuUsage(own);
  return {
    cpu: (user + system - generating) / count,
    own: (thread.user + thread.system - generating) / count,
    seconds: (performance.now() - started) / 1000,
  };
}

async function measure(name, call) {
  const times = [];
  let result;
  for (let round = 0; round < ROUNDS; round++) {
    const started = performance.now();
    result = await call();
    times.push(performance.now() - started);
  }
  times.sort((a, b) => a - b);
  const [median, max] = [times[ROUNDS >> 1], times[ROUNDS - 1]];
  write(
    `  ${name.padEnd(44)} ${median.toFixed(1).padStart(7)} ms  most ${max.toFixed(1).padStart(7)} ms  ${result}`,
  );
}

async function cases(database) {
  for (const [name, search] of Object.entries(SEARCHES))
    await measure(name, async () => {
      const { records, next } = await searchRecords(database, { ...EVERYTHING, ...search });
      return `${records.length} found${next === undefined || records.length === EVERYTHING.limit ? '' : ', to be continued'}`;
    });
  await measure('one record', async () =>
    (await recordById(database, 1000)) === undefined ? 'none' : 'found',
  );
  for (const by of [['model'], ['key'], ['user', 'model'], ['day']])
    await measure(`usage by ${by.join(' and ')}`, async () => {
      const { rows } = await usageOf(database, { from: 0, to: Date.now(), by, equal: {} });
      return `${rows.length} rows`;
    });
}

/** What a gateway does once a minute. */
async function compact(database) {
  const retention = new Retention({ database, log, limits: LIMITS, retention: () => 60 * DAY });
  const started = performance.now();
  await retention.run();
  await retention.close();
  write(`  sums of hours became sums of days in ${(performance.now() - started).toFixed(0)} ms`);
}

async function run(name, database, bytes) {
  const metadata = await fill(database, counts.records, false);
  const after = await bytes();
  write(
    `${name}: ${counts.records} records of metadata: ${metadata.cpu.toFixed(1)} µs of CPU (${metadata.own.toFixed(1)} in the event loop) and ${Math.round(after / counts.records)} bytes each, ${metadata.seconds.toFixed(0)} s`,
  );
  const full = await fill(database, counts.payloads, true);
  const size = (await bytes()) - after;
  write(
    `${name}: ${counts.payloads} more with payloads of 2 KiB: ${full.cpu.toFixed(1)} µs of CPU (${full.own.toFixed(1)} in the event loop) and ${Math.round(size / counts.payloads)} bytes each`,
  );
  await compact(database);
  await cases(database);
}

const folder = scratchFolder();
const path = join(folder, 'record.db');
const sqlite = { kind: 'sqlite', ...(await openSqlite({ ...options, path, mustExist: false })) };
await run('sqlite', sqlite, async () => {
  await sqlite.transaction([]);
  await sqlite.query('SELECT 1');
  return statSync(path).size;
});
await sqlite.close();
rmSync(path);
if (values.postgres !== '') {
  const postgres = {
    kind: 'postgres',
    ...(await openPostgres({ ...options, url: values.postgres, connections: 5, onLost: () => undefined })),
  };
  await run('postgres', postgres, async () => {
    const [row] = await postgres.query(`SELECT sum(pg_total_relation_size(oid))::float8 AS bytes FROM pg_class
      WHERE relname LIKE 'agctl%' AND relkind = 'r'`);
    return row.bytes;
  });
  await postgres.close();
}

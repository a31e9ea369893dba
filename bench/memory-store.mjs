// npm run bench memory-store [-- --entities 100000 --namespaces --postgres URL]
// The stores: insertion, search, graph, chat turns, a docs folder. Goal: a median of at most 15 ms for a search of
// 100,000 × 128. Without the URL of an empty database, a PostgreSQL with pgvector is fetched and started like in `npm
// run test:interop postgres`; `--only sqlite` leaves it out; `--namespaces` measures two
// namespaces instead.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { openPostgresStore } from '../src/adapter/memory/postgres/open.ts';
import { openSqliteStore } from '../src/adapter/memory/sqlite/open.ts';
import { missing, start } from '../test/interop/postgres/suite.mjs';
import { measureNamespaces, measureStore } from './memory/store-cases.mjs';

const log = Object.fromEntries(
  ['error', 'warn', 'info', 'debug', 'trace'].map((level) => [level, () => undefined]),
);
const { values } = parseArgs({
  options: {
    entities: { type: 'string', default: '100000' },
    'per-document': { type: 'string', default: '20' },
    files: { type: 'string', default: '1000' },
    postgres: { type: 'string', default: process.env.MEMORY_DATABASE_URL ?? '' },
    only: { type: 'string', default: '' },
    /** Only two namespaces with so many entities each. */
    namespaces: { type: 'boolean', default: false },
    /** Set by this script: measure this store here, in a process of its own. */
    store: { type: 'string' },
  },
});

const size = (folder) => ({
  entities: Number(values.entities),
  perDocument: Number(values['per-document']),
  files: Number(values.files),
  folder,
});

async function sqlite(folder) {
  const path = join(folder, 'store.db');
  let store = await openSqliteStore({ path, log });
  if (values.namespaces) {
    await measureNamespaces('sqlite', store, size(folder));
    const started = performance.now();
    const { bytes, discard } = await store.backup('two');
    const taken = `${(performance.now() - started).toFixed(0)} ms for ${Math.round(bytes / 2 ** 20)} MB`;
    process.stdout.write(`sqlite    backup of a namespace: ${taken}\n`);
    await discard();
    await store.close();
    return;
  }
  await measureStore('sqlite', store, size(folder));
  await store.close();
  const started = performance.now();
  store = await openSqliteStore({ path, log });
  process.stdout.write(`sqlite    opened again: ${(performance.now() - started).toFixed(0)} ms\n`);
  await store.close();
}

async function postgres(folder) {
  const store = await openPostgresStore({ url: values.postgres, log });
  const client = new pg.Client({ connectionString: values.postgres });
  await client.connect();
  const { rows } = await client.query(
    `SELECT current_setting('server_version') AS server, extversion, pg_backend_pid() AS pid
     FROM pg_extension WHERE extname = 'vector'`,
  );
  process.stdout.write(`postgres  ${rows[0].server}, pgvector ${rows[0].extversion}\n`);
  if (values.namespaces)
    await measureNamespaces('postgres', store, size(folder), (task) => withoutVectorIndex(client, task));
  else await measureStore('postgres', store, size(folder));
  process.stdout.write(`postgres  memory of the server's processes: ${serverMegabytes(rows[0].pid)}\n`);
  await client.end();
  await store.close();
}

/** An index of vectors is built ten times faster after the insertions than row by row. */
async function withoutVectorIndex(client, task) {
  const { rows } = await client.query(
    `SELECT schemaname, indexname, indexdef FROM pg_indexes WHERE indexdef LIKE '%USING hnsw%'
     ORDER BY (SELECT oid FROM pg_namespace WHERE nspname = schemaname) DESC LIMIT 1`,
  );
  const [{ schemaname, indexname, indexdef }] = rows;
  await client.query(`DROP INDEX ${schemaname}.${indexname}`);
  // The store creates an index of this name if there is none.
  await client.query(`CREATE INDEX ${indexname} ON ${schemaname}.memory_vectors (row) WHERE false`);
  await task();
  await client.query(`DROP INDEX ${schemaname}.${indexname}`);
  await client.query(`SET maintenance_work_mem = '512MB'`);
  await client.query(indexdef);
  // As autovacuum does soon after: words are still in the pending list of their index.
  await client.query(`VACUUM ANALYZE ${schemaname}.memory_entities, ${schemaname}.memory_vectors`);
}

/**
 * Memory of all its processes, with shared memory counted once; only for a local server whose processes are readable.
 */
function serverMegabytes(backend) {
  const parentOf = (pid) => /^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  const isBackend = (pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').startsWith('postgres');
  try {
    if (!isBackend(backend)) return 'not of this machine';
    const postmaster = parentOf(backend);
    const others = readdirSync('/proc').filter((pid) => /^\d+$/.test(pid) && parentOf(pid) === postmaster);
    const kilobytes = [postmaster, ...others].map((pid) =>
      Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1]),
    );
    return `${Math.round(kilobytes.reduce((sum, one) => sum + one, 0) / 1024)} MB`;
  } catch (error) {
    return `not known (${error.message})`;
  }
}

/** Each store in a process of its own, so that their memory is separate. */
async function inProcess(store, ...more) {
  const args = ['entities', 'per-document', 'files'].flatMap((name) => [`--${name}`, values[name]]);
  if (values.namespaces) args.push('--namespaces');
  const child = spawn(process.execPath, [import.meta.filename, '--store', store, ...args, ...more], {
    stdio: 'inherit',
  });
  const [code] = await once(child, 'exit');
  if (code !== 0) process.exitCode = code ?? 1;
}

async function postgresInProcess() {
  if (values.postgres !== '') {
    await inProcess('postgres', '--postgres', values.postgres);
    return;
  }
  const reason = missing();
  if (reason !== undefined) {
    process.stdout.write(`postgres  SKIPPED: ${reason}\n`);
    return;
  }
  const { env, stop } = await start();
  // The server is in a process group of its own, which Ctrl-C does not reach.
  const interrupted = () => stop().finally(() => process.exit(130));
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, interrupted);
  try {
    await inProcess('postgres', '--postgres', env.MEMORY_DATABASE_URL);
  } finally {
    await stop();
  }
}

if (values.store !== undefined) {
  const folder = mkdtempSync(join(tmpdir(), 'agctl-bench-memory-'));
  try {
    await (values.store === 'sqlite' ? sqlite(folder) : postgres(folder));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
} else {
  process.stdout.write(`load of the machine before: ${loadavg()[0].toFixed(1)}\n`);
  if (values.only !== 'postgres') await inProcess('sqlite');
  if (values.only !== 'sqlite') await postgresInProcess();
  process.stdout.write(`load of the machine after: ${loadavg()[0].toFixed(1)}\n`);
}

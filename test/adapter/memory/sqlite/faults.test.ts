import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { mkdir, open, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { openDatabase } from '../../../../src/adapter/memory/sqlite/database.ts';
import { openSqliteStore } from '../../../../src/adapter/memory/sqlite/open.ts';
import { MIGRATIONS, migrate } from '../../../../src/adapter/memory/sqlite/schema.ts';
import { MEMORY_STORE_LIMITS } from '../../../../src/core/memory-limits.ts';
import { temporaryFolder } from '../../../kit/folder.ts';
import { recordingLog } from '../recording-log.ts';
import { documentOf, EMBEDDER, entity, turn, vector } from '../records.ts';

const CHILD = join(import.meta.dirname, '../writing-child.ts');

/** A process that stores turns until it is killed or refused; `says` gives its lines. */
function writer(path: string, size: number, wrap: readonly string[] = [], turns = 400) {
  const [command = '', ...args] = [
    ...wrap,
    process.execPath,
    '--disable-warning=ExperimentalWarning',
    CHILD,
    path,
  ];
  const child = spawn(command, [...args, `${size}`, `${turns}`], { stdio: ['ignore', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout });
  return { child, says: lines[Symbol.asyncIterator](), ended: once(child, 'exit') };
}

const refused = (...parts: string[]) => failure('memory_not_opened', parts);
const inUse = (...parts: string[]) => failure('memory_in_use', parts);
const failure = (code: string, parts: string[]) =>
  expect.objectContaining({
    code,
    message: expect.stringMatching(
      new RegExp(parts.map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('.*'), 's'),
    ),
  });

test('a second process on the same file is rejected with the name of the first, and SIGKILL of the first frees the file', async () => {
  await using folder = await temporaryFolder();
  const path = join(folder.path, 'memory.db');
  const { child, says, ended } = writer(path, 10, [], 1e9);
  await says.next();
  await expect(openSqliteStore({ path, log: recordingLog() })).rejects.toEqual(
    inUse(path, `process ${child.pid}`, '.lock', 'stop that one', 'MEMORY_DATABASE_URL'),
  );
  // Asking did not disturb it.
  expect((await says.next()).done).toBe(false);
  child.kill('SIGKILL');
  await ended;
  expect(JSON.parse(readFileSync(`${path}.lock`, 'utf8')).pid).toBe(child.pid);
  const log = recordingLog();
  const store = await openSqliteStore({ path, log });
  expect(log.lines.join()).toContain('was not closed by its last owner');
  expect((await store.stats()).turns).toBeGreaterThan(0);
  expect(JSON.parse(readFileSync(`${path}.lock`, 'utf8')).pid).toBe(process.pid);
  await store.close();
  expect(existsSync(`${path}.lock`)).toBe(false);
});

test('a second open in the same process is rejected, and a second close does nothing', async () => {
  await using folder = await temporaryFolder();
  const store = await openSqliteStore({ dataDir: folder.path, log: recordingLog() });
  await expect(openSqliteStore({ dataDir: folder.path, log: recordingLog() })).rejects.toEqual(
    inUse('memory.db', `process ${process.pid}`),
  );
  await store.appendTurn(turn('s', 'still works'));
  await Promise.all([store.close(), store.close()]);
  await store.close();
});

test('a file that cannot be opened stays unchanged and gives an error with file, cause and remedy', async () => {
  await using folder = await temporaryFolder();
  const at = (name: string): string => join(folder.path, name);
  const openIt = (path: string): Promise<unknown> => openSqliteStore({ path, log: recordingLog() });

  writeFileSync(
    at('text.db'),
    'no database at all, only some text that is long enough to be read as a header\n'.repeat(40),
  );
  await expect(openIt(at('text.db'))).rejects.toEqual(
    refused('text.db', 'is not a database of agctl', 'move'),
  );

  const foreign = new DatabaseSync(at('foreign.db'));
  foreign.exec('CREATE TABLE memory_entities (x)');
  foreign.close();
  await expect(openIt(at('foreign.db'))).rejects.toEqual(refused('foreign.db', 'another program'));

  const newer = openDatabase(at('newer.db'));
  newer.database.exec('PRAGMA user_version = 99');
  newer.close();
  const before = readFileSync(at('newer.db'));
  await expect(openIt(at('newer.db'))).rejects.toEqual(refused('newer.db', 'newer agctl', 'version 99'));
  expect(readFileSync(at('newer.db')).equals(before)).toBe(true);

  await mkdir(at('folder.db'));
  await expect(openIt(at('folder.db'))).rejects.toEqual(refused('folder.db', 'cannot be opened'));
  writeFileSync(at('file'), '');
  await expect(openIt(join(at('file'), 'memory.db'))).rejects.toEqual(refused('memory.db'));
});

test('a damaged file is detected after an unclean exit and left unchanged', async () => {
  await using folder = await temporaryFolder();
  const path = join(folder.path, 'memory.db');
  const store = await openSqliteStore({ path, log: recordingLog() });
  const parts = Array.from({ length: 200 }, (_, n) => `part ${n} ${'text '.repeat(50)}`);
  await store.putDocument(documentOf('big.md', parts, { hash: 'big' }));
  await store.close();
  const { size } = await stat(path);
  const file = await open(path, 'r+');
  // Every fourth page from the tenth on.
  for (let page = 10; page * 4096 < size; page += 4)
    await file.write(Buffer.alloc(4096, 0xa5), 0, 4096, page * 4096);
  await file.close();
  writeFileSync(`${path}.lock`, '{"pid":1}');
  const damaged = readFileSync(path);
  await expect(openSqliteStore({ path, log: recordingLog() })).rejects.toEqual(
    refused(path, 'damaged', 'backup'),
  );
  expect(readFileSync(path).equals(damaged)).toBe(true);
});

test('a write-ahead log truncated at any point restores the complete writes before that point', async () => {
  await using folder = await temporaryFolder();
  const path = join(folder.path, 'memory.db');
  const { child, says, ended } = writer(path, 300);
  for (let n = 0; n < 12; n++) await says.next();
  child.kill('SIGKILL');
  await ended;
  const wal = readFileSync(`${path}-wal`);
  const main = readFileSync(path);
  const counts: number[] = [];
  for (let cut = wal.length; cut > wal.length - 40_000 && cut > 0; cut -= 3_331) {
    writeFileSync(path, main);
    writeFileSync(`${path}-wal`, wal);
    truncateSync(`${path}-wal`, cut);
    writeFileSync(`${path}.lock`, 'not even JSON');
    const { database, close } = openDatabase(path);
    const [row] = database
      .prepare('SELECT count(*) AS n, coalesce(max(seq), 0) AS last FROM memory_chat_history')
      .all();
    expect(row?.['n']).toBe(row?.['last']);
    counts.push(Number(row?.['n']));
    expect(database.prepare('PRAGMA integrity_check').get()).toEqual({ integrity_check: 'ok' });
    close();
  }
  expect(counts).toEqual([...counts].sort((a, b) => b - a));
  expect(counts.at(-1)).toBeLessThan(counts[0] ?? 0);
});

test('a file of an older schema is copied before its migration', async () => {
  await using folder = await temporaryFolder();
  const path = join(folder.path, 'memory.db');
  const { database, close } = openDatabase(path);
  migrate(database, path, [...MIGRATIONS, 'CREATE TABLE memory_later (x) STRICT'.replace('(x)', '(x TEXT)')]);
  expect(database.prepare('PRAGMA user_version').get()).toEqual({ user_version: MIGRATIONS.length + 1 });
  // One that fails leaves the version before.
  const broken = [
    ...MIGRATIONS,
    'SELECT 1',
    'CREATE TABLE memory_other (x TEXT) STRICT; CREATE TABLE nonsense',
  ];
  expect(() => migrate(database, path, broken)).toThrow();
  expect(database.prepare('PRAGMA user_version').get()).toEqual({ user_version: MIGRATIONS.length + 1 });
  expect(
    database.prepare(`SELECT count(*) AS n FROM sqlite_schema WHERE name = 'memory_other'`).get(),
  ).toEqual({ n: 0 });
  close();
  expect(readdirSync(folder.path).filter((name) => name.endsWith('.backup'))).not.toHaveLength(0);
});

/** Reads what a writer says until it ends by itself: acknowledged turns and the failures in between. */
async function outcome({
  says,
  ended,
}: ReturnType<typeof writer>): Promise<{ stored: string[]; failed: string[] }> {
  const stored: string[] = [];
  const failed: string[] = [];
  for (let line = await says.next(); line.done !== true; line = await says.next()) {
    if (line.value.startsWith('failed ')) failed.push(line.value);
    else stored.push(line.value);
  }
  await ended;
  return { stored, failed };
}

async function holds(path: string): Promise<string[]> {
  const store = await openSqliteStore({ path, log: recordingLog() });
  const page = await store.turns('s', { after: 0, limit: 5000 });
  await store.close();
  return page?.turns.map(({ content }) => content.split(' ')[0] as string) ?? [];
}

test('a disk write error is not acknowledged, stops later writes and keeps the acknowledged ones', async () => {
  await using folder = await temporaryFolder();
  const path = join(folder.path, 'memory.db');
  // No file may grow over 1 MiB: the kernel answers the write that would with EFBIG.
  const { stored, failed } = await outcome(
    writer(path, 20_000, ['sh', '-c', 'ulimit -f 2048 && exec "$@"', 'sh']),
  );
  expect(stored.length).toBeGreaterThan(5);
  expect(failed[0]).toContain('memory_unavailable');
  expect(failed.at(-1)).toContain('until a restart');
  expect(await holds(path)).toEqual(expect.arrayContaining(stored));
});

const strace = spawnSync('strace', ['-V']).status === 0;

test.skipIf(!strace)(
  'a full disk rejects writes with a specific error, and accepts them again when there is space',
  async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 'memory.db');
    const fault = ['strace', '-f', '-qq', '-o', '/dev/null', '-e', 'trace=pwrite64'];
    const { stored, failed } = await outcome(
      writer(path, 2_000, [...fault, '-e', 'inject=pwrite64:error=ENOSPC:when=150..160']),
    );
    expect(failed.length).toBeGreaterThan(0);
    for (const line of failed) expect(line).toContain('memory_full');
    // It went on after the last failure.
    expect(Number(stored.at(-1))).toBeGreaterThan(Number(failed.at(-1)?.split(' ')[1]));
    expect(await holds(path)).toEqual(stored);
  },
);

test.skipIf(!strace)('a failed fsync is not acknowledged and not retried', async () => {
  await using folder = await temporaryFolder();
  const path = join(folder.path, 'memory.db');
  const fault = ['strace', '-f', '-qq', '-o', '/dev/null', '-e', 'trace=fsync,fdatasync'];
  const { stored, failed } = await outcome(
    writer(path, 100, [...fault, '-e', 'inject=fsync,fdatasync:error=EIO:when=30']),
  );
  expect(stored.length).toBeGreaterThan(0);
  expect(failed.length).toBeGreaterThan(1);
  // Nothing is acknowledged after it.
  expect(Number(stored.at(-1))).toBeLessThan(Number(failed[0]?.split(' ')[1]));
  expect(await holds(path)).toEqual(expect.arrayContaining(stored));
});

test.skipIf(process.getuid?.() === 0)('a folder without write permission is named in the error', async () => {
  await using folder = await temporaryFolder();
  chmodSync(folder.path, 0o500);
  await expect(openSqliteStore({ dataDir: folder.path, log: recordingLog() })).rejects.toEqual(
    refused('memory.db', 'cannot be'),
  );
  chmodSync(folder.path, 0o700);
});

test('calls over the queue limit are rejected immediately, and queued calls are answered', async () => {
  await using folder = await temporaryFolder();
  const store = await openSqliteStore({ dataDir: folder.path, log: recordingLog() });
  const calls = Array.from({ length: MEMORY_STORE_LIMITS.queue + 50 }, (_, n) => store.note(`${n}`));
  const results = await Promise.allSettled(calls);
  const busy = results.filter(({ status }) => status === 'rejected');
  expect(busy).toHaveLength(50);
  expect((busy[0] as PromiseRejectedResult).reason).toMatchObject({ code: 'memory_busy', status: 503 });
  const big = 'x'.repeat(MEMORY_STORE_LIMITS.queueBytes / 8);
  const texts = await Promise.allSettled(Array.from({ length: 6 }, () => store.appendTurn(turn('big', big))));
  expect(texts.filter(({ status }) => status === 'rejected').length).toBeGreaterThan(0);
  expect(texts[0]?.status).toBe('fulfilled');
  expect(await store.note('still answers')).toBeUndefined();
  await store.close();
});

test('callers are not blocked while vectors are read and scanned', async () => {
  await using folder = await temporaryFolder();
  const store = await openSqliteStore({ dataDir: folder.path, log: recordingLog() });
  const many = Array.from({ length: 4000 }, (_, n) => entity({ id: `v${n}`, embedding: vector(n, 0.3) }));
  await store.putEntities(many, [], EMBEDDER);
  const found = await store.nearest(vector(7), EMBEDDER, { limit: 50 });
  const exact = many
    .map(({ id, embedding }) => ({ id, cosine: (embedding as Float32Array)[7] as number }))
    .sort((a, b) => b.cosine - a.cosine)
    .slice(0, 50);
  expect(found.map(({ cosine }) => cosine)).toEqual(exact.map(({ cosine }) => expect.closeTo(cosine, 5)));
  // Deleting moves vectors about in the cache: the answers stay exact.
  const gone = many.filter((_, n) => n % 3 === 0);
  await store.putEntities(
    gone.map(({ id }) => entity({ id })),
    [],
    EMBEDDER,
  );
  const rest = await store.nearest(vector(7), EMBEDDER, { limit: 5000 });
  expect(rest).toHaveLength(many.length - gone.length);
  const kept = new Map(many.map(({ id, embedding }) => [id, (embedding as Float32Array)[7] as number]));
  for (const { id, cosine } of rest) expect(cosine).toBeCloseTo(kept.get(id) ?? Number.NaN, 5);
  await store.close();
});

import { chmodSync, copyFileSync, existsSync, mkdirSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { LIMITS } from '../../../src/core/limits.ts';
import type { Driver } from '../../../src/server/database/driver.ts';
import { openSqlite } from '../../../src/server/database/sqlite.ts';
import { databaseSchemas } from '../../../src/server/features.ts';
import type { DatabaseSchema } from '../../../src/server/kernel/database.ts';
import { recordingLog } from '../../adapter/memory/recording-log.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { until } from '../../kit/until.ts';
import { COUNTERS, databaseContract } from './database-contract.ts';

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let files = 0;
let path = '';
const log = recordingLog();
beforeAll(async () => {
  folder = await temporaryFolder();
});
afterAll(() => folder.remove());

const next = (): string => {
  path = join(folder.path, `${++files}`, 'data.db');
  return path;
};
const openAt = (at: string, options: { mustExist?: boolean; lock?: number } = {}): Promise<Driver> =>
  openSqlite({
    path: at,
    mustExist: options.mustExist ?? false,
    schemas: [COUNTERS],
    log,
    limits: { ...LIMITS, databaseLock: options.lock ?? LIMITS.databaseLock },
  });
const openWith = (at: string, schemas: readonly DatabaseSchema[]): Promise<Driver> =>
  openSqlite({ path: at, mustExist: false, schemas, log, limits: LIMITS });
const insert = (driver: Driver, name: string) =>
  driver.transaction([{ sql: 'INSERT INTO agctl_counters (name, value) VALUES (?, 1)', values: [name] }]);
const names = async (driver: Driver) =>
  (await driver.query('SELECT name FROM agctl_counters ORDER BY name')).map(({ name }) => name);

databaseContract('SQLite', () => ({
  open: (schemas) => openSqlite({ path, mustExist: false, schemas, log, limits: LIMITS }),
  empty: async () => void next(),
}));

describe('the SQLite file of a gateway', () => {
  test('is created with its folder, for this user only', async () => {
    const at = next();
    const driver = await openAt(at);
    await insert(driver, 'a');
    for (const file of [at, `${at}-wal`, `${at}-shm`]) expect(statSync(file).mode & 0o777, file).toBe(0o600);
    await driver.close();
    expect(existsSync(`${at}-wal`)).toBe(false);
  });

  test('has everything in itself when a driver is closed that has also read', async () => {
    const at = next();
    for (let time = 1; time <= 5; time += 1) {
      const driver = await openAt(at);
      await insert(driver, `${time}`);
      expect(await names(driver)).toHaveLength(time);
      await driver.close();
      expect(existsSync(`${at}-wal`), `closed ${time} times`).toBe(false);
    }
  });

  // Rows can have prompts and results of tools. A file of an earlier version, or of a tool, has the mode that the umask left.
  test.each(['new', 'existing'])(
    'a %s file in a folder that others may read is for this user only',
    async (state) => {
      const at = next();
      mkdirSync(join(at, '..'), { mode: 0o755 });
      if (state === 'existing') {
        const before = await openAt(at);
        await insert(before, 'a');
        for (const file of [at, `${at}-wal`, `${at}-shm`]) chmodSync(file, 0o644);
        // As after a crash: the log of writes is still there.
        for (const suffix of ['', '-wal']) copyFileSync(at + suffix, `${at}.copy${suffix}`);
        await before.close();
        for (const suffix of ['', '-wal']) renameSync(`${at}.copy${suffix}`, at + suffix);
        expect(statSync(`${at}-wal`).mode & 0o777).toBe(0o644);
      }
      const driver = await openAt(at);
      await insert(driver, 'b');
      for (const file of [at, `${at}-wal`, `${at}-shm`])
        expect(statSync(file).mode & 0o777, file).toBe(0o600);
      expect(await names(driver)).toEqual(state === 'existing' ? ['a', 'b'] : ['b']);
      await driver.close();
      expect(statSync(join(at, '..')).mode & 0o777).toBe(0o755);
    },
  );

  test('with mode=rw, a file that does not exist is refused with what to do', async () => {
    const at = next();
    await expect(openAt(at, { mustExist: true })).rejects.toMatchObject({
      message: `${at} does not exist`,
      help: expect.stringContaining('mode=rw'),
    });
    expect(existsSync(at)).toBe(false);
  });

  test('a database of another program is refused and stays as it is', async () => {
    const at = next();
    mkdirSync(join(at, '..'));
    const other = new DatabaseSync(at);
    other.exec('CREATE TABLE request_logs (id INTEGER)');
    other.close();
    await expect(openAt(at)).rejects.toMatchObject({ message: `${at} is a database of another program` });
  });

  // Tables of another program with our names are taken for ours where the script says IF NOT EXISTS.
  test.each([
    ['agctl_keys (id TEXT)', 'cannot be migrated to version 1 (no such column: name)'],
    [
      'agctl_spending (counter TEXT, start TEXT, spent INTEGER, PRIMARY KEY (counter, start))',
      'are not those of version 2 (the table agctl_spending has no column start with the type INTEGER)',
    ],
    [
      'agctl_spending (counter TEXT, start INTEGER, spent INTEGER, UNIQUE (counter, spent))',
      'are not those of version 2 (the table agctl_spending has no unique key (counter, start))',
    ],
    [
      'agctl_spending_writer (id INTEGER, writer INTEGER)',
      'are not those of version 2 (the table agctl_spending_writer has no unique key (id))',
    ],
  ])('a table of another program is named, and nothing is changed: %s', async (table, why) => {
    const at = next();
    const withoutBudgets = databaseSchemas.filter(({ feature }) => feature !== 'budgets');
    await (await openWith(at, withoutBudgets)).close();
    const file = new DatabaseSync(at);
    file.exec(`CREATE TABLE ${table}`);
    const tables = () => file.prepare('SELECT name FROM sqlite_schema ORDER BY name').all();
    const before = tables();
    await expect(openWith(at, databaseSchemas)).rejects.toMatchObject({
      message: `${at}: the tables of \`budgets\` ${why}`,
      help: expect.stringContaining('nothing has changed'),
    });
    expect(tables()).toEqual(before);
    file.close();
  });

  test('a file that lost a key after it was written is refused', async () => {
    const at = next();
    await (await openWith(at, databaseSchemas)).close();
    await (await openWith(at, databaseSchemas)).close();
    const file = new DatabaseSync(at);
    file.exec('DROP INDEX agctl_keys_name');
    file.close();
    await expect(openWith(at, databaseSchemas)).rejects.toThrow(
      'agctl_keys has no unique key (name) WHERE revoked_at IS NULL',
    );
  });

  test('a file that is no database is refused', async () => {
    const at = next();
    mkdirSync(join(at, '..'));
    writeFileSync(at, 'not a database, but long enough to have a header of a hundred bytes'.repeat(9));
    await expect(openAt(at)).rejects.toMatchObject({ message: `${at} is not a SQLite database` });
  });

  test('a path below a file is refused with the reason', async () => {
    const at = next();
    writeFileSync(join(at, '..'), '');
    await expect(openAt(at)).rejects.toMatchObject({ message: expect.stringContaining('cannot be opened') });
  });

  test('a write to a file that another process keeps locked fails, and a later one succeeds', async () => {
    const at = next();
    const driver = await openAt(at, { lock: 20 });
    const other = new DatabaseSync(at);
    other.exec('BEGIN IMMEDIATE');
    await expect(insert(driver, 'a')).rejects.toMatchObject({
      code: 'database_unavailable',
      detail: 'locked by another process',
    });
    // Reads go on.
    expect(await names(driver)).toEqual([]);
    other.exec('COMMIT');
    other.close();
    await insert(driver, 'b');
    expect(await names(driver)).toEqual(['b']);
    await driver.close();
  });

  test('a full disk fails the write, keeps what was there, and later writes succeed', async () => {
    const at = next();
    const driver = await openAt(at);
    await insert(driver, 'kept');
    // The most pages that the file may have; the kernel reports a full disk at the same place.
    await driver.transaction([{ sql: 'PRAGMA max_page_count = 8' }]);
    const large = driver.transaction([
      {
        sql: 'INSERT INTO agctl_counters (name, value, note) VALUES (?, 1, ?)',
        values: ['large', 'x'.repeat(100_000)],
      },
    ]);
    await expect(large).rejects.toMatchObject({ detail: 'the disk is full' });
    await driver.transaction([{ sql: 'PRAGMA max_page_count = 100000' }]);
    await insert(driver, 'later');
    expect(await names(driver)).toEqual(['kept', 'later']);
    await driver.close();
  });

  test('a file that is moved away is created again, which is logged', async () => {
    const at = next();
    const driver = await openAt(at);
    await insert(driver, 'old');
    renameSync(join(at, '..'), `${join(at, '..')}.old`);
    // The check has an interval of a second.
    await until(async () => {
      await insert(driver, `new ${performance.now()}`).catch(() => undefined);
      return existsSync(at);
    });
    expect(await names(driver)).not.toContain('old');
    expect(log.lines.join('')).toContain('the database file was deleted or replaced');
    await driver.close();
  });

  test('calls beyond the bound of the queue are refused, and those before are answered', async () => {
    const driver = await openSqlite({
      path: next(),
      mustExist: false,
      schemas: [COUNTERS],
      log,
      limits: { ...LIMITS, databaseQueue: 3 },
    });
    const calls = await Promise.allSettled(['a', 'b', 'c', 'd'].map((name) => insert(driver, name)));
    expect(calls.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'fulfilled', 'rejected']);
    expect(calls[3]).toMatchObject({ reason: { detail: 'too many calls wait for the database' } });
    await driver.close();
  });
});

import { chmodSync, mkdirSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openSqliteStore } from '../../../../src/adapter/memory/sqlite/open.ts';
import { MIGRATIONS, migrate } from '../../../../src/adapter/memory/sqlite/schema.ts';
import { temporaryFolder } from '../../../kit/folder.ts';
import { recordingLog } from '../recording-log.ts';
import { turn } from '../records.ts';

// Memories are what people said. A folder that exists already, such as a mounted volume, may be open to everybody.

let umask = 0;
beforeAll(() => {
  umask = process.umask(0o022);
});
afterAll(() => void process.umask(umask));

/** Modes of the files below a folder that others could open. */
function openToOthers(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((file) => (statSync(file).mode & 0o077) !== 0);
}

test('the files of a memory are for this user only, also in a folder that others may read', async () => {
  await using folder = await temporaryFolder();
  chmodSync(folder.path, 0o755);
  const store = await openSqliteStore({ dataDir: folder.path, log: recordingLog() });
  await store.appendTurn(turn('s', 'text'));
  await store.namespace('alice').appendTurn(turn('s', 'text'));
  expect(readdirSync(folder.path)).toEqual(expect.arrayContaining(['memory.db', 'memory.db-wal']));
  expect(openToOthers(folder.path)).toEqual([]);
  await store.close();
  expect(openToOthers(folder.path)).toEqual([]);
});

test('a memory file of an earlier version that others may read is for this user only once it is opened', async () => {
  await using folder = await temporaryFolder();
  const path = join(folder.path, 'memory.db');
  const database = new DatabaseSync(path);
  migrate(database, path, MIGRATIONS.slice(0, 1));
  database.close();
  chmodSync(path, 0o666);
  const store = await openSqliteStore({ path, log: recordingLog() });
  await store.close();
  // The copy from before the migration too.
  expect(readdirSync(folder.path).some((name) => name.endsWith('.backup'))).toBe(true);
  expect(openToOthers(folder.path)).toEqual([]);
});

test('a path that cannot be created is still reported by its reason', async () => {
  await using folder = await temporaryFolder();
  const path = join(folder.path, 'memory.db');
  mkdirSync(path);
  await expect(openSqliteStore({ path, log: recordingLog() })).rejects.toMatchObject({
    message: expect.stringContaining(`${path}: cannot be opened`),
  });
});

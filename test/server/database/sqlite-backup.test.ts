import { existsSync, readdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, test } from 'vitest';
import { LIMITS } from '../../../src/core/limits.ts';
import type { Driver } from '../../../src/server/database/driver.ts';
import { openSqlite } from '../../../src/server/database/sqlite.ts';
import type { DatabaseSchema } from '../../../src/server/kernel/database.ts';
import { recordingLog } from '../../adapter/memory/recording-log.ts';
import { temporaryFolder } from '../../kit/folder.ts';

/** A table, to which each further version adds a column. */
const versions = (count: number): DatabaseSchema => ({
  feature: 'notes',
  migrations: Array.from({ length: count }, (_, index) => {
    const script =
      index === 0
        ? 'CREATE TABLE agctl_notes (text TEXT NOT NULL);'
        : `ALTER TABLE agctl_notes ADD COLUMN more${index} TEXT;`;
    return { sqlite: script, postgres: `${script}\n` };
  }),
});

const opened = (path: string, count: number, backups?: number): Promise<Driver> =>
  openSqlite({
    path,
    mustExist: false,
    schemas: [versions(count)],
    log: recordingLog(),
    limits: LIMITS,
    ...(backups !== undefined && { backups }),
  });

/** Creates a database of the first version with one row. */
async function firstVersion(path: string): Promise<void> {
  const driver = await opened(path, 1);
  await driver.transaction([{ sql: 'INSERT INTO agctl_notes (text) VALUES (?)', values: ['kept'] }]);
  await driver.close();
}

const copiesIn = (folder: string): string[] => readdirSync(folder).filter((name) => name.endsWith('.backup'));

function contentOf(path: string): { version: unknown; texts: unknown[]; columns: number } {
  const database = new DatabaseSync(path, { readOnly: true });
  try {
    return {
      version: database.prepare('SELECT version FROM agctl_schema').get()?.['version'],
      texts: database
        .prepare('SELECT text FROM agctl_notes')
        .all()
        .map(({ text }) => text),
      columns: database.prepare('SELECT * FROM agctl_notes').columns().length,
    };
  } finally {
    database.close();
  }
}

describe('a SQLite file that an update migrates', () => {
  test('is copied before, readable by its user only, and the log says where', async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 'data.db');
    await firstVersion(path);
    expect(copiesIn(folder.path)).toEqual([]);
    const log = recordingLog();
    const driver = await openSqlite({ path, mustExist: false, schemas: [versions(2)], log, limits: LIMITS });
    await driver.close();
    const [name = '', ...others] = copiesIn(folder.path);
    expect(others).toEqual([]);
    expect(name).toMatch(/^data\.db\.before-migration-\d{8}T\d{15}Z\.backup$/);
    const copy = join(folder.path, name);
    expect(contentOf(copy)).toEqual({ version: 1, texts: ['kept'], columns: 1 });
    expect(contentOf(path)).toEqual({ version: 2, texts: ['kept'], columns: 2 });
    expect(statSync(copy).mode & 0o777).toBe(0o600);
    expect(log.lines.join('\n')).toContain(copy);
    expect(readdirSync(folder.path).filter((each) => each.endsWith('.partial'))).toEqual([]);
  });

  test('is not copied if it is new, or has these tables already', async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 'data.db');
    for (let count = 0; count < 2; count += 1) await (await opened(path, 2)).close();
    expect(copiesIn(folder.path)).toEqual([]);
  });

  test('has the latest copies beside it, at most as many as `backups` says', async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 'data.db');
    await firstVersion(path);
    for (const count of [2, 3, 4, 5]) await (await opened(path, count, 2)).close();
    const copies = copiesIn(folder.path).toSorted();
    expect(copies.map((name) => contentOf(join(folder.path, name)).version)).toEqual([3, 4]);
    await (await opened(path, 6, 0)).close();
    expect(copiesIn(folder.path).toSorted()).toEqual(copies);
  });

  test('is copied again before a migration that is tried again only if something has changed since', async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 'data.db');
    await firstVersion(path);
    const broken: DatabaseSchema = {
      feature: 'notes',
      migrations: [...versions(1).migrations, { sqlite: 'ALTER TABLE agctl_lost ADD x;', postgres: '' }],
    };
    const options = { path, mustExist: false, log: recordingLog(), limits: LIMITS };
    const fail = async (): Promise<string[]> => {
      await expect(openSqlite({ ...options, schemas: [broken] })).rejects.toMatchObject({
        message: `${path}: the tables of \`notes\` cannot be migrated to version 2 (no such table: agctl_lost)`,
        help: expect.stringMatching(/^nothing has changed\. .*agctl database restore/),
      });
      return copiesIn(folder.path).toSorted();
    };
    const [first, ...others] = await fail();
    expect(others).toEqual([]);
    expect(await fail()).toEqual([first]);
    const earlier = await opened(path, 1);
    await earlier.transaction([{ sql: 'INSERT INTO agctl_notes (text) VALUES (?)', values: ['since'] }]);
    await earlier.close();
    const both = await fail();
    expect(both).toEqual([first, expect.any(String)]);
    expect(contentOf(join(folder.path, both[1] ?? '')).texts).toEqual(['kept', 'since']);
    expect(await fail()).toEqual(both);
  });

  test('is migrated once by several that open it at once, and every copy is from before', async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 'data.db');
    await firstVersion(path);
    const drivers = await Promise.all(Array.from({ length: 4 }, () => opened(path, 3, 10)));
    await Promise.all(drivers.map((driver) => driver.close()));
    const found = copiesIn(folder.path).map((name) => contentOf(join(folder.path, name)).version);
    expect(found.length).toBeGreaterThan(0);
    expect(new Set(found)).toEqual(new Set([1]));
    expect(contentOf(path)).toEqual({ version: 3, texts: ['kept'], columns: 3 });
  });

  test('stays as it is if it cannot be copied', async () => {
    await using folder = await temporaryFolder();
    // The name of a copy would be too long.
    const path = join(folder.path, `${'d'.repeat(240)}.db`);
    await firstVersion(path);
    await expect(opened(path, 2)).rejects.toMatchObject({
      message: expect.stringMatching(/is to be migrated, and cannot be copied before/),
      help: expect.stringContaining('config.database.backups: 0'),
    });
    expect(contentOf(path)).toMatchObject({ version: 1, columns: 1 });
    await (await opened(path, 2, 0)).close();
    expect(contentOf(path)).toMatchObject({ version: 2, columns: 2 });
    expect(existsSync(dirname(path))).toBe(true);
  });
});

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { LIMITS } from '../../../src/core/limits.ts';
import { openSqlite } from '../../../src/server/database/sqlite.ts';
import { recordSchema } from '../../../src/server/record/schema.ts';
import { type Search, searchRecords } from '../../../src/server/record/search.ts';
import { storeStatements } from '../../../src/server/record/statements.ts';
import { recordingLog } from '../../adapter/memory/recording-log.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { EMPTY, queued, recordContract, search } from './record-contract.ts';

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
beforeAll(async () => {
  folder = await temporaryFolder();
});
afterAll(() => folder.remove());

const open = async (name: string, schema = recordSchema) => ({
  kind: 'sqlite' as const,
  ...(await openSqlite({
    path: `${folder.path}/${name}`,
    mustExist: false,
    schemas: [schema],
    log: recordingLog(),
    limits: LIMITS,
  })),
});

recordContract('sqlite', () => open('data.db'));

describe('blocks of records in SQLite', () => {
  /** 10,000 records, of which every fifth request took up to an hour. */
  const given = Array.from({ length: 10_000 }, (_, index) => ({
    time: EMPTY.time + index * 10 - (index % 5 === 0 ? (index * 7919) % 3_600_000 : 0),
    caller: `k${index % 100}`,
    status: index % 300 === 7 ? 500 : 200,
  }));
  const records = given.map((each) => queued(each));

  const idsOf = async (database: Awaited<ReturnType<typeof open>>, given: Partial<Search>) => {
    const ids: number[] = [];
    let after: Search['after'];
    do {
      const page = await searchRecords(database, search({ ...given, limit: 7, after }));
      ids.push(...page.records.map(({ id }) => id));
      after = page.next;
    } while (after !== undefined);
    return ids;
  };

  const expectedIds = (key: string, isWanted: (status: number, time: number) => boolean): number[] =>
    given
      .map((record, index) => ({ ...record, id: index + 1 }))
      .filter(({ caller, status, time }) => caller === key && isWanted(status, time))
      .sort((a, b) => b.time - a.time || b.id - a.id)
      .map(({ id }) => id);

  test('records of a key come by the time of their start, although long requests are in later blocks', async () => {
    const database = await open('blocks.db');
    for (let done = 0; done < records.length; done += 900)
      await database.transaction(storeStatements('sqlite', records.slice(done, done + 900)));
    const [from, to] = [EMPTY.time - 1_000_000, EMPTY.time + 50_000];
    expect(await idsOf(database, { equal: { key: 'k5' } })).toEqual(expectedIds('k5', () => true));
    expect(await idsOf(database, { equal: { key: 'k10' }, from, to })).toEqual(
      expectedIds('k10', (_, time) => time >= from && time < to),
    );
    expect(await idsOf(database, { equal: { key: 'k7' }, status: [500, 500] })).toEqual(
      expectedIds('k7', (status) => status === 500),
    );
    expect(await idsOf(database, { equal: { key: 'nobody' } })).toEqual([]);
    await database.close();
  });

  test('a file without blocks gets them when it is opened', async () => {
    const before = { ...recordSchema, migrations: recordSchema.migrations.slice(0, 1) };
    const old = await open('old.db', before);
    const names = [
      'time',
      'duration',
      'protocol',
      'operation',
      'listener',
      'path',
      'status',
      'client',
      'streamed',
      'caller',
    ] as const;
    await old.transaction([
      {
        sql: `INSERT INTO agctl_records (${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')})`,
        many: records.slice(0, 5000).map(({ record }) => names.map((name) => record[name] ?? null)),
      },
    ]);
    await old.close();
    const database = await open('old.db');
    await database.transaction(storeStatements('sqlite', records.slice(5000)));
    expect(await idsOf(database, { equal: { key: 'k5' } })).toEqual(expectedIds('k5', () => true));
    await database.close();
  });
});

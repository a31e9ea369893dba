import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { LIMITS } from '../../../src/core/limits.ts';
import { openPostgresOn } from '../../../src/server/database/postgres.ts';
import { openSqlite } from '../../../src/server/database/sqlite.ts';
import { userTokensSchema } from '../../../src/server/user-tokens/schema.ts';
import { Seal } from '../../../src/server/user-tokens/seal.ts';
import { SignInTable } from '../../../src/server/user-tokens/sign-in-table.ts';
import { type TokenRow, TokenTable } from '../../../src/server/user-tokens/token-table.ts';
import { recordingLog } from '../../adapter/memory/recording-log.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { pgliteServer } from '../../kit/pglite-pool.ts';

let server: Awaited<ReturnType<typeof pgliteServer>>;
let folder: Awaited<ReturnType<typeof temporaryFolder>>;
beforeAll(async () => {
  server = await pgliteServer();
  folder = await temporaryFolder();
}, 120_000);
afterAll(async () => {
  await server.close();
  await folder.remove();
});

const schemas = [userTokensSchema];
const log = recordingLog();
const databases = {
  sqlite: () =>
    openSqlite({ path: join(folder.path, 'a.db'), mustExist: false, schemas, log, limits: LIMITS }),
  postgres: () => openPostgresOn(server.pool(), 'PGlite', schemas, LIMITS),
};

const row = (generation: string, more: Partial<TokenRow> = {}): TokenRow => ({
  owner: 'ann',
  server: 'https://a.example/mcp',
  who: 'Ann',
  scope: 'read',
  generation,
  sealed: `sealed-${generation}`,
  createdAt: 1_000,
  expiresAt: null,
  ...more,
});

describe.each(['sqlite', 'postgres'] as const)('the tables of user tokens in %s', (kind) => {
  const open = async () => Object.assign(await databases[kind](), { kind });

  // can1357/oh-my-pi#5081, vercel/ai#20694: the process that lost a race removed the token that the winner had stored.
  test('a token is replaced, leased and removed by its generation only', async () => {
    const database = await open();
    const table = new TokenTable(database);
    await table.put(row('one'));
    expect(await table.begin(row('one'), 10, 50)).toBe(true);
    expect(await table.begin(row('one'), 49, 90)).toBe(false);
    expect(await table.begin(row('one'), 51, 90)).toBe(true);
    expect(await table.renew(row('one'), row('two', { expiresAt: 2 ** 52 }))).toBe(true);
    expect(await table.renew(row('one'), row('three'))).toBe(false);
    expect(await table.remove(row('one'))).toBe(false);
    expect(await table.giveUp(row('one'))).toBe(false);
    expect(await table.read('ann', 'https://a.example/mcp')).toEqual(row('two', { expiresAt: 2 ** 52 }));
    expect(await table.begin(row('two'), 10, 50)).toBe(true);
    await table.put(row('four', { owner: 'bob', who: 'Bob' }));
    expect((await table.list()).map(({ who }) => who)).toEqual(['Ann', 'Bob']);
    expect(await table.read('bob', 'https://b.example/mcp')).toBeUndefined();
    for (const each of await table.list()) expect(await table.remove(each)).toBe(true);
    expect(await table.list()).toEqual([]);
    await database.close();
  });

  test('a sign-in is taken once, and the latest links are kept', async () => {
    const database = await open();
    const table = new SignInTable(database);
    const link = (id: string, expiresAt: number) => ({
      id,
      owner: 'ann',
      server: 's',
      sealed: id,
      expiresAt,
    });
    for (let number = 1; number <= 5; number += 1) await table.add(link(`l${number}`, 100 + number), 50, 3);
    const open5 = await Promise.all([1, 2, 3, 4, 5].map((number) => table.read(`l${number}`, 60)));
    expect(open5.map((found) => found?.id)).toEqual([undefined, undefined, 'l3', 'l4', 'l5']);
    expect(await table.read('l5', 106)).toBeUndefined();
    expect([await table.mayTry('l5', 2), await table.mayTry('l5', 2), await table.mayTry('l5', 2)]).toEqual([
      true,
      true,
      false,
    ]);
    expect(await table.leave('l5', 'state', 'sealed')).toBe(true);
    expect(await table.leave('unknown', 'other', 'sealed')).toBe(false);
    const taken = await Promise.all([table.take('state'), table.take('state'), table.take('other')]);
    expect(taken.map((found) => found?.sealed)).toEqual(['sealed', undefined, undefined]);
    await table.removeOf('ann');
    expect(await table.read('l4', 60)).toBeUndefined();
    // Those of other users and servers go with the next link of anybody, once they have expired.
    await table.add({ ...link('of-bob', 200), owner: 'bob', server: 't' }, 150, 3);
    await table.add({ ...link('of-eve', 300), owner: 'eve' }, 200, 3);
    await table.add({ ...link('of-ann', 400) }, 201, 3);
    const left = await database.query('SELECT id FROM agctl_sign_ins ORDER BY id', []);
    expect(left.map(({ id }) => id)).toEqual(['of-ann', 'of-eve']);
    await database.close();
  });
});

test('what is encrypted for one row cannot be read in another, or with another key', async () => {
  const seal = new Seal(() => Buffer.alloc(32, 1));
  const sealed = await seal.seal('token', ['ann', 's'], { access: 'a' });
  expect(await seal.open('token', ['ann', 's'], sealed)).toEqual({ access: 'a' });
  expect(await seal.open('token', ['bob', 's'], sealed)).toBeUndefined();
  expect(await seal.open('token', ['ann', 't'], sealed)).toBeUndefined();
  expect(await seal.open('sign-in', ['ann', 's'], sealed)).toBeUndefined();
  expect(await new Seal(() => Buffer.alloc(32, 2)).open('token', ['ann', 's'], sealed)).toBeUndefined();
});

import { join } from 'node:path';
import { expect, test } from 'vitest';
import { LIMITS } from '../../../src/core/limits.ts';
import { openSqlite } from '../../../src/server/database/sqlite.ts';
import { DocumentClient } from '../../../src/server/transport/upstream/document-client.ts';
import { ProtectedServer } from '../../../src/server/user-tokens/protected-server.ts';
import { userTokensSchema } from '../../../src/server/user-tokens/schema.ts';
import { Seal } from '../../../src/server/user-tokens/seal.ts';
import { SignIns } from '../../../src/server/user-tokens/sign-ins.ts';
import { recordingLog } from '../../adapter/memory/recording-log.ts';
import { temporaryFolder } from '../../kit/folder.ts';

const ANN = { id: 'ann', who: 'Ann' };

async function signIns() {
  const folder = await temporaryFolder();
  const limits = { ...LIMITS, signInPoll: 1 };
  const opened = await openSqlite({
    path: join(folder.path, 'a.db'),
    mustExist: false,
    schemas: [userTokensSchema],
    log: recordingLog(),
    limits,
  });
  const database = Object.assign(opened, { kind: 'sqlite' as const });
  const seal = new Seal(() => Buffer.alloc(32, 1));
  const page = 'https://tools.example.com/sign-in';
  const all = new SignIns({ database, seal, settings: { url: page, users: 'code' }, limits });
  const server = new ProtectedServer(
    {
      target: 'a',
      url: new URL('https://a.example/mcp'),
      client: undefined,
      scopes: [],
      authorizationServer: undefined,
    },
    { database, seal, page },
    new DocumentClient(),
  );
  return {
    all,
    server,
    [Symbol.asyncDispose]: async () => {
      await database.close();
      await folder.remove();
    },
  };
}

test('requests of a user at the same moment get one link', async () => {
  await using at = await signIns();
  const begin = (user: typeof ANN) => at.all.begin(user, at.server, ['read'], () => Promise.resolve(false));
  const [first, second, others] = await Promise.all([
    begin(ANN),
    begin(ANN),
    begin({ id: 'bob', who: 'Bob' }),
  ]);
  expect(second).toBe(first);
  expect(others.url).not.toBe(first.url);
  expect(await begin(ANN)).toBe(first);
  expect(at.all.pending).toBe(2);
});

test('who waits with an earlier link hears of the sign-in too', async () => {
  await using at = await signIns();
  let isDone = false;
  const begin = (scopes: string[]) => at.all.begin(ANN, at.server, scopes, () => Promise.resolve(isDone));
  const links = [await begin(['read']), await begin(['read', 'write'])];
  expect(new Set(links.map(({ url }) => url)).size).toBe(2);
  isDone = true;
  await Promise.all(links.map(({ done }) => done));
  expect(at.all.pending).toBe(0);
});

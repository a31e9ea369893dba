import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { openSqliteStore } from '../../src/adapter/memory/sqlite/open.ts';
import { recordingLog } from '../adapter/memory/recording-log.ts';
import { cli } from '../kit/cli.ts';
import { fakeBackend, reply } from '../kit/fake-backend.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { memoryBackend } from '../kit/memory-backend.ts';

const KEY = { authorization: 'Bearer main-key' };
const NAMES = ['default', 'alice', 'auth0|42', '../up'];

async function filledBackend() {
  const backend = await memoryBackend({ key: 'main-key' });
  for (const name of NAMES)
    await backend.post(
      'chat',
      { sessionId: 's', role: 'user', content: `of ${name}` },
      { ...KEY, 'x-memory-namespace': name },
    );
  return backend;
}

const backup = (url: string, args: readonly string[], cwd: string, key = 'main-key') =>
  cli(['memory', 'backup', ...args, '--memory-api-url', url], { cwd, env: { MEMORY_API_KEY: key } });

describe('agctl memory backup', () => {
  test('a folder gets all namespaces of a running backend, and opens as the data folder of another one', async () => {
    await using backend = await filledBackend();
    await using folder = await temporaryFolder();
    const { code, stderr } = await backup(backend.url, ['copy'], folder.path);
    expect([code, stderr]).toEqual([0, `copied 4 namespaces to ${join(folder.path, 'copy')}\n`]);
    // Written after the backup: not in it.
    await backend.post('chat', { sessionId: 's', role: 'user', content: 'later' }, KEY);
    const store = await openSqliteStore({ dataDir: join(folder.path, 'copy'), log: recordingLog() });
    const { namespaces } = await store.namespaces({ limit: 10 });
    expect(namespaces.map(({ name }) => name)).toEqual([...NAMES].sort());
    for (const name of NAMES) {
      const page = await store.namespace(name).turns('s', { after: 0, limit: 9 });
      expect(page?.turns.map(({ content }) => content)).toEqual([`of ${name}`]);
    }
    await store.close();
    // The backend keeps no copy.
    expect(readdirSync(backend.data).filter((name) => name.startsWith('.'))).toEqual([]);
  });

  test('a file gets one namespace, and is a store by itself', async () => {
    await using backend = await filledBackend();
    await using folder = await temporaryFolder();
    const { code } = await backup(backend.url, ['alice.db', '--namespace', 'alice'], folder.path);
    expect(code).toBe(0);
    const store = await openSqliteStore({ path: join(folder.path, 'alice.db'), log: recordingLog() });
    const page = await store.turns('s', { after: 0, limit: 9 });
    expect(page?.turns.map(({ content }) => content)).toEqual(['of alice']);
    await store.close();
  });

  test('nothing that exists is overwritten', async () => {
    await using backend = await filledBackend();
    await using folder = await temporaryFolder();
    mkdirSync(join(folder.path, 'full'));
    writeFileSync(join(folder.path, 'full', 'file'), 'kept');
    for (const args of [['full'], ['full/file'], ['full/file', '--namespace', 'alice']]) {
      const { code, stderr } = await backup(backend.url, args, folder.path);
      expect(code).toBe(2);
      expect(stderr).toContain('exists');
    }
    expect(readdirSync(join(folder.path, 'full'))).toEqual(['file']);
  });

  test.each([
    [['copy'], 'wrong-key', 'the bearer token is wrong', 'MEMORY_API_KEY'],
    [['copy', '--namespace', 'nobody'], 'main-key', 'no such namespace', ''],
    [['copy', '--namespace', 'a b'], 'main-key', '--namespace: expected 1 to 80', ''],
  ])('%j with key %s is refused with the reason, and leaves no file', async (args, key, reason, hint) => {
    await using backend = await filledBackend();
    await using folder = await temporaryFolder();
    const { code, stderr } = await backup(backend.url, args, folder.path, key);
    expect(code).not.toBe(0);
    expect(stderr).toContain(reason);
    expect(stderr).toContain(hint);
    expect(stderr).not.toContain(key);
    expect(existsSync(join(folder.path, 'copy'))).toBe(false);
  });

  test('a backend that does not run is named, with what to do', async () => {
    await using folder = await temporaryFolder();
    const { code, stderr } = await backup('http://127.0.0.1:1', ['copy'], folder.path);
    expect(code).toBe(3);
    expect(stderr).toContain('http://127.0.0.1:1 cannot be reached');
    expect(stderr).toContain('--memory-api-url');
  });
});

const UNEXPECTED = 'the memory backend sent an unexpected response';

// Each page of `nextCursor` was asked for, also if it was the same one again.
test.each([
  null,
  5,
  [[]],
  {},
  { namespaces: {} },
  { namespaces: [], nextCursor: 'again' },
  { namespaces: [null, { name: 5 }], nextCursor: 'again' },
])('agctl memory backup of a backend that answers %j ends with what is wrong', async (answer) => {
  await using backend = await fakeBackend(reply(200, answer));
  await using folder = await temporaryFolder();
  const { code, stderr } = await backup(backend.url, ['copy'], folder.path);
  expect(code).toBe(3);
  expect(stderr).toContain(UNEXPECTED);
  expect(backend.seen.length).toBeLessThan(3);
});

test.each([null, 5, [[]], {}, { counts: {}, token: '; rm -rf ~' }, { counts: null, token: 'ab' }])(
  'agctl memory forget and import of a backend that answers %j end with what is wrong',
  async (answer) => {
    await using backend = await fakeBackend(reply(200, answer));
    await using folder = await temporaryFolder();
    writeFileSync(join(folder.path, 'lines.jsonl'), '{"type":"entity"}\n');
    for (const args of [
      ['forget', 'ann'],
      ['import', 'lines.jsonl'],
    ]) {
      const { code, stderr } = await cli(['memory', ...args, '--memory-api-url', backend.url], {
        cwd: folder.path,
      });
      expect(code, args[0]).toBe(3);
      expect(stderr).toContain(UNEXPECTED);
      expect(stderr).not.toContain('rm -rf');
    }
  },
);

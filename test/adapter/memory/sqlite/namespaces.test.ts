import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, test } from 'vitest';
import { folderName, namespaceOfFolder } from '../../../../src/adapter/memory/sqlite/namespace-folder.ts';
import { openSqliteStore } from '../../../../src/adapter/memory/sqlite/open.ts';
import type { NamespacedStore } from '../../../../src/adapter/memory/store.ts';
import { MEMORY_STORE_LIMITS } from '../../../../src/core/memory-limits.ts';
import { temporaryFolder } from '../../../kit/folder.ts';
import { repeats } from '../../../kit/thorough.ts';
import { namespacesContract } from '../namespaces-contract.ts';
import { recordingLog } from '../recording-log.ts';
import { documentOf, EMBEDDER, entity, turn, vector } from '../records.ts';

const open = (dataDir: string, log = recordingLog()): Promise<NamespacedStore> =>
  openSqliteStore({ dataDir, log });

namespacesContract('sqlite', async () => {
  const folder = await temporaryFolder();
  return { open: () => open(folder.path), remove: () => folder.remove() };
});

describe('the folder of a namespace', () => {
  test('is one path component without special meaning, for every name', () => {
    const printable = Array.from({ length: 0x7f - 0x21 }, (_, at) => String.fromCharCode(0x21 + at));
    const names = printable.filter((character) => character !== ',');
    names.push('con', 'aux', 'lpt1', '..', 'a.b', 'CON', '~'.repeat(80));
    const folders = names.map(folderName);
    expect(new Set(folders.map((folder) => folder.toLowerCase())).size).toBe(names.length);
    for (const folder of folders) {
      expect(folder).toMatch(/^[a-z0-9_%-]{1,240}$/);
      expect(folder).not.toMatch(/^(con|prn|aux|nul|com\d|lpt\d)$/);
    }
    expect(folders.map(namespaceOfFolder)).toEqual(names);
  });

  test.each(['', 'a b', 'a,b', 'é', 'x'.repeat(81), 'a\0b', 'a\n'])('%j is no namespace', (name) => {
    expect(() => folderName(name)).toThrow(RangeError);
  });

  test.each(['.git', 'Alice', '%41%', '%2E', 'a.b', 'default', '.removed-1'])(
    'the folder %s is not listed as a namespace',
    (folder) => {
      expect(namespaceOfFolder(folder)).toBeUndefined();
    },
  );
});

/** Namespaces whose file is open: only then is there a file with the owner. */
const openFiles = (folder: string): string[] =>
  readdirSync(join(folder, 'namespaces')).filter((name) =>
    existsSync(join(folder, 'namespaces', name, 'memory.db.lock')),
  );

test('the least recently used files are closed, and calls to them during and after that are answered', async () => {
  await using folder = await temporaryFolder();
  const store = await open(folder.path);
  const names = Array.from({ length: MEMORY_STORE_LIMITS.openNamespaces + 8 }, (_, n) => `n${n}`);
  const spaces = names.map((name) => store.namespace(name));
  // All at once, so that files are closed while calls of their namespaces wait.
  const rounds = 3;
  await Promise.all(
    Array.from({ length: rounds }, (_, round) =>
      spaces.map(async (space, n) => {
        await space.appendTurn(turn('s', `${n} ${round}`));
        await space.putDocument(documentOf(`${round}.md`, [`lemur ${n}`]));
        expect(await space.nearest(vector(0), EMBEDDER, { limit: 9 })).not.toHaveLength(0);
      }),
    ).flat(),
  );
  expect(openFiles(folder.path)).toHaveLength(MEMORY_STORE_LIMITS.openNamespaces);
  for (const [n, space] of spaces.entries()) {
    const page = await space.turns('s', { after: 0, limit: 9 });
    expect(page?.turns.map(({ content }) => content).sort()).toEqual(
      Array.from({ length: rounds }, (_, round) => `${n} ${round}`),
    );
    expect(await space.lexical(['lemur'], { limit: 9 })).toHaveLength(rounds);
  }
  expect(openFiles(folder.path)).toContain(names.at(-1));
  expect(openFiles(folder.path)).not.toContain(names[0]);
  await store.close();
  expect(openFiles(folder.path)).toEqual([]);
});

test('a second process is refused for all namespaces by the lock of the folder', async () => {
  await using folder = await temporaryFolder();
  const store = await open(folder.path);
  await store.namespace('alice').appendTurn(turn('s', 'x'));
  await expect(open(folder.path)).rejects.toMatchObject({
    code: 'memory_in_use',
    message: expect.stringContaining('in use by process'),
  });
  await store.close();
});

test('the number of namespaces is bounded with an error that says what to do', async () => {
  await using folder = await temporaryFolder();
  for (let n = 1; n < MEMORY_STORE_LIMITS.namespaces; n++)
    mkdirSync(join(folder.path, 'namespaces', `n${n}`), { recursive: true });
  const store = await open(folder.path);
  await expect(store.namespace('more').appendTurn(turn('s', 'x'))).rejects.toMatchObject({
    code: 'memory_full',
    message: expect.stringContaining('10000 namespaces, the maximum'),
  });
  expect(existsSync(join(folder.path, 'namespaces', 'more'))).toBe(false);
  await store.removeNamespace('n1');
  await store.namespace('more').appendTurn(turn('s', 'x'));
  await store.close();
});

test('a damaged namespace fails alone, without its path in the error', async () => {
  await using folder = await temporaryFolder();
  mkdirSync(join(folder.path, 'namespaces', 'bad'), { recursive: true });
  writeFileSync(join(folder.path, 'namespaces', 'bad', 'memory.db'), 'not a database'.repeat(1000));
  const store = await open(folder.path);
  await store.namespace('good').appendTurn(turn('s', 'x'));
  const failure = await store
    .namespace('bad')
    .stats()
    .catch((error: unknown) => error);
  expect(failure).toMatchObject({ code: 'memory_unavailable' });
  expect((failure as Error).message).not.toContain(folder.path);
  expect(failure).toMatchObject({ detail: expect.stringContaining(join('bad', 'memory.db')) });
  expect((await store.namespace('good').stats()).turns).toBe(1);
  await store.close();
});

test('no file of a deleted namespace remains, and an interrupted deletion is completed at the next start', async () => {
  await using folder = await temporaryFolder();
  const spaces = join(folder.path, 'namespaces');
  const store = await open(folder.path);
  await store.namespace('alice').appendTurn(turn('s', 'secret-of-alice'));
  await store.removeNamespace('alice');
  expect(readdirSync(spaces)).toEqual([]);
  await store.close();
  mkdirSync(join(spaces, '.removed-1'));
  writeFileSync(join(spaces, '.removed-1', 'memory.db'), 'secret-of-alice');
  writeFileSync(join(folder.path, '.backup-1.db.partial'), 'secret-of-alice');
  const again = await open(folder.path);
  expect((await again.namespaces({ limit: 10 })).namespaces.map(({ name }) => name)).toEqual(['default']);
  await again.close();
  for (const file of readdirSync(folder.path, { recursive: true, withFileTypes: true }))
    if (file.isFile())
      expect(readFileSync(join(file.parentPath, file.name)).includes('secret-of-alice')).toBe(false);
});

test('a backup that is made during writes is a consistent store, and deletes its file when discarded', async () => {
  await using folder = await temporaryFolder();
  const store = await open(folder.path);
  const alice = store.namespace('alice');
  let stored = 0;
  let isDone = false;
  const writing = (async () => {
    for (let n = 0; !isDone; n++) {
      await alice.putEntities([entity({ id: `a${n}` }), entity({ id: `b${n}` })], [], EMBEDDER);
      stored += 1;
    }
  })();
  await alice.appendTurn(turn('s', 'x'));
  for (let round = 0; round < 5; round++) {
    const before = stored;
    const { path, bytes, discard } = await store.backup('alice');
    const database = new DatabaseSync(path, { readOnly: true });
    expect(Object.values(database.prepare('PRAGMA integrity_check').get() ?? {})).toEqual(['ok']);
    const count = (letter: string): number =>
      Number(
        Object.values(
          database.prepare('SELECT count(*) FROM memory_entities WHERE id LIKE ?').get(`${letter}%`) ?? {},
        )[0],
      );
    expect(count('a')).toBe(count('b'));
    expect(count('a')).toBeGreaterThanOrEqual(before);
    database.close();
    expect(bytes).toBeGreaterThan(1000);
    await discard();
    expect(existsSync(path)).toBe(false);
  }
  isDone = true;
  await writing;
  await expect(store.backup('nobody')).rejects.toMatchObject({ code: 'memory_not_found' });
  await store.close();
});

const CHILD = join(import.meta.dirname, 'namespaces-child.ts');

/** Creates namespaces until it is killed, or so many times; says which it has stored a turn in. */
function creator(folder: string, wrap: readonly string[] = [], attempts = 1e9) {
  const [command = '', ...args] = [...wrap, process.execPath, '--disable-warning=ExperimentalWarning', CHILD];
  const child = spawn(command, [...args, folder, `${attempts}`], { stdio: ['ignore', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout });
  return { child, says: lines[Symbol.asyncIterator](), ended: once(child, 'exit') };
}

test('a namespace whose first write was acknowledged survives kill -9, and no other one is damaged', async () => {
  await using folder = await temporaryFolder();
  const acknowledged: string[] = [];
  for (let round = 0; round < repeats(2, 40); round++) {
    const { child, says, ended } = creator(folder.path);
    const wanted = 1 + Math.floor(Math.random() * 12);
    for (let n = 0; n < wanted; n++) acknowledged.push(String((await says.next()).value));
    child.kill('SIGKILL');
    await ended;
    // What it still said before it died.
    for await (const line of says) acknowledged.push(line);
    const store = await open(folder.path);
    const { namespaces } = await store.namespaces({ limit: 5000 });
    expect(namespaces.map(({ name }) => name)).toEqual(expect.arrayContaining(acknowledged));
    for (const { name } of namespaces) {
      if (name === 'default') continue;
      const page = await store.namespace(name).turns('s', { after: 0, limit: 9 });
      const contents = page?.turns.map(({ content }) => content) ?? [];
      if (acknowledged.includes(name)) expect(contents).toEqual([name]);
      else expect([[], [name]]).toContainEqual(contents);
    }
    await store.close();
  }
  expect(acknowledged.length).toBeGreaterThan(0);
});

const strace = spawnSync('strace', ['-V']).status === 0;

test.skipIf(!strace)(
  'a namespace that does not fit on the disk is not created, and others are when there is space again',
  async () => {
    await using folder = await temporaryFolder();
    await (await open(folder.path)).close();
    const fault = ['strace', '-f', '-qq', '-o', '/dev/null', '-e', 'trace=pwrite64'];
    const full = [...fault, '-e', 'inject=pwrite64:error=ENOSPC:when=150..152'];
    const { says, ended } = creator(folder.path, full, 12);
    const said: string[] = [];
    for await (const line of says) said.push(line);
    await ended;
    const failed = said.filter((line) => line.startsWith('failed'));
    const stored = said.filter((line) => !line.startsWith('failed'));
    expect(new Set(failed)).toEqual(new Set(['failed memory_full']));
    // It went on after the failure.
    expect(said.at(-1)).toBe(stored.at(-1));
    const store = await open(folder.path);
    const { namespaces } = await store.namespaces({ limit: 5000 });
    const names = namespaces.map(({ name }) => name).filter((name) => name !== 'default');
    expect(names.sort()).toEqual(stored.sort());
    await store.close();
  },
);

import {
  chownSync,
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { beforeEach, describe, expect, test } from 'vitest';
import { cli } from '../kit/cli.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { gateway, type TestGateway } from '../kit/gateway.ts';
import { routesConfig } from '../kit/routes.ts';

const yaml = (url = 'sqlite://./data.db'): string =>
  routesConfig([{ policies: { directResponse: { body: 'x' } } }], { config: { database: { url } } });

interface Place extends AsyncDisposable {
  readonly folder: string;
  readonly path: string;
  run(...args: string[]): ReturnType<typeof cli>;
}

/** A folder with a configuration, whose database has the notes that `notes` adds. */
async function place(text = yaml()): Promise<Place> {
  const folder = await temporaryFolder();
  writeFileSync(join(folder.path, 'gateway.yaml'), text);
  return {
    folder: folder.path,
    path: join(folder.path, 'data.db'),
    run: (...args) => cli(['database', ...args], { cwd: folder.path }),
    [Symbol.asyncDispose]: () => folder.remove(),
  };
}

const started = (at: Place): Promise<TestGateway> => gateway(yaml(), { folder: at.folder });

function withDatabase<T>(path: string, use: (database: DatabaseSync) => T): T {
  const database = new DatabaseSync(path);
  try {
    return use(database);
  } finally {
    database.close();
  }
}

/** Adds a note in a table of the test. */
const note = (path: string, text: string): void =>
  withDatabase(path, (database) => {
    database.exec('CREATE TABLE IF NOT EXISTS agctl_test (text TEXT)');
    database.prepare('INSERT INTO agctl_test VALUES (?)').run(text);
  });
const notes = (path: string): unknown[] =>
  withDatabase(path, (database) =>
    database
      .prepare('SELECT text FROM agctl_test')
      .all()
      .map(({ text }) => text),
  );

const copiesIn = (folder: string): string[] => readdirSync(folder).filter((name) => name.endsWith('.backup'));

describe('agctl database', () => {
  let at: Place;
  beforeEach(async () => {
    at = await place();
    return () => at[Symbol.asyncDispose]();
  });

  test('backup copies the database of a running gateway, by default beside it', async () => {
    await using _ = await started(at);
    note(at.path, 'first');
    const { code, stdout, stderr } = await at.run('backup');
    expect([code, stderr]).toEqual([0, expect.stringContaining(`copied ${at.path} (`)]);
    const [name = ''] = copiesIn(at.folder);
    expect(stdout).toBe(`${join(at.folder, name)}\n`);
    expect(notes(join(at.folder, name))).toEqual(['first']);
    const named = await at.run('backup', 'mine.db');
    expect([named.code, named.stdout]).toEqual([0, `${join(at.folder, 'mine.db')}\n`]);
    expect(statSync(join(at.folder, 'mine.db')).mode & 0o777).toBe(0o600);
    const again = await at.run('backup', 'mine.db');
    expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('mine.db exists')]);
  });

  test('restore replaces the database by a copy, keeps what it was, and the gateway starts with it', async () => {
    const first = await started(at);
    note(at.path, 'first');
    await first.close();
    await at.run('backup', 'mine.db');
    note(at.path, 'second');
    const { code, stderr } = await at.run('restore', 'mine.db');
    expect(code, stderr).toBe(0);
    expect(notes(at.path)).toEqual(['first']);
    expect(statSync(at.path).mode & 0o777).toBe(0o600);
    const [kept = ''] = copiesIn(at.folder);
    expect(stderr).toContain(join(at.folder, kept));
    expect(notes(join(at.folder, kept))).toEqual(['first', 'second']);
    await using second = await started(at);
    expect((await fetch(second.url)).status).toBe(200);
    expect(notes(at.path)).toEqual(['first']);
  });

  test('a restore is an event in the audit file and in the database, and so is one that is refused', async () => {
    writeFileSync(
      join(at.folder, 'gateway.yaml'),
      routesConfig([{ policies: { directResponse: { body: 'x' } } }], {
        config: { database: { url: 'sqlite://./data.db' }, audit: { file: 'audit.jsonl' } },
      }),
    );
    await (await started(at)).close();
    await at.run('backup', 'mine.db');
    expect((await at.run('restore', 'mine.db')).code).toBe(0);
    writeFileSync(join(at.folder, 'odd.db'), 'odd');
    expect((await at.run('restore', 'odd.db')).code).toBe(1);
    const actor = { kind: 'local', name: userInfo().username };
    const done = {
      action: 'database.restore',
      outcome: 'done',
      actor,
      target: at.path,
      detail: expect.stringContaining(`from ${join(at.folder, 'mine.db')}; what it was is in`),
    };
    const failed = {
      ...done,
      outcome: 'failed',
      detail: expect.stringContaining('is not a SQLite database'),
    };
    const lines = readFileSync(join(at.folder, 'audit.jsonl'), 'utf8').trimEnd().split('\n');
    expect(lines.map((line) => JSON.parse(line) as unknown)).toMatchObject([done, failed]);
    const stored = await cli(['audit', '-f', 'gateway.yaml', '-o', 'json'], { cwd: at.folder });
    const events = stored.stdout.trimEnd().split('\n');
    expect(events.map((line) => JSON.parse(line) as unknown)).toMatchObject([failed, done]);
  });

  test('a restore revives no key that was revoked since, unless it is asked to', async () => {
    await (await started(at)).close();
    const state = (path: string) =>
      withDatabase(path, (database) =>
        database.prepare('SELECT name, revoked_at FROM agctl_keys ORDER BY name').all(),
      ).map(({ name, revoked_at: revokedAt }) => [name, revokedAt]);
    withDatabase(at.path, (database) => {
      const add = database.prepare(
        "INSERT INTO agctl_keys (id, name, hash, hint, settings, created_at) VALUES (?, ?, ?, '', '{}', 1)",
      );
      for (const name of ['kept', 'leaked']) add.run(name, name, name);
    });
    await at.run('backup', 'mine.db');
    withDatabase(at.path, (database) =>
      database.exec("UPDATE agctl_keys SET revoked_at = 7 WHERE name = 'leaked'"),
    );
    const restored = await at.run('restore', 'mine.db');
    expect([restored.code, restored.stderr]).toEqual([
      0,
      expect.stringContaining('these keys were revoked since, and stay revoked: leaked (--revive-keys'),
    ]);
    expect(state(at.path)).toEqual([
      ['kept', null],
      ['leaked', 7],
    ]);
    expect((await at.run('restore', 'mine.db', '--revive-keys')).stderr).not.toContain('stay revoked');
    expect(state(at.path)).toEqual([
      ['kept', null],
      ['leaked', null],
    ]);
    expect(readdirSync(at.folder).filter((name) => name.includes('partial'))).toEqual([]);
  });

  test.runIf(process.geteuid?.() === 0)(
    'what root restores belongs to the user of the database',
    async () => {
      await (await started(at)).close();
      await at.run('backup', 'mine.db');
      chownSync(at.path, 65_534, 65_534);
      expect((await at.run('restore', 'mine.db')).code).toBe(0);
      const { uid, gid } = statSync(at.path);
      expect([uid, gid]).toEqual([65_534, 65_534]);
    },
  );

  test('restore of a lost file needs no present one', async () => {
    const first = await started(at);
    note(at.path, 'first');
    await first.close();
    await at.run('backup', 'mine.db');
    const other = await place();
    await using _ = other;
    copyFileSync(join(at.folder, 'mine.db'), join(other.folder, 'mine.db'));
    expect((await other.run('restore', 'mine.db')).code).toBe(0);
    expect(notes(other.path)).toEqual(['first']);
    expect(copiesIn(other.folder)).toEqual([]);
  });

  test('restore refuses while a gateway has the database open, and changes nothing', async () => {
    await using running = await started(at);
    note(at.path, 'first');
    await at.run('backup', 'mine.db');
    note(at.path, 'second');
    const { code, stderr } = await at.run('restore', 'mine.db');
    expect([code, stderr]).toEqual([1, expect.stringContaining('data.db is in use')]);
    expect(stderr).toContain('stop every gateway');
    expect(notes(at.path)).toEqual(['first', 'second']);
    expect(copiesIn(at.folder)).toEqual([]);
    expect((await fetch(running.url)).status).toBe(200);
  });

  test('copies of an operator outlive every migration, and the log names each copy of one that is removed', async () => {
    await (await started(at)).close();
    note(at.path, 'kept');
    for (let count = 0; count < 4; count += 1) await at.run('backup');
    const [oldest = ''] = copiesIn(at.folder).toSorted();
    await at.run('restore', oldest);
    const own = copiesIn(at.folder).toSorted();
    expect(own).toHaveLength(5);
    const copies = (): string[] => copiesIn(at.folder).filter((name) => name.includes('.before-migration-'));
    const logs: string[] = [];
    for (let count = 0; count < 5; count += 1) {
      withDatabase(at.path, (database) =>
        database.exec("DELETE FROM agctl_schema WHERE feature = 'audit'; DROP TABLE agctl_audit"),
      );
      note(at.path, `before migration ${count}`);
      const before = copies();
      const migrated = await started(at);
      await migrated.close();
      const log = migrated.log.join('\n');
      for (const name of before.filter((each) => !copies().includes(each))) {
        expect(log).toMatch(new RegExp(`an old copy from before a migration was removed.*${name}`));
        logs.push(name);
      }
    }
    expect(logs).toHaveLength(2);
    expect(copies()).toHaveLength(3);
    expect(copiesIn(at.folder)).toEqual(expect.arrayContaining(own));
  });

  test('a start whose migration fails says so, and the next ones make no further copy', async () => {
    await (await started(at)).close();
    await at.run('backup');
    // The table is there already.
    withDatabase(at.path, (database) => database.exec("DELETE FROM agctl_schema WHERE feature = 'audit'"));
    const found: string[][] = [];
    for (let count = 0; count < 4; count += 1) {
      const { code, stderr } = await cli(['serve', '-f', 'gateway.yaml'], {
        cwd: at.folder,
        env: { ADMIN_ADDR: 'off', STATS_ADDR: 'off', READINESS_ADDR: 'off' },
      });
      expect(code).not.toBe(0);
      expect(stderr).toMatch(
        /the tables of `audit` cannot be migrated to version 1 \(table agctl_audit already exists\)/,
      );
      expect(stderr).toContain('agctl database restore');
      expect(stderr).not.toContain('correct the path');
      found.push(copiesIn(at.folder).toSorted());
    }
    expect(found[0]).toHaveLength(2);
    expect(found).toEqual([found[0], found[0], found[0], found[0]]);
  });

  test('restore says where a copy ends too early', async () => {
    await (await started(at)).close();
    note(at.path, 'kept');
    await at.run('backup', 'copy.db');
    const copy = join(at.folder, 'copy.db');
    const { size } = statSync(copy);
    for (const length of [size - 1, 4096, 100]) {
      truncateSync(copy, length);
      const { code, stderr } = await at.run('restore', 'copy.db');
      expect([code, stderr]).toEqual([
        1,
        expect.stringContaining(`copy.db is truncated: it has ${length} of ${size} bytes`),
      ]);
      expect(stderr).toContain('name another copy');
    }
    expect(notes(at.path)).toEqual(['kept']);
  });

  test.each([
    [
      'ends in its header',
      (copy: string) => writeFileSync(copy, 'SQLite format 3\0garbage'),
      /is truncated: it has 23 bytes/,
    ],
    ['is empty', (copy: string) => writeFileSync(copy, ''), /copy\.db is empty/],
    ['is a folder', (copy: string) => mkdirSync(copy), /copy\.db is not a file/],
    [
      'is no database',
      (copy: string) => writeFileSync(copy, 'PGDMP'.repeat(100)),
      /copy\.db is not a SQLite database/,
    ],
    [
      'has other bytes in the middle',
      (copy: string) => {
        copyFileSync(join(dirname(copy), 'data.db'), copy);
        const bytes = readFileSync(copy);
        writeFileSync(copy, bytes.fill(0xff, 4096));
      },
      /copy\.db is damaged \(/,
    ],
    [
      'is of another program',
      (copy: string) => withDatabase(copy, (database) => database.exec('CREATE TABLE a (b)')),
      /is a database of another program/,
    ],
    [
      'was written by a newer agctl',
      (copy: string) =>
        withDatabase(copy, (database) =>
          database.exec(
            "CREATE TABLE agctl_schema (feature TEXT PRIMARY KEY, version INTEGER NOT NULL); INSERT INTO agctl_schema VALUES ('record', 999)",
          ),
        ),
      /was written by a newer agctl/,
    ],
    ['does not exist', () => undefined, /does not exist/],
  ])('restore refuses a copy that %s', async (_, make, problem) => {
    await (await started(at)).close();
    note(at.path, 'kept');
    make(join(at.folder, 'copy.db'));
    const { code, stderr } = await at.run('restore', 'copy.db');
    expect([code, stderr]).toEqual([1, expect.stringMatching(problem)]);
    expect(notes(at.path)).toEqual(['kept']);
  });

  test('for PostgreSQL, the command of its own tools is printed, without the password', async () => {
    await using other = await place(yaml('postgres://agctl:hunter22@db.example:5432/agctl'));
    const backup = await other.run('backup', 'a.dump');
    expect(backup.code).toBe(2);
    expect(backup.stderr).toContain(
      "pg_dump --format=custom --table='agctl_*' --file=a.dump 'postgres://agctl@db.example:5432/agctl'",
    );
    const missing = await other.run('restore', 'a.dump');
    writeFileSync(join(other.folder, 'a.dump'), '');
    const restore = await other.run('restore', 'a.dump');
    for (const { code, stderr } of [missing, restore]) {
      expect(code).toBe(2);
      expect(stderr).toContain(
        "pg_restore --clean --if-exists --no-owner --single-transaction --dbname='postgres://agctl@db.example:5432/agctl' a.dump\n",
      );
    }
    expect(missing.stderr).toContain(`; ${join(other.folder, 'a.dump')} is not on this machine`);
    expect(restore.stderr).not.toContain('not on this machine');
    expect(backup.stderr + restore.stderr).not.toContain('hunter22');
  });

  test('mistakes in other places of the configuration are no reason to refuse a copy', async () => {
    await (await started(at)).close();
    const text = yaml().replace(/\}$/, ', "binds": 7, "llm": { "models": [{ "name": "$NOT_SET" }] } }');
    writeFileSync(join(at.folder, 'gateway.yaml'), text);
    const backup = await at.run('backup', 'mine.db');
    expect([backup.code, backup.stderr]).toEqual([0, expect.stringContaining('copied')]);
    expect((await at.run('restore', 'mine.db')).code).toBe(0);
  });

  test.each([
    ['no config.database', 'gateways: { default: { port: 0 } }', /has no config.database/],
    ['an error of its syntax', 'config: [', /gateway\.yaml: /],
    [
      'a variable that is not set in its URL',
      yaml('sqlite://./$NOT_SET/data.db'),
      /gateway\.yaml: .*NOT_SET/,
    ],
  ])('a configuration with %s is refused', async (_, text, problem) => {
    await using other = await place(text);
    const { code, stderr } = await other.run('backup');
    expect(code).not.toBe(0);
    expect(stderr).toMatch(problem);
  });
});

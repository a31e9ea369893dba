import { execFileSync, spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import { describe, expect, test } from 'vitest';
import { temporaryFolder } from '../../kit/folder.ts';
import type { Json } from '../../kit/mcp.ts';
import { writeFiles } from '../../kit/memory-backend.ts';
import { agctl, type ServeProcess, serve, service } from '../../kit/process.ts';
import { routesConfig } from '../../kit/routes.ts';
import { until } from '../../kit/until.ts';
import { freshDatabase } from '../postgres/fresh-database.ts';

const OTHER = { node: process.env['OTHER_VERSION'] as string };

const configOf = (url: string): string =>
  routesConfig([{ policies: { directResponse: { body: 'x' } } }], { config: { database: { url } } });

/** The number of records, and the version of their tables. */
type Read = () => Promise<{ records: number; version: number }>;
const RECORDS = 'SELECT count(*) AS records FROM agctl_records';
const VERSION = "SELECT version FROM agctl_schema WHERE feature = 'record'";

const sqliteAt =
  (path: string): Read =>
  async () => {
    const database = new DatabaseSync(path, { readOnly: true });
    try {
      return {
        records: Number(database.prepare(RECORDS).get()?.['records']),
        version: Number(database.prepare(VERSION).get()?.['version']),
      };
    } finally {
      database.close();
    }
  };

const postgresAt =
  (url: string): Read =>
  async () => {
    const client = new pg.Client(url);
    await client.connect();
    try {
      const [{ records }] = (await client.query(RECORDS)).rows;
      const [{ version }] = (await client.query(VERSION)).rows;
      return { records: Number(records), version: Number(version) };
    } finally {
      await client.end();
    }
  };

/** Makes a request, and waits until it is recorded. */
async function recorded(at: ServeProcess, read: Read, count: number): Promise<void> {
  expect((await fetch(at.url)).status).toBe(200);
  await until(async () => (await read()).records === count);
}

const stopped = async (at: ServeProcess): Promise<number | null> => {
  at.kill('SIGTERM');
  return (await at.finished).code;
};

/** An older gateway goes on while this one migrates its tables, and both record; it does not start again. */
async function sideBySide(url: string, read: Read): Promise<void> {
  const config = configOf(url);
  await using older = await serve(config, OTHER);
  await recorded(older, read, 1);
  const { version } = await read();
  await using newer = await serve(config);
  await recorded(newer, read, 2);
  expect((await read()).version).toBeGreaterThan(version);
  await recorded(older, read, 3);
  await recorded(newer, read, 4);
  expect(older.stderr).not.toMatch(/\t(?:warn|error)\tagctl::(?:database|record)/);
  expect(await stopped(older)).toBe(0);
  await expect(serve(config, OTHER)).rejects.toThrow(/was written by a newer agctl/);
  await recorded(newer, read, 5);
}

/** What a memory has, when its docs folder is read. */
async function remembered({ url }: ServeProcess): Promise<Json> {
  const stats = async (): Promise<Json> => (await fetch(`${url}/api/memory/stats`)).json();
  await until(async () => (await stats()).ready === true);
  const { documents, turns, entities } = await stats();
  return { documents, turns, files: entities.doc_file, chunks: entities.doc_chunk };
}

/** This version goes on with the memory of an older one, with everything once; the older one does not start again. */
async function takesOverMemory(url: string | undefined): Promise<void> {
  await using folder = await temporaryFolder();
  const docs = join(folder.path, 'docs');
  writeFiles(docs, { 'a.md': '# A\n\nSee [b](b.md).\n', 'b.md': '# B\n\nText.\n' });
  const data = join(folder.path, 'data');
  const args = ['memory-backend', 'serve', '--port', '0', '--data', data, '--docs', docs];
  const env = { MEMORY_DATABASE_URL: url };
  const all = { documents: 2, turns: 1, files: 2, chunks: 2 };
  {
    await using older = await service(args, { ...OTHER, env });
    const { status } = await fetch(`${older.url}/api/memory/chat`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ sessionId: 's', role: 'user', content: 'x' }),
    });
    expect(status).toBe(201);
    expect(await remembered(older)).toEqual(all);
    expect(await stopped(older)).toBe(0);
  }
  {
    await using newer = await service(args, { env });
    expect(await remembered(newer)).toEqual(all);
    expect(await stopped(newer)).toBe(0);
  }
  await expect(service(args, { ...OTHER, env })).rejects.toThrow(/by a newer agctl/);
}

/** Whether the tools of PostgreSQL can read the server: a server is no newer than its tools. */
function hasTools(): boolean {
  const url = process.env['MEMORY_DATABASE_URL'];
  return url !== undefined && spawnSync('pg_dump', ['--schema-only', url]).status === 0;
}

describe('the last release of agctl', () => {
  test('records beside this one in the same SQLite file, and is refused after it has ended', async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 'data.db');
    await sideBySide(`sqlite://${path}`, sqliteAt(path));
  });

  test.skipIf(process.env['MEMORY_DATABASE_URL'] === undefined)(
    'records beside this one in the same PostgreSQL, and is refused after it has ended',
    async () => {
      const database = await freshDatabase();
      try {
        await sideBySide(database.url, postgresAt(database.url));
      } finally {
        await database.remove();
      }
    },
  );

  test.skipIf(!hasTools())(
    'starts again with the dump of PostgreSQL that the command of `agctl database restore` puts back, and is updated again',
    async () => {
      await using folder = await temporaryFolder();
      const database = await freshDatabase();
      try {
        const config = configOf(database.url);
        const read = postgresAt(database.url);
        {
          await using older = await serve(config, OTHER);
          await recorded(older, read, 1);
          expect(await stopped(older)).toBe(0);
        }
        const { version } = await read();
        const dump = join(folder.path, 'agctl.dump');
        // As docs/upgrades.md has it.
        execFileSync('pg_dump', ['--format=custom', '--table=agctl_*', `--file=${dump}`, database.url]);
        {
          await using newer = await serve(config);
          await recorded(newer, read, 2);
          expect(await stopped(newer)).toBe(0);
        }
        const { stderr } = await agctl(['database', 'restore', dump, '-f', '-'], { input: config });
        const command = /pg_restore .*agctl\.dump/.exec(stderr)?.[0] ?? '';
        expect(command).toContain('--single-transaction');
        // The address without its password, which an operator gives in another way.
        const { username, password } = new URL(database.url);
        const env = { ...process.env, PGUSER: username, PGPASSWORD: password };
        execFileSync('sh', ['-c', command], { env });
        expect(await read()).toEqual({ records: 1, version });
        {
          await using again = await serve(config, OTHER);
          await recorded(again, read, 2);
          expect(await stopped(again)).toBe(0);
        }
        // The dump has left in place what the release does not know.
        await using updated = await serve(config);
        await recorded(updated, read, 3);
      } finally {
        await database.remove();
      }
    },
  );

  test('starts again with the copy that an update has made, which `agctl database restore` puts back', async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, 'data.db');
    const config = configOf(`sqlite://${path}`);
    const read = sqliteAt(path);
    {
      await using older = await serve(config, OTHER);
      await recorded(older, read, 1);
      expect(await stopped(older)).toBe(0);
    }
    const { version } = await read();
    {
      await using newer = await serve(config);
      await recorded(newer, read, 2);
      expect(newer.stderr).toContain('it was copied before');
      expect(await stopped(newer)).toBe(0);
    }
    const [copy = ''] = readdirSync(folder.path).filter((name) => name.endsWith('.backup'));
    const restored = await agctl(['database', 'restore', join(folder.path, copy), '-f', '-'], {
      input: config,
    });
    expect(restored.code, restored.stderr).toBe(0);
    expect(await read()).toEqual({ records: 1, version });
    await using again = await serve(config, OTHER);
    await recorded(again, read, 2);
  });

  test('leaves a memory in SQLite to this one', () => takesOverMemory(undefined));

  test.skipIf(process.env['MEMORY_DATABASE_URL'] === undefined)(
    'leaves a memory in PostgreSQL to this one',
    async () => {
      const { url, remove } = await freshDatabase();
      try {
        await takesOverMemory(url);
      } finally {
        await remove();
      }
    },
  );
});

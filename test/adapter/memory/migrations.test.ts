import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { openStoreOn } from '../../../src/adapter/memory/postgres/open.ts';
import * as postgres from '../../../src/adapter/memory/postgres/schema.ts';
import { openSqliteStore } from '../../../src/adapter/memory/sqlite/open.ts';
import * as sqlite from '../../../src/adapter/memory/sqlite/schema.ts';
import { blobOf } from '../../../src/adapter/memory/sqlite/vectors.ts';
import type { Store } from '../../../src/adapter/memory/store.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { pgliteServer } from '../../kit/pglite-pool.ts';
import { recordingLog } from './recording-log.ts';
import { EMBEDDER, vector } from './records.ts';

const METADATA = JSON.stringify({ title: 'Guide', heading: 'Limits > Rates', ordinal: 0 });

/** What the first version stored: one chunk with a vector, and an indexed chat turn without one. */
const ROWS = [
  [
    'c1',
    'Guide > Limits > Rates',
    'doc_chunk',
    'Sixty wombats.',
    METADATA,
    'Guide > Limits > Rates\n\nSixty wombats.',
  ],
  ['m1', 'user in s, turn 1', 'chat_message', 'A wombat, again.', '{}', 'A wombat, again.'],
  ['j1', 'user in s, turn 2', 'chat_message', 'Vueは東京駅で。', '{}', 'Vueは東京駅で。'],
] as const;

async function keepsEverything(store: Store): Promise<void> {
  expect(await store.entities(['c1', 'm1'])).toMatchObject([
    { title: 'Guide', heading: 'Limits > Rates', searchText: 'Sixty wombats.', content: 'Sixty wombats.' },
    { title: '', heading: '', searchText: 'A wombat, again.' },
  ]);
  expect((await store.lexical(['wombat'], { limit: 5 })).map(({ id }) => id).sort()).toEqual(['c1', 'm1']);
  expect((await store.lexical(['rate'], { limit: 5 })).map(({ id }) => id)).toEqual(['c1']);
  expect(await store.nearest(vector(3), EMBEDDER, { limit: 5 })).toMatchObject([{ id: 'c1', cosine: 1 }]);
  expect(
    (await store.unembedded(EMBEDDER, { after: 0, limit: 5 })).map(({ searchText }) => searchText),
  ).toEqual(['A wombat, again.', 'Vueは東京駅で。']);
  // Indexed as one word by the first version.
  for (const term of ['vue', '東京', '京駅', '駅で'])
    expect((await store.lexical([term], { limit: 5 })).map(({ id }) => id)).toEqual(['j1']);
  await store.putEntities([], [], EMBEDDER);
  await store.close();
}

test('a file of the first version keeps its texts and vectors, and gets fields', async () => {
  await using folder = await temporaryFolder();
  const path = join(folder.path, 'memory.db');
  const database = new DatabaseSync(path);
  sqlite.migrate(database, path, sqlite.MIGRATIONS.slice(0, 1));
  const insert = database.prepare(
    `INSERT INTO memory_entities (id, name, type, content, metadata, search_text, embedder, embedding)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  insert.run(...ROWS[0], EMBEDDER, blobOf(vector(3)));
  insert.run(...ROWS[1], null, null);
  insert.run(...ROWS[2], null, null);
  database.close();
  await keepsEverything(await openSqliteStore({ path, log: recordingLog() }));
});

test('PostgreSQL tables of the first version keep their texts and vectors, and get fields', async () => {
  const server = await pgliteServer();
  const client = await server.pool().connect();
  await postgres.migrate(client, 'PGlite', recordingLog(), postgres.MIGRATIONS.slice(0, 1));
  const insert = (values: readonly (string | null)[]): Promise<unknown> =>
    client.query(
      `INSERT INTO memory_entities (id, name, type, content, metadata, search_text, words, embedder, embedding)
       VALUES ($1, $2, $3, $4, $5, $6, to_tsvector('memory_words', $6), $7, $8)`,
      [...values],
    );
  await insert([...ROWS[0], EMBEDDER, JSON.stringify([...vector(3)])]);
  await insert([...ROWS[1], null, null]);
  await insert([...ROWS[2], null, null]);
  client.release();
  await keepsEverything(await openStoreOn(server.pool(), 'PGlite', recordingLog()));
  // A restored dump sets the version back, and leaves in place what it does not know.
  for (let version = 1; version < postgres.MIGRATIONS.length; version++) {
    const again = await server.pool().connect();
    await again.query('DELETE FROM memory_schema WHERE version > $1', [version]);
    again.release();
    const log = recordingLog();
    await keepsEverything(await openStoreOn(server.pool(), 'PGlite', log));
    const to = postgres.MIGRATIONS.length;
    expect(log.lines.join('')).toContain(
      `the tables were migrated\tserver="PGlite" from=${version} to=${to}`,
    );
  }
  await server.close();
}, 120_000);

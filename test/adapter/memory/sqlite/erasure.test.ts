import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openSqliteStore } from '../../../../src/adapter/memory/sqlite/open.ts';
import { blobOf } from '../../../../src/adapter/memory/sqlite/vectors.ts';
import type { Store } from '../../../../src/adapter/memory/store.ts';
import { temporaryFolder } from '../../../kit/folder.ts';
import { recordingLog } from '../recording-log.ts';
import { documentOf, EMBEDDER, entity, turn, vector } from '../records.ts';

/** Words that nothing else contains. The index stores the second one as its stem. */
const TEXT = 'Xylophagous vroomfondling';
const NEEDLES = ['Xylophagous', 'xylophag', 'vroomfond'];
const VECTOR = vector(99, 0.123);

/** Which needles the bytes of the folder's files contain. */
function foundIn(folder: string): string[] {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name)));
  const has = (needle: string | Uint8Array): boolean => files.some((bytes) => bytes.includes(needle));
  return [...NEEDLES.filter(has), ...(has(Buffer.from(blobOf(VECTOR)).subarray(396, 404)) ? ['vector'] : [])];
}

/** Other content on the same pages, before and after. */
async function surround(store: Store, round: string): Promise<void> {
  for (let n = 0; n < 20; n++) await store.appendTurn(turn(`other ${round}`, `some other text ${n}`));
  await store.putDocument(documentOf(`other ${round}.md`, ['other words', 'vehicles and xylene']));
}

test.each<
  [string, readonly string[], (store: Store) => Promise<unknown>, (store: Store) => Promise<unknown>]
>([
  [
    'a session',
    NEEDLES,
    (store) => store.appendTurn(turn('s', `${TEXT} ${'long '.repeat(3_000)}`)),
    (store) => store.erase({ sessions: ['s'] }, {}),
  ],
  [
    'a session named after it',
    ['Xylophagous', 'vroomfond'],
    (store) => store.appendTurn(turn(TEXT, 'text')),
    (store) => store.erase({ sessions: [TEXT] }, {}),
  ],
  [
    'an observation',
    NEEDLES,
    (store) =>
      store.changeGraph({ createEntities: [{ name: 'E', entityType: 't', observations: [TEXT, 'kept'] }] }),
    (store) => store.changeGraph({ deleteObservations: [{ entityName: 'E', observations: [TEXT] }] }),
  ],
  [
    'an entity and its relations',
    NEEDLES,
    async (store) => {
      await store.changeGraph({ createEntities: [{ name: TEXT, entityType: 't', observations: ['x'] }] });
      await store.changeGraph({ createRelations: [{ from: TEXT, to: `${TEXT} 2`, relationType: 'is' }] });
    },
    (store) => store.changeGraph({ deleteEntities: [TEXT] }),
  ],
  [
    'a document',
    [...NEEDLES, 'vector'],
    (store) => {
      const document = documentOf('secret.md', [`${TEXT} ${'long '.repeat(3_000)}`], { hash: 'h' });
      const [file, chunk] = document.entities as [ReturnType<typeof entity>, ReturnType<typeof entity>];
      return store.putDocument({ ...document, entities: [file, { ...chunk, embedding: VECTOR }] });
    },
    (store) => store.erase({ documents: ['file:secret.md'] }, {}),
  ],
  [
    'everything about it',
    [...NEEDLES, 'vector'],
    async (store) => {
      await store.appendTurn(turn('s', `about ${TEXT}`));
      await store.putEntities(
        [entity({ id: 'm', type: 'chat_message', content: TEXT, searchText: TEXT, embedding: VECTOR })],
        [],
        EMBEDDER,
      );
      await store.changeGraph({
        createEntities: [
          { name: TEXT, entityType: 't', observations: [] },
          { name: 'Other', entityType: 't', observations: [`knows ${TEXT}`] },
        ],
      });
      await store.putDocument(documentOf('about.md', ['first', `more about ${TEXT}`]));
    },
    (store) => store.erase({ about: TEXT }, {}),
  ],
])('no file contains %s after its deletion was acknowledged', async (_, stored, write, remove) => {
  await using folder = await temporaryFolder();
  const store = await openSqliteStore({ dataDir: folder.path, log: recordingLog() });
  await surround(store, 'before');
  expect(foundIn(folder.path)).toEqual([]);
  await write(store);
  await store.nearest(VECTOR, EMBEDDER, { limit: 1 });
  await surround(store, 'after');
  expect(foundIn(folder.path)).toEqual(stored);
  await remove(store);
  expect(foundIn(folder.path)).toEqual([]);
  await store.close();
  expect(foundIn(folder.path)).toEqual([]);
});

import { expect, test } from 'vitest';
import { indexedTurn } from '../../../src/adapter/memory/chat-index.ts';
import type { Store } from '../../../src/adapter/memory/store.ts';
import { documentOf, EMBEDDER, turn, vector } from './records.ts';

const SESSIONS = 4;

/** Reads a session from the start, a page at a time, until the writers have ended and nothing more comes. */
async function follow(store: Store, sessionId: string, ended: () => boolean): Promise<string[]> {
  const seen: string[] = [];
  let after = 0;
  for (;;) {
    const last = ended();
    const page = await store.turns(sessionId, { after, limit: 7 });
    for (const { seq, content } of page?.turns ?? []) {
      seen.push(content);
      after = seq;
    }
    if (last && (page?.turns.length ?? 0) === 0) return seen;
  }
}

/** Two backends on one database, written at once: so many turns by each in each session. `open` gives another store on the same database each time. */
export function twoBackends(open: () => Promise<Store>, turnsEach: number): void {
  test('turns written by two backends are not lost, duplicated or skipped by a following reader', async () => {
    const stores = await Promise.all([open(), open()]);
    let writing = true;
    const sessions = Array.from({ length: SESSIONS }, (_, n) => `shared ${n}`);
    const readers = sessions.map((id, n) => follow(stores[n % 2] as Store, id, () => !writing));
    await Promise.all(
      stores.flatMap((store, which) =>
        sessions.map(async (id) => {
          for (let n = 0; n < turnsEach; n++) {
            await store.appendTurn(turn(id, `${which}:${n}`));
            // Both write this one; one of them stores it.
            await store.appendTurn(turn(id, `both:${n}`, `key ${n}`));
          }
        }),
      ),
    );
    writing = false;
    const expected = Array.from({ length: turnsEach }, (_, n) => [`0:${n}`, `1:${n}`, `both:${n}`])
      .flat()
      .sort();
    for (const seen of await Promise.all(readers)) expect(seen.sort()).toEqual(expected);
    await Promise.all(stores.map((store) => store.close()));
  });

  test('documents replaced by two backends simultaneously are each complete and stored once', async () => {
    const stores = await Promise.all([open(), open()]);
    const rounds = Array.from({ length: 10 }, (_, round) => round);
    await Promise.all(
      stores.flatMap((store, which) =>
        rounds.map((round) =>
          store.putDocument(
            documentOf(`shared-${round % 3}.md`, [
              `version${which}${round} lemur`,
              `part${which}${round} lemur`,
            ]),
          ),
        ),
      ),
    );
    const [store] = stores as [Store, Store];
    const documents = await store.documents('docs_dir');
    expect(documents.map(({ key }) => key)).toEqual(['shared-0.md', 'shared-1.md', 'shared-2.md']);
    const found = await store.lexical(['lemur'], { limit: 100 });
    const chunks = await store.entities(found.map(({ id }) => id));
    expect(chunks).toHaveLength(6);
    const hashes = documents.map(({ hash }) => hash).join(' ');
    for (const { content } of chunks) expect(hashes).toContain(content);
    expect((await store.stats()).entities).toMatchObject({ doc_file: 3, doc_chunk: 6 });
    expect((await store.stats()).relations.BELONGS_TO).toBe(6);
    // Removed by both: each document is counted by one of them.
    const keys = documents.map(({ key }) => key);
    const removed = await Promise.all(stores.map((one) => one.removeDocuments('docs_dir', keys)));
    expect(removed[0] + removed[1]).toBe(3);
    await Promise.all(stores.map((one) => one.close()));
  });

  test('a turn that one backend deletes while the other one indexes it is not found afterwards', async () => {
    const stores = await Promise.all([open(), open()]);
    const [one, two] = stores as [Store, Store];
    for (let n = 0; n < 20; n++) {
      const { turn: said } = await one.appendTurn(turn('racing', 'a racing tuatara'));
      const { session, message, belongs } = indexedTurn(said, vector(79));
      await Promise.all([
        one.erase({ sessions: ['racing'] }, {}),
        two.putEntities([session, message], [belongs], EMBEDDER, said.id),
      ]);
      expect(await two.lexical(['tuatara'], { limit: 9 })).toEqual([]);
      expect(await one.byName('racing', 1)).toEqual([]);
    }
    await Promise.all(stores.map((store) => store.close()));
  });
}

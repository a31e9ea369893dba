import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  DIMENSIONS,
  type EntityPlace,
  type EntitySearch,
  type NewEntity,
  type Store,
} from '../../../src/adapter/memory/store.ts';
import { MEMORY_STORE_LIMITS } from '../../../src/core/memory-limits.ts';
import { agentGraphContract } from './agent-graph-contract.ts';
import { erasureContract } from './erasure-contract.ts';
import { documentOf, EMBEDDER, entity, turn, vector } from './records.ts';

/** Where a kind of store keeps its data. `open` may be called again after `close` and finds what was stored. */
export interface Place {
  open(): Promise<Store>;
  remove(): Promise<void>;
}

/** Turns at once; PostgreSQL in process takes 18 ms for each. */
const CROWD = 300;

/** Texts that have broken stores: SQL, LIKE and full-text syntax, odd Unicode, prototype names. */
const HOSTILE = [
  `'; DROP TABLE memory_entities; --`,
  `" OR 1=1 --`,
  '$1 ?1 :a @b %s {0}',
  '100% _under_ \\ back\\slash',
  'NEAR("a" "b") AND NOT * ^ col:x ( { + -',
  '__proto__',
  'constructor',
  '\u202Eright to left\u202C',
  '👩‍👩‍👧‍👦 é é 漢字 \uFEFF',
  'line\r\nline\ttab\u0001\u001b[2J',
  '{"json": [1, null]}',
];

/** Everything that a store promises, against a real one. */
export function storeContract(name: string, place: () => Promise<Place>): void {
  describe(`${name}: `, () => {
    let at: Place;
    let store: Store;
    beforeAll(async () => {
      at = await place();
      store = await at.open();
    });
    afterAll(async () => {
      await store.close();
      await at.remove();
    });
    const current = (): Store => store;
    chat(current);
    documents(current);
    searching(current);
    graph(current);
    agentGraphContract(current);
    erasureContract(current);
    refusals(current);
    hostile(current);

    test('stored data is there after the store is closed and reopened', async () => {
      const session = 'kept session';
      const { turn: before } = await store.appendTurn(turn(session, 'kept'));
      await store.putDocument(documentOf('kept.md', ['a kept chunk about marmalade']));
      await store.setNote('kept', { deep: ['value'] });
      const statsBefore = await store.stats();
      await store.close();
      await expect(store.stats()).rejects.toMatchObject({ code: 'memory_unavailable' });
      store = await at.open();
      expect((await store.turns(session, { after: 0, limit: 9 }))?.turns).toEqual([before]);
      expect(await store.document('docs_dir', 'kept.md')).toMatchObject({ chunks: 1 });
      expect(await store.note('kept')).toEqual({ deep: ['value'] });
      expect({ ...(await store.stats()), bytes: 0 }).toEqual({ ...statsBefore, bytes: 0 });
      expect(await store.lexical(['marmalade'], { limit: 3 })).toHaveLength(1);
      const [nearest] = await store.nearest(vector(0), EMBEDDER, { limit: 1 });
      expect(nearest?.cosine).toBeCloseTo(1, 5);
      // The numbers of turns go on.
      const { turn: after } = await store.appendTurn(turn(session, 'more'));
      expect(after.seq).toBeGreaterThan(before.seq);
    });
  });
}

function chat(store: () => Store): void {
  test('a turn is returned as stored, with id, number and time', async () => {
    const before = Date.now();
    const { turn: stored, deduplicated } = await store().appendTurn({
      sessionId: 'one',
      agentId: 'planner',
      role: 'assistant',
      content: '  spaces stay  ',
    });
    expect(deduplicated).toBe(false);
    expect(stored).toMatchObject({
      sessionId: 'one',
      agentId: 'planner',
      role: 'assistant',
      content: '  spaces stay  ',
    });
    expect(stored.id).toMatch(/^[0-9a-f-]{36}$/);
    expect(stored.createdAt).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    expect(Date.parse(stored.createdAt)).toBeGreaterThanOrEqual(before);
    expect(await store().turns('one', { after: 0, limit: 10 })).toEqual({ turns: [stored], nextAfter: null });
  });

  test('turns are paged oldest first, and an unknown session differs from an empty page', async () => {
    for (let n = 0; n < 5; n++) await store().appendTurn(turn('pages', `${n}`));
    const seen: string[] = [];
    let after: number | null = 0;
    let pages = 0;
    while (after !== null) {
      const page = await store().turns('pages', { after, limit: 2 });
      seen.push(...(page?.turns ?? []).map(({ content }) => content));
      after = page?.nextAfter ?? null;
      pages++;
    }
    expect(seen).toEqual(['0', '1', '2', '3', '4']);
    expect(pages).toBe(3);
    expect(await store().turns('pages', { after: Number.MAX_SAFE_INTEGER, limit: 2 })).toEqual({
      turns: [],
      nextAfter: null,
    });
    expect(await store().turns('no such session', { after: 0, limit: 2 })).toBeUndefined();
  });

  test('a repeated idempotency key stores nothing, also in concurrent calls', async () => {
    const first = await store().appendTurn(turn('again', 'text', 'key-1'));
    const other = store().appendTurn(turn('again', 'other text', 'key-1'));
    await expect(other).rejects.toMatchObject({ code: 'memory_key_reused' });
    const second = await store().appendTurn(turn('again', 'text', 'key-1'));
    expect(second).toEqual({ turn: first.turn, deduplicated: true });
    const many = await Promise.all(
      Array.from({ length: 20 }, () => store().appendTurn(turn('again', 'at once', 'key-2'))),
    );
    expect(new Set(many.map(({ turn: { id } }) => id)).size).toBe(1);
    expect(many.filter(({ deduplicated }) => !deduplicated)).toHaveLength(1);
    expect((await store().turns('again', { after: 0, limit: 9 }))?.turns).toHaveLength(2);
    // Keys belong to their session.
    expect((await store().appendTurn(turn('another', 'text', 'key-1'))).deduplicated).toBe(false);
  });

  test('concurrent turns are all stored with ascending numbers', async () => {
    const stored = await Promise.all(
      Array.from({ length: CROWD }, (_, n) => store().appendTurn(turn('crowd', `${n}`))),
    );
    const page = await store().turns('crowd', { after: 0, limit: 1000 });
    expect(page?.turns.map(({ id }) => id).sort()).toEqual(stored.map(({ turn: { id } }) => id).sort());
    const numbers = page?.turns.map(({ seq }) => seq) ?? [];
    expect(new Set(numbers).size).toBe(CROWD);
    expect(numbers).toEqual([...numbers].sort((a, b) => a - b));
    const again = await store().turns('crowd', { after: 0, limit: 1000 });
    expect(again).toEqual(page);
    // Where turns of a session lock each other out, each waits for a disk.
  }, 60_000);

  test('sessions are paged latest first with their agents', async () => {
    for (const id of ['s-a', 's-b', 's-c']) await store().appendTurn(turn(id, 'x'));
    await store().appendTurn({ ...turn('s-a', 'y'), agentId: 'zebra' });
    const first = await store().sessions({ limit: 2 });
    expect(first.sessions.map(({ sessionId }) => sessionId)).toEqual(['s-a', 's-c']);
    expect(first.sessions[0]).toMatchObject({ turns: 2, agentIds: ['agent', 'zebra'] });
    const second = await store().sessions({ limit: 1, cursor: first.nextCursor ?? '' });
    expect(second.sessions.map(({ sessionId }) => sessionId)).toEqual(['s-b']);
    expect((await store().sessions({ limit: 1, cursor: 'nonsense' })).sessions).toEqual([]);
  });
}

function documents(store: () => Store): void {
  test('replacing a document removes its old chunks, words, vectors and edges and keeps edges of other entities', async () => {
    await store().putDocument(documentOf('guide.md', ['apples grow', 'pears fall']));
    await store().putEntities(
      [entity({ id: 'me' })],
      [
        { fromId: 'me', toId: 'file:guide.md', relationType: 'REFERENCES', weight: 0.5 },
        { fromId: 'me', toId: 'chunk:guide.md:1:pears fall', relationType: 'REFERENCES', weight: 0.5 },
      ],
      EMBEDDER,
    );
    await store().nearest(vector(1), EMBEDDER, { limit: 1 });
    await store().putDocument(documentOf('guide.md', ['apples grow', 'plums roll', 'figs']));
    expect(await store().document('docs_dir', 'guide.md')).toEqual({
      key: 'guide.md',
      origin: 'docs_dir',
      hash: 'hash of apples grow,plums roll,figs',
      id: 'file:guide.md',
      chunks: 3,
    });
    expect(await store().lexical(['pears'], { limit: 5 })).toEqual([]);
    expect(await store().lexical(['plums'], { limit: 5 })).toHaveLength(1);
    expect(await store().entities(['chunk:guide.md:1:pears fall'])).toEqual([]);
    const near = await store().nearest(vector(1), EMBEDDER, { limit: 50 });
    expect(near.map(({ id }) => id)).not.toContain('chunk:guide.md:1:pears fall');
    expect(near[0]?.id).toBe('chunk:guide.md:1:plums roll');
    const edges = await store().edges(['me', 'file:guide.md'], 'both', 50);
    expect(edges.filter(({ fromId }) => fromId === 'me')).toEqual([
      { fromId: 'me', toId: 'file:guide.md', relationType: 'REFERENCES', weight: 0.5 },
    ]);
    expect(edges.filter(({ relationType }) => relationType === 'BELONGS_TO')).toHaveLength(3);
  });

  test('a replaced document keeps the vectors and words of texts that it still has, at whichever place', async () => {
    const before = documentOf('turned.md', ['dugong one', 'dugong two', 'dugong three']);
    const [file, one, two, three] = before.entities;
    if (!file || !one || !two || !three) throw new Error('four entities');
    const entities = [file, one, two, { ...three, embedding: vector(97) }];
    await store().putDocument({ ...before, entities });
    const pending = await store().unembeddedCount(EMBEDDER);
    // The first and the last exchange their places, without vectors; the second is another text.
    const turned = [
      { ...three, id: one.id, name: 'now first' },
      { ...two, content: 'dugong four', searchText: 'dugong four' },
      { ...one, id: three.id },
    ].map((chunk) => ({ ...chunk, embedding: undefined }));
    await store().putDocument({
      ...documentOf('turned.md', []),
      hash: 'turned',
      entities: [file, ...turned],
      relations: [],
    });
    expect(await store().unembeddedCount(EMBEDDER)).toBe(pending + 1);
    const found = await store().lexical(['dugong'], { limit: 9 }, { vector: vector(97), embedder: EMBEDDER });
    const byText = new Map(
      found.map((each) => [each.content, [each.id, each.name, each.cosine?.toFixed(3)]]),
    );
    expect(Object.fromEntries(byText)).toEqual({
      'dugong one': [three.id, one.name, '0.000'],
      'dugong three': [one.id, 'now first', '1.000'],
      'dugong four': [two.id, two.name, undefined],
    });
    expect((await store().nearest(vector(97), EMBEDDER, { limit: 1 }))[0]?.id).toBe(one.id);
    await store().removeDocuments('docs_dir', ['turned.md']);
    expect(await store().lexical(['dugong'], { limit: 9 })).toEqual([]);
  });

  test('renamed documents keep everything but their key', async () => {
    await store().putDocument(documentOf('before.md', ['a bandicoot'], { relations: [] }));
    const record = await store().document('docs_dir', 'before.md');
    const renames = [
      { from: 'before.md', to: 'after.md' },
      { from: 'unknown', to: 'nowhere' },
    ];
    expect(await store().renameDocuments('docs_dir', renames)).toBe(1);
    expect(await store().document('docs_dir', 'before.md')).toBeUndefined();
    expect(await store().document('docs_dir', 'after.md')).toEqual({ ...record, key: 'after.md' });
    expect(await store().lexical(['bandicoot'], { limit: 9 })).toHaveLength(1);
    await expect(store().renameDocuments('docs_dir', [{ from: 'after.md', to: '' }])).rejects.toMatchObject({
      code: 'memory_invalid',
      message: expect.stringContaining('renames[0].to'),
    });
    await store().removeDocuments('docs_dir', ['after.md']);
  });

  test('entities outside of documents are removed with their relations', async () => {
    await store().putDocument(documentOf('housed.md', ['a tapir']));
    const relation = {
      fromId: 'file:housed.md',
      toId: 'house',
      relationType: 'BELONGS_TO',
      weight: 1,
    } as const;
    await store().putEntities([entity({ id: 'house' })], [relation], EMBEDDER);
    expect(await store().removeEntities(['house', 'file:housed.md', 'unknown'])).toBe(1);
    expect((await store().entities(['house', 'file:housed.md'])).map(({ id }) => id)).toEqual([
      'file:housed.md',
    ]);
    expect(await store().edges(['house'], 'both', 9)).toEqual([]);
    expect(await store().edges(['file:housed.md'], 'both', 9)).toHaveLength(1);
  });

  test('a rejected document changes nothing', async () => {
    await store().putDocument(documentOf('whole.md', ['first text']));
    const taken = documentOf('whole.md', ['second text']);
    await expect(
      store().putDocument({
        ...taken,
        entities: [...taken.entities, entity({ id: 'file:guide.md', type: 'doc_chunk' })],
      }),
    ).rejects.toMatchObject({ code: 'memory_invalid', message: expect.stringContaining('file:guide.md') });
    expect(await store().document('docs_dir', 'whole.md')).toMatchObject({ hash: 'hash of first text' });
    expect(await store().lexical(['second'], { limit: 5 })).toEqual([]);
  });

  test('documents are listed and removed by origin', async () => {
    await store().putDocument(documentOf('same key', ['from the folder quokka']));
    const called = documentOf('same key', ['from a call quokka'], { origin: 'ingest' });
    const renamed = called.entities.map((one) => ({ ...one, id: `ingest:${one.id}` }));
    await store().putDocument({ ...called, entities: renamed, relations: [] });
    expect((await store().documents('ingest')).map(({ key }) => key)).toEqual(['same key']);
    expect((await store().documents('docs_dir')).map(({ key }) => key)).toContain('same key');
    expect(await store().removeDocuments('docs_dir', ['same key', 'unknown'])).toBe(1);
    expect(await store().document('docs_dir', 'same key')).toBeUndefined();
    expect((await store().lexical(['quokka'], { limit: 5 })).map(({ id }) => id)).toEqual([renamed[1]?.id]);
    expect(await store().edges(['file:same key'], 'both', 5)).toEqual([]);
    expect(await store().removeDocuments('docs_dir', [])).toBe(0);
  });

  test('concurrently written documents are each complete', async () => {
    await Promise.all(
      Array.from({ length: 12 }, (_, n) =>
        store().putDocument(documentOf('contended.md', [`version ${n % 3} walrus`, `and ${n % 3} walrus`])),
      ),
    );
    const found = await store().lexical(['walrus'], { limit: 50 });
    expect(found).toHaveLength(2);
    const chunks = await store().entities(found.map(({ id }) => id));
    expect(new Set(chunks.map(({ content }) => /\d/.exec(content)?.[0])).size).toBe(1);
    const record = await store().document('docs_dir', 'contended.md');
    expect(record?.hash).toContain(chunks[0]?.content);
  });

  test('standalone entities are updated in place', async () => {
    await store().putEntities(
      [entity({ id: 'own', name: 'first', searchText: 'heron', embedding: vector(70) })],
      [],
      EMBEDDER,
    );
    await store().nearest(vector(70), EMBEDDER, { limit: 1 });
    await store().putEntities([entity({ id: 'own', name: 'second', searchText: 'egret' })], [], EMBEDDER);
    expect((await store().entities(['own']))[0]).toMatchObject({ name: 'second', searchText: 'egret' });
    expect(await store().lexical(['heron'], { limit: 5 })).toEqual([]);
    const near = await store().nearest(vector(70), EMBEDDER, { limit: 50 });
    expect(near.map(({ id }) => id)).not.toContain('own');
    await expect(store().putEntities([entity({ id: 'file:guide.md' })], [], EMBEDDER)).rejects.toMatchObject({
      code: 'memory_invalid',
    });
  });
}

function searching(store: () => Store): void {
  const points = (prefix: string, embedder: string): Promise<void> =>
    store().putEntities(
      [0, 0.2, 0.4, 0.6].map((tilt, n) =>
        entity({
          id: `${prefix}${n}`,
          type: n % 2 === 0 ? 'workspace' : 'chat_message',
          embedding: vector(100, tilt),
        }),
      ),
      [],
      embedder,
    );

  test('nearest returns exact cosines best first, filtered by type and embedder', async () => {
    await points('p', 'points/128');
    await points('other', 'points-2/128');
    const all = await store().nearest(vector(100), 'points/128', { limit: 10 });
    expect(all.map(({ id }) => id)).toEqual(['p0', 'p1', 'p2', 'p3']);
    for (const [n, tilt] of [0, 0.2, 0.4, 0.6].entries())
      expect(all[n]?.cosine).toBeCloseTo(Math.cos(tilt), 5);
    expect((await store().nearest(vector(100), 'points/128', { limit: 2 })).map(({ id }) => id)).toEqual([
      'p0',
      'p1',
    ]);
    const typed = await store().nearest(vector(100), 'points/128', { limit: 2, types: ['chat_message'] });
    expect(typed.map(({ id }) => id)).toEqual(['p1', 'p3']);
    expect(await store().nearest(vector(100), 'nobody', { limit: 2 })).toEqual([]);
    expect(await store().nearest(vector(100), 'points/128', { limit: 2, types: [] })).toEqual([]);
  });

  test('nearest finds entities stored after the first search, and its cosines agree', async () => {
    await store().nearest(vector(40), EMBEDDER, { limit: 1 });
    const bandicoot = { searchText: 'bandicoot', embedding: vector(40, 0.1) };
    const bare = { ...bandicoot, embedding: undefined };
    await store().putEntities(
      [entity({ id: 'late', ...bandicoot }), entity({ id: 'bare', ...bare })],
      [],
      EMBEDDER,
    );
    await store().putEntities([entity({ id: 'foreign', ...bandicoot })], [], 'foreign/128');
    const [late] = await store().nearest(vector(40), EMBEDDER, { limit: 1 });
    expect(late?.id).toBe('late');
    const compare = (to: Float32Array) =>
      store().lexical(['bandicoot'], { limit: 5 }, { vector: to, embedder: EMBEDDER });
    const compared = await compare(vector(40));
    const ids = compared.map(({ id }) => id);
    expect(compared.map(({ cosine: _, rank: __, ...one }) => one)).toEqual(await store().entities(ids));
    const { cosine: __, ...nearest } = late ?? { cosine: 0 };
    expect([nearest]).toEqual(await store().entities(['late']));
    const cosines = new Map(compared.map(({ id, cosine }) => [id, cosine]));
    expect([...cosines.keys()].sort()).toEqual(['bare', 'foreign', 'late']);
    expect(cosines.get('late')).toBeCloseTo(late?.cosine ?? 0, 5);
    expect([cosines.get('foreign'), cosines.get('bare')]).toEqual([undefined, undefined]);
    const away = (await compare(vector(40).map((value) => -value))).find(({ id }) => id === 'late');
    expect(away?.cosine).toBeCloseTo(-Math.cos(0.1), 5);
  });

  test('lexical search matches stems, ranks by matching words, filters by type and has no query syntax', async () => {
    await store().putEntities(
      [
        entity({ id: 'w1', searchText: 'The gateways of Zanzibar, configured.' }),
        entity({ id: 'w2', type: 'chat_message', searchText: 'Zanzibar only' }),
        entity({ id: 'w3', searchText: 'nothing of the kind' }),
      ],
      [],
      EMBEDDER,
    );
    const found = await store().lexical(['zanzibar', 'gateway', 'CONFIGURING'], { limit: 10 });
    expect(found.map(({ id }) => id)).toEqual(['w1', 'w2']);
    expect(found[0]?.rank).toBeGreaterThan(found[1]?.rank ?? 0);
    const typed = await store().lexical(['zanzibar'], { limit: 10, types: ['chat_message'] });
    expect(typed.map(({ id }) => id)).toEqual(['w2']);
    expect(await store().lexical(['zanzibar'], { limit: 1 })).toHaveLength(1);
    expect(await store().lexical([], { limit: 5 })).toEqual([]);
    expect(await store().lexical(['…', '', '"'], { limit: 5 })).toEqual([]);
    for (const text of HOSTILE) await store().lexical([text], { limit: 5 });
  });

  test('texts without spaces between words are found by pairs of letters, and names in them by words', async () => {
    const texts = ['設定はQuollfile.jsで変更します。', 'ไฟล์quollfileอยู่ที่นี่', '变更配置'];
    await store().putDocument(documentOf('unspaced', texts));
    const found = async (term: string) =>
      (await store().lexical([term], { limit: 5 })).map(({ content }) => content).sort();
    expect(await found('設定')).toEqual([texts[0]]);
    expect(await found('更し')).toEqual([texts[0]]);
    expect(await found('变更')).toEqual([texts[2]]);
    expect(await found('quollfile')).toEqual([texts[1], texts[0]].sort());
    expect((await store().frequencies(['変更'])).counts.get('変更')).toBe(1);
    await store().removeDocuments('docs_dir', ['unspaced']);
    expect(await found('設定')).toEqual([]);
  });

  test('of many texts, those with the rarest word are found, and its other words rank them', async () => {
    const many = (count: number, text: string): string[] => Array(count).fill(text);
    const texts = [...many(1_100, 'gnu'), ...many(600, 'ibis'), ...many(510, 'zebu'), 'zebu ibis'];
    const document = documentOf('many.md', texts, { hash: 'many', relations: [] });
    const entities = document.entities.map((one) => ({ ...one, embedding: undefined }));
    await store().putDocument({ ...document, entities });
    const found = await store().lexical(['ibis', 'zebu'], { limit: 600 });
    const types = [...new Set(entities.map(({ type }) => type))];
    const typed = await store().lexical(['ibis', 'zebu'], { limit: 600, types });
    await store().removeDocuments('docs_dir', ['many.md']);
    // Entities with the rarest word may all be of other types.
    expect(typed).toHaveLength(600);
    expect(found.map(({ id }) => id.split(':').at(-1))).toEqual(['zebu ibis', ...many(510, 'zebu')]);
  });

  test('a word in the title ranks above a word in a heading, and that above a word in the text', async () => {
    const filler = 'plain words that fill the passage';
    const fields = (title: string, heading: string, searchText: string) =>
      ({
        title: `${title} page`,
        heading: `${heading} part`,
        searchText: `${searchText} ${filler}`,
      }) as const;
    await store().putEntities(
      [
        entity({ id: 'in text', ...fields('some', 'some', 'numbat') }),
        entity({ id: 'in heading', ...fields('some', 'numbat', 'some') }),
        entity({ id: 'in title', ...fields('numbat', 'some', 'some') }),
      ],
      [],
      EMBEDDER,
    );
    const found = await store().lexical(['numbat'], { limit: 5 });
    expect(found.map(({ id }) => id)).toEqual(['in title', 'in heading', 'in text']);
    expect((await store().entities(['in title']))[0]).toMatchObject(fields('numbat', 'some', 'some'));
  });

  test('texts without a vector are listed in order until each has one of that embedder', async () => {
    const queue = 'queue/3';
    const point = (...values: number[]) => Float32Array.from(values);
    const all = async () => {
      const rows = [];
      for (let after = 0; ; ) {
        const page = await store().unembedded(queue, { after, limit: 7 });
        if (page.length === 0) return rows;
        rows.push(...page);
        after = page.at(-1)?.row ?? 0;
      }
    };
    await store().putVectors(
      queue,
      (await all()).map(({ row }) => ({ row, embedding: undefined })),
    );
    expect(await store().unembeddedCount(queue)).toBe(0);
    await store().putEntities(
      [
        entity({ id: 'q1', searchText: 'first', title: 'T', heading: 'H' }),
        entity({ id: 'q2', searchText: 'second' }),
        entity({ id: 'not searched' }),
        entity({ id: 'q3', searchText: 'third', embedding: point(0, 0, 1) }),
      ],
      [],
      queue,
    );
    const pending = await all();
    expect(pending).toMatchObject([
      { title: 'T', heading: 'H', searchText: 'first' },
      { title: '', heading: '', searchText: 'second' },
    ]);
    expect(await store().unembeddedCount(queue)).toBe(2);
    // Those of this test that are searched, and all of the tests before.
    expect(await store().textCount()).toBe(await store().unembeddedCount('no embedder/8'));
    // Written again in the meantime: its vector would be that of the old text.
    await store().putEntities([entity({ id: 'q2', searchText: 'changed' })], [], queue);
    await store().putVectors(
      queue,
      pending.map(({ row }) => ({ row, embedding: point(1, 0, 0) })),
    );
    expect((await all()).map(({ searchText }) => searchText)).toEqual(['changed']);
    const near = await store().nearest(point(1, 0, 0), queue, { limit: 5 });
    expect(near.map(({ id }) => id)).toEqual(['q1', 'q3']);
    const compared = await store().lexical(
      ['first', 'changed', 'third'],
      { limit: 50 },
      { vector: point(0, 0, 1), embedder: queue },
    );
    const cosines = new Map(compared.map(({ id, cosine }) => [id, cosine]));
    expect(['q1', 'q2', 'q3'].map((id) => [id, cosines.get(id)])).toEqual([
      ['q1', 0],
      ['q2', undefined],
      ['q3', 1],
    ]);
    // Vectors of other lengths are not compared.
    expect(await store().nearest(point(1, 0), queue, { limit: 5 })).toEqual([]);
    expect(await store().keepVectorsOf(EMBEDDER)).toBeGreaterThan(2);
    expect(await store().nearest(point(1, 0, 0), queue, { limit: 5 })).toEqual([]);
    expect((await store().nearest(vector(0), EMBEDDER, { limit: 1 })).length).toBe(1);
  });

  test.each([384, 1536, 3072, 4096])('vectors of %i numbers are stored and compared', async (length) => {
    const space = `long/${length}`;
    const unit = (place: number) => new Float32Array(length).fill(1, place, place + 1);
    await store().putEntities(
      [0, 1, length - 1].map((place) =>
        entity({ id: `${space} ${place}`, searchText: 'long', embedding: unit(place) }),
      ),
      [],
      space,
    );
    const [best, second] = await store().nearest(unit(length - 1), space, { limit: 2 });
    expect(best?.id).toBe(`${space} ${length - 1}`);
    expect([best?.cosine, second?.cosine]).toEqual([1, 0]);
  });

  test('frequencies count entities by stem, including stop words', async () => {
    const before = await store().frequencies(['okapi', 'okapis', 'the', 'absent', '…']);
    expect(before.counts.get('okapi')).toBe(0);
    await store().putEntities(
      [1, 2, 3].map((n) => entity({ id: `okapi${n}`, searchText: `the okapi okapi number ${n}` })),
      [],
      EMBEDDER,
    );
    const after = await store().frequencies(['okapi', 'okapis', 'the', 'absent', '…']);
    expect(after.total).toBe(before.total + 3);
    expect(after.counts.get('okapi')).toBe(3);
    expect(after.counts.get('okapis')).toBe(3);
    expect(after.counts.get('the')).toBe((before.counts.get('the') ?? 0) + 3);
    expect(after.counts.get('absent')).toBe(0);
    expect(after.counts.get('…')).toBe(0);
  });
}

function graph(store: () => Store): void {
  test('entities are returned in the requested order without unknown ids', async () => {
    const list: NewEntity[] = ['e1', 'e2', 'e3'].map((id) => entity({ id }));
    await store().putEntities(list, [], EMBEDDER);
    const found = await store().entities(['e3', 'unknown', 'e1']);
    expect(found.map(({ id }) => id)).toEqual(['e3', 'e1']);
    expect(found[0]).toEqual({
      id: 'e3',
      name: 'name of e3',
      type: 'workspace',
      content: 'content of e3',
      metadata: {},
      title: '',
      heading: '',
      searchText: '',
    });
    expect(await store().entities([])).toEqual([]);
  });

  test('lookup by name is exact and returns workspaces before files before chunks', async () => {
    await store().putEntities(
      [
        entity({ id: 'n3', name: 'Shared Name', type: 'chat_message' }),
        entity({ id: 'n1', name: 'Shared Name', type: 'workspace' }),
        entity({ id: 'n2', name: 'shared name', type: 'workspace' }),
      ],
      [],
      EMBEDDER,
    );
    expect((await store().byName('Shared Name', 5)).map(({ id }) => id)).toEqual(['n1', 'n3']);
    expect(await store().byName('Shared%', 5)).toEqual([]);
  });

  test('similar names include misspelled ones, the nearest first', async () => {
    await store().putEntities(
      ['Getting Started', 'Getting Stung', 'Rate Limits', '100%_sure'].map((name, n) =>
        entity({ id: `near${n}`, name }),
      ),
      [],
      EMBEDDER,
    );
    expect((await store().similarNames('geting started', 3))[0]).toBe('Getting Started');
    expect(await store().similarNames('getting-strated', 1)).toEqual(['Getting Started']);
    expect(await store().similarNames('100%_sur', 5)).toEqual(['100%_sure']);
    expect(await store().similarNames('xyzzy qwfp', 5)).toEqual([]);
    for (const text of HOSTILE) await store().similarNames(text, 5);
  });

  test('edges are returned by direction, heaviest first and once each, including cycles and self-loops', async () => {
    const edge = (fromId: string, toId: string, weight: number) =>
      ({ fromId, toId, relationType: 'DEPENDS_ON', weight }) as const;
    const all = [
      edge('g1', 'g2', 0.9),
      edge('g2', 'g1', 0.8),
      edge('g1', 'g1', 0.7),
      edge('g3', 'gone', 0.6),
    ];
    await store().putEntities(
      ['g1', 'g2', 'g3'].map((id) => entity({ id })),
      all,
      EMBEDDER,
    );
    expect(await store().edges(['g1'], 'out', 9)).toEqual([all[0], all[2]]);
    expect(await store().edges(['g1'], 'in', 9)).toEqual([all[1], all[2]]);
    expect(await store().edges(['g1', 'g2', 'g3'], 'both', 9)).toEqual(all);
    expect(await store().edges(['g1', 'g2', 'g3'], 'both', 2)).toEqual(all.slice(0, 2));
    expect(await store().edges([], 'both', 2)).toEqual([]);
    await store().putEntities([], [edge('g1', 'g2', 0.1)], EMBEDDER);
    expect((await store().edges(['g2'], 'in', 9))[0]?.weight).toBe(0.1);
  });

  test('the topology is paged by id and filtered by type', async () => {
    const total = Object.values((await store().stats()).entities).reduce((sum, n) => sum + n, 0);
    const ids: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await store().topology({ limit: 7, cursor });
      ids.push(...page.nodes.map(({ id }) => id));
      cursor = page.nextCursor ?? undefined;
    } while (cursor !== undefined);
    expect(ids).toHaveLength(total);
    expect(new Set(ids).size).toBe(total);
    const files = await store().topology({ limit: 1000, types: ['doc_file'] });
    expect(new Set(files.nodes.map(({ type }) => type))).toEqual(new Set(['doc_file']));
    expect(files.nodes[0]).toEqual({ id: expect.any(String), name: expect.any(String), type: 'doc_file' });
  });

  test('entities are searched by name and by words of their content, paged by name, and filtered by type', async () => {
    const common = { type: 'entity', content: '' } as const;
    await store().putEntities(
      [
        entity({ ...common, id: 'q1', name: 'Dugong 100%', searchText: 'a small animal' }),
        entity({ ...common, id: 'q2', name: 'dugong_park', searchText: 'visited by many' }),
        entity({
          ...common,
          id: 'q3',
          name: 'Perupper',
          searchText: 'an island with every dugong and its park',
        }),
        entity({ ...common, id: 'q4', name: 'Dugong 100%', type: 'workspace' }),
      ],
      [],
      EMBEDDER,
    );
    const found = async (request: Omit<EntitySearch, 'limit'>): Promise<string[]> => {
      const ids: string[] = [];
      let after: EntityPlace | undefined;
      do {
        const page = await store().searchEntities({ ...request, after, limit: 1 });
        ids.push(...page.entities.map(({ id }) => id));
        after = page.next ?? undefined;
      } while (after !== undefined);
      return ids;
    };
    expect(await found({ query: 'dugong' })).toEqual(['q1', 'q4', 'q3', 'q2']);
    expect(await found({ query: 'DUGONG', types: ['entity'] })).toEqual(['q1', 'q3', 'q2']);
    expect(await found({ query: 'Dugong Park' })).toEqual(['q3', 'q2']);
    expect(await found({ query: 'erupp' })).toEqual(['q3']);
    for (const query of ['%', '_', "'", '"', '* ^', 'dugong AND NOT small'])
      expect([query, await found({ query })]).toEqual([query, []]);
    const { entities } = await store().stats();
    const all = await store().searchEntities({ limit: 1000 });
    expect(all.entities).toHaveLength(Object.values(entities).reduce((sum, n) => sum + n, 0));
    expect(all.next).toBe(null);
  });

  test('stats count the stored entities', async () => {
    const before = await store().stats();
    await store().putDocument(documentOf('counted.md', ['one', 'two']));
    await store().appendTurn(turn('counted', 'x'));
    const after = await store().stats();
    expect(after.entities.doc_chunk).toBe(before.entities.doc_chunk + 2);
    expect(after.relations.BELONGS_TO).toBe(before.relations.BELONGS_TO + 2);
    expect(after.documents).toBe(before.documents + 1);
    expect(after.turns).toBe(before.turns + 1);
    expect(after.sessions).toBe(before.sessions + 1);
    expect(after.bytes).toBeGreaterThan(0);
  });

  test('a named task runs once at a time, and its name is free again after a failure', async () => {
    const gate = Promise.withResolvers<void>();
    const entered = Promise.withResolvers<void>();
    const first = store().exclusively('sync', async () => {
      entered.resolve();
      await gate.promise;
      return 'first';
    });
    await entered.promise;
    expect(await store().exclusively('sync', async () => 'second')).toBeUndefined();
    expect(await store().exclusively('other', async () => 'other')).toBe('other');
    gate.resolve();
    expect(await first).toBe('first');
    await expect(store().exclusively('sync', () => Promise.reject(new Error('failed')))).rejects.toThrow(
      'failed',
    );
    expect(await store().exclusively('sync', async () => 'third')).toBe('third');
  });

  test('notes are replaced, and unknown notes are undefined', async () => {
    await store().setNote('n', { at: 1 });
    await store().setNote('n', [2]);
    expect(await store().note('n')).toEqual([2]);
    expect(await store().note('unknown')).toBeUndefined();
  });
}

function refusals(store: () => Store): void {
  const refused = (problem: string) => ({
    code: 'memory_invalid',
    message: expect.stringContaining(problem),
  });
  const withVector = (embedding: Float32Array): Promise<void> =>
    store().putEntities([entity({ id: 'bad', embedding })], [], EMBEDDER);

  test.each([
    ['of no numbers', new Float32Array()],
    ['of 16,001 numbers', new Float32Array(16_001)],
    ['of zeros', new Float32Array(DIMENSIONS)],
    ['with NaN', vector(0).map((value, n) => (n === 5 ? Number.NaN : value))],
    ['with Infinity', vector(0).map((value, n) => (n === 5 ? Infinity : value))],
    ['of length 2', vector(0).map((value) => value * 2)],
    ['of denormals', new Float32Array(DIMENSIONS).fill(1e-42)],
  ])('a vector %s is rejected in storing and searching', async (_, bad) => {
    await expect(withVector(bad)).rejects.toMatchObject(refused('entities[0].embedding'));
    await expect(store().nearest(bad, EMBEDDER, { limit: 1 })).rejects.toMatchObject(refused('vector'));
    await expect(
      store().lexical(['x'], { limit: 1 }, { vector: bad, embedder: EMBEDDER }),
    ).rejects.toMatchObject(refused('vector'));
  });

  test.each([0, -1, 1.5, Number.NaN, Infinity, MEMORY_STORE_LIMITS.page + 1])(
    'the limit %s is rejected',
    async (limit) => {
      await expect(store().sessions({ limit })).rejects.toMatchObject(refused('limit'));
      await expect(store().turns('s', { after: 0, limit })).rejects.toMatchObject(refused('limit'));
      await expect(store().edges(['a'], 'out', limit)).rejects.toMatchObject(refused('limit'));
      await expect(store().lexical(['a'], { limit })).rejects.toMatchObject(refused('limit'));
    },
  );

  test('text that cannot be stored losslessly is rejected with the field name', async () => {
    for (const bad of ['a\0b', 'half \ud83d', '\udc00']) {
      await expect(store().appendTurn(turn('s', bad))).rejects.toMatchObject(refused('content'));
      await expect(store().appendTurn(turn(bad, 'x'))).rejects.toMatchObject(refused('sessionId'));
      await expect(store().putEntities([entity({ content: bad })], [], EMBEDDER)).rejects.toMatchObject(
        refused('entities[0].content'),
      );
      await expect(store().byName(bad, 1)).rejects.toMatchObject(refused('name'));
      await expect(store().entities([bad])).rejects.toMatchObject(refused('id[0]'));
    }
  });

  test('unknown, duplicate and empty values are rejected', async () => {
    const bad = (fields: object): Promise<unknown> =>
      store().appendTurn({ ...turn('s', 'x'), ...fields } as never);
    await expect(bad({ role: 'root' })).rejects.toMatchObject(
      refused('role: expected one of user, assistant'),
    );
    await expect(bad({ sessionId: '' })).rejects.toMatchObject(refused('sessionId'));
    await expect(
      store().putEntities([entity({ type: 'thing' as never })], [], EMBEDDER),
    ).rejects.toMatchObject(refused('entities[0].type'));
    await expect(
      store().putEntities([entity({ id: 'twice' }), entity({ id: 'twice' })], [], EMBEDDER),
    ).rejects.toMatchObject(refused('entities[1].id'));
    const relation = { fromId: 'a', toId: 'b', relationType: 'LIKES' as never, weight: 1 };
    await expect(store().putEntities([], [relation], EMBEDDER)).rejects.toMatchObject(
      refused('relations[0]'),
    );
    await expect(
      store().putEntities([], [{ ...relation, relationType: 'REFERENCES', weight: Number.NaN }], EMBEDDER),
    ).rejects.toMatchObject(refused('relations[0].weight'));
  });
}

function hostile(store: () => Store): void {
  test.each(HOSTILE)('the text %j is treated as plain text in every field', async (text) => {
    const { turn: stored } = await store().appendTurn({
      sessionId: text,
      agentId: text,
      role: 'user',
      content: text,
      idempotencyKey: text,
    });
    expect((await store().turns(text, { after: 0, limit: 5 }))?.turns).toEqual([stored]);
    const hostileEntity = entity({
      id: text,
      name: text,
      content: text,
      searchText: text,
      metadata: JSON.parse(`{"__proto__": ${JSON.stringify(text)}, "constructor": {"x": "\\u0000\\ud800"}}`),
    });
    const relation = { fromId: text, toId: text, relationType: 'REFERENCES', weight: 1 } as const;
    await store().putEntities([hostileEntity], [relation], EMBEDDER);
    const [found] = await store().entities([text]);
    expect(JSON.stringify(found?.metadata)).toBe(JSON.stringify(hostileEntity.metadata));
    expect(found).toMatchObject({ id: text, name: text, content: text, searchText: text });
    expect((await store().byName(text, 5)).map(({ id }) => id)).toEqual([text]);
    expect(await store().edges([text], 'both', 5)).toEqual([relation]);
    await store().setNote(text, text);
    expect(await store().note(text)).toBe(text);
    await store().putDocument(documentOf(text, [text]));
    expect(await store().document('docs_dir', text)).toMatchObject({ key: text });
    expect(await store().removeDocuments('docs_dir', [text])).toBe(1);
  });

  test('a text of a megabyte is stored and returned', async () => {
    const content = '0123456789abcdé '.repeat(64 * 1024);
    const { turn: stored } = await store().appendTurn(turn('long', content));
    expect(stored.content === content).toBe(true);
    await store().putEntities([entity({ id: 'long', content, searchText: content })], [], EMBEDDER);
    expect((await store().entities(['long']))[0]?.searchText === content).toBe(true);
  });
}

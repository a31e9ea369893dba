import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { OPERATIONS } from '../../../src/adapter/memory/sql/operations.ts';
import type { NamespacedStore, Store } from '../../../src/adapter/memory/store.ts';
import { documentOf, EMBEDDER, entity, turn, vector } from './records.ts';

/** Where a kind of store keeps its data. `open` may be called again after `close`. */
export interface NamespacedPlace {
  open(): Promise<NamespacedStore>;
  remove(): Promise<void>;
}

/** Names that are special to file systems, SQL, URLs or JavaScript. */
const NAMES = [
  '..',
  '.',
  '../default',
  'a/b',
  'a\\b',
  'CON',
  'con',
  'nul.db',
  'Case',
  'case',
  '%2e%2e',
  '%',
  '~',
  '-',
  'trailing.',
  '.hidden',
  `'; DROP SCHEMA public; --`.replaceAll(' ', '_'),
  '"quoted"',
  'public',
  'pg_catalog',
  '__proto__',
  'constructor',
  'auth0|5f7c8ec7c33c6c004bbafe82',
  'alice@example.com',
  'x'.repeat(80),
  'X'.repeat(80),
];

const PAGE = { limit: 1000 };

/** What a store promises about namespaces, against a real one. */
export function namespacesContract(kind: string, place: () => Promise<NamespacedPlace>): void {
  describe(`namespaces of ${kind}: `, () => {
    let at: NamespacedPlace;
    let store: NamespacedStore;
    beforeAll(async () => {
      at = await place();
      store = await at.open();
    });
    afterAll(async () => {
      await store.close();
      await at.remove();
    });
    const names = async (): Promise<string[]> =>
      (await store.namespaces(PAGE)).namespaces.map(({ name }) => name);

    test('an unknown namespace reads as empty, and neither reads nor deletions create it', async () => {
      await fill(store, 'of default');
      const unknown = store.namespace('unknown');
      const reads: { readonly [Name in keyof typeof OPERATIONS]?: unknown } = {
        sessions: await unknown.sessions(PAGE),
        turns: await unknown.turns('shared', { after: 0, limit: 10 }),
        document: await unknown.document('ingest', 'shared.md'),
        documents: await unknown.documents('ingest'),
        nearest: await unknown.nearest(vector(0), EMBEDDER, { limit: 10 }),
        lexical: await unknown.lexical(['lemur'], { limit: 10 }),
        frequencies: await unknown.frequencies(['lemur']),
        entities: await unknown.entities(['node']),
        byName: await unknown.byName('shared.md', 10),
        similarNames: await unknown.similarNames('shared', 10),
        edges: await unknown.edges(['node'], 'both', 10),
        searchEntities: await unknown.searchEntities({ limit: 9, query: 'secret' }),
        topology: await unknown.topology(PAGE),
        stats: await unknown.stats(),
        readTexts: await unknown.readTexts(['node']),
        storedTimes: await unknown.storedTimes(['node']),
        agentGraph: await unknown.agentGraph({}),
        agentRelations: await unknown.agentRelations(PAGE),
        searchTurns: await unknown.searchTurns({ query: 'default', order: 'newest', limit: 10 }),
        relatedTurns: await unknown.relatedTurns({ terms: ['default'], ids: ['unknown'], limit: 10 }),
        erase: await unknown.erase({ about: 'lemur', sessions: ['shared'], entities: ['Ann'] }, {}),
        unembedded: await unknown.unembedded(EMBEDDER, { after: 0, limit: 10 }),
        unembeddedCount: await unknown.unembeddedCount(EMBEDDER),
        textCount: await unknown.textCount(),
        putVectors: await unknown.putVectors(EMBEDDER, [{ row: 1, embedding: vector(0) }]),
        keepVectorsOf: await unknown.keepVectorsOf(EMBEDDER),
        note: await unknown.note('shared'),
        putExtraction: await unknown.putExtraction({ row: 1, entities: [], relations: [], outdated: [] }),
        removeEntities: await unknown.removeEntities(['file:shared.md']),
        renameDocuments: await unknown.renameDocuments('ingest', [{ from: 'shared.md', to: 'other.md' }]),
        removeDocuments: await unknown.removeDocuments('ingest', ['shared.md']),
        setNote: await unknown.setNote('shared', 1),
        expire: await unknown.expire({ turns: '2999', entities: '2999' }, 10),
      };
      expect(reads).toMatchObject({
        sessions: { sessions: [], nextCursor: null },
        turns: undefined,
        document: undefined,
        documents: [],
        nearest: [],
        lexical: [],
        frequencies: { total: 0 },
        entities: [],
        byName: [],
        similarNames: [],
        edges: [],
        searchEntities: { entities: [], next: null },
        topology: { nodes: [], nextCursor: null },
        stats: { turns: 0, sessions: 0, documents: 0, bytes: 0 },
        readTexts: new Map(),
        storedTimes: new Map(),
        agentGraph: { entities: [], relations: [], nextCursor: null },
        agentRelations: { relations: [], nextCursor: null },
        searchTurns: { turns: [], nextCursor: null },
        relatedTurns: { turns: [], total: 0, counts: new Map() },
        erase: { counts: { entities: 0, observations: 0, relations: 0, turns: 0, documents: 0 } },
        unembedded: [],
        unembeddedCount: 0,
        textCount: 0,
        putVectors: undefined,
        keepVectorsOf: 0,
        note: undefined,
        putExtraction: undefined,
        removeEntities: 0,
        renameDocuments: 0,
        removeDocuments: 0,
        setNote: undefined,
        expire: 0,
      });
      // A new operation needs its line above, unless it brings the namespace into being.
      const others = Object.entries(OPERATIONS).flatMap(([name, { creates }]) => (creates ? [] : [name]));
      expect(Object.keys(reads).sort()).toEqual(others.sort());
      expect(await names()).toEqual(['default']);
    });

    test('namespaces with the same ids, keys and words see only their own data', async () => {
      const [one, two] = [store.namespace('one'), store.namespace('two')];
      const before = await seen(store);
      await fill(one, 'of one');
      const alone = await seen(one);
      await fill(two, 'of two');
      await two.putDocument(documentOf('more.md', ['lemur lemur', 'zebra'], { origin: 'ingest' }));
      expect(await seen(store)).toEqual(before);
      expect(await seen(one)).toEqual(alone);
      expect(JSON.stringify(alone)).not.toMatch(/of two|of default|more\.md/);
      expect(JSON.stringify(await seen(two))).not.toMatch(/of one|of default/);
      expect((await one.frequencies(['zebra', 'lemur'])).counts).toEqual(
        new Map([
          ['zebra', 0],
          ['lemur', 1],
        ]),
      );
      // The idempotency key of one stored nothing in the other, but does so in its own.
      expect((await two.appendTurn(turn('shared', 'of two', 'key'))).deduplicated).toBe(true);
    });

    test('what is erased in one namespace stays in the others', async () => {
      const [erased, kept] = [store.namespace('erased'), store.namespace('left')];
      await fill(erased, 'of erased');
      await fill(kept, 'of left');
      const before = await seen(kept);
      const { deleted } = await erased.erase({ about: 'lemur', sessions: ['shared'], entities: ['Ann'] }, {});
      expect(deleted).toBe(true);
      expect((await erased.stats()).turns).toBe(0);
      expect(await seen(kept)).toEqual(before);
    });

    test('a deleted namespace is gone, the others are not, and a new one of that name is empty', async () => {
      const [gone, kept] = [store.namespace('gone'), store.namespace('kept')];
      await fill(gone, 'of gone');
      await fill(kept, 'of kept');
      const before = await seen(kept);
      expect(await store.removeNamespace('gone')).toBe(true);
      expect(await store.removeNamespace('gone')).toBe(false);
      expect(await names()).not.toContain('gone');
      expect((await gone.stats()).turns).toBe(0);
      expect(await seen(kept)).toEqual(before);
      await gone.appendTurn(turn('new', 'fresh'));
      const { sessions } = await gone.sessions(PAGE);
      expect(sessions.map(({ sessionId }) => sessionId)).toEqual(['new']);
      expect(await gone.lexical(['lemur'], { limit: 10 })).toEqual([]);
    });

    test('the namespace `default` cannot be deleted', async () => {
      expect(await store.removeNamespace('default')).toBe(false);
      expect((await store.stats()).turns).toBeGreaterThan(0);
    });

    test('special names are namespaces like others, also after the store was reopened', async () => {
      for (const name of NAMES) await store.namespace(name).appendTurn(turn('s', name));
      await store.close();
      store = await at.open();
      expect(await names()).toEqual(expect.arrayContaining(NAMES));
      for (const name of NAMES) {
        const page = await store.namespace(name).turns('s', { after: 0, limit: 10 });
        expect(page?.turns.map(({ content }) => content)).toEqual([name]);
      }
      for (const name of NAMES) expect(await store.removeNamespace(name)).toBe(true);
      expect((await store.stats()).turns).toBeGreaterThan(0);
    });

    test('namespaces are listed by name with their sizes, a page at a time', async () => {
      for (const name of ['p1', 'p2', 'p3']) await store.namespace(name).appendTurn(turn('s', 'x'));
      const all = await store.namespaces(PAGE);
      expect(all.nextCursor).toBeNull();
      expect(all.namespaces.map(({ name }) => name)).toEqual(all.namespaces.map(({ name }) => name).sort());
      for (const { bytes } of all.namespaces) expect(bytes).toBeGreaterThan(1000);
      const paged: string[] = [];
      for (let cursor: string | null | undefined; cursor !== null; ) {
        const page = await store.namespaces({ limit: 2, cursor });
        paged.push(...page.namespaces.map(({ name }) => name));
        cursor = page.nextCursor;
      }
      expect(paged).toEqual(all.namespaces.map(({ name }) => name));
    });

    test('a task that is exclusive in one namespace does not block another one', async () => {
      const [one, two] = [store.namespace('one'), store.namespace('two')];
      const both = await one.exclusively('task', async () => [
        await two.exclusively('task', async () => 'ran'),
        await one.exclusively('task', async () => 'ran'),
      ]);
      expect(both).toEqual(['ran', undefined]);
    });
  });
}

/** The same ids, keys and words everywhere, with texts of the namespace. */
async function fill(store: Store, text: string): Promise<void> {
  await store.appendTurn(turn('shared', text, 'key'));
  await store.putDocument(documentOf('shared.md', [`lemur ${text}`], { origin: 'ingest' }));
  await store.putEntities([entity({ id: 'node', name: 'node', content: text })], [], EMBEDDER);
  await store.changeGraph({
    createEntities: [
      { name: 'Ann', entityType: 'person', observations: [text] },
      { name: text, entityType: 'text', observations: [] },
    ],
    createRelations: [{ from: 'Ann', to: text, relationType: 'knows' }],
  });
  await store.setNote('shared', text);
}

/** Everything that a store can be asked, except sizes. */
async function seen(store: Store): Promise<object> {
  const topology = await store.topology(PAGE);
  const found = await store.lexical(['lemur', 'zebra'], { limit: 100 });
  const frequencies = await store.frequencies(['lemur', 'zebra']);
  return {
    stats: { ...(await store.stats()), bytes: 0 },
    sessions: await store.sessions(PAGE),
    turns: await store.turns('shared', { after: 0, limit: 100 }),
    documents: await store.documents('ingest'),
    entities: await store.entities(topology.nodes.map(({ id }) => id)),
    byName: await store.byName('node', 10),
    found,
    nearest: await store.nearest(vector(0), EMBEDDER, { limit: 100 }),
    agents: await store.agentGraph({}),
    agentRelations: await store.agentRelations(PAGE),
    earlier: await store.searchTurns({ query: 'of', order: 'newest', limit: 10 }),
    related: await store.relatedTurns({ terms: ['of'], ids: [], limit: 10 }),
    forgettable: await store.erase({ about: 'of' }, { preview: true }),
    unembedded: await store.unembedded(EMBEDDER, { after: 0, limit: 10 }),
    frequencies: [frequencies.total, ...frequencies.counts],
    note: await store.note('shared'),
  };
}

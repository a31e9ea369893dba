import { describe, expect, test } from 'vitest';
import { walkGraph } from '../../../src/adapter/memory/graph.ts';
import type { EntityType, NewEntity, Relation } from '../../../src/adapter/memory/store.ts';
import { memoryBackend } from '../../kit/memory-backend.ts';
import { type FakeStore, fakeStore } from './fake-store.ts';

const entity = (id: string, name = id, type: EntityType = 'doc_file'): NewEntity => ({
  id,
  name,
  type,
  content: `About ${name}.`,
  metadata: {},
  embedding: undefined,
  searchText: '',
});
const edge = (fromId: string, toId: string): Relation => ({
  fromId,
  toId,
  relationType: 'REFERENCES',
  weight: 1,
});

/** `a>b` is an edge; every name in it an entity. */
async function graph(...edges: readonly string[]): Promise<FakeStore> {
  const store = fakeStore();
  const ends = edges.map((text) => text.split('>') as [string, string]);
  await store.putEntities(
    [...new Set(ends.flat())].map((id) => entity(id)),
    ends.map(([from, to]) => edge(from, to)),
    'none',
  );
  return store;
}

async function walked(
  store: FakeStore,
  entityId: string,
  maxDepth: number,
  direction?: 'out' | 'in' | 'both',
) {
  const response = await walkGraph(store, { entityId, maxDepth, direction });
  if (response.root === undefined) throw new Error('nothing found');
  return {
    nodes: response.nodes.map(({ id, depth }) => `${id}${depth}`),
    edges: response.edges.map(({ fromId, toId }) => `${fromId}>${toId}`),
    truncated: response.truncated,
  };
}

test.each([
  ['guide/ports.mdx', 'Ports'],
  ['docs/guide/ports.mdx', 'Ports'],
  ['./guide/ports.mdx', 'Ports'],
  ['/docs/guide/ports.mdx', 'Ports'],
  ['guide', 'docs/guide'],
  ['docs/guide/', 'docs/guide'],
  ['docs', 'docs'],
])('a graph walk begins at the path %s, with and without the name of the docs folder', async (path, name) => {
  await using backend = await memoryBackend({
    docs: { 'guide/ports.mdx': '# Ports\n\nThe gateway listens on port 8080.\n' },
  });
  const { status, body } = await backend.get(`graph?entityId=${encodeURIComponent(path)}&maxDepth=1`);
  expect([status, body.root?.name]).toEqual([200, name]);
});

describe('a graph walk', () => {
  test('a graph walk goes level by level in both directions and visits each entity once', async () => {
    const store = await graph('a>b', 'b>c', 'c>a', 'd>a', 'c>e', 'e>e');
    expect(await walked(store, 'a', 1)).toEqual({
      nodes: ['a0', 'b1', 'c1', 'd1'],
      edges: ['a>b', 'c>a', 'd>a'],
      truncated: false,
    });
    expect((await walked(store, 'a', 2)).nodes).toEqual(['a0', 'b1', 'c1', 'd1', 'e2']);
    expect((await walked(store, 'a', 5)).edges).toEqual(['a>b', 'c>a', 'd>a', 'b>c', 'c>e', 'e>e']);
  });

  test('a graph walk follows only the requested direction', async () => {
    const store = await graph('a>b', 'b>c', 'd>a');
    expect((await walked(store, 'a', 5, 'out')).nodes).toEqual(['a0', 'b1', 'c2']);
    expect((await walked(store, 'a', 5, 'in')).nodes).toEqual(['a0', 'd1']);
  });

  test('a graph walk at depth 0 returns only the root, and the maximum depth is 5', async () => {
    const store = await graph('a>b', 'b>c', 'c>d', 'd>e', 'e>f', 'f>g');
    expect(await walked(store, 'a', 0)).toEqual({ nodes: ['a0'], edges: [], truncated: false });
    expect((await walked(store, 'a', 1e6)).nodes.at(-1)).toBe('f5');
  });

  test('a graph walk of a hub is truncated at its limits and says so, and every edge ends inside the result', async () => {
    const store = await graph(...Array.from({ length: 3_000 }, (_, index) => `hub>n${index}`));
    const response = await walkGraph(store, { entityId: 'hub', maxDepth: 2 });
    if (response.root === undefined) throw new Error('nothing found');
    expect([response.nodes.length, response.truncated]).toEqual([200, true]);
    const there = new Set(response.nodes.map(({ id }) => id));
    expect(response.edges).toHaveLength(199);
    expect(response.edges.every(({ fromId, toId }) => there.has(fromId) && there.has(toId))).toBe(true);
    const most = await walkGraph(store, { entityId: 'hub', maxDepth: 2, limit: 1e6 });
    expect(most.root === undefined ? 0 : most.nodes.length).toBe(500);
  });

  test('a graph walk between few nodes has at most 2,000 edges', async () => {
    const names = Array.from({ length: 60 }, (_, index) => `n${index}`);
    const store = await graph(...names.flatMap((from) => names.map((to) => `${from}>${to}`)));
    const { edges, truncated } = await walked(store, 'n0', 3);
    expect([edges.length, truncated]).toEqual([2_000, true]);
  });

  test('a graph walk leaves out edges to missing entities', async () => {
    const store = await graph('a>b');
    await store.putEntities([], [edge('a', 'gone')], 'none');
    expect(await walked(store, 'a', 2)).toEqual({ nodes: ['a0', 'b1'], edges: ['a>b'], truncated: false });
  });
});

describe('the start of a graph walk', () => {
  test('a graph walk prefers an id over a name and a wider type over a narrower one, and lists the alternatives', async () => {
    const store = fakeStore();
    await store.putEntities(
      [
        entity('1', 'Setup', 'doc_chunk'),
        entity('2', 'Setup', 'workspace'),
        entity('3', 'Setup'),
        entity('Setup2', '1'),
      ],
      [],
      'none',
    );
    const byName = await walkGraph(store, { entityId: 'Setup', maxDepth: 1 });
    expect(byName.root).toEqual({ id: '2', name: 'Setup', type: 'workspace' });
    expect(byName.root === undefined ? [] : byName.ambiguous?.map(({ id }) => id)).toEqual(['3', '1']);
    const byId = await walkGraph(store, { entityId: '1', maxDepth: 1 });
    expect(byId.root?.id).toBe('1');
    expect('ambiguous' in byId).toBe(false);
  });

  test('a graph walk can start at the path of a document', async () => {
    const store = fakeStore();
    const file = entity('f1', 'The guide');
    await store.putDocument({
      key: 'guide/a.md',
      origin: 'docs_dir',
      hash: 'h',
      embedder: 'e',
      entities: [file],
      relations: [],
    });
    expect((await walkGraph(store, { entityId: 'guide/a.md', maxDepth: 1 })).root?.name).toBe('The guide');
  });

  test('a graph walk from an unknown name lists similar names', async () => {
    const store = await graph('install>use');
    expect(await walkGraph(store, { entityId: 'instal', maxDepth: 1 })).toEqual({
      root: undefined,
      similarNames: ['install'],
    });
  });
});

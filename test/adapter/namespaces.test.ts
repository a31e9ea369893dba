import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { namespaceKeysFrom } from '../../src/adapter/namespace-keys.ts';
import { extendedTools, tools } from '../../src/adapter/tools/index.ts';
import { fakeBackend, reply } from '../kit/fake-backend.ts';
import { temporaryFolder } from '../kit/folder.ts';
import type { Json } from '../kit/mcp.ts';
import { memoryAdapter, type TestAdapter } from '../kit/memory-adapter.ts';
import { memoryBackend } from '../kit/memory-backend.ts';
import { recordingLog } from './memory/recording-log.ts';

const NAMESPACE = 'x-memory-namespace';
const MARK = 'crocodile';
const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
const STORED = { id: 't1', sessionId: 's', role: 'user', createdAt: '2026-01-01T00:00:00Z' };
const TURN = { sessionId: 's', role: 'user', content: 'x' };

async function keysOf(content: string) {
  await using folder = await temporaryFolder();
  const path = join(folder.path, 'keys.yaml');
  writeFileSync(path, content);
  return namespaceKeysFrom(path, [], recordingLog());
}

describe('the namespace that the memory adapter passes on', () => {
  const cases: readonly [string, object, Record<string, string>, number, string | undefined][] = [
    ['none', {}, {}, 200, undefined],
    ['the header where no key is needed', {}, { [NAMESPACE]: 'alice' }, 200, 'alice'],
    [
      'the header with the key of the gateway',
      { key: 'gw' },
      { ...bearer('gw'), [NAMESPACE]: 'a|1' },
      200,
      'a|1',
    ],
    ['nothing without the key', { key: 'gw' }, { [NAMESPACE]: 'alice' }, 401, undefined],
    ['that of the key', { key: 'gw', keys: true }, bearer('bob-key'), 200, 'bob'],
    [
      'nothing with the header of another one',
      { keys: true },
      { ...bearer('bob-key'), [NAMESPACE]: 'alice' },
      403,
      undefined,
    ],
    ['nothing with an invalid header', {}, { [NAMESPACE]: 'a b' }, 400, undefined],
    ['nothing where one is required', { requiresNamespace: true }, {}, 400, undefined],
    ['the required one', { requiresNamespace: true }, { [NAMESPACE]: 'alice' }, 200, 'alice'],
  ];

  test.each(cases)('is %s', async (_, { keys, ...rules }: Json, headers, status, namespace) => {
    await using backend = await fakeBackend(reply(201, STORED));
    const namespaceKeys = keys ? await keysOf('bob: bob-key') : undefined;
    await using adapter = await memoryAdapter(backend.url, {
      key: 'api-key',
      rules: { ...rules, namespaceKeys },
    });
    const answer = await adapter.call('store_episodic', TURN, headers);
    expect(answer.status).toBe(status);
    expect(backend.seen.map(({ headers: seen }) => seen[NAMESPACE])).toEqual(
      status === 200 ? [namespace] : [],
    );
    expect(answer.text).not.toMatch(/bob-key|gw"/);
  });

  test('a namespace that the key of the adapter does not permit is explained to the model', async () => {
    await using backend = await memoryBackend({ namespaceKeys: await keysOf('alice: alice-key') });
    await using adapter = await memoryAdapter(backend.url, { key: 'alice-key' });
    const { result } = await adapter.call('store_episodic', TURN, { [NAMESPACE]: 'bob' });
    expect(result).toMatchObject({
      isError: true,
      content: [{ text: "The memory backend's key of this adapter does not permit this namespace." }],
    });
    expect((await adapter.call('store_episodic', TURN)).result.isError).toBeUndefined();
    expect(
      (await adapter.call('store_episodic', TURN, { [NAMESPACE]: 'alice' })).result.isError,
    ).toBeUndefined();
  });
});

/** What B calls with the names, ids and sessions of A, by tool; may be answered with an error. */
const ATTEMPTS: Readonly<Record<string, object>> = {
  search_knowledge: { query: MARK, minScore: 0, limit: 50 },
  store_episodic: { sessionId: 'chat-of-a', role: 'user', content: 'of b' },
  query_graph: { entityId: 'Plan' },
  ingest_document: { title: 'Plan', content: 'of b', source: 'plan' },
  search_episodes: { query: 'of a' },
  read_graph: {},
  search_nodes: { query: 'sleeps' },
  open_nodes: { names: ['Crocodile'] },
  add_observations: { observations: [{ entityName: 'Crocodile', contents: ['of b'] }] },
  delete_observations: { deletions: [{ entityName: 'Crocodile', observations: [`the ${MARK} sleeps`] }] },
  delete_relations: { relations: [{ from: 'Crocodile', to: 'Nile', relationType: 'lives_in' }] },
  delete_entities: { entityNames: ['Crocodile', 'Nile'] },
  create_relations: { relations: [{ from: 'Crocodile', to: 'Nile', relationType: 'of_b' }] },
  create_entities: { entities: [{ name: 'Crocodile', entityType: 'of b', observations: ['of b'] }] },
};

test('every tool called from namespace B finds and changes nothing of namespace A', async () => {
  await using backend = await memoryBackend({ indexesChat: true });
  await using adapter = await memoryAdapter(backend.url, { toolSet: 'extended' });
  const as = (namespace: string) => (name: string, args: object) =>
    adapter.call(name, args, { [NAMESPACE]: namespace });
  const a = as('a');
  await a('ingest_document', { title: 'Plan', content: `The ${MARK} sleeps.`, source: 'plan' });
  await a('store_episodic', { sessionId: 'chat-of-a', role: 'user', content: `the ${MARK} of a` });
  await a('create_entities', {
    entities: [
      { name: 'Crocodile', entityType: 'animal', observations: [`the ${MARK} sleeps`] },
      { name: 'Nile', entityType: 'river', observations: [] },
    ],
  });
  await a('create_relations', { relations: [{ from: 'Crocodile', to: 'Nile', relationType: 'lives_in' }] });
  const before = await state(adapter);
  expect(JSON.stringify(before)).toContain(MARK);
  // A new tool needs its line.
  const names = [...tools, ...extendedTools].map(({ name }) => name);
  expect(Object.keys(ATTEMPTS).sort()).toEqual(names.sort());
  for (const [name, args] of Object.entries(ATTEMPTS)) {
    const { text } = await as('b')(name, args);
    expect(text, name).not.toContain(`the ${MARK}`);
    expect(text, name).not.toContain('animal');
  }
  expect(await state(adapter)).toEqual(before);
});

/** All that namespace A has. */
async function state(adapter: TestAdapter): Promise<Json> {
  const ask = async (name: string, args: object) =>
    (await adapter.call(name, args, { [NAMESPACE]: 'a' })).result.structuredContent;
  const { results } = await ask('search_knowledge', { query: MARK, minScore: 0, limit: 50 });
  return [results, await ask('read_graph', {}), await ask('query_graph', { entityId: 'Plan' })];
}

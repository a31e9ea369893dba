import { expect, test } from 'vitest';
import { lifetimesFrom } from '../../../src/adapter/memory/lifetimes.ts';
import { openStore } from '../../../src/adapter/memory/open-store.ts';
import { temporaryFolder } from '../../kit/folder.ts';
import { memoryBackend } from '../../kit/memory-backend.ts';
import { until } from '../../kit/until.ts';
import { recordingLog } from './recording-log.ts';

test('MEMORY_TTL is read by collection, and problems say what to write', () => {
  expect(lifetimesFrom(undefined)).toEqual({});
  expect(lifetimesFrom('chat_history=30d, entities=1h30m')).toEqual({
    turns: 2_592_000_000,
    entities: 5_400_000,
  });
  for (const bad of ['relations=1d', 'chat_history', 'chat_history=30', 'entities=-1d', 'entities=10ms'])
    expect(() => lifetimesFrom(bad)).toThrow(/MEMORY_TTL: .*write it as chat_history=30d,entities=365d/);
});

test('what has expired is deleted in the background', async () => {
  await using folder = await temporaryFolder();
  const before = await openStore({ dataDir: folder.path, log: recordingLog() });
  const turn = {
    agentId: 'a',
    role: 'user',
    content: 'text',
    createdAt: '2020-01-01T00:00:00.000Z',
  } as const;
  await before.importBatch({
    entities: [],
    relations: [],
    documents: [],
    turns: Array.from({ length: 1_200 }, (_, n) => ({ ...turn, id: `${n}`, sessionId: 'old' })),
  });
  await before.close();
  await using backend = await memoryBackend({ data: folder.path, lifetimes: { turns: 60_000 } });
  await backend.post('chat', { sessionId: 'new', role: 'user', content: 'kept' });
  await until(async () => (await backend.get('stats')).body.turns === 1);
  expect((await backend.get('sessions')).body.sessions).toMatchObject([{ sessionId: 'new' }]);
});

// moorcheh-ai/memanto#1630: an import made temporary memories permanent.
test('an import keeps the time from which the time-to-live of entities and documents counts', async () => {
  await using source = await memoryBackend();
  await using backend = await memoryBackend({ lifetimes: { entities: 3_600_000 } });
  const entity = { type: 'entity', entityType: 'bird', observations: ['a hoopoe'] };
  const [old, future] = ['2020-01-01T00:00:00.000Z', '2999-01-01T00:00:00.000Z'];
  const chunks = [{ name: 'Old', heading: '', content: 'a hoopoe', metadata: {} }];
  const document = {
    type: 'document',
    key: 'old',
    hash: 'h',
    title: 'Old',
    summary: '',
    metadata: {},
    chunks,
  };
  const lines = [
    { ...entity, name: 'Older', storedAt: old },
    { ...entity, name: 'Undated' },
    { ...entity, name: 'Future', storedAt: future },
    { ...document, storedAt: old },
  ].map((line) => JSON.stringify(line));
  const type = { 'content-type': 'application/x-ndjson' };
  await source.post('import', lines.join('\n'), type);
  const exported = await (await fetch(`${source.url}/api/memory/export`)).text();
  expect(exported.match(/"storedAt":"2020/g)).toHaveLength(2);
  expect(exported).not.toContain(future);
  await backend.post('import', exported, type);
  const { entities } = (await backend.post('graph/read', {})).body;
  expect(entities.map(({ name }: { name: string }) => name)).toEqual(['Future', 'Undated']);
  // The others are one result, as they say the same.
  const { results } = (await backend.post('search', { query: 'hoopoe', minScore: 0 })).body;
  expect(JSON.stringify(results)).not.toMatch(/Old/);
  expect(results).toHaveLength(1);
});

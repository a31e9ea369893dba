import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Json } from '../kit/mcp.ts';
import { memoryAdapter, type TestAdapter } from '../kit/memory-adapter.ts';
import { memoryBackend, type TestBackend } from '../kit/memory-backend.ts';

/** Small sections that become one passage, with tags, imports and a comment around them. */
const MDX = `---
title: Bakery
---
import Note from './note'

# Bakery

<Note
  kind="tip">
## Flour
</Note>

Rye comes from the mill in the valley.

{/* not
shown */}

## Ovens

Walnut wood heats the ovens at dawn.

## Shop

The counter opens at seven.
`;

let backend: TestBackend;
let adapter: TestAdapter;
beforeAll(async () => {
  backend = await memoryBackend({ docs: { 'bakery.mdx': MDX } });
  adapter = await memoryAdapter(backend.url, { toolSet: 'extended' });
});
afterAll(async () => {
  await adapter[Symbol.asyncDispose]();
  await backend[Symbol.asyncDispose]();
});

test.each([
  ['where does the rye come from', 'Bakery > Flour', 6, 'flour'],
  ['which wood heats the ovens', 'Bakery > Ovens', 18, 'ovens'],
  ['when does the counter of the shop open', 'Bakery > Shop', 22, 'shop'],
])('%j cites the small section that answers, with its own line', async (query, name, line, anchor) => {
  const { result } = await adapter.call('search_knowledge', { query, minScore: 0 });
  const [found, ...others] = result.structuredContent.results;
  expect(others).toEqual([]);
  expect(found).toMatchObject({ name, metadata: { path: 'bakery.mdx', line, anchor } });
  expect(found.metadata).not.toHaveProperty('sections');
  expect(MDX.split('\n')[line - 1]).toMatch(/^##? /);
  expect(result.content[0].text).toContain(`## 1. ${name} (bakery.mdx:${line}#${anchor}, score`);
});

test('times of searches are dates or times with a zone, and others are refused with an example', async () => {
  await adapter.call('store_episodic', {
    sessionId: 's',
    role: 'user',
    content: 'The walnut oven is broken.',
  });
  const ask = async (asOf: string): Promise<Json> =>
    (await adapter.call('search_knowledge', { query: 'walnut oven', turns: true, asOf })).result;
  for (const [asOf, count] of [
    ['2020-01-31', 0],
    ['2099-01-31', 1],
    ['2099-01-31T12:00:00+01:00', 1],
    ['2099-01-31T12:00:00Z', 1],
  ] as const)
    expect([asOf, (await ask(asOf)).structuredContent.turns.length]).toEqual([asOf, count]);
  expect((await ask('2020-01-31')).structuredContent.hint).toContain('No turn from before `asOf` fits');
  expect((await ask('2099-01-31')).structuredContent.hint).not.toContain('No turn');
  for (const asOf of ['31.01.2026', '2026-01-31T12:00:00', '2026-02-31', 'yesterday', '2026-01-31 12:00']) {
    const { isError, content } = await ask(asOf);
    expect([asOf, isError]).toEqual([asOf, true]);
    expect(content[0].text).toMatch(/asOf.*expected a date such as 2026-01-31.*2026-01-31T12:00:00\+01:00/);
  }
  // Passages have no past.
  const { result: found } = await adapter.call('search_knowledge', {
    ...{ query: 'which wood heats the ovens', turns: true, asOf: '2020-01-31', minScore: 0, maxTokens: 50 },
  });
  expect(found.structuredContent.count).toBe(1);
  expect(found.structuredContent.hint).toContain('`results` are passages as they are now');
  const { result: refused } = await adapter.call('search_knowledge', { query: 'ovens', asOf: '2020-01-31' });
  expect(refused.isError).toBe(true);
  expect(refused.content[0].text).toContain('`asOf`: concerns turns only');
  const { result } = await adapter.call('search_episodes', { from: '2020-01-31', to: '2099-12-31' });
  expect(result.structuredContent.count).toBe(1);
});

test.each([
  ['Note: the walnut oven needs a new door.', 'user'],
  ['TODO: order a door for the walnut oven.', 'user'],
  ['Hinweis: der walnut oven hat eine neue Tür.', 'user'],
  ['Noted: the walnut oven has a new door.', 'user'],
  ['Next Steps: measure the walnut oven.', 'user'],
  ['Ann Lee: the walnut oven is fixed.', 'Ann Lee'],
])('the speaker of %j is %s', async (content, speaker) => {
  await adapter.call('store_episodic', { sessionId: 'oven', role: 'user', content });
  const { result } = await adapter.call('search_knowledge', { query: content, turns: true });
  const turn = result.structuredContent.turns.find((one: Json) => one.content === content);
  expect(turn.speaker).toBe(speaker);
});

test('a turn of many bytes and few letters is refused with both its size and the tool for documents', async () => {
  const { result } = await adapter.call('store_episodic', {
    sessionId: 's',
    role: 'user',
    content: '墻'.repeat(30_000),
  });
  expect(result.isError).toBe(true);
  expect(result.content[0].text).toMatch(/90000 bytes, the maximum is 65536: .*ingest_document/);
});

test('hints and errors name tools that exist', async () => {
  const { result } = await adapter.call('query_graph', { entityId: 'quantum chromodynamics' });
  expect(result.content[0].text).toMatch(/search_knowledge|Similar names/);
  await using empty = await memoryBackend();
  await using other = await memoryAdapter(empty.url);
  const nothing = (await other.call('search_knowledge', { query: 'tea' })).result;
  expect(nothing.structuredContent.hint).toMatch(/ingest_document/);
});

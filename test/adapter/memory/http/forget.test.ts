import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Json } from '../../../kit/mcp.ts';
import { memoryAdapter } from '../../../kit/memory-adapter.ts';
import { memoryBackend, type TestBackend } from '../../../kit/memory-backend.ts';

let backend: TestBackend;
beforeAll(async () => {
  backend = await memoryBackend({
    docs: { 'team.md': '# Team\n\nUrsula keeps the books.\n', 'other.md': '# Other\n\nNothing.\n' },
  });
});
afterAll(() => backend[Symbol.asyncDispose]());

const say = (sessionId: string, content: string): Promise<unknown> =>
  backend.post('chat', { sessionId, role: 'user', content, agentId: 'planner' });
const contents = ({ body }: { body: Json }): string[] => body.turns.map(({ content }: Json) => content);

test('turns are found by words, conversation and time over REST and with search_episodes', async () => {
  await say('talk', 'The invoice of Ursula is late');
  await say('talk', 'It was paid');
  expect(contents(await backend.get('turns?query=invoices'))).toEqual(['The invoice of Ursula is late']);
  expect(contents(await backend.get('turns?conversationId=talk&order=oldest'))).toEqual([
    'The invoice of Ursula is late',
    'It was paid',
  ]);
  const now = encodeURIComponent(new Date(Date.now() + 3_600_000).toISOString().replace('Z', '+00:00'));
  expect(contents(await backend.get(`turns?sessionId=talk&from=${now}`))).toEqual([]);
  expect(contents(await backend.get(`turns?sessionId=talk&to=${now}&limit=1`))).toEqual(['It was paid']);
  expect(await backend.get('turns?from=yesterday')).toMatchObject({
    status: 400,
    body: {
      error: {
        message:
          '`from`: expected a date such as 2026-01-31, which begins at midnight in UTC, or a time with its zone, such as 2026-01-31T12:00:00Z or 2026-01-31T12:00:00+01:00',
      },
    },
  });
  await using adapter = await memoryAdapter(backend.url, { toolSet: 'extended' });
  const { result } = await adapter.call('search_episodes', { query: 'invoice', limit: 5 });
  expect(result.structuredContent).toMatchObject({
    turns: [
      { sessionId: 'talk', agentId: 'planner', role: 'user', content: 'The invoice of Ursula is late' },
    ],
    count: 1,
    nextCursor: null,
  });
});

test('a question ranks turns over REST, with search_episodes and with search_knowledge', async () => {
  await say('trip', 'We fly to Lisbon on Friday');
  await say('trip', 'The hotel is called Solar');
  const { body } = await backend.get('turns?query=to%20which%20city%20do%20we%20fly');
  expect(body).toMatchObject({ ranked: true, nextCursor: null, count: body.turns.length });
  expect(body.turns[0]).toMatchObject({
    content: 'We fly to Lisbon on Friday',
    sessionId: 'trip',
    speaker: 'user',
    score: expect.any(Number),
    createdAt: expect.any(String),
  });
  const { pathname, search } = new URL(body.turns[0].link, 'http://memory');
  const linked = await backend.get(`${pathname.replace('/api/memory/', '')}${search}`);
  expect(linked.body.turns[0].content).toBe('We fly to Lisbon on Friday');
  expect(contents(await backend.get('turns?query=fly&order=relevance'))[0]).toBe(
    'We fly to Lisbon on Friday',
  );

  await using adapter = await memoryAdapter(backend.url, { toolSet: 'extended' });
  const question = 'what is the name of our hotel?';
  const episodes = (await adapter.call('search_episodes', { query: question })).result.structuredContent;
  expect(episodes.turns[0].content).toBe('The hotel is called Solar');
  const knowledge = await adapter.call('search_knowledge', { query: question, turns: true });
  expect(knowledge.result.structuredContent.turns[0]).toMatchObject({
    content: 'The hotel is called Solar',
    sessionId: 'trip',
    link: expect.stringContaining('/sessions/trip/turns'),
  });
  const past = await adapter.call('search_knowledge', {
    query: question,
    turns: true,
    asOf: '2020-01-01T00:00:00Z',
  });
  expect(past.result.structuredContent.turns).toEqual([]);
  const without = await adapter.call('search_knowledge', { query: question });
  expect(without.result.structuredContent).not.toHaveProperty('turns');
});

test('forget deletes what its preview has shown, and names the files that bring something back', async () => {
  await backend.post('graph', {
    createEntities: [{ name: 'Ursula', entityType: 'person', observations: ['keeps the books'] }],
  });
  expect(await backend.post('forget', { about: 'Ursula' })).toMatchObject({
    status: 400,
    body: { error: { message: expect.stringContaining('`token`: expected the token of a preview') } },
  });
  const { body: preview } = await backend.post('forget', { about: 'Ursula', preview: true });
  expect(preview).toMatchObject({
    deleted: false,
    counts: { entities: 1, turns: 1, documents: 1 },
    documents: [{ title: 'Team', key: 'team.md' }],
    note: expect.stringMatching(/^team.md: stored again by the next sync unless the file is removed/),
  });
  await say('talk', 'Ursula again');
  expect(await backend.post('forget', { about: 'Ursula', token: preview.token })).toMatchObject({
    status: 409,
    body: { error: { code: 'changed' } },
  });
  const { token } = (await backend.post('forget', { about: 'Ursula', preview: true })).body;
  const { body: done } = await backend.post('forget', { about: 'Ursula', token });
  expect(done).toMatchObject({ deleted: true, counts: { turns: 2 } });
  expect(contents(await backend.get('turns?sessionId=talk'))).toEqual(['It was paid']);
  const search = async (): Promise<number> =>
    (await backend.post('search', { query: 'Ursula keeps the books', minScore: 0 })).body.results.filter(
      ({ content }: Json) => content.includes('Ursula'),
    ).length;
  expect(await search()).toBe(0);
  // As the note says.
  await backend.post('ingest/docs');
  expect(await search()).toBe(1);
});

test('sessions, documents, entities and relations are deleted by id, with a preview', async () => {
  await say('short', 'one');
  expect((await backend.delete('sessions/short?preview=true')).body).toMatchObject({
    deleted: false,
    counts: { turns: 1 },
  });
  expect((await backend.delete('sessions/short')).body).toMatchObject({
    deleted: true,
    counts: { turns: 1 },
  });
  expect((await backend.delete('sessions/short')).status).toBe(404);

  const { document } = (await backend.post('ingest/docs', { title: 'Note', content: 'a zeppelin' })).body;
  expect((await backend.delete(`entities/${document.id}`)).body.error.message).toBe(
    'the entity is a doc_file: delete the document with DELETE /documents/:id',
  );
  const { body: removed } = await backend.delete(`documents/${document.id}`);
  expect(removed).toMatchObject({ deleted: true, documents: [{ title: 'Note', origin: 'ingest' }] });
  expect(removed).not.toHaveProperty('note');
  expect((await backend.delete(`documents/${document.id}`)).status).toBe(404);

  await backend.post('graph', {
    createEntities: [{ name: 'Ida', entityType: 'person', observations: [] }],
    createRelations: [{ from: 'Ida', to: 'Bo', relationType: 'knows' }],
  });
  const relation = 'relations?from=Ida&to=Bo&relationType=knows';
  expect((await backend.delete(relation)).body).toEqual({ deleted: true });
  expect((await backend.delete(relation)).status).toBe(404);
  const { root } = (await backend.get('graph?entityId=ida')).body;
  expect((await backend.delete(`entities/${root.id}`)).body).toMatchObject({
    deleted: true,
    entities: ['Ida'],
  });
  expect((await backend.delete(`entities/${root.id}`)).status).toBe(404);
});

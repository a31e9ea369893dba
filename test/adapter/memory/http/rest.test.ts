import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Embedder } from '../../../../src/adapter/memory/embed/embedder.ts';
import { createHashEmbedder } from '../../../../src/adapter/memory/embed/hash-embedder.ts';
import type { Json } from '../../../kit/mcp.ts';
import { memoryBackend, type TestBackend } from '../../../kit/memory-backend.ts';
import { until } from '../../../kit/until.ts';
import { verifies } from '../../../kit/verifies.ts';

const DOCS = {
  'install.md': '# Installing\n\nInstall the gateway with npm. See [ports](guide/ports.mdx).\n',
  'guide/ports.mdx': '# Ports\n\nThe gateway listens on port 8080 unless the configuration names another.\n',
  'ignored.txt': 'not Markdown',
};

let backend: TestBackend;
beforeAll(async () => {
  backend = await memoryBackend({ docs: DOCS });
});
afterAll(() => backend[Symbol.asyncDispose]());

test('a body without the type of JSON is refused with the header that is missing', async () => {
  const { status, body } = await backend.post('search', '{"query":"a"}', { 'content-type': 'text/plain' });
  expect([status, body.error.code]).toEqual([415, 'unsupported_media_type']);
  expect(body.error.message).toContain('`content-type: application/json`');
});

describe('search', () => {
  verifies('memory.tool.search', 'search finds passages with score, cosine and origin', async () => {
    const { status, body } = await backend.post('search', { query: 'which port does the gateway listen on' });
    expect(status).toBe(200);
    expect(body).toMatchObject({ count: body.results.length, minScore: 0.7, embedder: 'hash-v2/128' });
    const [first] = body.results;
    expect(first).toMatchObject({
      name: expect.stringContaining('Ports'),
      type: 'doc_chunk',
      content: expect.stringContaining('port 8080'),
      metadata: { source: 'guide/ports.mdx', path: 'guide/ports.mdx', title: 'Ports', ordinal: 0 },
    });
    expect(first.score).toBeGreaterThanOrEqual(0.7);
    expect(first.cosine).toBeLessThanOrEqual(1);
    expect(first.lexical).toBeUndefined();
  });

  test('search without results reports the best score', async () => {
    const { body } = await backend.post('search', { query: 'gateway zebra', minScore: 1, debug: true });
    expect(body.results).toEqual([]);
    expect(body.filtered).toBeGreaterThan(0);
    expect(body.bestScore).toBeLessThan(1);
    expect(body.hint).toEqual(expect.any(String));
  });

  test('search filters by types', async () => {
    const { body } = await backend.post('search', { query: 'port', minScore: 0, types: ['chat_message'] });
    expect(body.results).toEqual([]);
  });

  test.each([
    [{}, 'query'],
    [{ query: 1 }, 'query'],
    [{ query: '' }, 'query'],
    [{ query: 'x', limit: 0 }, 'limit'],
    [{ query: 'x', limit: 1e9 }, 'limit'],
    [{ query: 'x', limit: '5' }, 'limit'],
    [{ query: 'x', minScore: 1.01 }, 'minScore'],
    [{ query: 'x', types: ['thing'] }, 'types.0'],
    [{ query: 'x', minscore: 1 }, 'body'],
    [[], 'body'],
  ])('search rejects %j and names the field', async (sent, field) => {
    const { status, body } = await backend.post('search', sent);
    expect(status).toBe(400);
    expect(body.error.code).toBe('invalid');
    expect(body.error.message).toContain(`\`${field}\`: `);
    expect(body.error.details.problems[0].field).toBe(field);
  });
});

describe('chat', () => {
  const turn = { sessionId: 'c1', role: 'user', content: 'Hello' };

  verifies(
    [
      'memory.chat.session-id',
      'memory.chat.agent-id',
      'memory.chat.role',
      'memory.chat.content',
      'memory.chat.created-at',
    ],
    'chat stores turns and returns them in order',
    async () => {
      const before = Date.now();
      const first = await backend.post('chat', { ...turn, agentId: 'planner' });
      expect(first.status).toBe(201);
      expect(first.body).toEqual({
        id: expect.any(String),
        seq: expect.any(Number),
        sessionId: 'c1',
        agentId: 'planner',
        role: 'user',
        createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
        deduplicated: false,
      });
      expect(Date.parse(first.body.createdAt)).toBeGreaterThanOrEqual(before - 1);
      await backend.post('chat', { conversationId: 'c1', role: 'assistant', content: 'Hi 😀' });
      await backend.post('chat', { ...turn, role: 'system', content: '{}' }, { 'x-agent-id': 'critic' });
      const { body } = await backend.get('sessions/c1/turns');
      expect(body.turns.map(({ role, content, agentId }: Json) => [role, content, agentId])).toEqual([
        ['user', 'Hello', 'planner'],
        ['assistant', 'Hi 😀', 'unknown'],
        ['system', '{}', 'critic'],
      ]);
      expect(body.nextAfter).toBeNull();
      const sessions = await backend.get('sessions');
      expect(sessions.body.sessions[0]).toMatchObject({ sessionId: 'c1', turns: 3 });
    },
  );

  test('chat stores a turn with a repeated idempotency key once', async () => {
    const key = { 'idempotency-key': 'k-1' };
    const first = await backend.post('chat', { ...turn, sessionId: 'c2' }, key);
    const second = await backend.post('chat', { ...turn, sessionId: 'c2' }, key);
    expect([first.status, second.status]).toEqual([201, 200]);
    expect(second.body).toEqual({ ...first.body, deduplicated: true });
    expect((await backend.get('sessions/c2/turns')).body.turns).toHaveLength(1);
  });

  // draft-ietf-httpapi-idempotency-key-header-06, section 2.7: another payload, 422. A retry while the first request is in progress
  // waits for it.
  test.each([
    ['another content', { content: 'Bye' }, {}],
    ['another role', { role: 'assistant' }, {}],
    ['another agent', {}, { 'x-agent-id': 'critic' }],
  ])('chat refuses a key that was used for a turn with %s', async (_, changed, headers) => {
    const body = { ...turn, sessionId: 'c2 reused' };
    const key = { 'idempotency-key': 'k-2' };
    expect((await backend.post('chat', body, key)).status).toBeLessThan(300);
    const other = await backend.post('chat', { ...body, ...changed }, { ...key, ...headers });
    expect(other).toMatchObject({ status: 422, body: { error: { code: 'key_reused' } } });
    expect(other.body.error.message).toContain('send a new key');
    expect((await backend.get('sessions/c2%20reused/turns')).body.turns).toHaveLength(1);
  });

  test('chat turns are paged by seq', async () => {
    for (const content of ['a', 'b', 'c']) await backend.post('chat', { ...turn, sessionId: 'c3', content });
    const first = (await backend.get('sessions/c3/turns?limit=2')).body;
    const rest = (await backend.get(`sessions/c3/turns?after=${first.nextAfter}&limit=2`)).body;
    expect([...first.turns, ...rest.turns].map(({ content }) => content)).toEqual(['a', 'b', 'c']);
    expect(rest.nextAfter).toBeNull();
    const page = (await backend.get('sessions?limit=1')).body;
    const next = (await backend.get(`sessions?limit=1&cursor=${encodeURIComponent(page.nextCursor)}`)).body;
    expect(next.sessions[0].sessionId).not.toBe(page.sessions[0].sessionId);
  });

  test.each([
    [{ role: 'user', content: 'x' }, 400, '`sessionId`'],
    [{ ...turn, conversationId: 'other' }, 400, '`conversationId`'],
    [{ ...turn, role: 'root' }, 400, '`role`'],
    [{ ...turn, content: '' }, 400, '`content`'],
    [{ ...turn, content: 'a\0b' }, 400, 'NUL'],
    [{ ...turn, content: '\ud800' }, 400, 'surrogate'],
    [{ ...turn, content: 'ä'.repeat(32 * 1024 + 1) }, 413, '`content` has 65538 bytes'],
  ])('chat rejects the turn %j', async (sent, status, text) => {
    const reply = await backend.post('chat', JSON.stringify(sent));
    expect([reply.status, reply.body.error.message]).toEqual([status, expect.stringContaining(text)]);
  });

  test.each(['{"sessionId":"s","__proto__":{},"role":"user","content":"x"}', '{"a":', 'x'.repeat(10)])(
    'chat rejects a body that is not plain JSON: %s',
    async (sent) => {
      const { status, body } = await backend.post('chat', sent);
      expect([status, body.error.code]).toEqual([400, 'invalid']);
    },
  );

  test('a session id that looks like a path is treated as one id', async () => {
    const sessionId = '../../x?y#z %2f';
    await backend.post('chat', { ...turn, sessionId });
    const { status, body } = await backend.get(`sessions/${encodeURIComponent(sessionId)}/turns`);
    expect([status, body.turns[0]?.sessionId]).toEqual([200, sessionId]);
    expect((await backend.get('sessions/none/turns')).status).toBe(404);
  });
});

describe('graph', () => {
  verifies(
    ['memory.tool.graph', 'memory.relation.edge', 'memory.relation.type', 'memory.relation.weight'],
    'graph walks from a name along weighted, directed edges',
    async () => {
      const { body } = await backend.get('graph?entityId=Installing&maxDepth=1');
      expect(body.root).toMatchObject({ name: 'Installing', type: 'doc_file' });
      const ports = body.nodes.find(({ name, type }: Json) => name === 'Ports' && type === 'doc_file');
      expect(ports).toMatchObject({ depth: 1 });
      expect(body.edges).toContainEqual({
        fromId: body.root.id,
        toId: ports.id,
        relationType: 'REFERENCES',
        weight: expect.any(Number),
      });
      expect(body.edges).toContainEqual(
        expect.objectContaining({ fromId: body.root.id, relationType: 'BELONGS_TO' }),
      );
      expect([body.maxDepth, body.truncated]).toEqual([1, false]);
      const byId = await backend.get(`graph?entityId=${ports.id}&direction=out&maxDepth=1`);
      expect(byId.body.root.id).toBe(ports.id);
      const incoming = byId.body.edges.filter(({ toId }: Json) => toId === ports.id);
      expect(incoming).toEqual([]);
    },
  );

  test('graph with an unknown name is 404 with similar names', async () => {
    const { status, body } = await backend.get('graph?entityId=Instaling');
    expect(status).toBe(404);
    expect(body.error).toEqual({
      code: 'not_found',
      message: "No entity 'Instaling'. Similar names: Installing",
      details: { near: ['Installing'] },
    });
  });

  test('graph without a name returns a page of all entities and each edge once', async () => {
    const whole = (await backend.get('graph?limit=500')).body;
    expect(whole.nextCursor).toBeNull();
    expect(whole.totals.entities.doc_file).toBe(2);
    const nodes: unknown[] = [];
    const edges: unknown[] = [];
    for (let cursor = ''; ; ) {
      const { body } = await backend.get(`graph?limit=2${cursor}`);
      nodes.push(...body.nodes);
      edges.push(...body.edges);
      if (body.nextCursor === null) break;
      cursor = `&cursor=${encodeURIComponent(body.nextCursor)}`;
    }
    expect(nodes).toEqual(whole.nodes);
    expect(edges).toHaveLength(whole.edges.length);
    const files = (await backend.get('graph?types=doc_file,workspace')).body.nodes;
    expect(new Set(files.map(({ type }: Json) => type))).toEqual(new Set(['doc_file', 'workspace']));
  });

  test('entities are listed by name, page by page, and searched', async () => {
    const names: string[] = [];
    let cursor = '';
    do {
      const { status, body } = await backend.get(`entities?types=doc_file,doc_chunk&limit=2${cursor}`);
      expect(status).toBe(200);
      names.push(...body.entities.map(({ name }: Json) => name));
      cursor = body.nextCursor === null ? '' : `&cursor=${encodeURIComponent(body.nextCursor)}`;
    } while (cursor !== '');
    expect(names.length).toBeGreaterThanOrEqual(4);
    expect(names).toEqual(names.toSorted());
    const { entities } = (await backend.get('entities?query=8080')).body;
    expect(entities).toEqual([
      { id: expect.any(String), name: expect.stringContaining('Ports'), type: 'doc_chunk' },
    ]);
  });

  test.each([
    'entities?cursor=x',
    'entities?cursor=%7B%22name%22%3A1%7D',
    'sessions?cursor=x',
    'sessions?cursor=-1',
    'namespaces?cursor=%00',
    'namespaces?cursor=a%20b',
  ])('GET /%s is refused with what a cursor is', async (path) => {
    await using empty = await memoryBackend();
    const { status, body } = await empty.get(path);
    expect([status, body.error.message]).toEqual([
      400,
      '`cursor`: expected the nextCursor of the previous page',
    ]);
  });

  test.each([
    'maxDepth=6',
    'maxDepth=-1',
    'maxDepth=1.5',
    'maxDepth=',
    'limit=0',
    'limit=501',
    'direction=up',
    'x=1',
    'entityId=a&entityId=b',
    'types=x',
  ])('graph rejects ?%s', async (query) => {
    const { status, body } = await backend.get(`graph?${query}`);
    expect([status, body.error.code]).toEqual([400, 'invalid']);
  });
});

describe('entities', () => {
  verifies(
    [
      'memory.entity.name',
      'memory.entity.type',
      'memory.entity.content',
      'memory.entity.metadata',
      'memory.entity.embedding',
    ],
    'entities have name, type, content and metadata, and their vectors have 128 numbers',
    async () => {
      const { body } = await backend.post('search', { query: 'install the gateway with npm', limit: 1 });
      const { id } = body.results[0];
      const entity = await backend.get(`entities/${id}`);
      expect(entity.body).toEqual({
        id,
        name: 'Installing',
        type: 'doc_chunk',
        content: expect.stringContaining('Install the gateway with npm.'),
        metadata: expect.objectContaining({ source: 'install.md', path: 'install.md' }),
      });
      const [vector] = await createHashEmbedder().embed(['install the gateway with npm']);
      expect(vector).toHaveLength(128);
      const [nearest] = await backend.memory.store.nearest(vector, 'hash-v2/128', { limit: 1 });
      expect(nearest).toMatchObject({ id });
      const { entities } = (await backend.get('stats')).body;
      // The four of the specification, then what agents write.
      expect(Object.keys(entities)).toEqual(['workspace', 'doc_file', 'doc_chunk', 'chat_message', 'entity']);
      expect((await backend.get('entities/none')).status).toBe(404);
    },
  );
});

describe('ingest/docs', () => {
  verifies(
    [
      'memory.tool.ingest',
      'memory.tool.ingest.source',
      'memory.tool.ingest.resync',
      'memory.service.5.resync',
      'memory.service.5.idempotent',
    ],
    'ingest/docs indexes a document and reads the folder again',
    async () => {
      await using own = await memoryBackend({ docs: { 'a.md': '# A\n\nAlpha.', 'b.md': '# B\n\nBeta.' } });
      const document = {
        title: 'Tea',
        content: '# Tea\n\nGreen tea is steeped at 80 degrees.',
        source: 'https://tea.test/x',
      };
      const created = await own.post('ingest/docs', document);
      expect(created.status).toBe(200);
      expect(created.body).toMatchObject({
        document: {
          id: expect.any(String),
          title: 'Tea',
          source: 'https://tea.test/x',
          status: 'created',
          chunks: 1,
        },
        sync: { state: 'done', scanned: 2, unchanged: 2, added: 0, embedded: 0 },
      });
      const found = await own.post('search', { query: 'green tea steeped degrees' });
      expect(found.body.results[0].metadata).toMatchObject({ source: 'https://tea.test/x' });
      expect((await own.post('ingest/docs', document)).body.document.status).toBe('unchanged');
      const changed = await own.post('ingest/docs', { ...document, content: 'Black tea now.' });
      expect(changed.body.document).toMatchObject({ status: 'updated', id: created.body.document.id });

      writeFileSync(join(own.docs, 'a.md'), '# A\n\nAnother text.');
      writeFileSync(join(own.docs, 'c.mdx'), '# C\n\nGamma.');
      rmSync(join(own.docs, 'b.md'));
      const { status, body } = await own.post('ingest/docs');
      expect(status).toBe(200);
      expect(body.document).toBeUndefined();
      expect(body.sync).toMatchObject({
        state: 'done',
        added: 1,
        updated: 1,
        unchanged: 0,
        removed: 1,
        failed: 0,
      });
      expect((await own.post('ingest/docs', {})).body.sync).toMatchObject({ unchanged: 2, embedded: 0 });
      expect((await own.get('ingest/status')).body.sync).toMatchObject({ state: 'done', unchanged: 2 });
    },
  );

  test('every endpoint answers before the first sync has ended, and stats say so', async () => {
    let release: () => void = () => undefined;
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    const real = createHashEmbedder();
    const embedder: Embedder = {
      ...real,
      embed: (...args) => released.then(() => real.embed(...args)),
    };
    await using own = await memoryBackend({ docs: DOCS, embedder, isStarting: true });
    const search = async () => (await own.post('search', { query: 'asked early' })).body;
    expect((await search()).hint).toMatch(
      /^the first sync of the documents is still running.*: search again later for missing results$/,
    );
    expect((await own.get('stats')).body).toMatchObject({ ready: false, sync: { state: 'running' } });
    expect((await own.post('chat', { sessionId: 's', role: 'user', content: 'x' })).status).toBe(201);
    release();
    await until(async () => (await own.get('stats')).body.ready);
    expect((await own.get('ingest/status')).body.sync).toMatchObject({ state: 'done', added: 2 });
    expect((await search()).hint).not.toContain('sync');
  });

  test('a search says that stored conversations were not searched', async () => {
    await using own = await memoryBackend();
    const search = async () => (await own.post('search', { query: 'favourite colour' })).body.hint as string;
    expect(await search()).not.toContain('Conversations');
    await own.post('chat', { sessionId: 's', role: 'user', content: 'My favourite colour is teal' });
    expect(await search()).toContain(
      'Conversations (1 turn) are stored, but were not searched: `turns: true` does that',
    );
  });

  test('ingest/docs answers 202 when the sync takes longer than its wait, and the sync continues', async () => {
    let release: () => void = () => undefined;
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    const real = createHashEmbedder();
    let isSlow = false;
    const embedder: Embedder = {
      ...real,
      embed: async (...args) => {
        if (isSlow) await released;
        return real.embed(...args);
      },
    };
    await using own = await memoryBackend({ syncWait: 20, embedder });
    isSlow = true;
    writeFileSync(join(own.docs, 'slow.md'), '# Slow\n\nText.');
    const { status, body } = await own.post('ingest/docs');
    expect([status, body.sync.state]).toEqual([202, 'running']);
    expect((await own.get('stats')).body.sync.state).toBe('running');
    release();
    await until(async () => (await own.get('ingest/status')).body.sync.state === 'done');
    expect((await own.get('ingest/status')).body.sync).toMatchObject({ added: 1, failed: 0 });
  });

  test.each([
    [{ title: 'x' }, 400],
    [{ content: 'x' }, 400],
    [{ title: '', content: 'x' }, 400],
    [{ title: 'x', content: '' }, 400],
    [{ title: 'x', content: 'y', more: 1 }, 400],
    [{ title: 'x', content: 'y'.repeat(2 * 1024 * 1024 + 1) }, 413],
    [{ title: 'x', content: 'y'.repeat(4 * 1024 * 1024) }, 413],
  ])('ingest/docs rejects an invalid document (case %#)', async (sent, status) => {
    expect((await backend.post('ingest/docs', sent)).status).toBe(status);
  });
});

describe('REST responses', () => {
  test('REST responses have the request id, no-store and a strict content security policy', async () => {
    const { headers } = await backend.get('stats', { 'x-request-id': 'my-id.1' });
    expect(headers.get('x-request-id')).toBe('my-id.1');
    expect(headers.get('cache-control')).toBe('no-store');
    expect(headers.get('content-security-policy')).toContain("default-src 'self'");
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    const generated = (await backend.get('none', { 'x-request-id': 'not an id' })).headers;
    expect(generated.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
  });

  test('stats report the number of entities and that the first sync has ended', async () => {
    const { body } = await backend.get('stats');
    expect(body).toMatchObject({
      ready: true,
      store: 'sqlite',
      documents: 2,
      entities: { doc_file: 2, doc_chunk: 2 },
      sync: { state: 'done' },
    });
    expect((await backend.get('/health')).body).toEqual({ status: 'healthy', service: 'memory-backend' });
  });

  test('stats count the relations of agents, which have any name', async () => {
    const before = (await backend.get('stats')).body.relations;
    const createRelations = ['knows', 'works with'].map((relationType) => ({
      from: 'Ada of stats',
      to: 'Bob of stats',
      relationType,
    }));
    expect((await backend.post('graph', { createRelations })).status).toBe(200);
    expect((await backend.get('stats')).body.relations).toEqual({ ...before, other: before.other + 2 });
  });

  test.each([
    ['graph', { deleteEntities: ['a', 'a\0b'] }, 'deleteEntities[1]'],
    [
      'graph',
      { deleteObservations: [{ entityName: 'a\0b', observations: [] }] },
      'deleteObservations[0].entityName',
    ],
    ['forget', { about: 'a\0b', preview: true }, 'about'],
  ])('%s names the field that contains a NUL character: %j', async (path, sent, field) => {
    const { status, body } = await backend.post(path, sent);
    expect([status, body.error.message]).toEqual([400, expect.stringContaining(`${field}: contains a NUL`)]);
  });

  test('an unknown endpoint is a 404 in the common error format', async () => {
    expect((await backend.get('none')).body.error.code).toBe('not_found');
    expect((await backend.post('stats')).status).toBe(404);
  });
});

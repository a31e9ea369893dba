import { Client as Client2, StreamableHTTPClientTransport as Transport2 } from '@modelcontextprotocol/client';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as Transport1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { describe, expect, test } from 'vitest';
import { cut, fakeBackend, reply, silence } from '../kit/fake-backend.ts';
import { INITIALIZE, MCP_HEADERS, post } from '../kit/mcp.ts';
import { memoryAdapter } from '../kit/memory-adapter.ts';
import { send } from '../kit/send.ts';
import { until } from '../kit/until.ts';
import { verifies } from '../kit/verifies.ts';

const FOUND = {
  results: [
    {
      id: 'e1',
      name: 'Setup',
      type: 'doc_chunk',
      content: 'Install it.',
      score: 0.91,
      cosine: 0.5,
      metadata: { path: 'a.md' },
    },
  ],
  count: 1,
  filtered: 3,
  bestScore: 0.91,
  minScore: 0.7,
  embedder: 'hash-v2/128',
  tookMs: 2,
};
const STORED = {
  id: 't1',
  sessionId: 's',
  agentId: 'unknown',
  role: 'user',
  createdAt: '2026-01-01T00:00:00Z',
};
const GRAPH = { root: { id: 'e1', name: 'a', type: 'workspace' }, nodes: [], edges: [], truncated: false };
const INGESTED = {
  document: { id: 'd', title: 'T', source: null, status: 'created', chunks: 1 },
  sync: { state: 'done', scanned: 2, unchanged: 2 },
};

describe('the HTTP endpoints of the memory adapter', () => {
  verifies(
    ['memory.service.1', 'memory.http.health'],
    'the health endpoint does not need the backend',
    async () => {
      await using backend = await fakeBackend(silence);
      await using adapter = await memoryAdapter(backend.url);
      const { status, text, headers } = await send(`${adapter.url}/health`);
      expect(status).toBe(200);
      expect(headers['content-type']).toContain('application/json');
      expect(JSON.parse(text)).toEqual({ status: 'healthy', service: 'memory-adapter' });
      expect(backend.seen).toEqual([]);
    },
  );

  verifies(
    ['memory.http.mcp', 'memory.service.4', 'memory.service.4.instance'],
    'each POST to /mcp is independent: no session id and no initialize',
    async () => {
      await using backend = await fakeBackend(reply(200, FOUND));
      await using adapter = await memoryAdapter(backend.url);
      const initialized = await post(`${adapter.url}/mcp`, INITIALIZE);
      expect(initialized.result.protocolVersion).toBe('2025-06-18');
      expect(initialized.headers.get('mcp-session-id')).toBeNull();
      // Another instance has no such session and still answers, also for an invented session id.
      const listed = await post(
        `${adapter.url}/mcp`,
        { jsonrpc: '2.0', id: 1, method: 'tools/list' },
        { 'mcp-session-id': 'made-up' },
      );
      expect(listed.result.tools).toHaveLength(4);
      expect(listed.headers.get('mcp-session-id')).toBeNull();
    },
  );

  test.each(['GET', 'DELETE', 'PUT'])('the memory adapter answers %s /mcp with 405', async (method) => {
    await using adapter = await memoryAdapter('http://127.0.0.1:1');
    const { status, headers } = await send(`${adapter.url}/mcp`, { method, headers: MCP_HEADERS });
    expect([status, headers.allow]).toEqual([405, 'POST']);
  });

  test('the memory adapter says at another path that MCP is at /mcp', async () => {
    await using adapter = await memoryAdapter('http://127.0.0.1:1');
    const { status, text } = await send(adapter.url, { method: 'POST', headers: MCP_HEADERS, body: '{}' });
    expect([status, JSON.parse(text).error.message]).toEqual([404, 'unknown path: MCP is at /mcp']);
  });

  test('a body that is not JSON, too long or of another type is rejected with a JSON-RPC error', async () => {
    await using adapter = await memoryAdapter('http://127.0.0.1:1');
    const url = `${adapter.url}/mcp`;
    const broken = await post(url, '{"jsonrpc":');
    expect([broken.status, broken.messages[0].error.code]).toEqual([400, -32_700]);
    const long = await post(url, 'x'.repeat(4 * 1024 * 1024 + 1));
    expect([long.status, long.messages[0].error.code]).toEqual([413, -32_600]);
    const form = await post(url, 'a=b', { 'content-type': 'application/x-www-form-urlencoded' });
    expect(form.status).toBe(415);
    const nothing = await post(url, '');
    expect(nothing.status).toBe(400);
  });

  test('another Host on a loopback connection is rejected, and a configured one is accepted', async () => {
    await using adapter = await memoryAdapter('http://127.0.0.1:1', { allowedHosts: ['memory.test'] });
    const health = async (headers: Record<string, string>) =>
      (await send(`${adapter.url}/health`, { headers })).status;
    expect(await health({ host: 'evil.test' })).toBe(403);
    expect(await health({ origin: 'http://evil.test' })).toBe(403);
    expect(await health({ origin: 'null' })).toBe(403);
    expect(await health({ host: 'memory.test:8080', origin: 'https://memory.test' })).toBe(200);
    expect(await health({ host: 'localhost:8080', origin: 'http://127.0.0.1:9' })).toBe(200);
  });
});

describe('the memory tools', () => {
  verifies(
    [
      'memory.tool.search.query',
      'memory.tool.search.limit',
      'memory.tool.search.min-score',
      'memory.tool.store.parameters',
      'memory.tool.graph.entity',
      'memory.tool.graph.depth',
      'memory.tool.ingest.parameters',
    ],
    'the memory tools have the parameters and defaults of the specification',
    async () => {
      await using adapter = await memoryAdapter('http://127.0.0.1:1');
      const { result } = await post(`${adapter.url}/mcp`, { jsonrpc: '2.0', id: 1, method: 'tools/list' });
      const shapes = Object.fromEntries(
        // biome-ignore lint/suspicious/noExplicitAny: what came over the wire.
        result.tools.map(({ name, inputSchema }: any) => [name, inputSchema]),
      );
      expect(shapes.search_knowledge).toMatchObject({
        required: ['query'],
        properties: {
          query: { type: 'string' },
          limit: { default: 5 },
          minScore: { default: 0.7, minimum: 0, maximum: 1 },
        },
      });
      expect(shapes.store_episodic).toMatchObject({
        required: ['sessionId', 'role', 'content'],
        properties: { role: { enum: ['user', 'assistant', 'system'] } },
      });
      expect(shapes.query_graph).toMatchObject({
        required: ['entityId'],
        properties: { maxDepth: { default: 2 } },
      });
      expect(shapes.ingest_document).toMatchObject({
        required: ['title', 'content'],
        properties: { source: { type: 'string' } },
      });
    },
  );

  const calls: [string, object, object, object, string][] = [
    [
      'search_knowledge',
      { query: 'how to install' },
      FOUND,
      {
        method: 'POST',
        target: '/api/memory/search',
        body: { query: 'how to install', limit: 5, minScore: 0.7 },
      },
      '1 passage.\n\n## 1. Setup (a.md, score 0.91)\n\n> Install it.',
    ],
    [
      'store_episodic',
      { sessionId: 's', role: 'user', content: 'hi' },
      STORED,
      {
        method: 'POST',
        target: '/api/memory/chat',
        body: { sessionId: 's', role: 'user', content: 'hi', agentId: 'unknown' },
      },
      'Stored turn t1 (user) of session s at 2026-01-01T00:00:00Z.',
    ],
    [
      'query_graph',
      { entityId: 'a' },
      GRAPH,
      { method: 'GET', target: '/api/memory/graph?entityId=a&maxDepth=2', body: undefined },
      'a (workspace): 0 nodes, 0 relations.',
    ],
    [
      'ingest_document',
      { title: 'T', content: '# T', source: 'http://x' },
      INGESTED,
      {
        method: 'POST',
        target: '/api/memory/ingest/docs',
        body: { title: 'T', content: '# T', source: 'http://x' },
      },
      'Document "T" created: 1 passage.\nDocs folder: done, 2 unchanged.',
    ],
  ];

  for (const [name, args, answer, request, text] of calls) {
    verifies('memory.service.2', `${name} makes its REST call and returns the response`, async () => {
      await using backend = await fakeBackend(reply(200, answer));
      await using adapter = await memoryAdapter(backend.url);
      const { result } = await adapter.call(name, args);
      expect(result.isError).toBeUndefined();
      expect(result.structuredContent).toEqual(answer);
      expect(result.content).toEqual([{ type: 'text', text }]);
      expect(backend.seen).toHaveLength(1);
      expect(backend.seen[0]).toMatchObject(request);
    });

    test(`${name} works with the official clients of both generations`, async () => {
      await using backend = await fakeBackend(reply(200, answer));
      await using adapter = await memoryAdapter(backend.url);
      const info = { name: 'client', version: '1' };
      const url = new URL(`${adapter.url}/mcp`);
      for (const [client, transport] of [
        [new Client1(info), new Transport1(url)],
        [new Client2(info), new Transport2(url)],
        [new Client2(info, { versionNegotiation: { mode: { pin: '2026-07-28' } } }), new Transport2(url)],
      ] as [Client2, Transport2][]) {
        await client.connect(transport);
        // After a list the clients validate the result against the output schema.
        expect((await client.listTools()).tools).toHaveLength(4);
        const result = await client.callTool({ name, arguments: args as Record<string, unknown> });
        expect(result.structuredContent).toEqual(answer);
        await client.close();
      }
    });
  }

  test.each([
    ['search_knowledge', {}],
    ['search_knowledge', { query: '' }],
    ['search_knowledge', { query: 'x'.repeat(2_001) }],
    ['search_knowledge', { query: 'x', limit: 0 }],
    ['search_knowledge', { query: 'x', limit: 51 }],
    ['search_knowledge', { query: 'x', limit: '5' }],
    ['search_knowledge', { query: 'x', limit: 1.5 }],
    ['search_knowledge', { query: 'x', minScore: -1 }],
    ['search_knowledge', { query: 'x', maxTokens: 10 }],
    ['search_knowledge', { query: 'x', minScore: 2 }],
    ['search_knowledge', { query: 'x', unknown: 1 }],
    ['query_graph', { entityId: 'x', maxDepth: 1e6 }],
    ['query_graph', { entityId: 'x', maxDepth: 0 }],
    ['store_episodic', { sessionId: 's', role: 'root', content: 'x' }],
    ['store_episodic', { sessionId: 's', role: 'user' }],
    ['ingest_document', { title: 'T' }],
  ])('%s rejects %j before it calls the backend', async (name, args) => {
    await using backend = await fakeBackend(reply(200, {}));
    await using adapter = await memoryAdapter(backend.url);
    const { result, error } = await adapter.call(name, args);
    expect(error ?? result.isError).toBeTruthy();
    expect(JSON.stringify(error ?? result.content)).toContain(`Invalid arguments for tool ${name}`);
    expect(backend.seen).toEqual([]);
  });

  test('an entity id is sent as one query value, whatever characters it has', async () => {
    await using backend = await fakeBackend(reply(200, GRAPH));
    await using adapter = await memoryAdapter(backend.url);
    const ids = ['../../x?y#z', '%2f', 'a\r\nX: 1', 'http://169.254.169.254/', '😀&maxDepth=9'];
    for (const entityId of ids) await adapter.call('query_graph', { entityId });
    for (const [index, { target }] of backend.seen.entries()) {
      const url = new URL(target, 'http://backend');
      expect(url.pathname).toBe('/api/memory/graph');
      expect([...url.searchParams]).toEqual([
        ['entityId', ids[index]],
        ['maxDepth', '2'],
      ]);
    }
  });

  test('long texts and large graphs are truncated for the model', async () => {
    const edge = { fromId: 'a', toId: 'b', relationType: 'REFERENCES', weight: 1 };
    const long = { ...FOUND, results: [{ ...FOUND.results[0], content: 'x'.repeat(5_000) }] };
    await using backend = await fakeBackend(
      reply(200, long),
      reply(200, { ...GRAPH, edges: Array.from({ length: 2_000 }, () => edge) }),
    );
    await using adapter = await memoryAdapter(backend.url);
    const found = (await adapter.call('search_knowledge', { query: 'x' })).result.structuredContent;
    expect(found.results[0].content).toHaveLength(2_000);
    expect(found.results[0].truncated).toBe(true);
    const graph = (await adapter.call('query_graph', { entityId: 'x' })).result.structuredContent;
    expect([graph.edges.length, graph.truncated]).toEqual([400, true]);
  });

  test.each([
    ['letters', 'word '.repeat(200), 600],
    ['Japanese', '文章を検索します。'.repeat(60), 600],
  ])('maxTokens bounds the texts of a search together, in %s', async (_script, text, maxTokens) => {
    const results = [1, 2, 3, 4, 5].map((id) => ({ ...FOUND.results[0], id: String(id), content: text }));
    await using backend = await fakeBackend(reply(200, { ...FOUND, results, count: 5 }));
    await using adapter = await memoryAdapter(backend.url);
    const { structuredContent: found } = (await adapter.call('search_knowledge', { query: 'x', maxTokens }))
      .result;
    const [first, ...others] = found.results;
    expect([first.content, first.truncated]).toEqual([text, undefined]);
    expect(others.at(-1)).toMatchObject({ truncated: true });
    expect(text.startsWith(others.at(-1).content)).toBe(true);
    const length = found.results.reduce(
      (sum: number, { content }: { content: string }) => sum + content.length,
      0,
    );
    expect(length * (text === 'word '.repeat(200) ? 0.25 : 1)).toBeGreaterThan(maxTokens * 0.9);
    expect(length * (text === 'word '.repeat(200) ? 0.25 : 1)).toBeLessThanOrEqual(maxTokens);
    expect([found.count, found.hint]).toEqual([found.results.length, expect.stringContaining('do not fit')]);
    expect(backend.seen[0]?.body).not.toHaveProperty('maxTokens');
  });

  test('the agent name comes from the gateway and is reduced to printable characters', async () => {
    await using backend = await fakeBackend(reply(200, STORED));
    await using adapter = await memoryAdapter(backend.url, { key: 'k3y' });
    const turn = { sessionId: 's', role: 'user', content: 'x' };
    await adapter.call('store_episodic', turn, { 'x-agent-id': 'planner' });
    await adapter.call('store_episodic', turn, { 'x-agent-id': 'a b' });
    expect(backend.seen.map(({ body }) => body.agentId)).toEqual(['planner', 'unknown']);
    expect(backend.seen[0].headers.authorization).toBe('Bearer k3y');
  });
});

describe('backend calls', () => {
  test('a backend call is repeated once with the same idempotency key', async () => {
    await using backend = await fakeBackend(cut, reply(201, STORED));
    await using adapter = await memoryAdapter(backend.url);
    const { result } = await adapter.call('store_episodic', { sessionId: 's', role: 'user', content: 'x' });
    expect(result.structuredContent.id).toBe('t1');
    const [first, second] = backend.seen.map(({ headers }) => headers['idempotency-key']);
    expect(first).toMatch(/^[0-9a-f-]{36}$/);
    expect(second).toBe(first);
  });

  const args = { name: 'search_knowledge', arguments: { query: 'x' } };
  const modern = {
    _meta: {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientCapabilities': {},
    },
  };
  const modernHeaders = {
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': 'tools/call',
    'mcp-name': 'search_knowledge',
  };

  test.each([
    ['an older client', {}, {}],
    ['a client of 2026-07-28', modern, modernHeaders],
  ])('a backend call ends when %s disconnects', async (_name, meta, headers) => {
    await using backend = await fakeBackend(silence);
    await using adapter = await memoryAdapter(backend.url);
    const gone = new AbortController();
    const call = fetch(`${adapter.url}/mcp`, {
      method: 'POST',
      headers: { ...MCP_HEADERS, ...headers },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { ...args, ...meta } }),
      signal: gone.signal,
    }).then((response) => response.text());
    await until(() => backend.seen.length === 1);
    gone.abort();
    await expect(call).rejects.toThrow();
    // Well before the time limit of the call.
    await until(() => backend.seen[0].closed, 5_000);
  });

  test('concurrent calls with the same request id each get their own response', async () => {
    await using backend = await fakeBackend((res, { body }) =>
      reply(200, { ...FOUND, nonce: body.query })(res, undefined as never),
    );
    await using adapter = await memoryAdapter(backend.url);
    const nonces = Array.from({ length: 200 }, (_, index) => `nonce-${index}`);
    const answers = await Promise.all(nonces.map((query) => adapter.call('search_knowledge', { query })));
    expect(answers.map(({ result }) => result.structuredContent.nonce)).toEqual(nonces);
  });
});

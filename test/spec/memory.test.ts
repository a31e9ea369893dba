import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Client as Client2, StreamableHTTPClientTransport as Transport2 } from '@modelcontextprotocol/client';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as Transport1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import type { Json } from '../kit/mcp.ts';
import { type MemoryProcesses, memoryProcesses } from '../kit/memory-processes.ts';
import { type ServeProcess, serve } from '../kit/process.ts';
import { until } from '../kit/until.ts';
import { verifies } from '../kit/verifies.ts';

// Four parts as users run them: an official client, the gateway of examples/memory.yaml, the adapter, the backend with
// its store on disk.

const example = fileURLToPath(new URL('../../examples/memory.yaml', import.meta.url));
const DOCS = {
  'deploy.md': '# Deploying\n\nRoll out with a canary of five percent. See [rollback](rollback.mdx).\n',
  'rollback.mdx': '# Rolling back\n\nSwitch the traffic to the previous revision.\n',
};

let memory: MemoryProcesses;
let gateway: ServeProcess;
let url: URL;
beforeAll(async () => {
  memory = await memoryProcesses(DOCS);
  gateway = await serve(readFileSync(example, 'utf8'), {
    env: {
      GATEWAY_PORT: '0',
      MEMORY_ADAPTER_URL: memory.mcp,
      MEMORY_ADAPTER_KEY: 'key-of-the-adapter',
      CLIENT_KEY: 'key-of-the-client',
    },
  });
  url = new URL(`${gateway.url}/mcp`);
  await until(async () => (await rest('stats')).ready);
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await memory[Symbol.asyncDispose]();
});

async function rest(path: string): Promise<Json> {
  const response = await fetch(`${memory.api}/${path}`, { headers: { authorization: 'Bearer shared-key' } });
  return response.json();
}

// A client may not choose whose memory it reads.
const HEADERS = {
  'x-agent-id': 'planner',
  'x-memory-namespace': 'of-somebody-else',
  authorization: 'Bearer key-of-the-client',
};
const INFO = { name: 'official-client', version: '1.0.0' };
type Client = Pick<Client2, 'close' | 'listTools' | 'callTool'>;

const CLIENTS: [string, () => Promise<Client>][] = [
  [
    'SDK 1',
    async () => {
      const client = new Client1(INFO);
      await client.connect(
        new Transport1(url, { requestInit: { headers: HEADERS } }) as Parameters<Client1['connect']>[0],
      );
      return client as unknown as Client;
    },
  ],
  [
    'SDK 2',
    async () => {
      const client = new Client2(INFO);
      await client.connect(new Transport2(url, { requestInit: { headers: HEADERS } }));
      return client;
    },
  ],
  [
    'SDK 2, asking for the newest revision first',
    async () => {
      const client = new Client2(INFO, { versionNegotiation: { mode: 'auto' } });
      await client.connect(new Transport2(url, { requestInit: { headers: HEADERS } }));
      return client;
    },
  ],
];

describe.each(CLIENTS)('the memory adapter behind the gateway with %s', (name, connect) => {
  let client: Client;
  const call = async (tool: string, args: Record<string, unknown>): Promise<Json> =>
    client.callTool({ name: tool, arguments: args });
  beforeAll(async () => {
    client = await connect();
    const { tools } = await client.listTools();
    expect(tools.map((tool) => tool.name)).toEqual([
      'search_knowledge',
      'store_episodic',
      'query_graph',
      'ingest_document',
    ]);
  });
  afterAll(() => client.close());

  verifies(
    ['memory.service.3', 'memory.tool.search', 'memory.tool.search.min-score'],
    'search_knowledge finds the contents of the docs folder',
    async () => {
      const found = await call('search_knowledge', { query: 'roll out with a canary' });
      const [first] = found.structuredContent.results;
      expect(first).toMatchObject({
        content: expect.stringContaining('five percent'),
        metadata: { path: 'deploy.md' },
      });
      expect(first.score).toBeGreaterThanOrEqual(0.7);
      // Clients that show no structured content have the same passage, with its place.
      expect(found.content).toEqual([
        {
          type: 'text',
          text: expect.stringMatching(/## 1\. Deploying \(deploy\.md:1#deploying, score .*five percent/s),
        },
      ]);
      const nothing = await call('search_knowledge', { query: 'zebras in the savanna' });
      expect(nothing.structuredContent).toMatchObject({ results: [], count: 0, hint: expect.any(String) });
    },
  );

  verifies(
    ['memory.tool.store', 'memory.chat.agent-id'],
    'store_episodic stores turns of the calling agent',
    async () => {
      const sessionId = `thread of ${name}`;
      for (const [role, content] of [
        ['user', 'How do I deploy?'],
        ['assistant', 'With a canary.'],
      ])
        expect((await call('store_episodic', { sessionId, role, content })).isError).toBeFalsy();
      const { turns } = await rest(`sessions/${encodeURIComponent(sessionId)}/turns`);
      expect(turns.map(({ role, content, agentId }: Json) => [role, content, agentId])).toEqual([
        ['user', 'How do I deploy?', 'planner'],
        ['assistant', 'With a canary.', 'planner'],
      ]);
    },
  );

  verifies('memory.tool.graph', 'query_graph walks from document to document', async () => {
    const { structuredContent } = await call('query_graph', { entityId: 'Deploying' });
    expect(structuredContent.nodes.map((node: Json) => node.name)).toContain('Rolling back');
    const missing = await call('query_graph', { entityId: 'Deployin' });
    expect(missing).toMatchObject({
      isError: true,
      content: [{ type: 'text', text: "No entity 'Deployin'. Similar names: Deploying" }],
    });
  });

  verifies(
    ['memory.tool.ingest', 'memory.tool.ingest.resync'],
    'ingest_document makes a text searchable and starts a sync',
    async () => {
      const title = `Note of ${name}`;
      const { structuredContent } = await call('ingest_document', {
        title,
        content: `# ${title}\n\nThe zeppelin ${name} lands at noon.`,
        source: `https://notes.test/${encodeURIComponent(name)}`,
      });
      expect(structuredContent).toMatchObject({
        document: { title, status: 'created', chunks: 1 },
        sync: { state: 'done', scanned: 2, unchanged: 2 },
      });
      const found = await call('search_knowledge', { query: `zeppelin ${name} lands at noon`, limit: 1 });
      expect(found.structuredContent.results[0].metadata.source).toBe(
        `https://notes.test/${encodeURIComponent(name)}`,
      );
    },
  );

  verifies('memory.limits', 'the memory tools have the defaults of the specification', async () => {
    const { structuredContent } = await call('search_knowledge', { query: 'traffic' });
    expect(structuredContent).toMatchObject({ minScore: 0.7, embedder: 'hash-v2/128' });
    const { tools } = await client.listTools();
    const properties = (tool: string): Json => tools.find((one) => one.name === tool)?.inputSchema.properties;
    expect(properties('search_knowledge')).toMatchObject({
      limit: { default: 5 },
      minScore: { default: 0.7 },
    });
    expect(properties('query_graph')).toMatchObject({ maxDepth: { default: 2 } });
  });
});

import { join } from 'node:path';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { temporaryFolder } from '../kit/folder.ts';
import type { Json } from '../kit/mcp.ts';
import { memoryAdapter, type TestAdapter } from '../kit/memory-adapter.ts';
import { memoryBackend, type TestBackend } from '../kit/memory-backend.ts';

// The same calls to the real server @modelcontextprotocol/server-memory and to the adapter: its users can switch.

const PEER = join(
  import.meta.dirname,
  '../../node_modules/@modelcontextprotocol/server-memory/dist/index.js',
);
const INFO = { name: 'switching-client', version: '1.0.0' };

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let backend: TestBackend;
let adapter: TestAdapter;
const peer = new Client(INFO);
const ours = new Client(INFO);
beforeAll(async () => {
  folder = await temporaryFolder();
  const env = { MEMORY_FILE_PATH: join(folder.path, 'memory.jsonl') };
  await peer.connect(
    new StdioClientTransport({ command: process.execPath, args: [PEER], env, stderr: 'ignore' }),
  );
  backend = await memoryBackend();
  adapter = await memoryAdapter(backend.url, { toolSet: 'extended' });
  await ours.connect(new StreamableHTTPClientTransport(new URL(`${adapter.url}/mcp`)));
}, 60_000);
afterAll(async () => {
  await Promise.all([peer.close(), ours.close()]);
  await adapter[Symbol.asyncDispose]();
  await backend[Symbol.asyncDispose]();
  await folder.remove();
});

/** Lists of entities and relations are sets; the other server returns them in the order of creation. */
function unordered(value: unknown): unknown {
  if (Array.isArray(value)) {
    const items = value.map(unordered);
    return items.every((item) => typeof item === 'object')
      ? items.sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))
      : items;
  }
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, member]) => [key, unordered(member)]),
  );
}

function comparable({ isError = false, structuredContent, content }: Json): unknown {
  const [{ text }] = content;
  let parsed = text;
  try {
    parsed = JSON.parse(text);
  } catch {
    // A message.
  }
  return unordered({ isError, structuredContent, texts: content.length, text: parsed });
}

/** Calls both, and returns our result after comparing it. */
async function both(name: string, args: Record<string, unknown>): Promise<Json> {
  const [expected, result] = await Promise.all(
    [peer, ours].map((client) => client.callTool({ name, arguments: args })),
  );
  expect(comparable(result as Json), `${name} ${JSON.stringify(args)}`).toEqual(comparable(expected as Json));
  return result as Json;
}

const john = { name: 'John_Smith', entityType: 'person', observations: ['Speaks fluent Spanish'] };
const works = { from: 'John_Smith', to: 'Anthropic', relationType: 'works_at' };

describe('calls of a client of server-memory', () => {
  test('the tools have the names, required arguments and results of server-memory', async () => {
    const tools = async (client: Client): Promise<Map<string, Json>> =>
      new Map((await client.listTools()).tools.map((tool) => [tool.name, tool]));
    const mine = await tools(ours);
    for (const [name, theirs] of await tools(peer)) {
      const tool = mine.get(name);
      expect(tool, name).toBeDefined();
      expect(tool.inputSchema.required ?? [], name).toEqual(theirs.inputSchema.required ?? []);
      expect(Object.keys(tool.inputSchema.properties), name).toEqual(
        expect.arrayContaining(Object.keys(theirs.inputSchema.properties ?? {})),
      );
      expect(Object.keys(tool.outputSchema.properties), name).toEqual(
        expect.arrayContaining(Object.keys(theirs.outputSchema.properties)),
      );
      expect(tool.annotations.readOnlyHint, name).toBe(theirs.annotations.readOnlyHint);
      expect(tool.annotations.destructiveHint, name).toBe(theirs.annotations.destructiveHint);
    }
  });

  test('the examples of its documentation have the same results', async () => {
    await both('read_graph', {});
    await both('create_entities', { entities: [john] });
    await both('create_relations', { relations: [works] });
    await both('add_observations', {
      observations: [
        {
          entityName: 'John_Smith',
          contents: ['Speaks fluent Spanish', 'Graduated in 2019', 'Prefers morning meetings'],
        },
      ],
    });
    await both('read_graph', {});
    await both('search_nodes', { query: 'spanish' });
    await both('search_nodes', { query: 'PERSON' });
    await both('search_nodes', { query: 'smith' });
    await both('search_nodes', { query: 'nothing like this' });
    await both('open_nodes', { names: ['John_Smith', 'Nobody'] });
    await both('open_nodes', { names: ['Anthropic'] });
    await both('open_nodes', { names: [] });
  });

  test('what exists already, what is unknown and what is missing have the same results', async () => {
    const anthropic = { name: 'Anthropic', entityType: 'organization', observations: [] };
    await both('create_entities', { entities: [john, anthropic] });
    await both('create_entities', { entities: [] });
    const located = { from: 'Anthropic', to: 'San Francisco', relationType: 'is in: "the" city' };
    await both('create_relations', { relations: [works, located] });
    await both('open_nodes', { names: ['Anthropic'] });
    await both('add_observations', { observations: [{ entityName: 'Unknown_One', contents: ['x'] }] });
    await both('search_nodes', { query: '100%_' });
    await both('search_nodes', { query: '' });
    await both('delete_relations', { relations: [works, { ...works, to: 'Nowhere' }] });
    await both('delete_observations', {
      deletions: [
        { entityName: 'John_Smith', observations: ['Graduated in 2019', 'absent'] },
        { entityName: 'Unknown_One', observations: ['x'] },
      ],
    });
    await both('read_graph', {});
    await both('delete_entities', { entityNames: ['Anthropic', 'Unknown_One'] });
    await both('read_graph', {});
  });

  test('its results can be sent back as arguments', async () => {
    const { structuredContent } = await both('open_nodes', { names: ['John_Smith'] });
    await both('delete_entities', { entityNames: ['John_Smith'] });
    await both('create_entities', { entities: structuredContent.entities });
    await both('read_graph', {});
  });
});

describe('what server-memory does not do', () => {
  const call = async (name: string, args: Record<string, unknown>): Promise<Json> =>
    (await ours.callTool({ name, arguments: args })) as Json;

  test('a large graph is returned in pages with a note, not as one reply', async () => {
    const entities = Array.from({ length: 400 }, (_, n) => ({
      name: `Large ${String(n).padStart(3, '0')}`,
      entityType: 'topic',
      observations: [`fact ${n} ${'word '.repeat(60)}`],
    }));
    await call('create_entities', { entities });
    const first = await call('read_graph', {});
    expect(first.content[0].text.length).toBeLessThan(50_000);
    expect(first.structuredContent).toMatchObject({
      truncated: true,
      note: expect.stringMatching(/^Only the first \d+ entities .* search_nodes .* cursor/),
      nextCursor: expect.any(String),
    });
    const names = new Set<string>();
    for (let cursor: string | undefined, pages = 0; pages === 0 || cursor !== undefined; pages++) {
      const { structuredContent: page } = await call('read_graph', cursor === undefined ? {} : { cursor });
      for (const { name } of page.entities) names.add(name);
      cursor = page.nextCursor;
    }
    expect(names.size).toBe(401);
  });

  test('query_graph finds an entity in any case and follows its relations', async () => {
    await call('create_entities', { entities: [{ name: 'Alice', entityType: 'person', observations: [] }] });
    await call('create_relations', { relations: [{ from: 'Alice', to: 'Bob', relationType: 'knows' }] });
    const { structuredContent } = await call('query_graph', { entityId: 'alice' });
    expect(structuredContent).toMatchObject({
      root: { name: 'Alice', type: 'entity' },
      nodes: [{ name: 'Alice' }, { name: 'Bob', depth: 1 }],
      edges: [{ relationType: 'knows' }],
    });
    const missing = await call('query_graph', { entityId: 'Alicia' });
    expect(missing.content[0].text).toBe("No entity 'Alicia'. Similar names: Alice");
  });

  test('search_knowledge finds what agents have observed', async () => {
    const observations = ['Restores harpsichords in a barn near Utrecht'];
    await call('create_entities', { entities: [{ name: 'Wim', entityType: 'person', observations }] });
    const { structuredContent } = await call('search_knowledge', { query: 'who restores harpsichords' });
    expect(structuredContent.results[0]).toMatchObject({
      name: 'Wim',
      type: 'entity',
      content: observations[0],
    });
  });

  test('arguments over a limit are rejected with the name of the field', async () => {
    const long = { name: 'x'.repeat(513), entityType: 'person', observations: [] };
    const { isError, content } = await call('create_entities', { entities: [long] });
    expect(isError).toBe(true);
    expect(content[0].text).toMatch(/name/);
  });
});

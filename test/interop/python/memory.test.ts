import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import type { Json } from '../../kit/mcp.ts';
import { memoryAdapter } from '../../kit/memory-adapter.ts';
import { memoryBackend } from '../../kit/memory-backend.ts';

const python = process.env['MCP_PYTHON'] as string;
const script = new URL('memory.py', import.meta.url).pathname;
const john = { name: 'John_Smith', entityType: 'person', observations: ['Speaks fluent Spanish'] };
const works = { from: 'John_Smith', to: 'Anthropic', relationType: 'works_at' };
const more = ['Graduated in 2019', 'Prefers morning meetings'];
const whole = { ...john, observations: [...john.observations, ...more] };

test.each([
  ['legacy', '2025-11-25'],
  ['auto', '2026-07-28'],
  ['2026-07-28', '2026-07-28'],
])('the Python client in mode %s can use every tool of the memory at revision %s', async (mode, revision) => {
  await using backend = await memoryBackend();
  await using adapter = await memoryAdapter(backend.url, { toolSet: 'extended' });
  const { stdout } = await promisify(execFile)(python, [script, mode, `${adapter.url}/mcp`]);
  const { results, ...report } = JSON.parse(stdout) as Json;
  expect(report).toEqual({
    revision,
    'not called': [],
    refused: expect.stringContaining("No entity 'John_Smith'"),
  });
  expect(results).toMatchObject({
    ingest_document: { document: { title: 'Otters', status: 'created' } },
    search_knowledge: {
      count: 1,
      results: [{ type: 'doc_chunk', content: expect.stringContaining('hold hands') }],
    },
    query_graph: { root: { type: 'doc_chunk' }, edges: [{ relationType: 'BELONGS_TO' }] },
    store_episodic: { sessionId: 'talk', role: 'user' },
    search_episodes: { count: 1, turns: [{ content: 'Where do otters sleep?' }] },
    create_entities: { entities: [john] },
    create_relations: { relations: [works] },
    add_observations: { results: [{ entityName: 'John_Smith', addedObservations: more }] },
    read_graph: { entities: [whole], relations: [works] },
    search_nodes: { entities: [whole] },
    open_nodes: { entities: [whole] },
    delete_observations: { success: true },
    delete_relations: { success: true },
    delete_entities: { success: true },
  });
});

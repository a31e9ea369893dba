import { z } from 'zod';
import { MEMORY_API_LIMITS, MEMORY_STORE_LIMITS } from '../../core/memory-limits.ts';
import { nonEmpty } from '../../core/schema/mapping.ts';
import { defineTool } from '../tool.ts';

const node = z.looseObject({
  id: z.string(),
  name: z.string(),
  type: z.string(),
  depth: z.int().describe('Hops from the requested entity.'),
});

const edge = z.looseObject({
  fromId: z.string(),
  toId: z.string(),
  relationType: z.string(),
  weight: z.number(),
});

export const queryGraph = defineTool({
  name: 'query_graph',
  title: 'Query the knowledge graph',
  description:
    'Walks the knowledge graph from one entity and returns what is connected to it: documents, their parts and what they ' +
    'refer to or depend on. For an unknown name, similar names are returned.',
  input: z.strictObject({
    entityId: nonEmpty
      .max(MEMORY_API_LIMITS.nameLength)
      .describe('Id or canonical name of the entity to start from.'),
    maxDepth: z
      .int()
      .min(1)
      .max(MEMORY_STORE_LIMITS.graphDepth)
      .default(2)
      .describe('Maximum number of relationship hops.'),
  }),
  output: z.looseObject({
    root: z.looseObject({ id: z.string(), name: z.string(), type: z.string() }),
    nodes: z.array(node),
    edges: z.array(edge),
    truncated: z.boolean().describe('Whether the result is incomplete because of its limits.'),
  }),
  readOnly: true,
  idempotent: true,
  run: ({ entityId, maxDepth }, { backend, signal }) =>
    backend.call({
      method: 'GET',
      path: '/graph',
      query: { entityId, maxDepth: String(maxDepth) },
      timeout: MEMORY_API_LIMITS.callTimeout,
      signal,
    }),
  shorten: (reply) =>
    reply.edges.length <= MEMORY_API_LIMITS.toolEdges
      ? reply
      : { ...reply, edges: reply.edges.slice(0, MEMORY_API_LIMITS.toolEdges), truncated: true },
});

import { z } from 'zod';
import { MEMORY_API_LIMITS, MEMORY_STORE_LIMITS } from '../../core/memory-limits.ts';
import { counted } from '../../core/render/counted.ts';
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
      .describe(
        'Id or name of the entity to start from, or what a result says of its origin, such as guide/setup.md:12#install.',
      ),
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
  text({ root, nodes, edges, truncated }) {
    const names = new Map(nodes.map(({ id, name, type }) => [id, `${name.slice(0, NAME)} (${type})`]));
    const named = (id: string): string => names.get(id) ?? id;
    // That a passage belongs to its document says little.
    const told = [...edges].sort((left, right) => Number(isPart(left)) - Number(isPart(right)));
    const lines = told
      .slice(0, LINES)
      .map(({ fromId, toId, relationType }) => `- ${named(fromId)} ${relationType} ${named(toId)}`);
    const left = edges.length - lines.length;
    return [
      `${root.name} (${root.type}): ${counted(nodes.length, 'node')}, ${counted(edges.length, 'relation')}${truncated ? ', incomplete' : ''}.`,
      ...lines,
      ...(left === 0 ? [] : [`and ${left} more in structuredContent`]),
    ].join('\n');
  },
});

/** Relations in the text of a result, and characters of a name. */
const LINES = 50;
const NAME = 200;

const isPart = ({ relationType }: z.output<typeof edge>): boolean => relationType === 'BELONGS_TO';

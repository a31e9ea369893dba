import { z } from 'zod';
import { MEMORY_API_LIMITS, MEMORY_STORE_LIMITS } from '../../core/memory-limits.ts';
import { counted } from '../../core/render/counted.ts';
import { nonEmpty } from '../../core/schema/mapping.ts';
import { defineTool } from '../tool.ts';
import { oneLine } from './stored-text.ts';

const named = z.looseObject({
  id: z.string(),
  name: z.string(),
  type: z.string(),
  place: z.string().optional().describe('Where a document, passage or folder is.'),
});

const node = named.extend({
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
    root: named,
    nodes: z.array(node),
    edges: z.array(edge),
    truncated: z.boolean().describe('Whether the result is incomplete because of its limits.'),
    ambiguous: z
      .array(named)
      .optional()
      .describe('Other entities of this name, which a call with their id starts from.'),
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
  text({ root, nodes, edges, truncated, ambiguous = [] }) {
    const names = new Map(nodes.map((one) => [one.id, shown(one)]));
    const nameOf = (id: string): string => names.get(id) ?? id;
    // That a passage belongs to its document says little.
    const told = [...edges].sort((left, right) => Number(isPart(left)) - Number(isPart(right)));
    const lines = told
      .slice(0, LINES)
      .map(({ fromId, toId, relationType }) =>
        oneLine(`- ${nameOf(fromId)} ${relationType} ${nameOf(toId)}`),
      );
    const left = edges.length - lines.length;
    return [
      `${shown(root)}: ${counted(nodes.length, 'node')}, ${counted(edges.length, 'relation')}${truncated ? ', incomplete' : ''}.`,
      ...lines,
      ...(left === 0 ? [] : [`and ${left} more: in structuredContent, or with an entity of this list`]),
      ...(ambiguous.length === 0
        ? []
        : ['Others have this name; call again with the id of the one that is meant:']),
      ...ambiguous.map((one) => `- ${shown(one)}, id ${one.id}`),
    ].join('\n');
  },
});

/** Relations in the text of a result, and characters of a name. */
const LINES = 50;
const NAME = 200;

const shown = ({ name, type, place }: z.output<typeof named>): string =>
  oneLine(`${name.slice(0, NAME)} (${place === undefined ? type : `${type} ${place}`})`);

const isPart = ({ relationType }: z.output<typeof edge>): boolean => relationType === 'BELONGS_TO';

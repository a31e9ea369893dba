import { z } from 'zod';
import { MEMORY_API_LIMITS, MEMORY_STORE_LIMITS } from '../../../../core/memory-limits.ts';
import { walkGraph } from '../../graph.ts';
import type { Memory } from '../../memory.ts';
import { type Answer, cursor, defineEndpoint, entityTypes, wholeNumber } from '../endpoint.ts';
import { MemoryError } from '../memory-error.ts';

const query = z.strictObject({
  entityId: z.string().min(1).max(MEMORY_API_LIMITS.nameLength).optional(),
  maxDepth: wholeNumber(0, MEMORY_STORE_LIMITS.graphDepth, 2),
  direction: z.enum(['out', 'in', 'both']).default('both'),
  limit: wholeNumber(1, MEMORY_STORE_LIMITS.graphNodes, MEMORY_STORE_LIMITS.graphNodesDefault),
  types: entityTypes,
  cursor,
});

/** The entities connected to an entity; without an entity, a page of the whole graph for an overview. */
export const graph = defineEndpoint({
  method: 'GET',
  path: '/graph',
  query,
  async run({ query: { entityId, ...asked }, memory }) {
    if (entityId === undefined) return topology(memory, asked);
    const found = await walkGraph(memory.store, { entityId, ...asked });
    if (found.root === undefined) throw unknown(entityId, found.similarNames);
    return { body: found };
  },
});

function unknown(entityId: string, near: readonly string[]): MemoryError {
  const shown = entityId.length > 100 ? `${entityId.slice(0, 100)}…` : entityId;
  const hint = near.length === 0 ? 'No similar name exists.' : `Similar names: ${near.join(', ')}`;
  return new MemoryError('memory_not_found', `No entity '${shown}'. ${hint}`, { near });
}

/** Nodes by id, with their outgoing edges: over all pages, each edge is returned once. */
async function topology({ store }: Memory, page: Omit<z.output<typeof query>, 'entityId'>): Promise<Answer> {
  const { types, limit, cursor: after } = page;
  const { nodes, nextCursor } = await store.topology({ types, limit, cursor: after });
  const ids = nodes.map(({ id }) => id);
  const edges = ids.length === 0 ? [] : await store.edges(ids, 'out', MEMORY_STORE_LIMITS.graphEdges + 1);
  const { entities, relations } = await store.stats();
  return {
    body: {
      nodes,
      edges: edges.slice(0, MEMORY_STORE_LIMITS.graphEdges),
      truncated: edges.length > MEMORY_STORE_LIMITS.graphEdges,
      totals: { entities, relations },
      nextCursor,
    },
  };
}

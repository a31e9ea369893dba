import { z } from 'zod';
import { MEMORY_API_LIMITS, MEMORY_STORE_LIMITS } from '../../../../core/memory-limits.ts';
import { walkGraph } from '../../graph.ts';
import type { Memory } from '../../memory.ts';
import type { AgentGraph, AgentGraphRequest, GraphChange } from '../../store.ts';
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
    const found = await walkGraph(memory.store, { entityId, ...asked }, memory);
    if (found.root === undefined) throw unknown(entityId, found.similarNames);
    return { body: found };
  },
});

function unknown(entityId: string, near: readonly string[]): MemoryError {
  const shown = entityId.length > 100 ? `${entityId.slice(0, 100)}…` : entityId;
  const hint =
    near.length === 0
      ? 'No similar name exists: look with search_knowledge for a text that it contains.'
      : `Similar names: ${near.join(', ')}`;
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

const request = z
  .strictObject({
    names: z
      .array(z.string().max(MEMORY_API_LIMITS.nameLength))
      .max(MEMORY_STORE_LIMITS.graphChanges)
      .optional(),
    query: z.string().max(MEMORY_STORE_LIMITS.queryLength).optional(),
    cursor,
  })
  .refine(({ names, query }) => names === undefined || query === undefined, {
    path: ['query'],
    message: 'cannot be combined with `names`',
  })
  .optional();

/** Entities of agents with their relations: by name, by a text that they contain, or all. */
export const graphRead = defineEndpoint({
  method: 'POST',
  path: '/graph/read',
  body: request,
  async run({ body = {}, memory }) {
    const found = await memory.store.agentGraph(body);
    const { entities, relations, nextCursor } = found;
    const note = noteOn(found, body);
    return {
      body: {
        entities,
        relations,
        ...(note === undefined ? {} : { truncated: true, note }),
        ...(nextCursor === null ? {} : { nextCursor }),
      },
    };
  },
});

function noteOn(
  { entities, isCut, nextCursor }: AgentGraph,
  { names, query }: AgentGraphRequest,
): string | undefined {
  const notes: string[] = [];
  if (nextCursor !== null) {
    const remedy =
      names !== undefined
        ? 'ask for fewer names'
        : query !== undefined
          ? 'use a more specific query'
          : 'look for something specific with search_nodes or open_nodes';
    notes.push(
      `Only the first ${entities.length} entities by name are shown: ${remedy}, or repeat the call with cursor = nextCursor.`,
    );
  }
  if (isCut)
    notes.push(
      `Only ${MEMORY_STORE_LIMITS.graphRelations} relations are shown: open fewer entities to see all of theirs.`,
    );
  return notes.length === 0 ? undefined : notes.join(' ');
}

const name = z.string().min(1).max(MEMORY_API_LIMITS.nameLength);
const observation = z.string().max(MEMORY_STORE_LIMITS.observationLength);
const many = <Item extends z.ZodType>(item: Item) => z.array(item).max(MEMORY_STORE_LIMITS.graphChanges);
const relation = z.object({
  from: name,
  to: name,
  relationType: z.string().min(1).max(MEMORY_STORE_LIMITS.relationTypeLength),
});

const change = z
  .strictObject({
    createEntities: many(
      z.object({
        name,
        entityType: z.string().max(MEMORY_STORE_LIMITS.entityTypeLength),
        observations: many(observation),
      }),
    ),
    createRelations: many(relation),
    addObservations: many(z.object({ entityName: name, contents: many(observation) })),
    deleteObservations: many(z.object({ entityName: name, observations: many(z.string()) })),
    deleteRelations: many(relation),
    deleteEntities: many(name),
  })
  .partial()
  .refine((value) => Object.keys(value).length > 0, 'expected at least one kind of change');

/** Changes entities and relations of agents, in the order of the members above, all or none. */
export const graphChanges = defineEndpoint({
  method: 'POST',
  path: '/graph',
  body: change,
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the schema leaves out members, and has none that is undefined
  run: async ({ body, memory }) => ({ body: await memory.store.changeGraph(body as GraphChange) }),
});

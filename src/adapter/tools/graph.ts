// Tools for entities. Their names and shapes are those of the server @modelcontextprotocol/server-memory.
import { z } from 'zod';
import { membersOf } from '../../core/foreign.ts';
import { MEMORY_API_LIMITS as LIMITS, MEMORY_STORE_LIMITS } from '../../core/memory-limits.ts';
import { defineTool, type Tool, type ToolContext } from '../tool.ts';

const name = z.string().min(1).max(LIMITS.nameLength);
const observation = z.string().max(MEMORY_STORE_LIMITS.observationLength);

function many<Item extends z.ZodType>(item: Item): z.ZodArray<Item> {
  return z.array(item).max(MEMORY_STORE_LIMITS.graphChanges);
}

const observations = many(observation);

// Further members of arguments are ignored, so that a result can be sent back as it is.
const entity = z.object({
  name: name.describe('The name of the entity, which identifies it.'),
  entityType: z
    .string()
    .max(MEMORY_STORE_LIMITS.entityTypeLength)
    .describe('The type of the entity, such as person, organization or event.'),
  observations: observations.describe('Facts about the entity, one each.'),
});

const relation = z.object({
  from: name.describe('The name of the entity where the relation starts.'),
  to: name.describe('The name of the entity where the relation ends.'),
  relationType: z
    .string()
    .min(1)
    .max(MEMORY_STORE_LIMITS.relationTypeLength)
    .describe('The type of the relation, in active voice, such as works_at.'),
});

const graph = z.looseObject({
  entities: z.array(
    z.object({ name: z.string(), entityType: z.string(), observations: z.array(z.string()) }),
  ),
  relations: z.array(z.object({ from: z.string(), to: z.string(), relationType: z.string() })),
  truncated: z.boolean().optional().describe('Whether the result is incomplete because of its limits.'),
  note: z.string().optional().describe('What is missing, and how to get it.'),
  nextCursor: z.string().optional(),
});

const cursor = name
  .optional()
  .describe('The nextCursor of a truncated result, for the entities that follow.');

const created = { readOnly: false, idempotent: false };

/** A tool that deletes, and returns what the other server returns, whether or not there was something to delete. */
function deletion<Input extends z.ZodObject>(
  tool: { name: string; title: string; description: string; input: Input },
  what: string,
  change: (args: z.output<Input>) => object,
): Tool {
  return defineTool({
    ...tool,
    output: z.object({ success: z.boolean(), message: z.string() }),
    readOnly: false,
    idempotent: true,
    destructive: true,
    async run(args, context) {
      await changeGraph(change(args), context);
      return { success: true, message: `${what} deleted successfully` };
    },
    text: ({ message }) => message,
  });
}

/** A tool whose arguments are the request to the backend. */
const reader = (tool: { name: string; title: string; description: string; input: z.ZodObject }): Tool =>
  defineTool({ ...tool, output: graph, readOnly: true, idempotent: true, run: readGraph });

export const graphTools: readonly Tool[] = [
  defineTool({
    name: 'create_entities',
    title: 'Create entities',
    description:
      'Creates entities, such as people, projects or events, with observations about them. Names that exist already are left ' +
      'as they are. Returns the entities that were created.',
    input: z.object({ entities: many(entity) }),
    output: graph.pick({ entities: true }),
    ...created,
    run: async ({ entities }, context) =>
      member(await changeGraph({ createEntities: entities }, context), 'entities'),
    text: ({ entities }) => JSON.stringify(entities),
  }),
  defineTool({
    name: 'create_relations',
    title: 'Create relations',
    description:
      'Creates relations between entities, in active voice. Relations that exist already are left as they are. Returns the ' +
      'relations that were created.',
    input: z.object({ relations: many(relation) }),
    output: graph.pick({ relations: true }),
    ...created,
    run: async ({ relations }, context) =>
      member(await changeGraph({ createRelations: relations }, context), 'relations'),
    text: ({ relations }) => JSON.stringify(relations),
  }),
  defineTool({
    name: 'add_observations',
    title: 'Add observations',
    description:
      'Adds observations to entities that exist. Returns what was added to each; fails for an unknown entity.',
    input: z.object({
      observations: many(
        z.object({
          entityName: name.describe('The name of the entity.'),
          contents: observations.describe('The observations to add, one fact each.'),
        }),
      ),
    }),
    output: z.object({
      results: z.array(z.object({ entityName: z.string(), addedObservations: z.array(z.string()) })),
    }),
    ...created,
    run: async (args, context) =>
      member(await changeGraph({ addObservations: args.observations }, context), 'observations', 'results'),
    text: ({ results }) => JSON.stringify(results),
  }),
  deletion(
    {
      name: 'delete_entities',
      title: 'Delete entities',
      description: 'Deletes entities with their observations and relations. Unknown names are ignored.',
      input: z.object({ entityNames: many(name).describe('The names of the entities to delete.') }),
    },
    'Entities',
    ({ entityNames }) => ({ deleteEntities: entityNames }),
  ),
  deletion(
    {
      name: 'delete_observations',
      title: 'Delete observations',
      description: 'Deletes observations from entities. Unknown entities and observations are ignored.',
      input: z.object({
        deletions: many(
          z.object({
            entityName: name.describe('The name of the entity.'),
            observations: many(z.string()).describe('The observations to delete, word for word.'),
          }),
        ),
      }),
    },
    'Observations',
    ({ deletions }) => ({ deleteObservations: deletions }),
  ),
  deletion(
    {
      name: 'delete_relations',
      title: 'Delete relations',
      description: 'Deletes relations between entities. Unknown relations are ignored.',
      input: z.object({ relations: many(relation).describe('The relations to delete.') }),
    },
    'Relations',
    ({ relations }) => ({ deleteRelations: relations }),
  ),
  reader({
    name: 'read_graph',
    title: 'Read the graph',
    description:
      'Returns entities, by name, with their relations: all of them if they are few, otherwise a page and a note. To look for ' +
      'something, use search_nodes.',
    input: z.object({ cursor }),
  }),
  reader({
    name: 'search_nodes',
    title: 'Search nodes',
    description:
      'Returns the entities whose name, type or observations contain a text, in any case, with their relations.',
    input: z.object({
      query: z.string().max(MEMORY_STORE_LIMITS.queryLength).describe('The text to look for.'),
      cursor,
    }),
  }),
  reader({
    name: 'open_nodes',
    title: 'Open nodes',
    description: 'Returns entities by their names, with their relations. Unknown names are ignored.',
    input: z.object({ names: many(name).describe('The names of the entities.'), cursor }),
  }),
];

/** Makes one kind of change, and returns the backend's response. */
function changeGraph(change: object, { backend, signal }: ToolContext): Promise<unknown> {
  return backend.call({
    method: 'POST',
    path: '/graph',
    body: change,
    write: { repeatable: true },
    timeout: LIMITS.callTimeout,
    signal,
  });
}

function readGraph(request: object, { backend, signal }: ToolContext): Promise<unknown> {
  return backend.call({
    method: 'POST',
    path: '/graph/read',
    body: request,
    timeout: LIMITS.callTimeout,
    signal,
  });
}

/** One member of a response. A response without it is rejected by the tool's output schema. */
function member(reply: unknown, from: string, as: string = from): object {
  return { [as]: membersOf(reply)[from] };
}

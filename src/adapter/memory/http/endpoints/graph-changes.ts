import { z } from 'zod';
import { MEMORY_API_LIMITS, MEMORY_STORE_LIMITS } from '../../../../core/memory-limits.ts';
import type { GraphChange } from '../../store.ts';
import { defineEndpoint } from '../endpoint.ts';

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

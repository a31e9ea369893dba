// The shapes of the server @modelcontextprotocol/server-memory, which its tools and these share.
import { z } from 'zod';
import { membersOf } from '../../../core/foreign.ts';
import { MEMORY_API_LIMITS as LIMITS, MEMORY_STORE_LIMITS } from '../../../core/memory-limits.ts';
import type { ToolContext } from '../../tool.ts';

export const name = z.string().min(1).max(LIMITS.nameLength);
const observation = z.string().max(MEMORY_STORE_LIMITS.observationLength);

export function many<Item extends z.ZodType>(item: Item): z.ZodArray<Item> {
  return z.array(item).max(MEMORY_STORE_LIMITS.graphChanges);
}

export const observations = many(observation);

// Further members of arguments are ignored, so that a result can be sent back as it is.
export const entity = z.object({
  name: name.describe('The name of the entity, which identifies it.'),
  entityType: z
    .string()
    .max(MEMORY_STORE_LIMITS.entityTypeLength)
    .describe('The type of the entity, such as person, organization or event.'),
  observations: observations.describe('Facts about the entity, one each.'),
});

export const relation = z.object({
  from: name.describe('The name of the entity where the relation starts.'),
  to: name.describe('The name of the entity where the relation ends.'),
  relationType: z
    .string()
    .min(1)
    .max(MEMORY_STORE_LIMITS.relationTypeLength)
    .describe('The type of the relation, in active voice, such as works_at.'),
});

export const graph = z.looseObject({
  entities: z.array(
    z.object({ name: z.string(), entityType: z.string(), observations: z.array(z.string()) }),
  ),
  relations: z.array(z.object({ from: z.string(), to: z.string(), relationType: z.string() })),
  truncated: z.boolean().optional().describe('Whether the result is incomplete because of its limits.'),
  note: z.string().optional().describe('What is missing, and how to get it.'),
  nextCursor: z.string().optional(),
});

export const cursor = name
  .optional()
  .describe('The nextCursor of a truncated result, for the entities that follow.');

export const deleted = z.object({ success: z.boolean(), message: z.string() });

/** Makes one kind of change, and returns the backend's response. */
export function changeGraph(change: object, { backend, signal }: ToolContext): Promise<unknown> {
  return backend.call({
    method: 'POST',
    path: '/graph',
    body: change,
    write: { repeatable: true },
    timeout: LIMITS.callTimeout,
    signal,
  });
}

/** Deletes, and returns what the other server returns, whether or not there was something to delete. */
export async function deleteFrom(change: object, what: string, context: ToolContext): Promise<object> {
  await changeGraph(change, context);
  return { success: true, message: `${what} deleted successfully` };
}

export function readGraph(request: object, { backend, signal }: ToolContext): Promise<unknown> {
  return backend.call({
    method: 'POST',
    path: '/graph/read',
    body: request,
    timeout: LIMITS.callTimeout,
    signal,
  });
}

/** One member of a response. A response without it is rejected by the tool's output schema. */
export function member(reply: unknown, from: string, as: string = from): object {
  return { [as]: membersOf(reply)[from] };
}

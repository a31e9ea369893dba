import { z } from 'zod';
import { MEMORY_API_LIMITS, MEMORY_STORE_LIMITS } from '../../../../core/memory-limits.ts';
import type { AgentGraph, AgentGraphRequest } from '../../store.ts';
import { cursor, defineEndpoint } from '../endpoint.ts';

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
